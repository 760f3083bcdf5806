"""Migrations of the schema on a server, applied in order and recorded in the database.

A migration is a file ``V0001__name.cypher`` in ``cypher/migrations``. Its statements run one by
one; then it is recorded with a checksum, and must not be edited any more. One that was interrupted
runs again from its first statement, so all statements must be repeatable.
"""

import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from contextgraph.errors import SchemaError
from contextgraph.store.neo4j.queries import (
    cypher_folder,
    query,
    statements,
)

if TYPE_CHECKING:
    from neo4j import Driver

_FILE = re.compile(r"V(\d{4})__(\w+)\.cypher")
_DDL = re.compile(
    r"(CREATE|DROP)\s+(CONSTRAINT|((FULLTEXT|LOOKUP|POINT|RANGE|TEXT|VECTOR)\s+)?INDEX)\b"
)
_NAMED = re.compile(r"(?P<what>CREATE|DROP)\s+(?:\w+\s+)?(?:CONSTRAINT|INDEX)\s+(?P<name>\w+)")
_CREATED_CONCURRENTLY = {
    "Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists",
    "Neo.ClientError.Schema.ConstraintAlreadyExists",
    "Neo.ClientError.Schema.ConstraintWithNameAlreadyExists",
    "Neo.ClientError.Schema.IndexAlreadyExists",
    "Neo.ClientError.Schema.IndexWithNameAlreadyExists",
}
# A statement that commits batches by itself cannot run in a managed transaction.
_BATCHED = re.compile(r"\bIN TRANSACTIONS\b")
# Steps of versions between 0.1 and 0.2. V0002 and V0003 do the same, and nothing where these were
# applied.
REPLACED = frozenset(
    "V0002__loops_and_former_ids V0003__remedies_as_data V0004__methodologies_of_errors "
    "V0005__notes V0006__advice_and_sources V0007__credit_of_advice V0008__newest_notes "
    "V0009__kinds_of_notes V0010__words_of_methodologies V0011__questions_about_recoveries".split()
)
_POLL_SECONDS = 0.1
INDEXES_WITHIN = 3600  # seconds: populating an index over a large memory takes time


@dataclass(frozen=True, slots=True)
class Migration:
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
    """Those of *known* that are not yet *applied* (name -> checksum), in order.

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
            raise SchemaError(states, "drop it and run contextgraph migrate")
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
