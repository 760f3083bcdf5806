"""How the schema on a server becomes what this version needs: one step after the other.

A step is a file ``V0001__name.cypher`` in ``cypher/migrations``. It is applied statement by
statement, recorded in the database with a checksum of its statements, and never edited from then
on. A step that was broken off is applied again from its start, so all statements must bear that.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from contextgraph.errors import SchemaError
from contextgraph.store.neo4j_store.queries import cypher_folder, query, statements

if TYPE_CHECKING:
    from neo4j import Driver

_FILE = re.compile(r"V(\d{4})__(\w+)\.cypher")
_DDL = re.compile(
    r"(CREATE|DROP)\s+(CONSTRAINT|((FULLTEXT|LOOKUP|POINT|RANGE|TEXT|VECTOR)\s+)?INDEX)\b"
)
_NAMED = re.compile(r"(?P<what>CREATE|DROP)\s+(?:\w+\s+)?(?:CONSTRAINT|INDEX)\s+(?P<name>\w+)")
_MADE_MEANWHILE = {
    "Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists",
    "Neo.ClientError.Schema.ConstraintAlreadyExists",
    "Neo.ClientError.Schema.ConstraintWithNameAlreadyExists",
    "Neo.ClientError.Schema.IndexAlreadyExists",
    "Neo.ClientError.Schema.IndexWithNameAlreadyExists",
}
INDEXES_WITHIN = 3600  # seconds: an index over a large memory takes its time


@dataclass(frozen=True, slots=True)
class Migration:
    """One step: its *name* (``V0001__memory``) and its statements.

    One that is not to be taken *once* mends what may break again, and is not recorded.
    """

    name: str
    statements: tuple[str, ...]
    once: bool = True

    @property
    def checksum(self) -> str:
        """SHA-256 of the statements; comments and blank lines do not count."""
        return hashlib.sha256("\0".join(self.statements).encode()).hexdigest()

    @property
    def is_schema(self) -> bool:
        """True for constraints and indexes, False for data."""
        return _DDL.match(self.statements[0]) is not None


@dataclass(frozen=True, slots=True)
class Applied:
    """A step that a database records."""

    name: str
    checksum: str


def migrations(folder: Path | None = None) -> tuple[Migration, ...]:
    """The steps in *folder*, or those of this version, in order.

    Raises `SchemaError` for a file that is no step: misnamed, empty, out of number, or with
    constraints or indexes beside data.
    """
    paths = sorted((folder or cypher_folder() / "migrations").glob("*.cypher"))
    return tuple(_migration(path, number) for number, path in enumerate(paths, start=1))


def missing_of(known: Sequence[Migration], applied: Iterable[Applied]) -> tuple[Migration, ...]:
    """Those of *known* that are not yet *applied*, in order.

    Raises `SchemaError` where the database was written by a later version, or where a step was
    edited after it was applied.
    """
    recorded = {step.name: step.checksum for step in applied}
    by_name = {step.name: step for step in known}
    for name, checksum in sorted(recorded.items()):
        if name not in by_name:
            raise SchemaError(
                f"the memory has {name}, which this version does not know; "
                "upgrade contextgraph-memory"
            )
        if by_name[name].checksum != checksum:
            raise SchemaError(
                f"{name}.cypher is not what was applied to the memory; "
                "reinstall contextgraph-memory (changes belong in a new migration)"
            )
    return tuple(step for step in known if step.name not in recorded)


def indexes_of(steps: Sequence[Migration]) -> dict[str, str]:
    """The indexes and constraints that are there after *steps*, by name, with what makes them."""
    made: dict[str, str] = {}
    for statement in (statement for step in steps for statement in step.statements):
        if named := _NAMED.match(statement):
            made.pop(named["name"], None)
            if named["what"] == "CREATE":
                made[named["name"]] = statement
    return made


def applied_to(driver: "Driver", database: str) -> tuple[Applied, ...]:
    """The steps that *database* records, in order; none for one without a memory."""
    found = driver.execute_query(query("applied_migrations"), database_=database).records
    return tuple(Applied(row["name"], row["checksum"]) for row in found)


def apply(driver: "Driver", database: str, step: Migration) -> None:
    """Apply *step*, wait until its indexes answer, then record it.

    Each statement is a transaction of its own. Several processes may do so at once.
    """
    run_schema(driver, database, query("unique_migrations"))
    for statement in step.statements:
        run_schema(driver, database, statement)
    run = partial(driver.execute_query, database_=database)
    run(query("await_indexes"), seconds=INDEXES_WITHIN)
    if step.once:
        run(query("record_migration"), name=step.name, checksum=step.checksum)


def run_schema(driver: "Driver", database: str, statement: str) -> None:
    """Run a *statement* that says ``IF NOT EXISTS``, beside others that may do the same.

    The server looks whether the index exists, then waits for its lock: another may have been first
    by then. The driver itself tries again where two wait for each other.
    """
    from neo4j.exceptions import ClientError

    try:
        driver.execute_query(statement, database_=database)
    except ClientError as error:
        if error.code not in _MADE_MEANWHILE:
            raise
        driver.execute_query(statement, database_=database)


def _migration(path: Path, number: int) -> Migration:
    named = _FILE.fullmatch(path.name)
    if named is None or int(named[1]) != number:
        raise SchemaError(f"{path.name}: expected V{number:04}__<name>.cypher")
    found = tuple(statements(path.read_text(encoding="utf-8")))
    if not found:
        raise SchemaError(f"{path.name}: no statement in it")
    if len({_DDL.match(statement) is None for statement in found}) > 1:
        raise SchemaError(f"{path.name}: constraints and indexes belong in a file without data")
    return Migration(path.stem, found)
