"""Vectors that were read from the server, held by this process for the next question.

Reading the vectors of a repository costs the server ten times what comparing them costs here, and
between two questions few are new.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from contextgraph.model import Scope
from contextgraph.store.neo4j_store.retrieval import where
from contextgraph.store.neo4j_store.rows import Row
from contextgraph.store.neo4j_store.spaces import Active
from contextgraph.store.neo4j_store.transaction import Transaction
from contextgraph.vectors import Vector, dimensions_of, products

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from contextgraph.vectors import Floats

# Of so many nodes in scope all are looked at. Reading them for the first time takes 0.1 s.
MOST_IN_SCOPE = 4_000
# 50,000 vectors of 384 dimensions.
_MOST_BYTES = 80_000_000
_DECIMALS = 4
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Neighbour(NamedTuple):
    """A node near to what was asked, and its vector."""

    id: str
    vector: Vector


class _Key(NamedTuple):
    """What is held together: the vectors for one query, of one space and repository."""

    query: str
    space: str
    repo: str | None


@dataclass(frozen=True, slots=True)
class Held:
    """The *vectors* of nodes, shape (n, dimensions), with what a scope asks: float32, rows alike.

    *seen_at* is in microseconds since 1970. They are those of the memory after so many *changes*
    and *removals*; not *complete* where a scope has more than MOST_IN_SCOPE, and then empty.
    """

    changes: int
    removals: int
    complete: bool
    ids: tuple[str, ...]
    instances: tuple[str, ...]
    seen_at: "NDArray[np.int64]"
    vectors: "Floats"

    def nearest(self, vector: Vector, scope: Scope, limit: int) -> list[Neighbour]:
        """Those in *scope* nearest to *vector*, best first, ties by id."""
        import numpy as np

        inside = np.flatnonzero(self._within(scope))
        alike = np.round(products(self.vectors[inside], vector), _DECIMALS)
        if len(alike) > limit:
            least = np.partition(alike, -limit)[-limit]
            inside, alike = inside[alike >= least], alike[alike >= least]
        pairs = zip(alike.tolist(), inside.tolist(), strict=True)
        found = sorted((-value, self.ids[row], row) for value, row in pairs)
        return [
            Neighbour(id_, Vector(vector.space, self.vectors[row].tobytes()))
            for _, id_, row in found[:limit]
        ]

    def _within(self, scope: Scope) -> "NDArray[np.bool_]":
        import numpy as np

        inside = np.ones(len(self.ids), dtype=np.bool_)
        if scope.as_of is not None:
            inside &= self.seen_at <= (scope.as_of - _EPOCH) // timedelta(microseconds=1)
        if scope.exclude_instances:
            hidden = [instance in scope.exclude_instances for instance in self.instances]
            inside &= ~np.array(hidden, dtype=np.bool_)
        return inside


class HeldVectors:
    """What was read last of each scope, up to _MOST_BYTES; what was asked for longest ago goes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[_Key, Held] = {}

    def of(
        self, transaction: Transaction, query: str, active: Active, repo: str | None
    ) -> Held | None:
        """The vectors that *query* names, of *repo* or (None) all; None where they are too many."""
        key = _Key(query, active.space.name, repo)
        held = self._held.get(key)
        # What was removed may have been learned again, with another vector.
        if held is None or held.removals != active.removals:
            held = _none(active)
        if held.complete and held.changes < active.changes:
            held = _caught_up(transaction, key, active, held)
        self._keep(key, held)
        return held if held.complete else None

    def _keep(self, key: _Key, held: Held) -> None:
        with self._lock:
            self._held.pop(key, None)
            self._held[key] = held
            size = sum(one.vectors.nbytes for one in self._held.values())
            while size > _MOST_BYTES and len(self._held) > 1:
                size -= self._held.pop(next(iter(self._held))).vectors.nbytes


def _none(active: Active) -> Held:
    import numpy as np

    vectors = np.empty((0, dimensions_of(active.space.name)), dtype=np.float32)
    return Held(-1, active.removals, True, (), (), np.empty(0, dtype=np.int64), vectors)


def _caught_up(transaction: Transaction, key: _Key, active: Active, held: Held) -> Held:
    """*held* and what is new since; nothing where it is too many."""
    row = transaction.row(
        where(key.query, Scope(repo=key.repo)),
        repo=key.repo,
        property=active.property,
        known=held.ids,
        most=MOST_IN_SCOPE,
    )
    assert row is not None  # it aggregates
    if row["count"] > MOST_IN_SCOPE:
        return replace(_none(active), changes=active.changes, complete=False)
    return _extended(replace(held, changes=active.changes), row)


def _extended(held: Held, row: Row) -> Held:
    import numpy as np

    added: Sequence[str] = row["ids"]
    if not added:
        return held
    numbers = np.array(row["vectors"], dtype=np.float32)
    return replace(
        held,
        ids=(*held.ids, *added),
        instances=(*held.instances, *row["instances"]),
        seen_at=np.concatenate((held.seen_at, np.array(row["seen_at"], dtype=np.int64))),
        vectors=np.concatenate((held.vectors, numbers)),
    )
