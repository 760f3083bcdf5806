"""The graph of a memory, kept current by the revision of its port."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from contextgraph import model
from contextgraph.store import tables
from contextgraph.store.graph import add_note, add_relation, link_notes
from contextgraph.store.port import KEY, SOURCE, TARGET, VALUE, Is, Port, Question, Table, Term

if TYPE_CHECKING:
    from contextgraph.store.protocols import Graph

_NODES = {
    table.name: (table, kind)
    for table, kind in (
        (tables.RUN, model.Trajectory),
        (tables.FRAGMENT, model.Fragment),
        (tables.ERROR, model.ErrorPattern),
        (tables.METHODOLOGY, model.Methodology),
        (tables.NOTE, model.Note),
    )
}
_EDGES = {
    table.name: table
    for table in (
        tables.CAUSED, tables.RECOVERED, tables.RESOLVED, tables.DERIVED, tables.SIMILAR,
    )
}  # fmt: skip
_Edge = tuple[str, str, str]


class LiveGraph:
    """A networkx graph of the nodes and relations behind a port; see `store.graph`."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self._lock = threading.Lock()
        self._graph: Graph | None = None
        self._reset()

    def _reset(self) -> None:
        """Begin with an empty graph; views of it stay current."""
        if self._graph is not None:
            self._graph.clear()
        self._revision = -1
        # Where the edges of rows are, and the notes, whose links may lead to what comes later.
        self._edges: dict[tuple[str, str], _Edge] = {}
        self._notes: dict[str, model.Note] = {}
        self._superseded: dict[str, str] = {}

    @property
    def is_made(self) -> bool:
        """True once the graph was asked for."""
        return self._graph is not None

    def updated(self) -> "Graph":
        """Return a read-only view of the graph as it is now."""
        with self._lock:
            return self._port.read(self._caught_up)

    def _caught_up(self) -> "Graph":
        import networkx as nx

        if self._graph is None:
            self._graph = nx.MultiDiGraph()
        change = self._port.changed(self._revision)
        put: Mapping[str, Sequence[str] | None] | None = change.put
        if put is None:
            self._reset()
            put = dict.fromkeys([*_NODES, *_EDGES])
        if put:
            self._update(put)
        self._revision = change.revision
        return self._graph.copy(as_view=True)

    def relations(self, node: str, newest: set[str] | None) -> Iterator[model.Relation]:
        """Yield the relations of *node* but those to notes, of an error to *newest* fragments."""
        graph = self._graph
        assert graph is not None
        labels = {table.label for table, kind in _NODES.values() if kind is not model.Note}
        at = [(target, own, True) for _, target, own in graph.out_edges(node, data=True)]
        at += [(source, own, False) for source, _, own in graph.in_edges(node, data=True)]
        for other, own, is_outgoing in at:
            end = graph.nodes[other]
            is_shown = newest is None or end["label"] != tables.FRAGMENT.label or other in newest
            if end["label"] in labels and is_shown:
                properties = {name: value for name, value in own.items() if name != "type"}
                yield model.Relation(
                    own["type"], is_outgoing, other, end["label"], end["name"], properties
                )

    def _update(self, put: Mapping[str, Sequence[str] | None]) -> None:
        """Read again the rows with these keys by table; None: all."""
        graph = self._graph
        assert graph is not None
        for name, keys in put.items():
            for key in keys or ():
                edge = self._edges.pop((name, key), None)
                if edge is not None and graph.has_edge(*edge):
                    graph.remove_edge(*edge)
        for name, (table, kind) in _NODES.items():
            if name in put:
                self._put_nodes(table, kind, put[name])
        for name, table in _EDGES.items():
            if name in put:
                self._put_edges(table, put[name])
        if tables.METHODOLOGY.name in put:
            self._link_superseded()
        if tables.NOTE.name in put or tables.RUN.name in put:
            link_notes(graph, self._notes.values())

    def _put_nodes(self, table: Table, kind: Any, keys: Sequence[str] | None) -> None:
        graph = self._graph
        assert graph is not None
        known = dict(self._port.find([Question(table, _named(keys), wanted=(KEY, VALUE))])[0])
        for key in keys or ():
            if key not in known:
                if key in graph:
                    graph.remove_node(key)
                self._notes.pop(key, None)
                self._superseded.pop(key, None)
        for key, text in known.items():
            self._put_node(key, tables.value_of(kind, text))

    def _put_node(self, key: str, value: Any) -> None:
        graph = self._graph
        assert graph is not None
        match value:
            case model.Trajectory():
                graph.add_node(
                    key, label="Trajectory", name=value.name, repo=value.repo,
                    outcome=value.outcome.value,
                )  # fmt: skip
            case model.Fragment():
                graph.add_node(
                    key, label="Fragment", name=value.name, repo=value.repo,
                    fragment_type=value.fragment_type.value, phase=value.phase.value,
                    outcome=value.outcome.value,
                )  # fmt: skip
                run = value.trajectory_id
                add_relation(graph, "HAS_FRAGMENT", run, key, {"order": value.order})
            case model.ErrorPattern():
                graph.add_node(
                    key, label="ErrorPattern", name=value.name, family=value.family.value,
                    error_type=value.error_type,
                )  # fmt: skip
            case model.Methodology():
                graph.add_node(
                    key, label="Methodology", name=value.name, repo=value.repo or "",
                    status=value.status.value, support=value.support, confidence=value.confidence,
                )  # fmt: skip
                self._superseded.pop(key, None)
                if value.superseded_by:
                    self._superseded[key] = value.superseded_by
            case model.Note():
                add_note(graph, value)
                self._notes[key] = value

    def _put_edges(self, table: Table, keys: Sequence[str] | None) -> None:
        graph = self._graph
        assert graph is not None
        question = Question(table, _named(keys), wanted=(KEY, SOURCE, TARGET, VALUE))
        for key, source, target, text in self._port.find([question])[0]:
            properties = _properties(table, text)
            add_relation(graph, table.label, source, target, properties)
            if source in graph and target in graph:
                kind = _key(table.label, properties)
                self._edges[table.name, key] = source, target, kind

    def _link_superseded(self) -> None:
        graph = self._graph
        assert graph is not None
        old = [
            edge for edge in graph.edges(keys=True)
            if edge[2] == "SUPERSEDES" and edge[1] not in self._notes
        ]  # fmt: skip
        graph.remove_edges_from(old)
        for own, by in self._superseded.items():
            add_relation(graph, "SUPERSEDES", by, own, {})


def _named(keys: Sequence[str] | None) -> list[Term]:
    return [] if keys is None else [Term(KEY, Is.IN, [*keys])]


def _key(kind: str, properties: Mapping[str, Any]) -> str:
    distinct = {"RECOVERED": "error_step", "SIMILAR_TO": "error_id"}.get(kind)
    return f"{kind} {properties[distinct]}" if distinct else kind


def _properties(table: Table, text: str) -> dict[str, Any]:
    """Return what a relation shows of the value that is stored as *text*."""
    if table is tables.CAUSED:
        return {"steps": [*tables.value_of(model.CausedError, text).steps]}
    if table is tables.RECOVERED:
        done = tables.candidate_of(text)
        return {
            "error_step": done.error_step, "cleared_step": done.cleared_step,
            "verified": done.verified,
        }  # fmt: skip
    if table is tables.RESOLVED:
        edge = tables.value_of(model.ResolvedBy, text)
        return {
            "success_rate": edge.success_rate, "avg_steps": edge.avg_steps,
            "support": edge.support,
        }  # fmt: skip
    if table is tables.SIMILAR:
        like = tables.value_of(model.SimilarTo, text)
        return {"error_id": like.error_id, "weight": like.weight}
    return {}
