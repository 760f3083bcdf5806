"""The memory as a whole: `AdminStore` in SQLite, and its relations as a networkx graph."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from contextgraph.codec import json_of
from contextgraph.errors import StoreError, StoreUnavailableError
from contextgraph.model import (
    ChangeStatus,
    Explanation,
    FittedGate,
    HealthCheck,
    Json,
    MemoryCounts,
    MethodologyStatus,
    Note,
    Outcome,
    Relation,
    Unconsolidated,
)
from contextgraph.ports import NoteStore
from contextgraph.processes import Process
from contextgraph.store import rules
from contextgraph.store.graph import add_relation, labelled, put_notes, remove_abstracted
from contextgraph.store.sqlite import schema
from contextgraph.store.sqlite.advice import exposures_by_id
from contextgraph.store.sqlite.database import (
    REMOVALS_LISTED,
    Connections,
    Database,
    Transaction,
    moment,
    text_of,
    time_of,
)
from contextgraph.store.sqlite.schema import RUN_BITS, VERSION, pragma, schema_version
from contextgraph.store.sqlite.search import compact
from contextgraph.text import number_of

if TYPE_CHECKING:
    from contextgraph.ports import Graph


# Labels of nodes by their alias in the queries below, and their names by label.
LABELS = {
    "t": "Trajectory",
    "f": "Fragment",
    "g": "Fragment",
    "e": "ErrorPattern",
    "m": "Methodology",
    "n": "Methodology",
}
NAMES = {
    "Trajectory": "{x}.instance_id || ' (' || {x}.outcome || ')'",
    "Fragment": "{x}.fragment_type || ' ' || {x}.start || '-' || {x}.stop",
    "ErrorPattern": "substr({x}.error_type || ': ' || {x}.template, 1, 120)",
    "Methodology": "substr({x}.situation, 1, 120)",
}
TABLES = {
    "Trajectory": "trajectory",
    "Fragment": "fragment",
    "ErrorPattern": "error_pattern",
    "Methodology": "methodology",
}
_RANGE = f"BETWEEN t.key << {RUN_BITS} AND ((t.key + 1) << {RUN_BITS}) - 1"


# Columns that have another name, or another form, as properties.
_RENAMED = {"position": "order"}
_CONVERTED: Mapping[str, Callable[[Any], Any]] = {"steps": orjson.loads, "verified": bool}


class _Edges(NamedTuple):
    """A type of relation: the aliases of its ends, its columns, and the tables that it joins.

    *of_run* joins the trajectory t, where the tables have none.
    """

    type: str
    source: str
    target: str
    properties: tuple[str, ...]
    tables: str
    of_run: str = ""

    def of_runs(self, where: str) -> str:
        """SQL as `sql` gives, for the edges of the runs t with *where*."""
        if not self.of_run:
            return self.sql(where)
        by_run = self._replace(tables=f"trajectory t CROSS JOIN {self.tables}")
        return by_run.sql(f"{where} AND {self.of_run}")

    def sql(self, where: str) -> str:
        """SQL for ids and names of both ends, and the properties, of the edges with *where*."""
        ends = (
            f"{alias}.id, {NAMES[LABELS[alias]].format(x=alias)}"
            for alias in (self.source, self.target)
        )
        columns = ", ".join((*ends, *self.properties))
        return f"SELECT {columns} FROM {self.tables} WHERE {where}"

    def named(self, values: tuple[Any, ...]) -> dict[str, Any]:
        """The properties by name."""
        names = (column.rpartition(".")[2] for column in self.properties)
        return {
            _RENAMED.get(name, name): _CONVERTED[name](value) if name in _CONVERTED else value
            for name, value in zip(names, values, strict=True)
        }


_OF_RUNS = (
    _Edges(
        "HAS_FRAGMENT",
        "t",
        "f",
        ("f.position",),
        f"trajectory t JOIN fragment f ON f.trajectory = t.key AND f.key {_RANGE}",
    ),
    _Edges(
        "CAUSED_ERROR",
        "f",
        "e",
        ("c.steps",),
        "caused c JOIN fragment f ON f.key = c.fragment JOIN error_pattern e ON e.key = c.error",
        f"c.fragment {_RANGE}",
    ),
    _Edges(
        "RECOVERED",
        "f",
        "e",
        ("r.error_step", "r.cleared_step", "r.verified"),
        # The sign keeps SQLite from reading all recoveries from an error.
        "recovered r JOIN fragment f ON f.key = r.fragment "
        "JOIN error_pattern e ON e.key = +r.error",
        f"r.key {_RANGE}",
    ),
)
_ABSTRACTED = (
    _Edges(
        "RESOLVED_BY",
        "e",
        "m",
        ("r.success_rate", "r.avg_steps", "r.support"),
        "error_pattern e JOIN resolved_by r ON r.tenant = e.tenant AND r.error_id = e.id "
        "JOIN methodology m ON m.tenant = r.tenant AND m.id = r.methodology_id",
    ),
    _Edges(
        "DERIVED_FROM",
        "m",
        "f",
        (),
        "methodology m JOIN derived_from d ON d.methodology = m.key "
        "JOIN fragment f ON f.key = d.fragment AND f.trajectory = d.trajectory",
    ),
    _Edges(
        "SUPERSEDES",
        "m",
        "n",
        (),
        "methodology m JOIN methodology n ON n.tenant = m.tenant AND n.superseded_by = m.id",
    ),
    _Edges(
        "SIMILAR_TO",
        "f",
        "g",
        ("s.error_id", "s.weight"),
        "similar s JOIN fragment f ON f.key = s.fragment "
        "JOIN fragment g ON g.key = s.representative",
    ),
)

_MET_BY_NEWEST = f"""
e.key = :key AND t.key IN (
    SELECT trajectory FROM met INDEXED BY met_by_error WHERE error = :key
    ORDER BY seen_at DESC, trajectory_id LIMIT {rules.EXPLAINED_RUNS})"""
_NEWER = "t.tenant = :tenant AND t.revision > :revision"
_NODES = {
    "Trajectory": f"SELECT t.id, {{name}}, t.repo, t.outcome FROM trajectory t WHERE {_NEWER}",
    "Fragment": f"""
        SELECT x.id, {{name}}, x.repo, x.fragment_type, x.phase, x.outcome
        FROM trajectory t JOIN fragment x ON x.key {_RANGE} WHERE {_NEWER}""",
    "ErrorPattern": f"""
        SELECT DISTINCT x.id, {{name}}, x.family, x.error_type
        FROM trajectory t JOIN met m ON m.trajectory = t.key
        JOIN error_pattern x ON x.key = m.error WHERE {_NEWER}""",
    "Methodology": """
        SELECT x.id, {name}, coalesce(x.repo, '') AS repo, x.status, x.support, x.confidence
        FROM methodology x WHERE x.tenant = :tenant""",
}


class CurrentGraph:
    """The graph of one revision, brought up to date in place when it is requested."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._graph: Graph | None = None
        self._revision = -1
        self._runs: dict[int, str] = {}

    def at(self, transaction: Transaction, notes: Iterable[Note]) -> "Graph":
        """Return a view of the graph with *notes*, at the revision of *transaction* or later."""
        import networkx as nx  # takes 0.2 s, and most processes need no graph

        with self._lock:
            revision, _ = transaction.revision()
            if self._graph is None or revision - self._revision > REMOVALS_LISTED:
                self._graph, self._revision, self._runs = nx.MultiDiGraph(), -1, {}
            if revision > self._revision:
                self._catch_up(self._graph, transaction)
                self._revision = revision
            put_notes(self._graph, notes)
            return self._graph.copy(as_view=True)

    def _catch_up(self, graph: "Graph", transaction: Transaction) -> None:
        since = {"tenant": transaction.tenant, "revision": self._revision}
        self._remove(graph, transaction, since)
        newer = f"SELECT t.key, t.id FROM trajectory t WHERE {_NEWER}"
        self._runs.update(transaction.rows(newer, since))
        for label in ("Trajectory", "Fragment", "ErrorPattern"):
            _add_nodes(graph, transaction, label, since)
        for edges in _OF_RUNS:
            _add_edges(graph, transaction, edges, edges.of_runs(_NEWER), since)
        abstracted = transaction.number(
            "SELECT abstracted FROM tenant WHERE key = ?", (transaction.tenant,)
        )
        if abstracted > self._revision:
            _replace_abstracted(graph, transaction, since)

    def _remove(self, graph: "Graph", transaction: Transaction, since: Mapping[str, int]) -> None:
        """Remove runs and fragments that are gone, and errors that no run has met any more."""
        after = "WHERE tenant = :tenant AND revision > :revision"
        removed = transaction.column(f"SELECT trajectory FROM removal {after}", since)
        pruned = transaction.column(f"SELECT fragment_id FROM pruned {after}", since)
        graph.remove_nodes_from(pruned)
        for run in (self._runs.pop(key) for key in removed if key in self._runs):
            graph.remove_nodes_from([run, *graph.successors(run)])
        if removed:
            errors = transaction.column(
                "SELECT id FROM error_pattern WHERE tenant = :tenant", since
            )
            graph.remove_nodes_from({*labelled(graph, "ErrorPattern")}.difference(errors))


def _replace_abstracted(graph: "Graph", transaction: Transaction, since: Mapping[str, int]) -> None:
    remove_abstracted(graph)
    _add_nodes(graph, transaction, "Methodology", since)
    for edges in _ABSTRACTED:
        sql = edges.sql(f"{edges.source}.tenant = :tenant")
        _add_edges(graph, transaction, edges, sql, since)


def _add_nodes(
    graph: "Graph", transaction: Transaction, label: str, since: Mapping[str, int]
) -> None:
    alias = "t" if label == "Trajectory" else "x"
    sql = _NODES[label].format(name=f"{NAMES[label].format(x=alias)} AS name")
    cursor = transaction.connection.execute(sql, since)
    names = [column[0] for column in cursor.description]
    for row in cursor:
        attributes = dict(zip(names, row, strict=True))
        graph.add_node(attributes.pop("id"), label=label, **attributes)


def _add_edges(
    graph: "Graph",
    transaction: Transaction,
    edges: _Edges,
    sql: str,
    parameters: Mapping[str, int],
) -> None:
    for source, _, target, _, *values in transaction.rows(sql, parameters):
        add_relation(graph, edges.type, source, target, edges.named(tuple(values)))


def relations_of(transaction: Transaction, label: str, key: int) -> list[Relation]:
    """The relations of the node of this *label* and *key*."""
    relations = []
    for edges in (*_OF_RUNS, *_ABSTRACTED):
        for alias, outgoing in ((edges.source, True), (edges.target, False)):
            if LABELS[alias] != label:
                continue
            other_label = LABELS[edges.target if outgoing else edges.source]
            # An error that thousands of runs met is shown with the newest of them.
            sql = (
                edges.of_runs(_MET_BY_NEWEST)
                if alias == "e" and edges.of_run
                else edges.sql(f"{alias}.key = :key")
            )
            for row in transaction.rows(sql, {"key": key}):
                other, name = row[2:4] if outgoing else row[:2]
                properties = edges.named(row[4:])
                relations.append(
                    Relation(edges.type, outgoing, other, other_label, name, properties)
                )
    return relations


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
VALUES (?, 0, ?, ?, ?, ?, ?) ON CONFLICT (tenant) DO UPDATE
SET holder = excluded.holder, expires_at = excluded.expires_at, machine = excluded.machine,
    process = excluded.process, started_at = excluded.started_at"""
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
                    for label, table in TABLES.items()
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
            return self._database.cached(CurrentGraph).at(transaction, notes)

    def health(self, *, quick: bool = False) -> Sequence[HealthCheck]:
        return tuple(checks(self._database.connections, rules.THOROUGH if quick else ()))

    def back_up(self, path: Path) -> None:
        self._database.connections.back_up(path)

    def erase_deleted(self) -> None:
        with self._database.writing() as transaction:
            compact(transaction)
        self._database.connections.rewrite()

    def take_lease(
        self, holder: str, now: datetime, until: datetime | None, process: Process | None = None
    ) -> datetime | None:
        with self._database.writing() as transaction:
            if row := transaction.row(_LEASE, (transaction.tenant,)):
                known = Process(*row[2:]) if row[2] else None
                lease = rules.StoredLease(row[0], time_of(row[1]), known)
                if not lease.is_free_for(holder, now):
                    return lease.expires_at
            taken = (holder if until else None, moment(until or now))
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
                "VALUES (?, ?, NULL, 0, ?) ON CONFLICT (tenant) DO UPDATE "
                "SET revision = excluded.revision, gate = coalesce(excluded.gate, gate)",
                (transaction.tenant, revision, gate and json_of(gate)),
            )
            for table in ("stale", "stale_repo"):
                transaction.write(
                    f"DELETE FROM {table} WHERE tenant = ? AND revision <= ?",
                    (transaction.tenant, revision),
                )
            for table in ("removal", "pruned"):
                transaction.write(
                    f"DELETE FROM {table} WHERE tenant = ? "
                    "AND revision < (SELECT revision FROM tenant WHERE key = ?) - ?",
                    (transaction.tenant, transaction.tenant, REMOVALS_LISTED),
                )


def _counted(transaction: Transaction, column: str, table: str) -> dict[str, int]:
    sql = f"SELECT {column}, count(*) FROM {table} WHERE tenant = ? GROUP BY {column}"
    return dict(transaction.rows(sql, (transaction.tenant,)))


def _count(transaction: Transaction, which: str) -> int:
    return transaction.number(f"SELECT count(*) FROM {which}", (transaction.tenant,))


def _explained(transaction: Transaction, label: str, node: str) -> Explanation | None:
    name = NAMES[label].format(x="x")
    cursor = transaction.connection.execute(
        f"SELECT x.key, {name}, {_FACTS[label]} FROM {TABLES[label]} x "
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
    relations = relations_of(transaction, label, key)
    return Explanation(node, label, shown_name, facts, rules.in_order(relations))


def _explained_context(transaction: Transaction, context: str) -> Explanation | None:
    shown = exposures_by_id(transaction, [context])
    if not shown:
        return None
    items = [item.id for item in shown[0].items]
    known: dict[str, tuple[str, str]] = {}
    for label in ("Fragment", "Methodology"):
        name = NAMES[label].format(x="x")
        sql = f"""SELECT x.id, {name} FROM {TABLES[label]} x
            WHERE x.tenant = ? AND x.id IN (SELECT value FROM json_each(?))"""
        for node, shown_name in transaction.rows(sql, (transaction.tenant, text_of(items))):
            known[node] = (label, shown_name)
    return rules.explained_context(shown[0], known)
