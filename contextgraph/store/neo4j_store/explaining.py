"""A node with what is known of it and its edges."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from contextgraph.model import Explanation, Json, Relation
from contextgraph.store.neo4j_store import rows
from contextgraph.store.neo4j_store.rows import Row
from contextgraph.store.neo4j_store.transaction import Transaction

_FACTS = {
    "Trajectory": "explain_trajectory",
    "Fragment": "explain_fragment",
    "ErrorPattern": "explain_error",
    "Methodology": "explain_methodology",
}
_HELPED = {None: "not known", True: "yes", False: "no"}


def explain(transaction: Transaction, node_id: str) -> Explanation | None:
    """What is known of a node or a context, None where there is no such id."""
    if node_id.startswith("ctx_"):
        return _of_context(transaction, node_id)
    for label, query in _FACTS.items():
        if row := transaction.row(query, id=node_id):
            facts = {name: _plain(value) for name, value in row["facts"].items()}
            known = {name: value for name, value in facts.items() if value is not None}
            return Explanation(node_id, label, row["name"], known, _relations(transaction, node_id))
    return None


def _of_context(transaction: Transaction, context: str) -> Explanation | None:
    row = transaction.row("explain_context", id=context)
    if row is None:
        return None
    items: Sequence[str] = sorted(row["items"])
    nodes = {found["id"]: found for found in transaction.rows("names_of", ids=items)}
    facts: dict[str, Json] = {
        "shown_at": _plain(row["shown_at"]),
        "helped": _HELPED[row["helped"]],
    }
    shown = tuple(_shown(item, nodes) for item in items)
    return Explanation(context, "Context", f"context {context}", facts, shown)


def _shown(item: str, nodes: Mapping[str, Row]) -> Relation:
    known = nodes.get(item, {"label": "gone", "name": item})
    return Relation("SHOWN", True, item, known["label"], known["name"])


def _relations(transaction: Transaction, node_id: str) -> tuple[Relation, ...]:
    found = [
        Relation(
            row["type"],
            row["outgoing"],
            row["id"],
            row["label"],
            row["name"],
            {name: value for name, value in row["properties"].items() if value is not None},
        )
        for row in transaction.rows("relations_of", id=node_id)
    ]
    return tuple(sorted(found, key=_place))


def _place(edge: Relation) -> tuple[str, bool, str, str]:
    """Edges to one node differ in their properties."""
    return edge.type, edge.outgoing, edge.id, repr(sorted(edge.properties.items()))


def _plain(value: object) -> Json:
    """A property as it is told; times to the second, UTC."""
    if hasattr(value, "to_native"):
        time: datetime = rows.time_of(value)
        return f"{time:%Y-%m-%d %H:%M:%S} UTC"
    told: Json = value  # type: ignore[assignment]  # the driver has no narrower type
    return told
