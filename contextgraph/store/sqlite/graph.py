"""The relations of the tables, as a networkx graph that follows the memory, and of one node."""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from contextgraph.model import Note, Relation
from contextgraph.store import rules
from contextgraph.store.graph import add_relation, labelled, put_notes, remove_abstracted
from contextgraph.store.sqlite.schema import RUN_BITS
from contextgraph.store.sqlite.transaction import REMOVALS_LISTED, Transaction

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
