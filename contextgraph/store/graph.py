"""The graph of a memory as a networkx graph: its nodes and relations, without their texts.

Nodes are ids with a *label* (Trajectory, Fragment, ErrorPattern, Methodology), a *name* and:

- Trajectory: repo, outcome
- Fragment: repo, fragment_type, phase, outcome
- ErrorPattern: family, error_type
- Methodology: repo (empty for general ones), status, support, confidence

Edges have the *type* of the relation and its properties; their key is the type, followed by what
distinguishes several edges of this type between the same two nodes. Notes, pages and entities are
nodes, too: their *label* is their kind, their *name* a title or the text, unless that is
confidential; they have *repo*, *source*, *credibility* and *is_live*, and the links between them
and to runs.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from contextgraph.errors import StoreError
from contextgraph.model import Note, NoteKind
from contextgraph.system.processes import replacing

if TYPE_CHECKING:
    from contextgraph.store.protocols import Graph

GraphFormat = Literal["graphml", "json"]

NOTE_LABELS = frozenset(kind.capitalize() for kind in NoteKind)
# What `store.networkx` keeps in nodes and relations.
VALUES = frozenset({"value", "raw", "facts", "vectors", "vector", "revision"})
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


def put_notes(graph: "Graph", notes: Iterable[Note]) -> None:
    """Replace the notes in *graph* by *notes*, with their links."""
    known = [*notes]
    graph.remove_nodes_from([n for n, own in graph.nodes.items() if own["label"] in NOTE_LABELS])
    for note in known:
        add_note(graph, note)
    link_notes(graph, known)


def add_note(graph: "Graph", note: Note, **stored: object) -> None:
    """Add *note*, or what has changed of it, with what else is *stored* of it."""
    graph.add_node(
        note.id,
        label=note.kind.capitalize(),
        name=f"[{note.security}]" if note.security.is_secret else note.title or note.content,
        repo=note.repo,
        source=note.source,
        credibility=note.credibility,
        is_live=note.is_live,
        **stored,
    )


def link_notes(graph: "Graph", notes: Iterable[Note]) -> None:
    """Replace the relations of *notes*, which are all that are in *graph*."""
    known = [*notes]
    graph.remove_edges_from([*graph.out_edges([note.id for note in known], keys=True)])
    for note in known:
        for link in note.links:
            add_relation(graph, link.type.upper(), note.id, link.target, {"weight": link.weight})
        for other in note.contradicts:
            add_relation(graph, "CONTRADICTS", note.id, other, {})
        if note.superseded_by:
            add_relation(graph, "SUPERSEDES", note.superseded_by, note.id, {})


def without_values(graph: "Graph") -> "Graph":
    """Return a copy of *graph* without the values that a networkx memory keeps in it."""
    copy = graph.copy()
    for *_, own in (*copy.nodes(data=True), *copy.edges(data=True)):
        for name in VALUES & own.keys():
            del own[name]
    return copy


def export_graph(graph: "Graph", path: Path, graph_format: GraphFormat) -> None:
    """Write *graph* as GraphML, or as JSON in the node-link form of networkx.

    In GraphML, which has no lists, a list of numbers is a text. Raises `StoreError` where the file
    cannot be written.
    """
    import networkx as nx

    graph = without_values(graph)
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
    for _, _, properties in copy.edges(data=True):
        for name, value in properties.items():
            if isinstance(value, list):
                properties[name] = " ".join(map(str, value))
    return copy
