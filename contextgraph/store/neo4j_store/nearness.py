"""What is near to a vector: by looking at all of a small scope, by an index over a large one."""

from collections.abc import Sequence
from dataclasses import dataclass

from contextgraph.model import (
    FragmentCandidate,
    Methodology,
    Near,
    RecoveryCandidate,
    Scope,
    Trajectory,
)
from contextgraph.store.neo4j_store import rows, spaces
from contextgraph.store.neo4j_store.held_vectors import HeldVectors, Neighbour
from contextgraph.store.neo4j_store.methodologies import methodology_of
from contextgraph.store.neo4j_store.retrieval import where
from contextgraph.store.neo4j_store.rows import Row
from contextgraph.store.neo4j_store.spaces import Kept
from contextgraph.store.neo4j_store.transaction import Transaction
from contextgraph.store.neo4j_store.values import FragmentKey, LatestValues, RecoveryKey
from contextgraph.store.neo4j_store.vector_index import vector_index
from contextgraph.vectors import Vector

# An index knows no scope: it is asked for more, and where too few of them are in scope for more.
_AT_LEAST = 200
_OVERFETCH = 10
_MOST = 4_000


@dataclass(frozen=True, slots=True)
class Known:
    """What this process has read of a memory."""

    values: LatestValues
    vectors: HeldVectors


@dataclass(frozen=True, slots=True)
class _Kind:
    """The names of the queries for one kind of node."""

    label: str
    vectors: str
    nearest: str
    by_index: str


_RUNS = _Kind(
    "Trajectory", "trajectory_vectors", "nearest_trajectories", "nearest_trajectories_by_index"
)
_FRAGMENTS = _Kind(
    "Fragment", "fragment_vectors", "nearest_fragments", "nearest_fragments_by_index"
)


def nearest_trajectories(
    transaction: Transaction, known: Known, vector: Vector, scope: Scope, limit: int
) -> list[Near[Trajectory]]:
    """Runs in the order of the port."""
    near = _nearest(transaction, known.vectors, _RUNS, vector, scope, limit)
    runs = known.values.trajectories(transaction, list(near))
    return [Near(one, near[one.id]) for one in runs]


def nearest_fragments(
    transaction: Transaction, known: Known, vector: Vector, scope: Scope, limit: int
) -> list[Near[FragmentCandidate]]:
    """Fragments in the order of the port."""
    near = _nearest(transaction, known.vectors, _FRAGMENTS, vector, scope, limit)
    keys = transaction.found("runs_of", ids=list(near)) if near else ()
    found = known.values.fragments(transaction, [FragmentKey(*key) for key in keys])
    return [Near(one, near[one.fragment.id]) for one in found]


def nearest_recoveries(
    transaction: Transaction, known: Known, vector: Vector, scope: Scope, limit: int
) -> list[Near[RecoveryCandidate]]:
    """The recoveries of the nearest fragments, in the order of the port."""
    near = _nearest(transaction, known.vectors, _FRAGMENTS, vector, scope, limit)
    keys = transaction.found("recoveries_of", ids=list(near)) if near else ()
    found = known.values.recoveries(transaction, [RecoveryKey(*key) for key in keys])
    return [Near(one, near[key.fragment_id]) for key, one in found.items()]


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
    transaction: Transaction,
    held: HeldVectors,
    kind: _Kind,
    vector: Vector,
    scope: Scope,
    limit: int,
) -> dict[str, Vector]:
    """The ids of the nearest nodes, best first, and their vectors."""
    kept = spaces.active_for(transaction, vector)
    if limit < 1:
        return {}
    found = held.of(transaction, kind.vectors, kept, scope.repo)
    if found is None:
        return dict(_by_index(transaction, kind, kept, vector, scope, limit))
    return dict(found.nearest(vector, scope, limit))


def _by_index(
    transaction: Transaction, kind: _Kind, kept: Kept, vector: Vector, scope: Scope, limit: int
) -> list[Neighbour]:
    asked = {
        "property": kept.property,
        "vector": vector.numbers().tolist(),
        "limit": limit,
        **rows.scope_parameters(scope),
    }
    index = vector_index(kind.label, kept.property)
    nearest = max(_AT_LEAST, _OVERFETCH * limit)
    while nearest <= _MOST:
        found = transaction.rows(kind.by_index, index=index, nearest=nearest, **asked)
        if len(found) == limit:
            return _neighbours(found, vector.space)
        nearest *= _OVERFETCH
    return _neighbours(transaction.rows(where(kind.nearest, scope), **asked), vector.space)


def _neighbours(found: Sequence[Row], space: str) -> list[Neighbour]:
    return [Neighbour(row["id"], Vector(space, rows.numbers(row["numbers"]))) for row in found]
