"""The schema of a memory on a server: made, checked and repaired; its named queries.

Constraints and indexes are those of ``cypher/schema.cypher``. Its statements run one by one, and
can be repeated; then the number of the schema is recorded. Vector indexes belong to embedding
spaces, one for each property of runs that holds vectors, and not to that file.
"""

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from contextgraph.errors import MemoryNotFoundError, SchemaError
from contextgraph.text import regex

if TYPE_CHECKING:
    from neo4j import Driver


_NAME = regex(r"^// name: (\w+)$", re.MULTILINE)


def cypher_folder() -> Path:
    """Folder of the schema and of queries: in the package, or beside it in a clone."""
    package = Path(__file__).parents[2]
    inside = package / "cypher"
    return inside if inside.is_dir() else package.parent / "cypher"


def query(name: str) -> str:
    """The text of the query of this name."""
    return queries()[name]


@cache
def queries() -> Mapping[str, str]:
    """All queries by name; raises `ValueError` where two have the same name."""
    by_name: dict[str, str] = {}
    for path in sorted((cypher_folder() / "queries").glob("*.cypher")):
        for name, text in _named(path.read_text(encoding="utf-8")):
            if name in by_name:
                raise ValueError(f"{path.name}: a second query named {name}")
            by_name |= _forms(name, text)
    return by_name


def statements(text: str) -> list[str]:
    """The statements of a file, each ended by a semicolon at the end of a line."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("//")]
    parts = re.split(r";[ \t]*$", "\n".join(lines), flags=re.MULTILINE)
    return [part.strip() for part in parts if part.strip()]


def _forms(name: str, text: str) -> dict[str, str]:
    """A query by its name; one with lines for a scope in two forms, each with its own lines."""
    lines = text.splitlines()
    forms = {
        f"{name}{form}": "\n".join(line for line in lines if not line.endswith(f"// {other}"))
        for form, other in (("_in_repo", "everywhere"), ("_everywhere", "in_repo"))
    }
    return {name: text} if len({text, *forms.values()}) == 1 else forms


def _named(text: str) -> Iterator[tuple[str, str]]:
    """Name and text of each query; what precedes the first one describes the file."""
    _, *parts = _NAME.split(text)
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        yield name, body.strip()


# It rises with each change of the schema or of what is stored.
NUMBER = 6
_NAMED = regex(r"CREATE\s+(?:\w+\s+)?(?:CONSTRAINT|INDEX)\s+(\w+)")
_CREATED_CONCURRENTLY = {
    "Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists",
    "Neo.ClientError.Schema.ConstraintAlreadyExists",
    "Neo.ClientError.Schema.ConstraintWithNameAlreadyExists",
    "Neo.ClientError.Schema.IndexAlreadyExists",
    "Neo.ClientError.Schema.IndexWithNameAlreadyExists",
}
_POLL_SECONDS = 0.1
INDEXES_WITHIN = 3600  # seconds: populating an index over a large memory takes time


class Repair(Struct, frozen=True):
    """The statements that create what the database lacks, or has with other options."""

    name: str
    statements: tuple[str, ...]


@cache
def indexes() -> Mapping[str, str]:
    """The indexes and constraints of the schema: name -> the statement that creates it."""
    text = (cypher_folder() / "schema.cypher").read_text(encoding="utf-8")
    return {_name_of(statement): statement for statement in statements(text)}


def _name_of(statement: str) -> str:
    named = _NAMED.match(statement)
    if named is None:
        raise ValueError(f"schema.cypher: not a constraint or an index: {statement}")
    return named[1]


def apply(driver: "Driver", database: str, steps: Iterable[str]) -> None:
    """Run the statements, and wait until all indexes are online.

    Each statement is a transaction of its own. Several processes may do so at once.
    """
    for statement in steps:
        run_statement(driver, database, statement)
    wait_for_indexes(driver, database, INDEXES_WITHIN)


def wait_for_indexes(driver: "Driver", database: str, seconds: float) -> None:
    """Return once all indexes are online.

    `db.awaitIndexes` keeps its locks while it waits: it blocked the constraint that another process
    was creating, whose index it waited for. Raises `SchemaError` where an index has failed, or is
    not online within *seconds*.
    """
    deadline = time.monotonic() + seconds
    statement = query("offline_indexes")
    while rows := driver.execute_query(statement, database_=database).records:
        if any(row["state"] == "FAILED" for row in rows) or time.monotonic() > deadline:
            states = ", ".join(f"{row['name']} is {row['state']}" for row in rows)
            raise SchemaError(states, "drop what has failed: the next that writes creates it")
        time.sleep(_POLL_SECONDS)


def run_statement(driver: "Driver", database: str, statement: str) -> None:
    """Run a repeatable *statement*, while other processes may run the same.

    For ``IF NOT EXISTS`` the server looks whether the index exists, then waits for its lock:
    another process may have created it by then. The driver retries deadlocks.
    """
    from neo4j.exceptions import ClientError

    try:
        driver.execute_query(statement, database_=database)
    except ClientError as error:
        if error.code not in _CREATED_CONCURRENTLY:
            raise
        driver.execute_query(statement, database_=database)


_OLDEST = (5, 26)
_PROPERTY = regex(r"embedding_([0-9]+_[0-9]+)")
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

    An empty database gets the schema, and what was dropped is created again, unless *read_only*.
    Raises `SchemaError` for a server that is too old, data of others or another schema,
    `MemoryNotFoundError` where there is no memory and none may be created.
    """
    check_version(driver, database)
    found = driver.execute_query(query("schema_number"), database_=database).records[0]
    number = found["number"]
    if number is None and found["any"]:
        raise SchemaError(
            f"{address} holds data, but no memory of schema {NUMBER}",
            "name an empty database; a memory of another version is exported by that version, "
            "then imported here",
        )
    if number is None and read_only:
        raise MemoryNotFoundError(f"no memory at {address}", "learn something first")
    if number is None:
        apply(driver, database, indexes().values())
        driver.execute_query(query("record_schema"), number=NUMBER, database_=database)
    elif number != NUMBER:
        raise SchemaError(
            f"{address} has schema {number}, this version has {NUMBER}",
            "export it with the version that wrote it, then import it into an empty database",
        )
    elif lacking := missing(driver, database):
        if read_only:
            names = ", ".join(repair.name for repair in lacking)
            remedy = f"run contextgraph call consolidate --store {address}, which creates it"
            raise SchemaError(f"{address} lacks {names}", remedy)
        apply(driver, database, (step for repair in lacking for step in repair.statements))


def check_version(driver: "Driver", database: str) -> None:
    """Raise `SchemaError` for a server that is too old."""
    version = server_version(driver, database)
    if version < _OLDEST:
        raise SchemaError(f"Neo4j {version[0]}.{version[1]} is too old", "run 5.26 or later")


def missing(driver: "Driver", database: str) -> tuple[Repair, ...]:
    """Return how to create indexes that were dropped, or do not fit the vectors."""
    return (*_dropped_indexes(driver, database), *_wrong_vector_indexes(driver, database))


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


def _dropped_indexes(driver: "Driver", database: str) -> tuple[Repair, ...]:
    """Return the statements that create dropped indexes and constraints again.

    Without them queries scan everything, and concurrent processes write duplicates.
    """
    found = driver.execute_query(query("index_names"), database_=database).records
    present = {row["name"] for row in found}
    return tuple(
        Repair(f"index {name}", (statement,))
        for name, statement in indexes().items()
        if name not in present
    )


def _wrong_vector_indexes(driver: "Driver", database: str) -> tuple[Repair, ...]:
    """Return the statements that create missing or unfit vector indexes again.

    ``IF NOT EXISTS`` ignores the latter, and queries would find nothing. An index without filters,
    as of a server that was upgraded, is used as on the older server.
    """
    version = server_version(driver, database)
    found = driver.execute_query(query("vector_indexes"), database_=database).records
    present = {row["name"]: (row["dimensions"], row["similarity"]) for row in found}
    spaces = driver.execute_query(query("vector_properties"), database_=database).records
    return tuple(
        _vector_index_repair(row["property"], version)
        for row in spaces
        if present.get(vector_index(row["property"])) != (_dimensions(row["property"]), "COSINE")
    )


def _vector_index_repair(property_: str, version: tuple[int, int]) -> Repair:
    name = vector_index(property_)
    drop = f"DROP INDEX {name} IF EXISTS"
    create = _vector_index_statement(property_, version)
    described = f"vector index {name} of {_dimensions(property_)} dimensions"
    return Repair(described, (drop, create))


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
