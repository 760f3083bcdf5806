"""The graph of a memory, kept current by the revision of its port."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from contextgraph import model
from contextgraph.store import tables
from contextgraph.store.graph import add_relation
from contextgraph.store.port import (
    KEY,
    SOURCE,
    TARGET,
    VALUE,
    Is,
    Port,
    Question,
    Reads,
    Table,
    Term,
)
from contextgraph.store.rules import note_of

if TYPE_CHECKING:
    from contextgraph.store.protocols import Graph

_NODES = {
    table.name: table
    for table in (tables.RUN, tables.FRAGMENT, tables.ERROR, tables.METHODOLOGY, tables.NOTE)
}
_EDGES = {
    table.name: table
    for table in (
        tables.CAUSED, tables.RECOVERED, tables.RESOLVED, tables.DERIVED, tables.SIMILAR,
    )
}  # fmt: skip
# Columns by which rows are found, which say nothing to people.
_INTERNAL = {
    "course",
    "revision",
    "fingerprint",
    "described_by",
    "run",
    "live",
    "file_names",
    "targets",
}
_FILE = tables.FRAGMENT.listed["files"]
# What an explanation says of relations.
_EXPLAINED = {
    "steps", "error_step", "cleared_step", "verified", "success_rate", "avg_steps", "support",
    "error_id", "weight", "order",
}  # fmt: skip
_Edge = tuple[str, str, str]
# A table and key, True if the relation leads there, its type and properties.
_End = tuple[Table, str, bool, str, dict[str, Any]]


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

    def _update(self, put: Mapping[str, Sequence[str] | None]) -> None:
        """Read again the rows with these keys by table; None: all."""
        graph = self._graph
        assert graph is not None
        replaced = ((name, key) for name, keys in put.items() for key in keys or ())
        for edge in filter(None, (self._edges.pop(one, None) for one in replaced)):
            if graph.has_edge(*edge):
                graph.remove_edge(*edge)
        for name, table in _NODES.items():
            if name in put:
                self._put_nodes(table, put[name])
        for name, table in _EDGES.items():
            if name in put:
                self._put_edges(table, _named(put[name]))
        if tables.RUN.name in put:
            self._put_met(put[tables.RUN.name])
        if tables.METHODOLOGY.name in put:
            self._link_superseded()
        if tables.NOTE.name in put or tables.RUN.name in put:
            self._link_notes()

    def _put_nodes(self, table: Table, keys: Sequence[str] | None) -> None:
        graph = self._graph
        assert graph is not None
        question = Question(table, _named(keys), wanted=(KEY, VALUE, *_single(table)))
        known = {key: values for key, *values in self._port.find([question])[0]}
        for key in keys or ():
            if table is tables.FRAGMENT:
                self._forget_files(key)
            if key not in known:
                if key in graph:
                    graph.remove_node(key)
                self._notes.pop(key, None)
                self._superseded.pop(key, None)
        for key, (text, *values) in known.items():
            columns = dict(zip(_single(table), values, strict=True))
            self._put_node(table, key, text, {**columns, **tables.texts_of(table, text)})

    def _put_node(self, table: Table, key: str, text: str, columns: dict[str, Any]) -> None:
        graph = self._graph
        assert graph is not None
        label = columns["kind"].capitalize() if table is tables.NOTE else table.label
        if key in graph:
            graph.nodes[key].clear()
        graph.add_node(key, label=label, **_shown(table, text, columns))
        if table is tables.FRAGMENT:
            add_relation(
                graph, "HAS_FRAGMENT", columns["run"], key, {"order": graph.nodes[key]["order"]}
            )
            for file in columns["files"]:
                graph.add_node(file, label=_FILE.label, **_plain(_FILE.shown(file)))
                add_relation(graph, _FILE.relation, key, file, {})
        elif table is tables.METHODOLOGY:
            self._superseded.pop(key, None)
            if columns["superseded_by"]:
                self._superseded[key] = columns["superseded_by"]
        elif table is tables.NOTE:
            self._notes[key] = note_of(text)

    def _forget_files(self, fragment: str) -> None:
        """Remove the relations of a fragment to its files, and the files of no other one."""
        graph = self._graph
        assert graph is not None
        if fragment not in graph:
            return
        touched = [
            file
            for _, file, own in graph.out_edges(fragment, data=True)
            if own["type"] == _FILE.relation
        ]
        for file in touched:
            graph.remove_edge(fragment, file, _FILE.relation)
            if not graph.in_degree(file):
                graph.remove_node(file)

    def _put_met(self, runs: Sequence[str] | None) -> None:
        """Put the relations of *runs* to their errors, which change with their runs only."""
        graph = self._graph
        assert graph is not None
        for run in set(runs or ()).intersection(graph):
            for error in [*graph.successors(run)]:
                if graph.has_edge(run, error, tables.MET.label):
                    graph.remove_edge(run, error, tables.MET.label)
        self._put_edges(tables.MET, [] if runs is None else [Term(SOURCE, Is.IN, [*runs])])

    def _put_edges(self, table: Table, where: Sequence[Term]) -> None:
        graph = self._graph
        assert graph is not None
        wanted = (KEY, SOURCE, TARGET, VALUE, *_single(table))
        question = Question(table, where, wanted=wanted)
        for key, source, target, text, *values in self._port.find([question])[0]:
            columns = dict(zip(_single(table), values, strict=True))
            properties = _shown(table, text, columns)
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

    def _link_notes(self) -> None:
        """Replace the relations of notes: what they lead to may have come later."""
        graph = self._graph
        assert graph is not None
        graph.remove_edges_from([*graph.out_edges([*self._notes], keys=True)])
        for key, note in self._notes.items():
            for link in note.links:
                add_relation(graph, link.type.upper(), key, link.target, {"weight": link.weight})
            for other in note.contradicts:
                add_relation(graph, "CONTRADICTS", key, other, {})
            if note.superseded_by:
                add_relation(graph, "SUPERSEDES", note.superseded_by, key, {})


def relations(
    port: Reads, table: Table, node: str, newest: Sequence[str] | None = None
) -> Iterator[model.Relation]:
    """Yield the relations of *node* of *table* but those to notes, without reading the graph.

    With *newest*, of its fragments only these.
    """
    ends = {
        (far, end, outgoing, _key(kind, properties)): (kind, properties)
        for find in (_by_edges, _by_columns)
        for far, end, outgoing, kind, properties in find(port, table, node, newest)
    }
    names = {
        (far, key): properties["name"]
        for far in {far for far, *_ in ends}
        for key, properties in _found(port, far, _named([end for at, end, *_ in ends if at is far]))
    }
    for (far, end, outgoing, _), (kind, properties) in ends.items():
        if (far, end) in names:
            explained = {name: properties[name] for name in properties if name in _EXPLAINED}
            yield model.Relation(kind, outgoing, end, far.label, names[far, end], explained)


def _by_edges(port: Reads, table: Table, node: str, newest: Sequence[str] | None) -> Iterator[_End]:
    for edge in _EDGES.values():
        assert edge.ends is not None
        for own, other, outgoing in ((SOURCE, TARGET, True), (TARGET, SOURCE, False)):
            if edge.ends[not outgoing] is table:
                far, where = edge.ends[outgoing], [Term(own, Is.EQUAL, node)]
                if newest is not None and far is tables.FRAGMENT:
                    where.append(Term(other, Is.IN, [*newest]))
                for end, properties in _found(port, edge, where, other):
                    yield far, end, outgoing, edge.label, properties


def _by_columns(port: Reads, table: Table, node: str, _: Sequence[str] | None) -> Iterator[_End]:
    """Yield the ends of relations that are a column of a node."""
    for kind, held, column, far in (
        ("HAS_FRAGMENT", tables.FRAGMENT, "run", tables.RUN),
        ("SUPERSEDES", tables.METHODOLOGY, "superseded_by", tables.METHODOLOGY),
    ):
        if table is held:
            for end, properties in _found(port, held, _named([node]), column):
                yield far, end, False, kind, _order_of(properties)
        if table is far:
            for end, properties in _found(port, held, [Term(column, Is.EQUAL, node)]):
                yield held, end, True, kind, _order_of(properties)


def _order_of(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the place of a fragment in its run; a methodology has none."""
    return {name: properties[name] for name in ("order",) if name in properties}


def name_of(port: Reads, table: Table, node: str) -> str:
    """Return the name of *node*, a row of *table*; raise LookupError where there is none."""
    name: str = dict(_found(port, table, _named([node])))[node]["name"]
    return name


def _found(
    port: Reads, table: Table, where: Sequence[Term], column: str = KEY
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield *column* of each row, and the properties that people see."""
    single = _single(table)
    found = port.find([Question(table, where, wanted=(column, VALUE, *single))])[0]
    for value, text, *values in found:
        yield value, _shown(table, text, dict(zip(single, values, strict=True)))


def _named(keys: Sequence[str] | None) -> list[Term]:
    return [] if keys is None else [Term(KEY, Is.IN, [*keys])]


def _key(kind: str, properties: Mapping[str, Any]) -> str:
    distinct = {"RECOVERED": "error_step", "SIMILAR_TO": "error_id"}.get(kind)
    return f"{kind} {properties[distinct]}" if distinct else kind


def _single(table: Table) -> list[str]:
    """The columns with one value; those of several texts follow from the value of a row."""
    return [name for name, kind in table.columns.items() if kind is not tuple]


def _shown(table: Table, text: str, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a row for people, as a node on a server has them."""
    own = {name: value for name, value in columns.items() if name not in _INTERNAL}
    return _plain({**own, **tables.shown_of(table, text, columns)})


def _plain(properties: Mapping[str, Any]) -> dict[str, Any]:
    """*properties* as JSON values, times in UTC; unknown ones are left out."""
    plain = dict[str, Any]()
    for name, value in properties.items():
        if isinstance(value, tuple):
            plain[name] = [*value]
        elif isinstance(value, datetime):
            plain[name] = value.astimezone(UTC).isoformat()
        elif value is not None:
            plain[name] = value
    return plain
