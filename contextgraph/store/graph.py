"""The graph of a memory as a networkx graph: its nodes and relations, without stored values.

Nodes are ids with a *label* (Trajectory, Fragment, ErrorPattern, Methodology, File; of notes, pages
and entities their kind) and the properties that docs/neo4j.md lists; the text of a note that is
confidential is not among them. Edges have the *type* of the relation and its properties; their key
is the type, followed by what distinguishes several edges of this type between the same two nodes.
Times are texts, in UTC.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from contextgraph.errors import StoreError
from contextgraph.system.processes import replacing

if TYPE_CHECKING:
    from contextgraph.store.protocols import Graph

GraphFormat = Literal["graphml", "json"]

# The property that distinguishes several edges of a type between the same two nodes.
_DISTINCT = {"RECOVERED": "error_step", "SIMILAR_TO": "error_id"}


def add_relation(
    graph: "Graph", kind: str, source: str, target: str, properties: dict[str, Any]
) -> None:
    """Add the relation of type *kind*, where both nodes are in *graph*."""
    if source in graph and target in graph:
        key = f"{kind} {properties[_DISTINCT[kind]]}" if kind in _DISTINCT else kind
        graph.add_edge(source, target, key=key, type=kind, **properties)


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
