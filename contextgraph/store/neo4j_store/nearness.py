"""What is near to a vector: by looking at all of a small scope, by an index over a large one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from contextgraph.model import (
    FragmentCandidate,
    Methodology,
    Near,
    RecoveryCandidate,
    Scope,
    Trajectory,
)
from contextgraph.store.neo4j_store import rows, spaces
from contextgraph.store.neo4j_store.methodologies import methodology_of
from contextgraph.store.neo4j_store.retrieval import where
from contextgraph.store.neo4j_store.rows import Row
from contextgraph.store.neo4j_store.spaces import Kept
from contextgraph.store.neo4j_store.transaction import Transaction
from contextgraph.store.neo4j_store.vector_index import vector_index
from contextgraph.vectors import Vector

Item = TypeVar("Item")

# Looking at so many takes as long as asking the index, and finds all.
_FEW = 2_000
# An index knows no scope: it is asked for more, and where too few of them are in scope for more.
_AT_LEAST = 200
_OVERFETCH = 10
_MOST = 4_000


@dataclass(frozen=True, slots=True)
class _Kind:
    """The names of the queries for one kind of node."""

    label: str
    count: str
    nearest: str
    by_index: str


_RUNS = _Kind(
    "Trajectory", "count_trajectories", "nearest_trajectories", "nearest_trajectories_by_index"
)
_FRAGMENTS = _Kind("Fragment", "count_fragments", "nearest_fragments", "nearest_fragments_by_index")


def nearest_trajectories(
    transaction: Transaction, vector: Vector, scope: Scope, limit: int
) -> list[Near[Trajectory]]:
    """Runs in the order of the port."""
    kept = spaces.active_for(transaction, vector)
    ids = _nearest(transaction, _RUNS, kept, vector, scope, limit)
    found = transaction.rows("trajectories_of", ids=ids, property=kept.property)
    near = _near(found, vector.space, lambda row: rows.trajectory_of(row["trajectory"]))
    return [one for node in ids for one in near.get(node, ())]


def nearest_fragments(
    transaction: Transaction, vector: Vector, scope: Scope, limit: int
) -> list[Near[FragmentCandidate]]:
    """Fragments in the order of the port."""
    kept = spaces.active_for(transaction, vector)
    ids = _nearest(transaction, _FRAGMENTS, kept, vector, scope, limit)
    found = transaction.rows("fragment_candidates_of", ids=ids, property=kept.property)
    near = _near(found, vector.space, rows.fragment_candidate_of)
    return [one for node in ids for one in near.get(node, ())]


def nearest_recoveries(
    transaction: Transaction, vector: Vector, scope: Scope, limit: int
) -> list[Near[RecoveryCandidate]]:
    """The recoveries of the nearest fragments, in the order of the port."""
    kept = spaces.active_for(transaction, vector)
    ids = _nearest(transaction, _FRAGMENTS, kept, vector, scope, limit)
    found = transaction.rows("recoveries_of", ids=ids, property=kept.property)
    near = _near(found, vector.space, rows.recovery_of)
    return [one for node in ids for one in near.get(node, ())]


def nearest_methodologies(
    transaction: Transaction, vector: Vector, scope: Scope, limit: int
) -> list[Near[Methodology]]:
    """Methodologies in the order of the port."""
    kept = spaces.active_for(transaction, vector)
    found = transaction.rows(
        "nearest_methodologies",
        property=kept.property,
        vector=vector.numbers().tolist(),
        limit=max(0, limit),
        **rows.scope_parameters(scope),
    )
    return [
        Near(methodology_of(row), Vector(vector.space, rows.numbers(row["vector"])))
        for row in found
    ]


def _nearest(
    transaction: Transaction, kind: _Kind, kept: Kept, vector: Vector, scope: Scope, limit: int
) -> list[str]:
    """The ids of the nearest nodes, best first."""
    if limit < 1:
        return []
    asked = {
        "property": kept.property,
        "vector": vector.numbers().tolist(),
        "limit": limit,
        **rows.scope_parameters(scope),
    }
    few = max(_FEW, limit)
    counted = transaction.row(where(kind.count, scope), repo=scope.repo, limit=few + 1)
    assert counted is not None  # it aggregates
    nearest = max(_AT_LEAST, _OVERFETCH * limit)
    while counted["count"] > few and nearest <= _MOST:
        index = vector_index(kind.label, kept.property)
        found = transaction.rows(kind.by_index, index=index, nearest=nearest, **asked)
        if len(found) == limit:
            return [row["id"] for row in found]
        nearest *= _OVERFETCH
    return [row["id"] for row in transaction.rows(where(kind.nearest, scope), **asked)]


def _near(
    found: Sequence[Row], space: str, item: Callable[[Row], Item]
) -> Mapping[str, list[Near[Item]]]:
    near: dict[str, list[Near[Item]]] = {}
    for row in found:
        vector = Vector(space, rows.numbers(row["vector"]))
        near.setdefault(row["id"], []).append(Near(item(row), vector))
    return near
