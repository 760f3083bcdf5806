"""The graph of a memory as a networkx graph: its nodes and relations, without stored values.

Nodes are ids with a *label* (Trajectory, Fragment, ErrorPattern, Methodology, File; of notes, pages
and entities their kind) and the properties that docs/neo4j.md lists; the text of a note that is
confidential is not among them. Edges have the *type* of the relation and its properties; their key
is the type, followed by what distinguishes several edges of this type between the same two nodes.
Times are texts, in UTC.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from contextgraph import model
from contextgraph.errors import StoreError
from contextgraph.store import tables
from contextgraph.store.port import KEY, SOURCE, TARGET, VALUE, Is, Question, Reads, Table, Term
from contextgraph.store.protocols import GraphFormat
from contextgraph.store.rules import note_of
from contextgraph.system.processes import replacing

if TYPE_CHECKING:
    from contextgraph.store.protocols import Graph

_NODES = (tables.RUN, tables.FRAGMENT, tables.ERROR, tables.METHODOLOGY, tables.NOTE)
_EDGES = (tables.CAUSED, tables.RECOVERED, tables.RESOLVED, tables.DERIVED, tables.SIMILAR)
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
# The property that distinguishes several edges of a type between the same two nodes.
_DISTINCT = {"RECOVERED": "error_step", "SIMILAR_TO": "error_id"}
# The type, the ends and the properties of a relation.
_Relation = tuple[str, str, str, Mapping[str, Any]]
# A table and key, True if the relation leads there, its type and properties.
_End = tuple[Table, str, bool, str, dict[str, Any]]


def graph_of(port: Reads) -> "Graph":
    """Return the graph of the memory behind *port*, which cannot be changed."""
    import networkx as nx

    graph: Graph = nx.MultiDiGraph()
    related = list[_Relation]()
    for table in _NODES:
        for key, text, columns in _rows(port, table):
            label = columns["kind"].capitalize() if table is tables.NOTE else table.label
            graph.add_node(key, label=label, **_shown(table, text, columns))
            for file in columns["files"] if table is tables.FRAGMENT else ():
                graph.add_node(file, label=_FILE.label, **_plain(_FILE.shown(file)))
            related += _of_node(table, key, text, columns)
    for table in (*_EDGES, tables.MET):
        for _, text, columns in _rows(port, table, SOURCE, TARGET):
            ends = columns.pop(SOURCE), columns.pop(TARGET)
            related.append((table.label, *ends, _shown(table, text, columns)))
    for kind, source, target, properties in related:
        if source in graph and target in graph:
            graph.add_edge(source, target, _key(kind, properties), type=kind, **properties)
    return cast("Graph", nx.freeze(graph))


def _rows(port: Reads, table: Table, *ends: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the key, the value and the columns of each row, with the keys at its *ends*."""
    names = (*ends, *_single(table))
    for key, text, *values in port.find([Question(table, wanted=(KEY, VALUE, *names))])[0]:
        columns = dict(zip(names, values, strict=True))
        yield key, text, {**columns, **tables.texts_of(table, text)}


def _of_node(table: Table, key: str, text: str, columns: Mapping[str, Any]) -> Iterator[_Relation]:
    """Yield the relations that the row of a node has itself; their other ends may not be stored."""
    if table is tables.FRAGMENT:
        yield "HAS_FRAGMENT", columns["run"], key, {"order": columns["place"]}
        for file in columns["files"]:
            yield _FILE.relation, key, file, {}
    elif table is tables.METHODOLOGY and columns["superseded_by"]:
        yield "SUPERSEDES", columns["superseded_by"], key, {}
    elif table is tables.NOTE:
        note = note_of(text)
        for link in note.links:
            yield link.type.upper(), key, link.target, {"weight": link.weight}
        for other in note.contradicts:
            yield "CONTRADICTS", key, other, {}
        if note.superseded_by:
            yield "SUPERSEDES", note.superseded_by, key, {}


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
    for edge in _EDGES:
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


def _named(keys: Sequence[str]) -> list[Term]:
    return [Term(KEY, Is.IN, [*keys])]


def _key(kind: str, properties: Mapping[str, Any]) -> str:
    distinct = _DISTINCT.get(kind)
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


def export_graph(graph: "Graph", path: Path, graph_format: GraphFormat) -> None:
    """Write *graph* as GraphML, or as JSON in the node-link form of networkx.

    In GraphML, which has no lists, a list is a text with a line for each item. Raises `StoreError`
    where the file cannot be written.
    """
    import networkx as nx

    try:
        with replacing(path) as part:
            if graph_format == "graphml":
                nx.write_graphml(_without_lists(graph), part)
            else:
                part.write_text(json.dumps(nx.node_link_data(graph, edges="edges")))
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error


def read_graph(path: Path) -> "Graph":
    """Return the graph in the JSON file *path* that `export_graph` wrote."""
    import networkx as nx

    return cast("Graph", nx.node_link_graph(json.loads(path.read_text()), edges="edges"))


def _without_lists(graph: "Graph") -> "Graph":
    copy = graph.copy()
    for *_, properties in (*copy.nodes(data=True), *copy.edges(data=True)):
        for name, value in properties.items():
            if isinstance(value, list):
                properties[name] = "\n".join(map(str, value))
    return copy
