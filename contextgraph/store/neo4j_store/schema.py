"""The schema of a memory on a server: made where there is none, checked where there is one."""

from typing import TYPE_CHECKING

from contextgraph.errors import MemoryNotFoundError, SchemaError
from contextgraph.store.neo4j_store.migrations import (
    Migration,
    applied_to,
    apply,
    indexes_of,
    migrations,
    missing_of,
)
from contextgraph.store.neo4j_store.queries import query
from contextgraph.store.neo4j_store.server import server_version
from contextgraph.store.neo4j_store.vector_index import mending

if TYPE_CHECKING:
    from neo4j import Driver

_OLDEST = (5, 26)


def check(driver: "Driver", database: str, address: str, *, read_only: bool) -> None:
    """See that the schema is as this version needs it.

    A database that holds nothing yet gets the schema, unless *read_only*. Raises `SchemaError` for
    a server that is too old or a schema that is not up to date, `MemoryNotFoundError` where there
    is no memory and none may be made.
    """
    check_version(driver, database)
    missing = pending(driver, database)
    if not missing:
        return
    if applied_to(driver, database):
        names = ", ".join(step.name for step in missing)
        raise SchemaError(f"{address} lacks {names}; run contextgraph migrate --store {address}")
    if read_only:
        raise MemoryNotFoundError(f"no memory at {address}; learn something first")
    if _holds_anything(driver, database):
        raise SchemaError(
            f"{address} holds data, but no memory; name an empty database, or put a memory beside "
            f"that data with contextgraph migrate --store {address}"
        )
    for step in missing:
        apply(driver, database, step)


def check_version(driver: "Driver", database: str) -> None:
    """Raise `SchemaError` for a server that is too old."""
    version = server_version(driver, database)
    if version < _OLDEST:
        raise SchemaError(f"Neo4j {version[0]}.{version[1]} is too old; run 5.26 or later")


def pending(driver: "Driver", database: str) -> tuple[Migration, ...]:
    """What *database* lacks: steps, else what was dropped of them, or does not fit its vectors.

    Raises `SchemaError` where the steps do not fit its record.
    """
    missing = missing_of(migrations(), applied_to(driver, database))
    return missing or (*_dropped(driver, database), *mending(driver, database))


def _dropped(driver: "Driver", database: str) -> tuple[Migration, ...]:
    """What makes indexes and constraints again that are there no more.

    Without them queries read everything, and processes that write at once make duplicates.
    """
    found = driver.execute_query(query("index_names"), database_=database).records
    there = {row["name"] for row in found}
    return tuple(
        Migration(f"index {name}", (statement,), once=False)
        for name, statement in indexes_of(migrations()).items()
        if name not in there
    )


def _holds_anything(driver: "Driver", database: str) -> bool:
    found = driver.execute_query(query("any_node"), database_=database)
    return bool(found.records[0]["any"])
