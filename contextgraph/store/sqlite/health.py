"""Health checks of a memory file."""

from collections.abc import Callable, Iterator
from pathlib import Path

from contextgraph.errors import StoreError
from contextgraph.model import HealthCheck
from contextgraph.store.sqlite.connections import Connections
from contextgraph.store.sqlite.schema import VERSION, pragma, schema_version
from contextgraph.text import number_of

# Rows that refer to missing ones: the tables have no foreign keys to prevent them.
_DANGLING = """
SELECT (SELECT count(*) FROM fragment f LEFT JOIN trajectory t ON t.key = f.trajectory
        WHERE t.key IS NULL)
     + (SELECT count(*) FROM recovered r LEFT JOIN fragment f ON f.key = r.fragment
        WHERE f.key IS NULL)
     + (SELECT count(*) FROM met m LEFT JOIN error_pattern e ON e.key = m.error
        WHERE e.key IS NULL)
     + (SELECT count(*) FROM trajectory t LEFT JOIN raw r ON r.trajectory = t.key
        WHERE r.trajectory IS NULL)"""


def checks(connections: Connections) -> Iterator[HealthCheck]:
    """Reachable, schema version, integrity, writable, sizes; one that cannot be made has failed."""
    path = connections.path
    if not connections.in_memory and not Path(path).exists():
        yield HealthCheck("reachable", False, f"no memory at {path}", "learn something first")
        return
    for name, check in _CHECKS.items():
        try:
            yield check(connections)
        except StoreError as error:
            yield HealthCheck(name, False, str(error), _REMEDIES[name])


def _reachable(connections: Connections) -> HealthCheck:
    with connections.reading() as connection:
        connection.execute("SELECT count(*) FROM tenant").fetchone()
    return HealthCheck("reachable", True, connections.path)


def _schema(connections: Connections) -> HealthCheck:
    with connections.reading() as connection:
        return HealthCheck("schema version", True, f"{schema_version(connection)} of {VERSION}")


def _integrity(connections: Connections) -> HealthCheck:
    with connections.reading() as connection:
        found = [row[0] for row in connection.execute("PRAGMA quick_check")]
        dangling = connection.execute(_DANGLING).fetchone()[0]
    if found != ["ok"]:
        return HealthCheck("integrity", False, found[0], _REMEDIES["integrity"])
    if dangling:
        detail = f"{dangling} rows refer to missing ones"
        return HealthCheck("integrity", False, detail, _REMEDIES["integrity"])
    return HealthCheck("integrity", True, "no damage found")


def _writable(connections: Connections) -> HealthCheck:
    if connections.read_only:
        return HealthCheck("writable", True, "opened for reading only, not checked")
    with connections.writing():
        return HealthCheck("writable", True, "a transaction was opened")


def _sizes(connections: Connections) -> HealthCheck:
    with connections.reading() as connection:
        size = pragma(connection, "page_count") * pragma(connection, "page_size")
        runs = connection.execute("SELECT count(*) FROM trajectory").fetchone()[0]
        fragments = connection.execute("SELECT count(*) FROM fragment").fetchone()[0]
    detail = (
        f"{size / 1e6:.1f} MB, {number_of(runs, 'trajectory')}, {number_of(fragments, 'fragment')}"
    )
    return HealthCheck("sizes", True, detail)


_CHECKS: dict[str, Callable[[Connections], HealthCheck]] = {
    "reachable": _reachable,
    "schema version": _schema,
    "integrity": _integrity,
    "writable": _writable,
    "sizes": _sizes,
}
_REMEDIES = {
    "reachable": "name a memory file that this user may read",
    "schema version": "install a version of contextgraph-memory that knows it",
    "integrity": "restore the file from a copy, or learn the runs again into a new one",
    "writable": "check permissions and free space, and that no process holds the file locked",
    "sizes": "see the checks before",
}
