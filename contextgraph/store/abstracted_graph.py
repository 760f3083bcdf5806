"""Methodologies and likeness in the projection: few, and told anew whenever something changed."""

from sqlite3 import Connection
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from networkx import MultiDiGraph

    Graph: TypeAlias = MultiDiGraph[str]

LABEL = "Methodology"
_NODES = "SELECT id, substr(situation, 1, 120), repo FROM methodology WHERE tenant = ?"
_RESOLVED = """
SELECT r.error_id, r.methodology_id, r.success_rate, r.avg_steps, r.support
FROM resolved_by r WHERE r.tenant = ?"""
_DERIVED = """
SELECT m.id, f.id FROM methodology m JOIN derived_from d ON d.methodology = m.key
JOIN fragment f ON f.key = d.fragment WHERE m.tenant = ?"""
_SUPERSEDED = """
SELECT superseded_by, id FROM methodology WHERE tenant = ? AND superseded_by IS NOT NULL"""
_SIMILAR = """
SELECT f.id, r.id, s.error_id, s.weight FROM similar s JOIN fragment f ON f.key = s.fragment
JOIN fragment r ON r.key = s.representative WHERE f.tenant = ?"""


def forget_abstracted(graph: "Graph", connection: Connection, asked: dict[str, int]) -> None:
    """Take out of *graph* what is told anew, and fragments that were pruned."""
    graph.remove_nodes_from(
        [node for node, data in graph.nodes(data=True) if data["label"] == LABEL]
    )
    alike = [edge for edge in graph.edges(keys=True) if edge[2].startswith("SIMILAR_TO")]
    graph.remove_edges_from(alike)
    pruned = connection.execute(
        "SELECT fragment_id FROM pruned WHERE tenant = :tenant AND revision > :revision", asked
    )
    graph.remove_nodes_from([node for (node,) in pruned])


def add_abstracted(graph: "Graph", connection: Connection, tenant: int) -> None:
    """Put methodologies with their edges, and likeness of fragments, into *graph*."""
    for node, name, repo in connection.execute(_NODES, (tenant,)):
        graph.add_node(node, label=LABEL, name=name, repo=repo or "")
    for error, node, rate, steps, support in connection.execute(_RESOLVED, (tenant,)):
        if error in graph and node in graph:
            graph.add_edge(
                error, node, key="RESOLVED_BY", success_rate=rate, avg_steps=steps, support=support
            )
    for node, fragment in connection.execute(_DERIVED, (tenant,)):
        graph.add_edge(node, fragment, key="DERIVED_FROM")
    for node, before in connection.execute(_SUPERSEDED, (tenant,)):
        if node in graph:
            graph.add_edge(node, before, key="SUPERSEDES")
    for fragment, representative, error, weight in connection.execute(_SIMILAR, (tenant,)):
        # Two may be alike in how they cleared each of several errors.
        graph.add_edge(
            fragment, representative, key=f"SIMILAR_TO {error}", error_id=error, weight=weight
        )
