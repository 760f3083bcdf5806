"""The graph of a memory as a networkx graph: its nodes and relations, without their texts.

Nodes are ids with a *label* (Trajectory, Fragment, ErrorPattern, Methodology), a *name* and:

- Trajectory: repo, outcome
- Fragment: repo, fragment_type, phase, outcome
- ErrorPattern: family, error_type
- Methodology: repo (empty for general ones), status, support, confidence

Edges have the *type* of the relation and its properties; their key is the type, followed by what
distinguishes several edges of this type between the same two nodes.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from contextgraph.errors import StoreError

if TYPE_CHECKING:
    from contextgraph.ports import Graph

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

    In GraphML, which has no lists, a list of numbers is a text. Raises `StoreError` where the file
    cannot be written.
    """
    import networkx as nx

    part = path.with_name(f"{path.name}.part")
    try:
        if graph_format == "graphml":
            nx.write_graphml(_without_lists(graph), part)
        else:
            part.write_text(json.dumps(nx.node_link_data(graph, edges="edges")))
        part.replace(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


def _without_lists(graph: "Graph") -> "Graph":
    copy = graph.copy()
    for _, _, properties in copy.edges(data=True):
        for name, value in properties.items():
            if isinstance(value, list):
                properties[name] = " ".join(map(str, value))
    return copy
