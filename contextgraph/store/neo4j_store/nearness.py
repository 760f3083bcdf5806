"""What is near to a vector: by looking at all of a small scope, by an index over a large one."""

from dataclasses import dataclass
from datetime import UTC, datetime

from contextgraph.model import (
    FragmentCandidate,
    Methodology,
    Near,
    RecoveryCandidate,
    Scope,
    Trajectory,
)
from contextgraph.store.neo4j_store import rows, spaces
from contextgraph.store.neo4j_store.held_vectors import HeldKind
from contextgraph.store.neo4j_store.known import Known
from contextgraph.store.neo4j_store.methodologies import methodology_of
from contextgraph.store.neo4j_store.retrieval import where
from contextgraph.store.neo4j_store.rows import Parameters, Row
from contextgraph.store.neo4j_store.transaction import Transaction
from contextgraph.store.neo4j_store.values import FragmentKey
from contextgraph.store.neo4j_store.vector_index import vector_index
from contextgraph.vectors import Vector

# An index is asked for more than is wanted, since it misses some: of the 20 nearest of 10,000
# fragments of real runs 0.1 % by 400 of Neo4j 2026.09, 2 % by 1,000 of 5.26. One that knows no
# scopes is asked for yet more where too few are in scope.
_NEAREST_IN_SCOPE = 400
_NEAREST_OF_ALL = 1_000
_MORE = 4
_MOST = 4_000
_ADVICE_AT_ONCE = 200
_ALWAYS = datetime(9999, 1, 1, tzinfo=UTC)


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
    keys = known.recoveries.of(transaction, list(near))
    found = known.values.recoveries(transaction, keys)
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
        some, left = left[:_ADVICE_AT_ONCE], left[_ADVICE_AT_ONCE:]
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
    asked: Parameters = {
        "property": active.property,
        "vector": vector.numbers().tolist(),
        "limit": limit,
        **rows.scope_parameters(scope),
    }
    index = vector_index(kind.label, active.property)
    if known.indexes.know_scopes(transaction, index):
        found = _in_scope(transaction, kind, index, scope, asked, limit)
    else:
        found = _of_all(transaction, kind, index, asked, limit)
    if len(found) < limit:
        found = transaction.rows(where(kind.nearest, scope), **asked)
    return {row["id"]: Vector(vector.space, rows.numbers(row["numbers"])) for row in found}


def _in_scope(
    transaction: Transaction,
    kind: _Kind,
    index: str,
    scope: Scope,
    asked: Parameters,
    limit: int,
) -> list[Row]:
    """What an index finds that knows scopes."""
    nearest = max(_NEAREST_IN_SCOPE, limit)
    until = rows.moment(scope.as_of) if scope.as_of else _ALWAYS
    name = where(kind.search, scope)
    return transaction.searched(name, index, nearest=nearest, until=until, **asked)


def _of_all(
    transaction: Transaction, kind: _Kind, index: str, asked: Parameters, limit: int
) -> list[Row]:
    """What of the nearest of all is in scope, or as much of it as is wanted."""
    found: list[Row] = []
    nearest = max(_NEAREST_OF_ALL, limit)
    while len(found) < limit and nearest <= _MOST:
        found = transaction.rows(kind.by_index, index=index, nearest=nearest, **asked)
        nearest *= _MORE
    return found
