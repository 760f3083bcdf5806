"""Checks of a memory file."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from sqlite3 import Connection

from contextgraph.errors import StoreError, StoreUnavailableError
from contextgraph.model import HealthCheck
from contextgraph.store.sqlite.connections import Connections
from contextgraph.store.sqlite.schema import pragma, schema_version
from contextgraph.text import number_of

# Texts are written in this alphabet only; of separators the index sees no difference.
_NOT_WRITTEN = """
SELECT 1 FROM {table} WHERE words GLOB '*[^a-z0-9_@ ]*' OR typeof(words) <> 'text'
OR length(words) <> length(CAST(words AS BLOB)) LIMIT 1"""
_NAMED = 10


def checks(connections: Connections, left_out: Sequence[str]) -> Iterator[HealthCheck]:
    """Yield reachable, schema version, integrity, writable, sizes; what cannot be made has failed.

    Nothing else is checked of a memory that cannot be read.
    """
    path = connections.path
    if not connections.in_memory and not Path(path).exists():
        yield HealthCheck("reachable", False, f"no memory at {path}", "learn something first")
        return
    for name, check in _CHECKS.items():
        if name in left_out:
            continue
        try:
            yield check(connections)
        except StoreError as error:
            yield HealthCheck(name, False, str(error), _REMEDIES[name])
            if name == "reachable":
                return


def _reachable(connections: Connections) -> HealthCheck:
    with connections.reading() as connection:
        connection.execute("SELECT count(*) FROM tenant").fetchone()
    return HealthCheck("reachable", True, connections.path)


def _schema(connections: Connections) -> HealthCheck:
    with connections.reading() as connection:
        return HealthCheck("schema version", True, str(schema_version(connection)))


def _integrity(connections: Connections) -> HealthCheck:
    with connections.reading() as connection:
        structure = [row[0] for row in connection.execute("PRAGMA integrity_check(1)")]
        problems = [] if structure == ["ok"] else structure
        if changed := connections.schema.damaged(connection):
            problems.append(f"changed since they were written: {_listed(changed)}")
        problems += _foreign_words(connections, connection)
    _compare_full_text(connections)
    if problems:
        return HealthCheck("integrity", False, "; ".join(problems), _REMEDIES["integrity"])
    return HealthCheck("integrity", True, "no damage found")


def _full_text(connections: Connections) -> list[str]:
    return [f"{table.name}_words" for table in connections.schema.tables if table.scope]


def _foreign_words(connections: Connections, connection: Connection) -> list[str]:
    return [
        f"{table} has words that were not written"
        for table in _full_text(connections)
        if connection.execute(_NOT_WRITTEN.format(table=table)).fetchone()
    ]


def _compare_full_text(connections: Connections) -> None:
    """Raise `StoreError` where a full-text index does not agree with its texts.

    SQLite does so by a statement that needs a writer; without one only texts are checked.
    """
    with suppress(StoreUnavailableError), connections.trying_to_write() as connection:
        for table in _full_text(connections):
            connection.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _writable(connections: Connections) -> HealthCheck:
    with connections.trying_to_write() as connection:
        # A transaction can also be opened where the file may only be read.
        connection.execute(f"PRAGMA user_version = {schema_version(connection)}")
    return HealthCheck("writable", True, "a transaction was opened")


def _sizes(connections: Connections) -> HealthCheck:
    parts = []
    with connections.reading() as connection:
        size = pragma(connection, "page_count") * pragma(connection, "page_size")
        for table in connections.schema.tables:
            if table.is_sized:
                rows = connection.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0]
                parts.append(number_of(rows, table.label.lower()))
    return HealthCheck("sizes", True, ", ".join([f"{size / 1e6:.1f} MB", *parts]))


_CHECKS: dict[str, Callable[[Connections], HealthCheck]] = {
    "reachable": _reachable,
    "schema version": _schema,
    "integrity": _integrity,
    "writable": _writable,
    "sizes": _sizes,
}
_REMEDIES = {
    "reachable": "name a memory file of this version that this user may read",
    "schema version": "install a version of contextgraph-memory that knows it",
    "integrity": "restore a backup, or learn the runs again into a new file",
    "writable": "check permissions and free space, and that no process holds the file locked",
    "sizes": "see the checks before",
}
