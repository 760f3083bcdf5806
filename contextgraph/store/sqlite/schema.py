"""The schema of a memory file: `schema.sql` for a new one, and scripts for older ones."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from sqlite3 import Connection

from contextgraph.errors import (
    MemoryNotFoundError,
    SchemaError,
    StoreError,
)
from contextgraph.store.sqlite import checksums

APPLICATION_ID = 0x43477261  # "CGra", in the header of every memory file

# Version of a file -> the script that upgrades it, and the version that it has then. Release 0.1
# wrote version 4; those between are of no release.
SCRIPTS: Mapping[int, tuple[str, int]] = {0: ("schema", 18), 4: ("upgrade_0_1", 18)}
VERSION = max(version for _, version in SCRIPTS.values())
RUN_BITS = 20


def check_schema(connection: Connection, name: str) -> bool:
    """True for the current schema, False where the file has to be migrated.

    Raises `StoreError` for a file of another program, `SchemaError` for one of a later version.
    """
    application = pragma(connection, "application_id")
    if application != APPLICATION_ID:
        if application == 0 and _is_empty(connection):
            return False
        raise StoreError(f"{name} is a database of another program; name another file")
    version = schema_version(connection)
    if version > VERSION:
        raise SchemaError(
            f"{name} has schema {version}, this version knows {VERSION}; "
            "upgrade contextgraph-memory"
        )
    if version != VERSION and version not in SCRIPTS:
        raise SchemaError(
            f"{name} has schema {version}, which no release wrote; "
            "export it with the version that wrote it, then import it"
        )
    return version == VERSION


def is_new(connection: Connection) -> bool:
    """True where nothing was ever written."""
    return pragma(connection, "application_id") == 0


def not_migrated(connection: Connection, name: str) -> StoreError:
    """The error for a file that only a writer may create or migrate."""
    if is_new(connection):
        return not_created(name)
    return SchemaError(
        f"{name} has schema {schema_version(connection)}, older than {VERSION}; "
        "`contextgraph migrate` brings it up to date"
    )


def not_created(name: str) -> MemoryNotFoundError:
    """The error for a memory that does not exist where none may be created."""
    return MemoryNotFoundError(f"no memory at {name}; learn something first")


def migrate(connection: Connection) -> None:
    """Bring the schema up to date within the transaction that is open."""
    checksums.drop_triggers(connection)
    for script in pending(schema_version(connection)):
        for statement in _statements(script):
            connection.execute(statement)
    checksums.create_triggers(connection)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def pending(version: int) -> tuple[str, ...]:
    """Return the names of the scripts that lead from *version* to the current one."""
    scripts = []
    while version != VERSION:
        script, version = SCRIPTS[version]
        scripts.append(script)
    return tuple(scripts)


@cache
def _statements(script: str) -> list[str]:
    """Return the statements of a script, without lines of comments."""
    text = Path(__file__).with_name(f"{script}.sql").read_text(encoding="utf-8")
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
