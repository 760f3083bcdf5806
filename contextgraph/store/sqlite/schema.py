"""The schema of a memory file, made of the declarations of its tables, and its checksums.

There is a checksum for each part that a declaration names, each other table, and the schema: the
exclusive or of the hashes of its rows, so that triggers keep it current, as they take out a row in
the same way as they put one in. Indexes and full text are not rows; SQLite compares those with the
rows itself.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from sqlite3 import Connection
from typing import TypeAlias

from msgspec.msgpack import Encoder

from contextgraph.errors import MemoryNotFoundError, SchemaError, StoreError
from contextgraph.store.port import Table

# The name of a part, and its key; empty for a table that is a part as a whole.
Group: TypeAlias = tuple[str, str]

_TYPES = {str: "TEXT", int: "INTEGER", float: "REAL", bool: "INTEGER", datetime: "INTEGER"}
# ANALYZE may add the tables that are left out.
_SCHEMA = """
SELECT 'schema', '', type, name, tbl_name, sql FROM sqlite_schema
WHERE name NOT LIKE 'sqlite!_stat%' ESCAPE '!'"""
# Neither the tables of SQLite and of its full-text indexes, nor that of the checksums.
_TABLES = """
SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'
AND name NOT LIKE 'sqlite!_%' ESCAPE '!' AND name NOT LIKE '%!_words!_%' ESCAPE '!'
AND name <> 'checksum' ORDER BY name"""
_ADD_ROW = """
INSERT INTO checksum SELECT {group}, row_hash({values}) WHERE true
ON CONFLICT DO UPDATE SET value = (value | excluded.value) - (value & excluded.value);"""
_ALL = "SELECT part, key, value FROM checksum"
_ROWS_OF_EVENTS = {"INSERT": ("NEW",), "UPDATE": ("OLD", "NEW"), "DELETE": ("OLD",)}
# Newer vectors have greater keys; they have no data where a row has no words to embed.
_COMMON = """
CREATE TABLE tenant (key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, revision INTEGER NOT NULL);
CREATE TABLE vector (key INTEGER PRIMARY KEY AUTOINCREMENT, tenant INTEGER NOT NULL,
    name TEXT NOT NULL, owner INTEGER NOT NULL, space TEXT NOT NULL, data BLOB,
    UNIQUE (name, owner, space));
CREATE INDEX vector_of_space ON vector (tenant, name, space, key) WHERE data IS NOT NULL;
CREATE TABLE checksum (part TEXT NOT NULL, key TEXT NOT NULL, value INTEGER NOT NULL,
    PRIMARY KEY (part, key)) WITHOUT ROWID"""
# Only which words occur is stored.
_WORDS = "USING fts5 (words, detail=none, columnsize=0, tokenize=\"ascii tokenchars '_@'\")"

_CHECKSUMS = "blake2b of MessagePack"
_encoded = Encoder().encode

APPLICATION_ID = 0x43477261  # "CGra", in the header of every memory file
# Every release before this one wrote less.
_LEAST_VERSION = 1 << 16


class Schema:
    """The tables of a file, by their declarations."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self.tables = tables
        text = "\n".join((*self._statements(), _CHECKSUMS))
        digest = blake2b(text.encode(), digest_size=3).digest()
        # What a file says about itself: another digest, other tables or checksums.
        self.version = _LEAST_VERSION + int.from_bytes(digest)
        self._parts = {table.name: table.part_of for table in tables if table.part_of is not None}

    def check(self, connection: Connection, name: str) -> bool:
        """Return whether the file has these tables, False for an empty one.

        Raises `StoreError` for a file of another program, `SchemaError` for one of another version.
        """
        application = pragma(connection, "application_id")
        if application != APPLICATION_ID:
            if application == 0 and _is_empty(connection):
                return False
            raise StoreError(f"{name} is a database of another program; name another file")
        version = schema_version(connection)
        if version != self.version:
            raise SchemaError(
                f"{name} has schema {version}, this version has {self.version}; "
                "export it with the version that wrote it, then import it into a new file"
            )
        return True

    def create(self, connection: Connection) -> None:
        """Create the tables within the transaction that is open."""
        for statement in self._statements():
            connection.execute(statement)
        self.create_triggers(connection)
        connection.executemany(
            "INSERT INTO checksum VALUES (?, ?, ?)",
            [(*group, value) for group, value in self._computed(connection).items()],
        )
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {self.version}")

    def create_triggers(self, connection: Connection) -> None:
        """Create the triggers that keep checksums current."""
        for table in [name for (name,) in connection.execute(_TABLES)]:
            for event, rows in _ROWS_OF_EVENTS.items():
                body = "".join(self._added(connection, table, row) for row in rows)
                connection.execute(
                    f"CREATE TRIGGER checksum_{table}_{event.lower()} AFTER {event} ON {table} "
                    f"BEGIN {body} END"
                )

    def damaged(self, connection: Connection) -> list[str]:
        """Return parts with a wrong checksum, and what they are part of."""
        connection.text_factory = _text
        try:
            computed = self._computed(connection)
            stored = {(part, key): value for part, key, value in connection.execute(_ALL)}
        finally:
            connection.text_factory = str
        differing = [
            entry for entry in computed | stored if computed.get(entry, 0) != stored.get(entry, 0)
        ]
        return sorted(f"{part} {key}".strip() for part, key in differing)

    def _statements(self) -> Iterator[str]:
        yield from _COMMON.split(";")
        for table in self.tables:
            own = [
                f'"{column}" {_TYPES[kind]}'
                for column, kind in table.columns.items()
                if kind is not tuple
            ]
            ends = ["source TEXT NOT NULL", "target TEXT NOT NULL"] if table.ends else []
            columns = ", ".join(["tenant INTEGER NOT NULL", "key TEXT NOT NULL", *ends, *own])
            yield (f"CREATE TABLE {table.name} (rowid INTEGER PRIMARY KEY, {columns}, value)")
            yield f"CREATE UNIQUE INDEX {table.name}_by_key ON {table.name} (tenant, key)"
            for index in table.indexes:
                listed = ", ".join(map(ordered, index))
                yield f"CREATE INDEX {index_name(table, index)} ON {table.name} (tenant, {listed})"
            for column in several_of(table):
                name = f"{table.name}_{column}"
                yield (
                    f"CREATE TABLE {name} (tenant INTEGER NOT NULL, text TEXT NOT NULL, "
                    "owner INTEGER NOT NULL, PRIMARY KEY (tenant, text, owner)) WITHOUT ROWID"
                )
                yield f"CREATE INDEX {name}_of ON {name} (owner, text)"
            if table.scope:
                yield f"CREATE VIRTUAL TABLE {table.name}_words {_WORDS}"
                yield (
                    f"CREATE VIRTUAL TABLE {table.name}_vocabulary "
                    f"USING fts5vocab ({table.name}_words, row)"
                )

    def _computed(self, connection: Connection) -> dict[Group, int]:
        """Return the checksums of what is stored."""
        counts: defaultdict[Group, int] = defaultdict(int)
        for (table,) in connection.execute(_TABLES).fetchall():
            group = self._group(table, "")
            for part, key, *values in connection.execute(f"SELECT {group}, * FROM {table}"):
                counts[part, key] ^= _row_hash(table, *values)
        for part, key, *values in connection.execute(_SCHEMA):
            counts[part, key] ^= _row_hash(*values)
        return counts

    def _group(self, table: str, prefix: str) -> str:
        if table in self._parts:
            part, column = self._parts[table]
            return f"'{part}', {prefix}\"{column}\""
        return f"'{table}', ''"

    def _added(self, connection: Connection, table: str, row: str) -> str:
        """Return SQL that adds the *row* (OLD or NEW) to its checksum, or takes it out."""
        columns = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
        values = ", ".join([f"'{table}'", *(f'{row}."{name}"' for (name,) in columns)])
        return _ADD_ROW.format(group=self._group(table, f"{row}."), values=values)


def index_name(table: Table, index: Sequence[str]) -> str:
    """Return the name of an index."""
    return f"{table.name}_by_{'_'.join(column.removeprefix('-') for column in index)}"


def ordered(column: str, prefix: str = "") -> str:
    """Return a column of an order in SQL."""
    name = column.removeprefix("-")
    return f'{prefix}"{name}" DESC' if name != column else f'{prefix}"{name}"'


@lru_cache(100)
def several_of(table: Table) -> tuple[str, ...]:
    """Return the columns of *table* that have several texts."""
    return tuple(name for name, kind in table.columns.items() if kind is tuple)


def prepare(connection: Connection) -> None:
    """Define what the triggers need in a *connection* that writes."""
    connection.create_function("row_hash", -1, _row_hash, deterministic=True)
    # Rows that REPLACE removes are seen by triggers only so.
    connection.execute("PRAGMA recursive_triggers = ON")


def not_created(name: str) -> MemoryNotFoundError:
    """Return the error for a memory that does not exist where none may be created."""
    return MemoryNotFoundError(f"no memory at {name}; learn something first")


def _row_hash(*values: object) -> int:
    """Return the hash of a row with the types of its values: a text may turn into bytes."""
    return int.from_bytes(blake2b(_encoded(values), digest_size=8).digest(), signed=True)


def _text(data: bytes) -> str | bytes:
    """Return a text as it is stored; one that is damaged is none."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def schema_version(connection: Connection) -> int:
    """Return the schema version of the file, 0 for a new one."""
    return pragma(connection, "user_version")


def pragma(connection: Connection, name: str) -> int:
    """Return the number that the pragma *name* has."""
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value


def _is_empty(connection: Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_schema").fetchone() is None
