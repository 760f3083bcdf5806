"""`AdminStore` in SQLite: the memory as a whole, and its health."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from sqlite3 import Connection
from typing import TYPE_CHECKING

from contextgraph.errors import StoreError, StoreUnavailableError
from contextgraph.model import (
    ChangeStatus,
    Explanation,
    FittedGate,
    HealthCheck,
    Json,
    MemoryCounts,
    MethodologyStatus,
    Outcome,
    Unconsolidated,
)
from contextgraph.ports import NoteStore
from contextgraph.processes import Process
from contextgraph.store import rules
from contextgraph.store.columns import json_of
from contextgraph.store.sqlite import (
    exposures,
    graph,
    rows,
    schema,
    word_index,
)
from contextgraph.store.sqlite.database import Connections, Database
from contextgraph.store.sqlite.schema import (
    VERSION,
    pragma,
    schema_version,
)
from contextgraph.store.sqlite.transaction import REMOVALS_LISTED, Transaction
from contextgraph.text import number_of

if TYPE_CHECKING:
    from contextgraph.ports import Graph


# Rows that refer to missing ones: the tables have no foreign keys to prevent them.
_DANGLING = """
SELECT (SELECT count(*) FROM fragment f LEFT JOIN trajectory t ON t.key = f.trajectory
        WHERE t.key IS NULL)
     + (SELECT count(*) FROM recovered r LEFT JOIN fragment f ON f.key = r.fragment
        WHERE f.key IS NULL)
     + (SELECT count(*) FROM met m LEFT JOIN error_pattern e ON e.key = m.error
        WHERE e.key IS NULL)
     + (SELECT count(*) FROM trajectory t LEFT JOIN raw r ON r.trajectory = t.key
        WHERE r.trajectory IS NULL)"""

_FULL_TEXT = ("trajectory_text", "recovered_text", "note_text")
# Texts are written in this alphabet only; of separators the index sees no difference.
_NOT_WRITTEN = """
SELECT 1 FROM {table} WHERE words GLOB '*[^a-z0-9_@ ]*' OR typeof(words) <> 'text'
OR length(words) <> length(CAST(words AS BLOB)) LIMIT 1"""
_NAMED = 10


def checks(connections: Connections, left_out: Sequence[str]) -> Iterator[HealthCheck]:
    """Reachable, schema version, integrity, writable, sizes; one that cannot be made has failed.

    Nothing else is checked of a memory that cannot be read.
    """
    path = connections.path
    if not connections.in_memory and not Path(path).exists():
        yield HealthCheck("reachable", False, f"no memory at {path}", "learn something first")
        return
    for name, check in _CHECKS.items():
        if name in left_out:
            continue
        try:
            yield check(connections)
        except StoreError as error:
            yield HealthCheck(name, False, str(error), _REMEDIES[name])
            if name == "reachable":
                return


def _reachable(connections: Connections) -> HealthCheck:
    with connections.reading() as connection:
        connection.execute("SELECT count(*) FROM tenant").fetchone()
    return HealthCheck("reachable", True, connections.path)


def _schema(connections: Connections) -> HealthCheck:
    with connections.reading() as connection:
        return HealthCheck("schema version", True, f"{schema_version(connection)} of {VERSION}")


def _integrity(connections: Connections) -> HealthCheck:
    with connections.reading() as connection:
        structure = [row[0] for row in connection.execute("PRAGMA integrity_check(1)")]
        problems = [] if structure == ["ok"] else structure
        if dangling := connection.execute(_DANGLING).fetchone()[0]:
            problems.append(f"{dangling} rows refer to missing ones")
        if changed := schema.damaged(connection):
            problems.append(f"changed since they were written: {_listed(changed)}")
        problems += _foreign_words(connection)
    _compare_full_text(connections)
    if problems:
        return HealthCheck("integrity", False, "; ".join(problems), _REMEDIES["integrity"])
    return HealthCheck("integrity", True, "no damage found")


def _foreign_words(connection: Connection) -> list[str]:
    return [
        f"{table} has words that were not written"
        for table in _FULL_TEXT
        if connection.execute(_NOT_WRITTEN.format(table=table)).fetchone()
    ]


def _compare_full_text(connections: Connections) -> None:
    """Raise `StoreError` where a full-text index does not agree with its texts.

    SQLite does so by a statement that needs a writer; without one only texts are checked.
    """
    with suppress(StoreUnavailableError), connections.trying_to_write() as connection:
        for table in _FULL_TEXT:
            connection.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _writable(connections: Connections) -> HealthCheck:
    with connections.trying_to_write() as connection:
        # A transaction can also be opened where the file may only be read.
        connection.execute(f"PRAGMA user_version = {schema_version(connection)}")
    return HealthCheck("writable", True, "a transaction was opened")


def _sizes(connections: Connections) -> HealthCheck:
    with connections.reading() as connection:
        size = pragma(connection, "page_count") * pragma(connection, "page_size")
        runs = connection.execute("SELECT count(*) FROM trajectory").fetchone()[0]
        fragments = connection.execute("SELECT count(*) FROM fragment").fetchone()[0]
    detail = (
        f"{size / 1e6:.1f} MB, {number_of(runs, 'trajectory')}, {number_of(fragments, 'fragment')}"
    )
    return HealthCheck("sizes", True, detail)


_CHECKS: dict[str, Callable[[Connections], HealthCheck]] = {
    "reachable": _reachable,
    "schema version": _schema,
    "integrity": _integrity,
    "writable": _writable,
    "sizes": _sizes,
}
_REMEDIES = {
    "reachable": "name a memory file of this version that this user may read",
    "schema version": "install a version of contextgraph-memory that knows it",
    "integrity": "restore a backup, or learn the runs again into a new file",
    "writable": "check permissions and free space, and that no process holds the file locked",
    "sizes": "see the checks before",
}


_EDGES = {
    "HAS_FRAGMENT": "fragment x WHERE x.tenant = ?",
    "CAUSED_ERROR": "caused x WHERE x.tenant = ?",
    "RECOVERED": "recovered x WHERE x.tenant = ?",
    "RESOLVED_BY": """resolved_by x JOIN error_pattern e
        ON e.tenant = x.tenant AND e.id = x.error_id WHERE x.tenant = ?""",
    "DERIVED_FROM": """methodology m JOIN derived_from x ON x.methodology = m.key
        JOIN fragment f ON f.key = x.fragment WHERE m.tenant = ?""",
    "SUPERSEDES": """methodology x JOIN methodology m
        ON m.tenant = x.tenant AND m.id = x.superseded_by WHERE x.tenant = ?""",
    "SIMILAR_TO": """similar x JOIN fragment f ON f.key = x.fragment
        JOIN fragment r ON r.key = x.representative WHERE f.tenant = ?""",
}
_CHANGED_ERRORS = """
SELECT e.id FROM trajectory t INDEXED BY trajectory_revision
CROSS JOIN met m ON m.trajectory = t.key CROSS JOIN error_pattern e ON e.key = m.error
WHERE t.tenant = :tenant AND t.revision > :revision
UNION SELECT s.error_id FROM stale s WHERE s.tenant = :tenant AND s.revision > :marked ORDER BY 1"""
_CHANGED_REPOS = """
SELECT t.repo FROM trajectory t INDEXED BY trajectory_revision
WHERE t.tenant = :tenant AND t.revision > :revision AND t.repo <> ''
UNION SELECT s.repo FROM stale_repo s WHERE s.tenant = :tenant AND s.revision > :marked
ORDER BY 1"""
_LEASE = """
SELECT holder, expires_at, machine, process, started_at FROM consolidation WHERE tenant = ?"""
_TAKE_LEASE = """
INSERT INTO consolidation (tenant, revision, holder, expires_at, machine, process, started_at)
VALUES (?1, 0, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (tenant) DO UPDATE
SET holder = ?2, expires_at = ?3, machine = ?4, process = ?5, started_at = ?6"""
_FACTS = {
    "Trajectory": """instance_id, repo, task_type, outcome, outcome_source, exit_status,
        total_steps, summary, agent, model, source,
        nullif(contributor, '') AS contributor,
        datetime(seen_at / 1000000, 'unixepoch') || ' UTC' AS seen_at""",
    "Fragment": """start AS first_step, stop AS last_step, fragment_type, phase, outcome,
        description, repo, open_file""",
    "ErrorPattern": """family, error_type, template,
        runs, cleared AS cleared_runs""",
    "Methodology": """situation, strategy, repo, keyword, task_type, status, confidence, support,
        repositories, frequency, success_rate, avg_steps, success_count AS shown_and_helped,
        failure_count AS shown_and_did_not, made_by, superseded_by""",
}
# Places of notes have no runs.
_REPOSITORIES = """place WHERE tenant = ? AND repo <> ''
    AND EXISTS (SELECT 1 FROM trajectory t WHERE t.place = place.key)"""


class SqliteAdmin:
    """`AdminStore`; the docstrings of its methods are those of the protocol."""

    def __init__(self, database: Database, notes: NoteStore) -> None:
        self._database = database
        self._notes = notes

    def counts(self) -> MemoryCounts:
        with self._database.reading() as transaction:
            outcomes = _counted(transaction, "outcome", "trajectory")
            changes = _counted(transaction, "change", "trajectory")
            statuses = _counted(transaction, "status", "methodology")
            return MemoryCounts(
                nodes={
                    label: _count(transaction, f"{table} x WHERE x.tenant = ?")
                    for label, table in graph.TABLES.items()
                },
                edges={name: _count(transaction, which) for name, which in _EDGES.items()},
                outcomes={outcome.value: outcomes.get(outcome.value, 0) for outcome in Outcome},
                changes={change.value: changes.get(change.value, 0) for change in ChangeStatus},
                methodologies={
                    status.value: statuses.get(status.value, 0) for status in MethodologyStatus
                },
                repositories=_count(transaction, _REPOSITORIES),
            )

    def explain(self, node_id: str) -> Explanation | None:
        with self._database.reading() as transaction:
            if node_id.startswith(rules.CONTEXT_PREFIX):
                return _explained_context(transaction, node_id)
            explanations = (_explained(transaction, label, node_id) for label in _FACTS)
            return next(filter(None, explanations), None)

    def graph(self) -> "Graph":
        notes = [*self._notes.all()]  # before reading: a memory in RAM has one connection
        with self._database.reading() as transaction:
            return self._database.caches.graph.at(transaction, notes)

    def health(self, *, quick: bool = False) -> Sequence[HealthCheck]:
        return tuple(checks(self._database.connections, rules.THOROUGH if quick else ()))

    def migrate(self, *, dry_run: bool = False) -> Sequence[str]:
        missing = self._database.connections.pending_migrations()
        if not dry_run:
            # Opening a file for writing brings it up to date.
            with self._database.connections.writing():
                pass
        return missing

    def back_up(self, path: Path) -> None:
        self._database.connections.back_up(path)

    def erase_deleted(self) -> None:
        with self._database.writing() as transaction:
            word_index.compact(transaction)
        self._database.connections.rewrite()

    def take_lease(
        self, holder: str, now: datetime, until: datetime | None, process: Process | None = None
    ) -> datetime | None:
        with self._database.writing() as transaction:
            if row := transaction.row(_LEASE, (transaction.tenant,)):
                known = Process(*row[2:]) if row[2] else None
                lease = rules.StoredLease(row[0], rows.time_of(row[1]), known)
                if not lease.is_free_for(holder, now):
                    return lease.expires_at
            taken = (holder if until else None, rows.moment(until or now))
            ran_by = (
                (process.machine, process.number, process.started_at) if process else (None,) * 3
            )
            transaction.write(_TAKE_LEASE, (transaction.tenant, *taken, *ran_by))
            return None

    def unconsolidated(self, after: int | None = None) -> Unconsolidated:
        with self._database.reading() as transaction:
            consolidated = transaction.number(
                "SELECT revision FROM consolidation WHERE tenant = ?", (transaction.tenant,)
            )
            since = {
                "tenant": transaction.tenant,
                "revision": consolidated if after is None else after,
                "marked": -1 if after is None else after,
            }
            return Unconsolidated(
                revision=transaction.revision()[0],
                trajectories=transaction.number(
                    "SELECT count(*) FROM trajectory WHERE tenant = :tenant "
                    "AND revision > :revision",
                    since,
                ),
                error_ids=tuple(transaction.column(_CHANGED_ERRORS, since)),
                repos=tuple(transaction.column(_CHANGED_REPOS, since)),
            )

    def mark_consolidated(self, revision: int, gate: FittedGate | None = None) -> None:
        with self._database.writing() as transaction:
            transaction.write(
                "INSERT INTO consolidation (tenant, revision, holder, expires_at, gate) "
                "VALUES (?1, ?2, NULL, 0, ?3) ON CONFLICT (tenant) "
                "DO UPDATE SET revision = ?2, gate = coalesce(?3, gate)",
                (transaction.tenant, revision, gate and json_of(gate)),
            )
            for table in ("stale", "stale_repo"):
                transaction.write(
                    f"DELETE FROM {table} WHERE tenant = ? AND revision <= ?",
                    (transaction.tenant, revision),
                )
            for table in ("removal", "pruned"):
                transaction.write(
                    f"DELETE FROM {table} WHERE tenant = ?1 "
                    "AND revision < (SELECT revision FROM tenant WHERE key = ?1) - ?2",
                    (transaction.tenant, REMOVALS_LISTED),
                )

    def gate(self) -> FittedGate | None:
        with self._database.reading() as transaction:
            sql = "SELECT gate FROM consolidation WHERE tenant = ? AND gate IS NOT NULL"
            return next(map(rules.gate_of, transaction.column(sql, (transaction.tenant,))), None)


def _counted(transaction: Transaction, column: str, table: str) -> dict[str, int]:
    sql = f"SELECT {column}, count(*) FROM {table} WHERE tenant = ? GROUP BY {column}"
    return dict(transaction.rows(sql, (transaction.tenant,)))


def _count(transaction: Transaction, which: str) -> int:
    return transaction.number(f"SELECT count(*) FROM {which}", (transaction.tenant,))


def _explained(transaction: Transaction, label: str, node: str) -> Explanation | None:
    name = graph.NAMES[label].format(x="x")
    cursor = transaction.connection.execute(
        f"SELECT x.key, {name}, {_FACTS[label]} FROM {graph.TABLES[label]} x "
        "WHERE x.tenant = ? AND x.id = ?",
        (transaction.tenant, node),
    )
    row = cursor.fetchone()
    if row is None:
        return None
    key, shown_name, *values = row
    columns = [column[0] for column in cursor.description[2:]]
    facts: dict[str, Json] = {
        column: value for column, value in zip(columns, values, strict=True) if value is not None
    }
    relations = graph.relations_of(transaction, label, key)
    return Explanation(node, label, shown_name, facts, rules.in_order(relations))


def _explained_context(transaction: Transaction, context: str) -> Explanation | None:
    shown = exposures.by_id(transaction, [context])
    if not shown:
        return None
    items = [item.id for item in shown[0].items]
    known: dict[str, tuple[str, str]] = {}
    for label in ("Fragment", "Methodology"):
        name = graph.NAMES[label].format(x="x")
        sql = f"""SELECT x.id, {name} FROM {graph.TABLES[label]} x
            WHERE x.tenant = ? AND x.id IN (SELECT value FROM json_each(?))"""
        for node, shown_name in transaction.rows(sql, (transaction.tenant, rows.text_of(items))):
            known[node] = (label, shown_name)
    return rules.explained_context(shown[0], known)
