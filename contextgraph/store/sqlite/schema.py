"""The schema of a memory file, `schema.sql`, and its checksums.

There is a checksum for each run, each other table, and the schema: the exclusive or of the hashes
of its rows, so that triggers keep it current, as they take out a row in the same way as they put
one in. Indexes and full text are not rows; SQLite compares those with the rows itself.
"""

import hashlib
from collections import defaultdict
from functools import cache, lru_cache
from pathlib import Path
from sqlite3 import Connection
from typing import TypeAlias

from contextgraph.errors import MemoryNotFoundError, SchemaError, StoreError

# A run (by its key), or the name of another part and 0.
Group: TypeAlias = tuple[str, int]

_RUN = "run"
_RUN_OF = {"trajectory": "key"} | dict.fromkeys(
    ("raw", "facts", "fragment", "touched", "met", "caused", "recovered", "vectors"), "trajectory"
)
# ANALYZE may add the tables that are left out.
_SCHEMA = """
SELECT 'schema', 0, type, name, tbl_name, sql FROM sqlite_schema
WHERE name NOT LIKE 'sqlite!_stat%' ESCAPE '!'"""
# Neither the tables of SQLite and of its full-text indexes, nor that of the
_TABLES = """
SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'
AND name NOT LIKE 'sqlite!_%' ESCAPE '!' AND name NOT LIKE '%!_text!_%' ESCAPE '!'
AND name <> 'checksum' ORDER BY name"""
_ADD_ROW = """
INSERT INTO checksum SELECT {group}, row_hash({values}) WHERE true
ON CONFLICT DO UPDATE SET value = (value | excluded.value) - (value & excluded.value);"""
_ALL = "SELECT part, run, value FROM checksum"
_ROWS_OF_EVENTS = {"INSERT": ("NEW",), "UPDATE": ("OLD", "NEW"), "DELETE": ("OLD",)}


def prepare(connection: Connection) -> None:
    """Define what the triggers need in a *connection* that writes."""
    connection.create_function("row_hash", -1, _row_hash, deterministic=True)
    # Rows that REPLACE removes are seen by triggers only so.
    connection.execute("PRAGMA recursive_triggers = ON")


def create_triggers(connection: Connection) -> None:
    """Compute all checksums again, and keep them current from now on."""
    for table in _tables(connection):
        for event, rows in _ROWS_OF_EVENTS.items():
            body = "".join(_added(connection, table, row) for row in rows)
            connection.execute(
                f"CREATE TRIGGER checksum_{table}_{event.lower()} AFTER {event} ON {table} "
                f"BEGIN {body} END"
            )
    connection.execute("DELETE FROM checksum")
    connection.executemany(
        "INSERT INTO checksum VALUES (?, ?, ?)",
        [(*group, value) for group, value in _computed(connection).items()],
    )


def damaged(connection: Connection) -> list[str]:
    """Return parts with a wrong checksum: runs by their ids, and names of others."""
    connection.text_factory = _text
    try:
        computed = _computed(connection)
        stored = {(part, key): value for part, key, value in connection.execute(_ALL)}
        differing = [
            entry for entry in computed | stored if computed.get(entry, 0) != stored.get(entry, 0)
        ]
        runs = dict(connection.execute("SELECT key, id FROM trajectory"))
    finally:
        connection.text_factory = str
    return sorted(
        f"run {runs.get(key, key)}" if part == _RUN else str(part) for part, key in differing
    )


def _computed(connection: Connection) -> dict[Group, int]:
    """The checksums of what is stored."""
    counts: defaultdict[Group, int] = defaultdict(int)
    for table in _tables(connection):
        group = f"'{_RUN}', {_RUN_OF[table]}" if table in _RUN_OF else f"'{table}', 0"
        for part, key, *values in connection.execute(f"SELECT {group}, * FROM {table}"):
            counts[part, key] ^= _row_hash(table, *values)
    for part, key, *values in connection.execute(_SCHEMA):
        counts[part, key] ^= _row_hash(*values)
    return counts


def _tables(connection: Connection) -> list[str]:
    return [name for (name,) in connection.execute(_TABLES)]


def _added(connection: Connection, table: str, row: str) -> str:
    """SQL that adds the *row* (OLD or NEW) of *table* to its checksum, or takes it out."""
    columns = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
    group = f"'{_RUN}', {row}.{_RUN_OF[table]}" if table in _RUN_OF else f"'{table}', 0"
    values = ", ".join([f"'{table}'", *(f"{row}.{name}" for (name,) in columns)])
    return _ADD_ROW.format(group=group, values=values)


def _row_hash(*values: object) -> int:
    """Return the hash of a row with the types of its values: a text may turn into bytes."""
    kinds = tuple(map(type, values))
    # Nearly all values are texts and numbers: formatting them together takes half of the time.
    if bytes in kinds:
        data = b"\0".join(map(_bytes_of, values))
    else:
        data = (_form_of(kinds) % values).encode(errors="surrogateescape")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), signed=True)


@lru_cache(256)
def _form_of(kinds: tuple[type, ...]) -> str:
    """The format of values of these *kinds*."""
    return "\0".join("'%s" if kind is str else "%r" for kind in kinds)


def _bytes_of(value: object) -> bytes:
    if isinstance(value, bytes):
        return b"x" + value
    text = f"'{value}" if isinstance(value, str) else repr(value)
    return text.encode(errors="surrogateescape")


def _text(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


APPLICATION_ID = 0x43477261  # "CGra", in the header of every memory file

# Of `schema.sql`. What has another number is exported by the version that wrote it.
VERSION = 25
RUN_BITS = 20


def check_schema(connection: Connection, name: str) -> bool:
    """True for the current schema, False where nothing was ever written.

    Raises `StoreError` for a file of another program, `SchemaError` for one of another version.
    """
    application = pragma(connection, "application_id")
    if application != APPLICATION_ID:
        if application == 0 and _is_empty(connection):
            return False
        raise StoreError(f"{name} is a database of another program; name another file")
    version = schema_version(connection)
    if version != VERSION:
        raise SchemaError(
            f"{name} has schema {version}, this version has {VERSION}; "
            "export it with the version that wrote it, then import it into a new file"
        )
    return True


def not_created(name: str) -> MemoryNotFoundError:
    """The error for a memory that does not exist where none may be created."""
    return MemoryNotFoundError(f"no memory at {name}; learn something first")


def create(connection: Connection) -> None:
    """Make the tables of a new memory within the transaction that is open."""
    for statement in _statements():
        connection.execute(statement)
    create_triggers(connection)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


@cache
def _statements() -> list[str]:
    """Return the statements of `schema.sql`, without lines of comments."""
    text = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
    return [part for part in "\n".join(lines).split(";") if part.strip()]


def schema_version(connection: Connection) -> int:
    """The schema version of the file, 0 for a new one."""
    return pragma(connection, "user_version")


def pragma(connection: Connection, name: str) -> int:
    """The number that the pragma *name* has."""
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value


def _is_empty(connection: Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_schema").fetchone() is None
