"""The graph of a memory as a networkx graph: its nodes and relations, without their texts.

Nodes are ids with a *label* (Trajectory, Fragment, ErrorPattern, Methodology), a *name* and:

- Trajectory: repo, outcome
- Fragment: repo, fragment_type, phase, outcome
- ErrorPattern: family, error_type
- Methodology: repo (empty for general ones), status, support, confidence

Edges have the *type* of the relation and its properties; their key is the type, followed by what
distinguishes several edges of this type between the same two nodes. Notes are in exports only: see
`with_notes`.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from contextgraph.errors import StoreError
from contextgraph.model import Note, NoteKind

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


def labelled(graph: "Graph", label: str) -> list[str]:
    """The nodes of this *label*."""
    return [node for node, own in graph.nodes(data=True) if own["label"] == label]


def remove_abstracted(graph: "Graph") -> None:
    """Remove methodologies and similarities: they are few, and are read again as a whole."""
    graph.remove_nodes_from(labelled(graph, "Methodology"))
    relations = list(graph.edges(keys=True))
    graph.remove_edges_from([edge for edge in relations if edge[2].startswith("SIMILAR_TO")])


def with_notes(graph: "Graph", notes: Iterable[Note]) -> "Graph":
    """A copy of *graph* with *notes*, pages and entities, and the links between them and to runs.

    Their *label* is their kind, their *name* a title or the text, unless that is confidential; they
    have *repo*, *source*, *credibility* and *is_live*.
    """
    copy, known = graph.copy(), [*notes]
    for note in known:
        copy.add_node(
            note.id,
            label=note.kind.capitalize(),
            name=f"[{note.security}]" if note.security.is_secret else note.title or note.content,
            repo=note.repo,
            source=note.source,
            credibility=note.credibility,
            is_live=note.is_live,
        )
    for note in known:
        for link in note.links:
            add_relation(copy, link.type.upper(), note.id, link.target, {"weight": link.weight})
        for other in note.contradicts:
            add_relation(copy, "CONTRADICTS", note.id, other, {})
        if note.superseded_by:
            add_relation(copy, "SUPERSEDES", note.superseded_by, note.id, {})
    return copy


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


def read_graph(path: Path) -> "Graph":
    """The graph in the JSON file *path* that `export_graph` wrote, without notes."""
    import networkx as nx

    graph = cast("Graph", nx.node_link_graph(json.loads(path.read_text()), edges="edges"))
    kinds = {kind.capitalize() for kind in NoteKind}
    graph.remove_nodes_from([id_ for id_, node in graph.nodes.items() if node["label"] in kinds])
    return graph


def _without_lists(graph: "Graph") -> "Graph":
    copy = graph.copy()
    for _, _, properties in copy.edges(data=True):
        for name, value in properties.items():
            if isinstance(value, list):
                properties[name] = " ".join(map(str, value))
    return copy
