"""The schema of a memory on a server: migrated, checked and repaired; its named queries.

A migration is a file ``V0001__name.cypher`` in ``cypher/migrations``. Its statements run one by
one; then it is recorded with a checksum, and must not be edited any more. One that was interrupted
runs again from its first statement, so all statements must be repeatable. Vector indexes belong to
embedding spaces, one for each property of runs that holds vectors, and not to migrations.
"""

import hashlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
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
    """Folder of queries and migrations: in the package, or beside it in a clone."""
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
    """The statements of a migration, each ended by a semicolon at the end of a line."""
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


_FILE = regex(r"V(\d{4})__(\w+)\.cypher")
_DDL = regex(r"(CREATE|DROP)\s+(CONSTRAINT|((FULLTEXT|LOOKUP|POINT|RANGE|TEXT|VECTOR)\s+)?INDEX)\b")
_NAMED = regex(r"(?P<what>CREATE|DROP)\s+(?:\w+\s+)?(?:CONSTRAINT|INDEX)\s+(?P<name>\w+)")
_CREATED_CONCURRENTLY = {
    "Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists",
    "Neo.ClientError.Schema.ConstraintAlreadyExists",
    "Neo.ClientError.Schema.ConstraintWithNameAlreadyExists",
    "Neo.ClientError.Schema.IndexAlreadyExists",
    "Neo.ClientError.Schema.IndexWithNameAlreadyExists",
}
# A statement that commits batches by itself cannot run in a managed transaction.
_BATCHED = regex(r"\bIN TRANSACTIONS\b")
# Steps of versions between 0.1 and 0.2. V0002 and V0003 do the same, and nothing where these were
# applied.
REPLACED = frozenset(
    "V0002__loops_and_former_ids V0003__remedies_as_data V0004__methodologies_of_errors "
    "V0005__notes V0006__advice_and_sources V0007__credit_of_advice V0008__newest_notes "
    "V0009__kinds_of_notes V0010__words_of_methodologies V0011__questions_about_recoveries".split()
)
_POLL_SECONDS = 0.1
INDEXES_WITHIN = 3600  # seconds: populating an index over a large memory takes time


class Migration(Struct, frozen=True):
    """One step: its *name* (``V0001__memory``) and its statements.

    One that is not *recorded* repairs what may be dropped again.
    """

    name: str
    statements: tuple[str, ...]
    recorded: bool = True

    @property
    def checksum(self) -> str:
        """SHA-256 of the statements, without comments and blank lines."""
        return hashlib.sha256("\0".join(self.statements).encode()).hexdigest()


def migrations(folder: Path | None = None) -> tuple[Migration, ...]:
    """The migrations in *folder*, or those of this version, in order.

    Raises `SchemaError` for a file that is not a migration: with another name, empty, not numbered
    consecutively, or with constraints or indexes beside data.
    """
    paths = sorted((folder or cypher_folder() / "migrations").glob("*.cypher"))
    return tuple(_migration(path, number) for number, path in enumerate(paths, start=1))


def missing_of(known: Sequence[Migration], applied: Mapping[str, str]) -> tuple[Migration, ...]:
    """Return the *known* migrations not yet *applied* (name -> checksum), in order.

    Raises `SchemaError` where a later version wrote the database, or where a migration was edited
    after it was applied.
    """
    by_name = {step.name: step for step in known}
    for name, checksum in sorted(applied.items()):
        if name in REPLACED:
            continue
        if name not in by_name:
            raise SchemaError(
                f"the memory has {name}, which this version does not know",
                "upgrade contextgraph-memory",
            )
        if by_name[name].checksum != checksum:
            raise SchemaError(
                f"{name}.cypher is not what was applied to the memory",
                "reinstall contextgraph-memory (changes belong in a new migration)",
            )
    return tuple(step for step in known if step.name not in applied)


def indexes_of(steps: Sequence[Migration]) -> dict[str, str]:
    """The indexes and constraints that exist after *steps*: name -> the statement."""
    created: dict[str, str] = {}
    for statement in (statement for step in steps for statement in step.statements):
        if named := _NAMED.match(statement):
            created.pop(named["name"], None)
            if named["what"] == "CREATE":
                created[named["name"]] = statement
    return created


def applied_to(driver: "Driver", database: str) -> dict[str, str]:
    """The checksums of the migrations that *database* records; none for one without a memory."""
    applied = driver.execute_query(query("applied_migrations"), database_=database).records
    return {row["name"]: row["checksum"] for row in applied}


def apply(driver: "Driver", database: str, step: Migration) -> None:
    """Apply *step*, wait until its indexes are online, then record it.

    Each statement is a transaction of its own. Several processes may do so at once.
    """
    run_statement(driver, database, query("unique_migrations"))
    for statement in step.statements:
        run_statement(driver, database, statement)
    wait_for_indexes(driver, database, INDEXES_WITHIN)
    if step.recorded:
        record = query("record_migration")
        driver.execute_query(record, name=step.name, checksum=step.checksum, database_=database)


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
            raise SchemaError(states, "drop it and run contextgraph call migrate")
        time.sleep(_POLL_SECONDS)


def run_statement(driver: "Driver", database: str, statement: str) -> None:
    """Run a repeatable *statement*, while other processes may run the same.

    For ``IF NOT EXISTS`` the server looks whether the index exists, then waits for its lock:
    another process may have created it by then. The driver retries deadlocks.
    """
    from neo4j.exceptions import ClientError

    if _BATCHED.search(statement):
        with driver.session(database=database) as session:
            session.run(statement).consume()
        return
    try:
        driver.execute_query(statement, database_=database)
    except ClientError as error:
        if error.code not in _CREATED_CONCURRENTLY:
            raise
        driver.execute_query(statement, database_=database)


def _migration(path: Path, number: int) -> Migration:
    named = _FILE.fullmatch(path.name)
    if named is None or int(named[1]) != number:
        raise SchemaError(f"{path.name}: expected V{number:04}__<name>.cypher")
    parsed = tuple(statements(path.read_text(encoding="utf-8")))
    if not parsed:
        raise SchemaError(f"{path.name}: no statement in it")
    if len({_DDL.match(statement) is None for statement in parsed}) > 1:
        raise SchemaError(f"{path.name}: constraints and indexes belong in a file without data")
    return Migration(path.stem, parsed)


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

    An empty database gets the schema, unless *read_only*. Raises `SchemaError` for a server that is
    too old or a schema that is not up to date, `MemoryNotFoundError` where there is no memory and
    none may be created.
    """
    check_version(driver, database)
    missing = pending(driver, database)
    if not missing:
        return
    holds_data = driver.execute_query(query("any_node"), database_=database).records[0]["any"]
    applied = applied_to(driver, database)
    # Without any data and all migrations it is new, or was broken off while it was made.
    if applied and (holds_data or not missing_of(migrations(), applied)):
        names = ", ".join(step.name for step in missing)
        raise SchemaError(
            f"{address} lacks {names}", f"run contextgraph call migrate --store {address}"
        )
    if holds_data:
        raise SchemaError(
            f"{address} holds data, but no memory",
            "name an empty database, or put a memory beside that data with "
            f"contextgraph call migrate --store {address}",
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
    """Return what *database* lacks: migrations, else indexes dropped or unfit for its vectors.

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
    """Return the statements that create dropped indexes and constraints again.

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
    """Return the statements that create missing or unfit vector indexes again.

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
    """Return the statements that drop the vector indexes of version 0.1."""
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
