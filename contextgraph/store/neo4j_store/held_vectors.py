"""Vectors that were read from the server, held by this process for the next question.

Reading the vectors of a repository costs the server ten times what comparing them costs here, and
between two questions few are new. An index would not find all: where many vectors are the same, as
those of the same command often are, it misses whole groups of them.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from contextgraph.model import Scope
from contextgraph.store.neo4j_store.memory_state import MemoryState
from contextgraph.store.neo4j_store.retrieval import where
from contextgraph.store.neo4j_store.rows import Row, moment
from contextgraph.store.neo4j_store.spaces import Active
from contextgraph.store.neo4j_store.transaction import Transaction
from contextgraph.vectors import Vector, dimensions_of, products

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from contextgraph.vectors import Floats

# A scope of more than so many numbers is asked of an index: 20,000 vectors of 384 dimensions, which
# take half a second to read for the first time.
MOST_NUMBERS = 7_680_000
_MOST_BYTES = 100_000_000
_READ_AT_ONCE = 1_000
_DECIMALS = 4
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class HeldKind(NamedTuple):
    """The names of the queries by which vectors of one kind are read."""

    all: str
    since: str
    vectors: str


class Neighbour(NamedTuple):
    """A node near to what was asked, and its vector."""

    id: str
    vector: Vector


@dataclass(frozen=True, slots=True)
class Held:
    """The *vectors* of nodes, shape (n, dimensions), with what a scope asks: float32, rows alike.

    *seen_at* is in microseconds since 1970. *state* is that of the memory when they were read, None
    before. Where *too_many*, none are held.
    """

    state: MemoryState | None
    ids: tuple[str, ...]
    instances: tuple[str, ...]
    seen_at: "NDArray[np.int64]"
    vectors: "Floats"
    too_many: bool = False

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
            inside &= self.seen_at <= (moment(scope.as_of) - _EPOCH) // timedelta(microseconds=1)
        if scope.exclude_instances:
            hidden = [instance in scope.exclude_instances for instance in self.instances]
            inside &= ~np.array(hidden, dtype=np.bool_)
        return inside


class _Key(NamedTuple):
    """What is held together."""

    kind: HeldKind
    space: str
    repo: str | None


class HeldVectors:
    """What was read last of each scope, up to _MOST_BYTES; what was asked for longest ago goes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[_Key, Held] = {}

    def of(
        self, transaction: Transaction, kind: HeldKind, active: Active, repo: str | None
    ) -> Held | None:
        """The vectors of *kind*, of *repo* or (None) of all; None where they are too many."""
        key = _Key(kind, active.space.name, repo)
        held = _caught_up(transaction, key, active, self._held.get(key))
        self._keep(key, held)
        return None if held.too_many else held

    def _keep(self, key: _Key, held: Held) -> None:
        with self._lock:
            self._held.pop(key, None)
            self._held[key] = held
            size = sum(one.vectors.nbytes for one in self._held.values())
            while size > _MOST_BYTES and len(self._held) > 1:
                size -= self._held.pop(next(iter(self._held))).vectors.nbytes


def _caught_up(transaction: Transaction, key: _Key, active: Active, held: Held | None) -> Held:
    """What the memory has by now: *held*, and what is new since."""
    # What was removed may have been learned again, with another vector.
    if held is None or held.state is None or held.state.era != active.state.era:
        held = _none(active)
    if held.too_many or held.state == active.state:
        return held
    most = MOST_NUMBERS // held.vectors.shape[1]
    known = set(held.ids)
    new = [id_ for id_ in _asked(transaction, key, active, held, most + 1) if id_ not in known]
    if len(held.ids) + len(new) > most:
        return replace(_none(active), state=active.state, too_many=True)
    read = _read(transaction, key.kind, active, new)
    return _extended(replace(held, state=active.state), list(read))


def _asked(
    transaction: Transaction, key: _Key, active: Active, held: Held, limit: int
) -> Sequence[str]:
    """The ids of nodes that may have a vector that is not *held*."""
    before, now = held.state, active.state
    if before is None or before.embeddings != now.embeddings:
        name = where(key.kind.all, Scope(repo=key.repo))
        return transaction.found(name, repo=key.repo, limit=limit)
    if before.revision == now.revision:
        return ()
    return transaction.found(key.kind.since, repo=key.repo, revision=before.revision, limit=limit)


def _read(
    transaction: Transaction, kind: HeldKind, active: Active, ids: Sequence[str]
) -> Iterator[Row]:
    for start in range(0, len(ids), _READ_AT_ONCE):
        some = ids[start : start + _READ_AT_ONCE]
        yield from transaction.rows(kind.vectors, ids=some, property=active.property)


def _none(active: Active) -> Held:
    import numpy as np

    vectors = np.empty((0, dimensions_of(active.space.name)), dtype=np.float32)
    return Held(None, (), (), np.empty(0, dtype=np.int64), vectors)


def _extended(held: Held, read: Sequence[Row]) -> Held:
    """*held* and the rows of columns that were *read*."""
    import numpy as np

    found = [row for row in read if row["ids"]]
    if not found:
        return held
    seen_at = [np.array(row["seen_at"], dtype=np.int64) for row in found]
    numbers = [np.array(row["vectors"], dtype=np.float32) for row in found]
    return replace(
        held,
        ids=(*held.ids, *(id_ for row in found for id_ in row["ids"])),
        instances=(*held.instances, *(name for row in found for name in row["instances"])),
        seen_at=np.concatenate((held.seen_at, *seen_at)),
        vectors=np.concatenate((held.vectors, *numbers)),
    )
