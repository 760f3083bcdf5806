"""The schema of a memory on a server: created where there is none, checked, and repaired.

Vector indexes belong to embedding spaces: one for each property of runs that holds vectors. They
are not part of the migrations.
"""

import re
from typing import TYPE_CHECKING

from contextgraph.errors import MemoryNotFoundError, SchemaError
from contextgraph.store.neo4j.migrations import (
    Migration,
    applied_to,
    apply,
    indexes_of,
    migrations,
    missing_of,
    run_statement,
    wait_for_indexes,
)
from contextgraph.store.neo4j.queries import query

if TYPE_CHECKING:
    from neo4j import Driver

_OLDEST = (5, 26)
_PROPERTY = re.compile(r"embedding_([0-9]+_[0-9]+)")
# Names of labels and properties cannot be parameters; these are words of this module and numbers.
_CREATE_VECTOR_INDEX = """{language}
CREATE VECTOR INDEX {name} IF NOT EXISTS FOR (n:Trajectory) ON (n.{property}) {filters}
OPTIONS {{indexConfig: {{
    `vector.dimensions`: {dimensions}, `vector.similarity_function`: 'cosine'
}}}}"""
# On releases that can filter within an index it contains what scopes filter by.
_FILTERS = "WITH [n.tenant, n.repo, n.seen_at]"
_FILTERS_SINCE = (2026, 4)
_VECTOR_INDEXES_WITHIN = 300  # seconds


def check(driver: "Driver", database: str, address: str, *, read_only: bool) -> None:
    """Make sure that the schema is the one of this version.

    An empty database gets the schema, unless *read_only*. Raises `SchemaError` for a server that is
    too old or a schema that is not up to date, `MemoryNotFoundError` where there is no memory and
    none may be created.
    """
    check_version(driver, database)
    missing = pending(driver, database)
    if not missing:
        return
    if applied_to(driver, database):
        names = ", ".join(step.name for step in missing)
        raise SchemaError(f"{address} lacks {names}", f"run contextgraph migrate --store {address}")
    if driver.execute_query(query("any_node"), database_=database).records[0]["any"]:
        raise SchemaError(
            f"{address} holds data, but no memory",
            "name an empty database, or put a memory beside that data with "
            f"contextgraph migrate --store {address}",
        )
    if read_only:
        raise MemoryNotFoundError(f"no memory at {address}", "learn something first")
    for step in missing:
        apply(driver, database, step)


def check_version(driver: "Driver", database: str) -> None:
    """Raise `SchemaError` for a server that is too old."""
    version = server_version(driver, database)
    if version < _OLDEST:
        raise SchemaError(f"Neo4j {version[0]}.{version[1]} is too old", "run 5.26 or later")


def pending(driver: "Driver", database: str) -> tuple[Migration, ...]:
    """What *database* lacks: migrations, else indexes that were dropped or do not fit its vectors.

    Raises `SchemaError` where the migrations do not fit its record.
    """
    missing = missing_of(migrations(), applied_to(driver, database))
    wrong = missing or (
        *_dropped_indexes(driver, database),
        *_wrong_vector_indexes(driver, database),
    )
    return (*wrong, *_unused_vector_indexes(driver, database))


def create_vector_index(driver: "Driver", database: str, property_: str) -> None:
    """Create the index for vectors in *property_*, such as ``embedding_384_1``."""
    version = server_version(driver, database)
    run_statement(driver, database, _vector_index_statement(property_, version))
    wait_for_indexes(driver, database, _VECTOR_INDEXES_WITHIN)


def vector_index(property_: str) -> str:
    """The name of the index over the vectors in *property_* of runs."""
    return f"trajectory_embedding_{_numbers(property_)}"


def server_version(driver: "Driver", database: str) -> tuple[int, int]:
    """Such as (5, 26) or (2026, 9); raises `SchemaError` for one that cannot be parsed."""
    text = driver.execute_query(query("server"), database_=database).records[0]["version"]
    match = re.match(r"(\d+)\.(\d+)", text)
    if match is None:
        raise SchemaError(f"a server of unknown version {text!r}", "run Neo4j 5.26 or later")
    return int(match[1]), int(match[2])


def _dropped_indexes(driver: "Driver", database: str) -> tuple[Migration, ...]:
    """What creates dropped indexes and constraints again.

    Without them queries scan everything, and concurrent processes write duplicates.
    """
    indexes = driver.execute_query(query("index_names"), database_=database).records
    present = {row["name"] for row in indexes}
    return tuple(
        Migration(f"index {name}", (statement,), recorded=False)
        for name, statement in indexes_of(migrations()).items()
        if name not in present
    )


def _wrong_vector_indexes(driver: "Driver", database: str) -> tuple[Migration, ...]:
    """What creates vector indexes again that are missing or have another number of dimensions.

    ``IF NOT EXISTS`` ignores the latter, and queries would find nothing. An index without filters,
    as of a server that was upgraded, is used as on the older server.
    """
    version = server_version(driver, database)
    indexes = driver.execute_query(query("vector_indexes"), database_=database).records
    present = {row["name"]: (row["dimensions"], row["similarity"]) for row in indexes}
    spaces = driver.execute_query(query("vector_properties"), database_=database).records
    return tuple(
        _vector_index_repair(row["property"], version)
        for row in spaces
        if present.get(vector_index(row["property"])) != (_dimensions(row["property"]), "COSINE")
    )


def _unused_vector_indexes(driver: "Driver", database: str) -> tuple[Migration, ...]:
    """What drops the indexes of version 0.1 for the vectors of fragments."""
    indexes = driver.execute_query(query("vector_indexes"), database_=database).records
    return tuple(
        Migration(f"unused index {name}", (f"DROP INDEX {name} IF EXISTS",), recorded=False)
        for name in (row["name"] for row in indexes)
        if name.startswith("fragment_embedding_")
    )


def _vector_index_repair(property_: str, version: tuple[int, int]) -> Migration:
    name = vector_index(property_)
    drop = f"DROP INDEX {name} IF EXISTS"
    create = _vector_index_statement(property_, version)
    described = f"vector index {name} of {_dimensions(property_)} dimensions"
    return Migration(described, (drop, create), recorded=False)


def _vector_index_statement(property_: str, version: tuple[int, int]) -> str:
    has_filters = version >= _FILTERS_SINCE
    return _CREATE_VECTOR_INDEX.format(
        language="CYPHER 25" if has_filters else "",
        name=vector_index(property_),
        property=property_,
        filters=_FILTERS if has_filters else "",
        dimensions=_dimensions(property_),
    ).strip()


def _dimensions(property_: str) -> int:
    return int(_numbers(property_).partition("_")[0])


def _numbers(property_: str) -> str:
    match = _PROPERTY.fullmatch(property_)
    if match is None:
        raise SchemaError(f"vectors cannot be stored in {property_!r}", "remove that space")
    return match[1]
