"""What is near to a vector: by looking at all of a small scope, by an index over a large one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from contextgraph.model import (
    FragmentCandidate,
    Methodology,
    Near,
    RecoveryCandidate,
    Scope,
    Trajectory,
)
from contextgraph.store.neo4j_store import rows, spaces
from contextgraph.store.neo4j_store.held_methodologies import HeldMethodologies
from contextgraph.store.neo4j_store.held_vectors import HeldKind, HeldVectors
from contextgraph.store.neo4j_store.methodologies import methodology_of
from contextgraph.store.neo4j_store.retrieval import where
from contextgraph.store.neo4j_store.rows import Row
from contextgraph.store.neo4j_store.transaction import Transaction
from contextgraph.store.neo4j_store.values import FragmentKey, LatestValues, RecoveryKey
from contextgraph.store.neo4j_store.vector_index import VectorIndexes, vector_index
from contextgraph.vectors import Vector

# An index knows no scope: it is asked for more, and where too few of them are in scope for more.
_AT_LEAST = 200
_OVERFETCH = 10
_MOST = 4_000
_ALWAYS = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Known:
    """What this process has read of a memory."""

    values: LatestValues
    vectors: HeldVectors
    methodologies: HeldMethodologies
    indexes: VectorIndexes


@dataclass(frozen=True, slots=True)
class _Kind:
    """The names of the queries for one kind of node."""

    label: str
    held: HeldKind
    search: str
    by_index: str
    nearest: str


_RUNS = _Kind(
    "Trajectory",
    HeldKind("held_trajectories", "held_trajectories_since", "held_trajectory_vectors"),
    "search_trajectories",
    "nearest_trajectories_by_index",
    "nearest_trajectories",
)
_FRAGMENTS = _Kind(
    "Fragment",
    HeldKind("held_fragments", "held_fragments_since", "held_fragment_vectors"),
    "search_fragments",
    "nearest_fragments_by_index",
    "nearest_fragments",
)


def nearest_trajectories(
    transaction: Transaction, known: Known, vector: Vector, scope: Scope, limit: int
) -> list[Near[Trajectory]]:
    """Runs in the order of the port."""
    near = _nearest(transaction, known, _RUNS, vector, scope, limit)
    runs = known.values.trajectories(transaction, list(near))
    return [Near(one, near[one.id]) for one in runs]


def nearest_fragments(
    transaction: Transaction, known: Known, vector: Vector, scope: Scope, limit: int
) -> list[Near[FragmentCandidate]]:
    """Fragments in the order of the port."""
    near = _nearest(transaction, known, _FRAGMENTS, vector, scope, limit)
    keys = transaction.found("runs_of", ids=list(near)) if near else ()
    found = known.values.fragments(transaction, [FragmentKey(*key) for key in keys])
    return [Near(one, near[one.fragment.id]) for one in found]


def nearest_recoveries(
    transaction: Transaction, known: Known, vector: Vector, scope: Scope, limit: int
) -> list[Near[RecoveryCandidate]]:
    """The recoveries of the nearest fragments, in the order of the port."""
    near = _nearest(transaction, known, _FRAGMENTS, vector, scope, limit)
    keys = transaction.found("recoveries_of", ids=list(near)) if near else ()
    found = known.values.recoveries(transaction, [RecoveryKey(*key) for key in keys])
    return [Near(one, near[key.fragment_id]) for key, one in found.items()]


def nearest_methodologies(
    transaction: Transaction, known: Known, vector: Vector, scope: Scope, limit: int
) -> list[Near[Methodology]]:
    """Methodologies in the order of the port."""
    active = spaces.active_for(transaction, vector)
    if limit < 1:
        return []
    ranked = dict(known.methodologies.ranked(transaction, active, vector, scope.repo))
    asked = {"property": active.property, **rows.scope_parameters(scope)}
    found: list[Methodology] = []
    left = list(ranked)
    while left and len(found) < limit:
        some, left = left[:_AT_LEAST], left[_AT_LEAST:]
        rest = limit - len(found)
        seen = transaction.rows("nearest_methodologies", ids=some, limit=rest, **asked)
        found += map(methodology_of, seen)
    return [Near(one, ranked[one.id]) for one in found]


def _nearest(
    transaction: Transaction, known: Known, kind: _Kind, vector: Vector, scope: Scope, limit: int
) -> dict[str, Vector]:
    """The ids of the nearest nodes, best first, and their vectors."""
    active = spaces.active_for(transaction, vector)
    if limit < 1:
        return {}
    held = known.vectors.of(transaction, kind.held, active, scope.repo)
    if held is not None:
        return dict(held.nearest(vector, scope, limit))
    search = _search(transaction, known.indexes, kind, active.property, scope)
    asked = {
        "property": active.property,
        "vector": vector.numbers().tolist(),
        "limit": limit,
        **rows.scope_parameters(scope),
    }
    found = _searched(search, asked, limit)
    if found is None:
        found = transaction.rows(where(kind.nearest, scope), **asked)
    return {row["id"]: Vector(vector.space, rows.numbers(row["numbers"])) for row in found}


def _search(
    transaction: Transaction, indexes: VectorIndexes, kind: _Kind, property_: str, scope: Scope
) -> Callable[..., list[Row]]:
    """How the server is searched: within *scope*, else among all that its index holds."""
    index = vector_index(kind.label, property_)
    if indexes.know_scopes(transaction, index):
        until = rows.moment(scope.as_of) if scope.as_of else _ALWAYS
        return partial(transaction.searched, where(kind.search, scope), index, until=until)
    return partial(transaction.rows, kind.by_index, index=index)


def _searched(
    search: Callable[..., list[Row]], asked: Mapping[str, object], limit: int
) -> list[Row] | None:
    """The nearest *limit*, asked for more while too few are in scope; None where that is no use."""
    nearest = max(_AT_LEAST, _OVERFETCH * limit)
    while nearest <= _MOST:
        found = search(nearest=nearest, **asked)
        if len(found) == limit:
            return found
        nearest *= _OVERFETCH
    return None
