"""A node with what is known of it and its edges."""

from collections.abc import Callable, Iterator
from sqlite3 import Connection
from typing import TYPE_CHECKING

import orjson

from contextgraph.model import Explanation, Json, Relation

if TYPE_CHECKING:
    from contextgraph.store.projection import Graph

_FACTS = {
    "Trajectory": """
        SELECT instance_id, repo, task_type, outcome, exit_status, total_steps, x.summary, agent,
            model, source, datetime(seen_at / 1000000, 'unixepoch') || ' UTC' AS seen_at,
            nullif(r.summary, '') AS retold, r.made_by AS retold_by
        FROM trajectory x LEFT JOIN retelling r ON r.trajectory = x.key
        WHERE x.tenant = ? AND x.id = ?""",
    "Fragment": """
        SELECT start AS first_step, stop AS last_step, fragment_type, phase, outcome, x.description,
            repo, open_file, r.description AS retold
        FROM fragment x LEFT JOIN retold_fragment r ON r.fragment = x.key
        WHERE tenant = ? AND id = ?""",
    "ErrorPattern": """
        SELECT family, error_type, template, (SELECT count(*) FROM met WHERE error = x.key) AS runs,
            (SELECT coalesce(sum(cleared), 0) FROM met WHERE error = x.key) AS cleared_runs
        FROM error_pattern x WHERE tenant = ? AND id = ?""",
    "Methodology": """
        SELECT situation, strategy, repo, keyword, task_type, status, confidence, support,
            repositories, frequency, success_rate, avg_steps, success_count AS shown_and_helped,
            failure_count AS shown_and_did_not, made_by, superseded_by, phase
        FROM methodology x WHERE tenant = ? AND id = ?""",
}
_CONTEXT = """
SELECT datetime(e.shown_at / 1000000, 'unixepoch') || ' UTC', e.helped, i.item
FROM exposure e LEFT JOIN exposed_item i ON i.exposure = e.key
WHERE e.tenant = ? AND e.context_id = ? ORDER BY i.item"""


def explanation(
    connection: Connection, tenant: int, graph: Callable[[], "Graph"], node: str
) -> Explanation | None:
    """What is known of *node*, None where there is no such id."""
    if node.startswith("ctx_"):
        return _of_context(connection, tenant, graph(), node)
    for label, query in _FACTS.items():
        cursor = connection.execute(query, (tenant, node))
        if row := cursor.fetchone():
            names = (column[0] for column in cursor.description)
            facts: dict[str, Json] = {
                name: value for name, value in zip(names, row, strict=True) if value is not None
            }
            known = graph()
            name = known.nodes[node]["name"] if node in known else ""
            return Explanation(node, label, name, facts, _relations(known, node))
    return None


def _of_context(
    connection: Connection, tenant: int, graph: "Graph", context: str
) -> Explanation | None:
    found = connection.execute(_CONTEXT, (tenant, context)).fetchall()
    if not found:
        return None
    helped = {None: "not known", 1: "yes", 0: "no"}[found[0][1]]
    shown = tuple(
        _relation(graph, "SHOWN", item, outgoing=True, properties={})
        for _, _, item in found
        if item is not None
    )
    facts: dict[str, Json] = {"shown_at": found[0][0], "helped": helped}
    return Explanation(context, "Context", f"context {context}", facts, shown)


def _relations(graph: "Graph", node: str) -> tuple[Relation, ...]:
    if node not in graph:
        return ()
    return tuple(sorted(_edges(graph, node), key=_place))


def _place(edge: Relation) -> tuple[str, bool, str, str]:
    """Edges to one node differ in their properties."""
    told = repr(sorted(edge.properties.items()))
    return edge.type, edge.outgoing, edge.id, told


def _edges(graph: "Graph", node: str) -> Iterator[Relation]:
    for _, other, key, data in graph.out_edges(node, keys=True, data=True):
        yield _relation(graph, key.split()[0], other, outgoing=True, properties=data)
    for other, _, key, data in graph.in_edges(node, keys=True, data=True):
        yield _relation(graph, key.split()[0], other, outgoing=False, properties=data)


def _relation(
    graph: "Graph", kind: str, other: str, *, outgoing: bool, properties: dict[str, Json]
) -> Relation:
    known = graph.nodes[other] if other in graph else {"label": "gone", "name": other}
    plain: dict[str, Json] = orjson.loads(orjson.dumps(properties))  # tuples as lists
    return Relation(kind, outgoing, other, known["label"], known["name"], plain)
