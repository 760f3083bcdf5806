"""The schema of a memory on a server, made of the declarations of its tables.

A table has a constraint that its keys are unique, its range indexes, and a full-text index where
its rows have words. Statements run one by one and can be repeated; then the number of the schema is
recorded. Vector indexes belong to embedding spaces: one for each property that holds vectors.
"""

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from contextgraph.errors import MemoryNotFoundError, SchemaError
from contextgraph.store.port import KEY, SOURCE, TARGET, VALUE, Table
from contextgraph.text import regex

if TYPE_CHECKING:
    from neo4j import Driver

# It rises with each change of what is stored that the declarations do not show.
NUMBER = 10
# Names of a row's parts that are called otherwise as properties.
PROPERTIES = {KEY: "id", VALUE: "value", SOURCE: "source", TARGET: "target"}
# Nodes beside those of tables: what makes one of them unique.
_OWN = {
    "Memory": ("tenant",),
    # Two processes that make the memory leave one record of its schema.
    "Schema": ("name",),
    "VectorSlot": ("tenant", "table", "space"),
}
_LUCENE = "OPTIONS {indexConfig: {`fulltext.analyzer`: 'whitespace'}}"
SERVER = """
CALL dbms.components() YIELD name, versions, edition
WHERE name = 'Neo4j Kernel'
RETURN versions[0] AS version, edition"""
OFFLINE = """
SHOW INDEXES YIELD name, state
WHERE state <> 'ONLINE'
RETURN name, state
ORDER BY name"""
_NAMES = "SHOW INDEXES YIELD name RETURN name"
_VECTOR_INDEXES = """
SHOW VECTOR INDEXES YIELD name, options
RETURN name, options.indexConfig['vector.dimensions'] AS dimensions,
    toUpper(options.indexConfig['vector.similarity_function']) AS similarity"""
# Spaces of all tenants share the indexes of a database.
_SLOTS = "MATCH (s:VectorSlot) RETURN DISTINCT s.table AS table, s.property AS property"
_NUMBER = "OPTIONAL MATCH (s:Schema) RETURN max(s.number) AS number, EXISTS { MATCH () } AS any"
_RECORD = "MERGE (s:Schema {name: 'memory'}) SET s.number = $number"
# Names of labels and properties cannot be parameters: these are of declarations, and numbers.
_CREATE_VECTOR_INDEX = """
CREATE VECTOR INDEX {name} IF NOT EXISTS FOR (n:{label}) ON (n.{property})
OPTIONS {{indexConfig: {{
    `vector.dimensions`: {dimensions}, `vector.similarity_function`: 'cosine'
}}}}"""
_CREATED_CONCURRENTLY = {
    "Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists",
    "Neo.ClientError.Schema.ConstraintAlreadyExists",
    "Neo.ClientError.Schema.ConstraintWithNameAlreadyExists",
    "Neo.ClientError.Schema.IndexAlreadyExists",
    "Neo.ClientError.Schema.IndexWithNameAlreadyExists",
}
_POLL_SECONDS = 0.1
_INDEXES_WITHIN = 3600  # seconds: populating an index over a large memory takes time
_VECTOR_INDEXES_WITHIN = 300
_OLDEST = (5, 26)
_PROPERTY = regex(r"embedding_([0-9]+)_[0-9]+")


class Repair(Struct, frozen=True):
    """The statements that create what the database lacks, or has with other options."""

    name: str
    statements: tuple[str, ...]


def words_index(table: Table) -> str:
    """Return the name of the full-text index of *table*."""
    return f"{table.name}_words"


def vector_index(label: str, property_: str) -> str:
    """Return the name of the index over the vectors in *property_*, such as ``embedding_384_1``."""
    return f"{label.lower()}_{property_}"


def has_vector_index(table: Table) -> bool:
    """Return whether vectors of *table* are searched without looking at all rows."""
    return bool(table.scope) and not table.ends


def vector_property(dimensions: int, number: int) -> str:
    """Return the property for vectors of the space number *number* of these *dimensions*."""
    return f"embedding_{dimensions}_{number}"


class Schema:
    """The constraints and indexes of *tables*."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self.tables = {table.name: table for table in tables}
        self.indexes: Mapping[str, str] = dict(_statements(tables))
        # The vector indexes that this process has made sure of.
        self._vector_indexes: set[str] = set()

    def has_vectors(self, table: Table, property_: str) -> bool:
        """Return whether `create_vector_index` was called for these vectors."""
        return vector_index(table.label, property_) in self._vector_indexes

    def check(self, driver: "Driver", database: str, address: str, *, read_only: bool) -> None:
        """Make sure that the database has the schema of this version.

        An empty database gets it, and what was dropped is created again, unless *read_only*. Raises
        `SchemaError` for a server that is too old, data of others or another schema,
        `MemoryNotFoundError` where there is no memory and none may be created.
        """
        version = server_version(driver, database)
        if version < _OLDEST:
            raise SchemaError(f"Neo4j {version[0]}.{version[1]} is too old", "run 5.26 or later")
        found = driver.execute_query(_NUMBER, database_=database).records[0]
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
            self.apply(driver, database, self.indexes.values())
            driver.execute_query(_RECORD, number=NUMBER, database_=database)
        elif number != NUMBER:
            raise SchemaError(
                f"{address} has schema {number}, this version has {NUMBER}",
                "export it with the version that wrote it, then import it into an empty database",
            )
        elif lacking := self.missing(driver, database):
            if read_only:
                names = ", ".join(repair.name for repair in lacking)
                remedy = f"run contextgraph call consolidate --store {address}, which creates it"
                raise SchemaError(f"{address} lacks {names}", remedy)
            self.apply(driver, database, (step for repair in lacking for step in repair.statements))

    def apply(self, driver: "Driver", database: str, steps: Iterable[str]) -> None:
        """Run the statements, and wait until all indexes are online.

        Each statement is a transaction of its own. Several processes may do so at once.
        """
        for statement in steps:
            run_statement(driver, database, statement)
        _wait_for_indexes(driver, database, _INDEXES_WITHIN)

    def missing(self, driver: "Driver", database: str) -> tuple[Repair, ...]:
        """Return how to create indexes that were dropped, or do not fit the vectors.

        Without them queries scan everything, and concurrent processes write duplicates.
        """
        found = driver.execute_query(_NAMES, database_=database).records
        present = {row["name"] for row in found}
        dropped = (
            Repair(f"index {name}", (statement,))
            for name, statement in self.indexes.items()
            if name not in present
        )
        return (*dropped, *self._wrong_vector_indexes(driver, database))

    def create_vector_index(
        self, driver: "Driver", database: str, table: Table, property_: str
    ) -> None:
        """Create the index for vectors of *table* in *property_*, where there is none."""
        run_statement(driver, database, _vector_index_statement(table.label, property_))
        _wait_for_indexes(driver, database, _VECTOR_INDEXES_WITHIN)
        self._vector_indexes.add(vector_index(table.label, property_))

    def _wrong_vector_indexes(self, driver: "Driver", database: str) -> Iterator[Repair]:
        """Yield the statements that create missing or unfit vector indexes again.

        ``IF NOT EXISTS`` ignores the latter, and queries would find nothing.
        """
        found = driver.execute_query(_VECTOR_INDEXES, database_=database).records
        present = {row["name"]: (row["dimensions"], row["similarity"]) for row in found}
        for row in driver.execute_query(_SLOTS, database_=database).records:
            table, property_ = self.tables.get(row["table"]), row["property"]
            if table is None or not has_vector_index(table):
                continue
            name, dimensions = vector_index(table.label, property_), _dimensions(property_)
            if present.get(name) != (dimensions, "COSINE"):
                create = _vector_index_statement(table.label, property_)
                yield Repair(
                    f"vector index {name} of {dimensions} dimensions",
                    (f"DROP INDEX {name} IF EXISTS", create),
                )


def _statements(tables: Sequence[Table]) -> Iterator[tuple[str, str]]:
    """Yield the name of each constraint and index, and the statement that creates it."""
    for label, unique in _OWN.items():
        yield _constraint(f"{label.lower()}_key", f"(n:{label})", unique)
    for table in tables:
        of = f"()-[n:{table.label}]-()" if table.ends else f"(n:{table.label})"
        if table.ends:
            # Writers of a tenant wait for one another: a unique index would cost more.
            name = f"{table.name}_id"
            yield name, f"CREATE RANGE INDEX {name} IF NOT EXISTS FOR {of} ON (n.tenant, n.id)"
        else:
            yield _constraint(f"{table.name}_id", of, ("tenant", "id"))
        for index in table.indexes:
            if index in ((SOURCE,), (TARGET,)):
                continue  # relations are found from their nodes
            named = [column.removeprefix("-") for column in index]
            name = f"{table.name}_by_{'_'.join(named)}"
            columns = ", ".join(f"n.{PROPERTIES.get(one, one)}" for one in ("tenant", *named))
            yield name, f"CREATE RANGE INDEX {name} IF NOT EXISTS FOR {of} ON ({columns})"
        if table.scope:
            name = words_index(table)
            yield (
                name,
                f"CREATE FULLTEXT INDEX {name} IF NOT EXISTS FOR {of} ON EACH [n.words] {_LUCENE}",
            )
        for label, *_ in table.listed.values():
            yield _constraint(f"{label.lower()}_id", f"(n:{label})", ("tenant", "id"))


def _constraint(name: str, of: str, unique: Sequence[str]) -> tuple[str, str]:
    columns = ", ".join(f"n.{one}" for one in unique)
    return name, f"CREATE CONSTRAINT {name} IF NOT EXISTS FOR {of} REQUIRE ({columns}) IS UNIQUE"


def _wait_for_indexes(driver: "Driver", database: str, seconds: float) -> None:
    """Return once all indexes are online.

    `db.awaitIndexes` keeps its locks while it waits: it blocked the constraint that another process
    was creating, whose index it waited for. Raises `SchemaError` where an index has failed, or is
    not online within *seconds*.
    """
    deadline = time.monotonic() + seconds
    while rows := driver.execute_query(OFFLINE, database_=database).records:
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


def server_version(driver: "Driver", database: str) -> tuple[int, int]:
    """Return such as (5, 26) or (2026, 9); raises `SchemaError` for one that cannot be parsed."""
    text = driver.execute_query(SERVER, database_=database).records[0]["version"]
    match = re.match(r"(\d+)\.(\d+)", text)
    if match is None:
        raise SchemaError(f"a server of unknown version {text!r}", "run Neo4j 5.26 or later")
    return int(match[1]), int(match[2])


def _vector_index_statement(label: str, property_: str) -> str:
    return _CREATE_VECTOR_INDEX.format(
        name=vector_index(label, property_),
        label=label,
        property=property_,
        dimensions=_dimensions(property_),
    ).strip()


def _dimensions(property_: str) -> int:
    match = _PROPERTY.fullmatch(property_)
    if match is None:
        raise SchemaError(f"vectors cannot be stored in {property_!r}", "remove that space")
    return int(match[1])
