"""Vectors that this process has read from the server, by scope.

Reading the vectors of a repository costs the server ten times what comparing them costs here, and
between two queries few are new. An index would not find all: where many vectors are equal, as
those of the same command often are, it misses whole groups of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from contextgraph.model import Scope, Space
from contextgraph.store import rules
from contextgraph.store.neo4j.cache import MemoryState
from contextgraph.store.neo4j.connection import Connection
from contextgraph.store.neo4j.rows import Row, moment, where
from contextgraph.vectors import Vector, dimensions_of, products

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from contextgraph.vectors import Floats

# For a larger scope the index is searched: 20,000 vectors of 384 dimensions, which take half a
# second to read for the first time.
MAX_NUMBERS = 7_680_000
_MAX_BYTES = 100_000_000
_READ_AT_ONCE = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ActiveSpace:
    """The active space, the *property* of nodes with its vectors, the *state* of the memory."""

    space: Space
    property: str
    state: MemoryState


class Neighbour(NamedTuple):
    """A run near the vector of a query, and its own vector."""

    id: str
    vector: Vector


@dataclass(frozen=True, slots=True)
class CachedVectors:
    """The *vectors* of runs, float32 of shape (n, dimensions), with what scopes filter by.

    *seen_at* is in microseconds since 1970. *state* is that of the memory when they were read, None
    before. Where there are *too_many*, none is cached.
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

        inside = np.flatnonzero(self._is_inside(scope))
        cosines = np.round(products(self.vectors[inside], vector), rules.COSINE_DECIMALS)
        if len(cosines) > limit:
            least = np.partition(cosines, -limit)[-limit]
            inside, cosines = inside[cosines >= least], cosines[cosines >= least]
        pairs = zip(cosines.tolist(), inside.tolist(), strict=True)
        ranked = sorted((-cosine, self.ids[row], row) for cosine, row in pairs)
        return [
            Neighbour(id_, Vector(vector.space, self.vectors[row].tobytes()))
            for _, id_, row in ranked[:limit]
        ]

    def _is_inside(self, scope: Scope) -> "NDArray[np.bool_]":
        import numpy as np

        inside = np.ones(len(self.ids), dtype=np.bool_)
        if scope.as_of is not None:
            inside &= self.seen_at <= (moment(scope.as_of) - _EPOCH) // timedelta(microseconds=1)
        if scope.exclude_instances:
            hidden = [instance in scope.exclude_instances for instance in self.instances]
            inside &= ~np.array(hidden, dtype=np.bool_)
        return inside


class _Key(NamedTuple):
    """What is cached together."""

    space: str
    repo: str | None


class VectorCache:
    """The vectors of the scopes that were queried last, up to _MAX_BYTES of them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._cached: dict[_Key, CachedVectors] = {}

    def of(self, active: ActiveSpace, repo: str | None) -> CachedVectors | None:
        """The vectors of all runs (of *repo*); None for too many."""
        key = _Key(active.space.name, repo)
        cached = self._updated(key, active, self._cached.get(key) or _empty(active))
        self._store(key, cached)
        return None if cached.too_many else cached

    def _store(self, key: _Key, cached: CachedVectors) -> None:
        # A new mapping, since other threads read this one.
        others = {known: one for known, one in self._cached.items() if known != key}
        size = cached.vectors.nbytes + sum(one.vectors.nbytes for one in others.values())
        while size > _MAX_BYTES and others:
            size -= others.pop(next(iter(others))).vectors.nbytes
        self._cached = {**others, key: cached}

    def _updated(self, key: _Key, active: ActiveSpace, cached: CachedVectors) -> CachedVectors:
        """*cached*, and what is new up to the state of *active*."""
        # What was removed may have been learned again, with another vector.
        if cached.state and cached.state.generation != active.state.generation:
            cached = _empty(active)
        if cached.too_many or cached.state == active.state:
            return cached
        most = MAX_NUMBERS // cached.vectors.shape[1]
        known = set(cached.ids)
        candidates = self._candidates(key.repo, active.state, cached.state, most + 1)
        new = [id_ for id_ in candidates if id_ not in known]
        if len(cached.ids) + len(new) > most:
            return replace(_empty(active), state=active.state, too_many=True)
        return _extended(replace(cached, state=active.state), list(self._read(active, new)))

    def _candidates(
        self, repo: str | None, now: MemoryState, before: MemoryState | None, limit: int
    ) -> Sequence[str]:
        """The ids of runs that may have a vector that is not cached."""
        find = self._connection.found
        if before is None or before.embeddings != now.embeddings:
            name = where("embedded_trajectories", Scope(repo=repo))
            return find(name, repo=repo, limit=limit)
        if before.revision == now.revision:
            return ()
        return find("embedded_trajectories_since", repo=repo, revision=before.revision, limit=limit)

    def _read(self, active: ActiveSpace, ids: Sequence[str]) -> Iterator[Row]:
        for start in range(0, len(ids), _READ_AT_ONCE):
            batch = ids[start : start + _READ_AT_ONCE]
            yield from self._connection.rows(
                "vectors_of_trajectories", ids=batch, property=active.property
            )


def _empty(active: ActiveSpace) -> CachedVectors:
    import numpy as np

    vectors = np.empty((0, dimensions_of(active.space.name)), dtype=np.float32)
    return CachedVectors(None, (), (), np.empty(0, dtype=np.int64), vectors)


def _extended(cached: CachedVectors, read: Sequence[Row]) -> CachedVectors:
    """*cached* and the columns that were *read*."""
    import numpy as np

    found = [row for row in read if row["ids"]]
    if not found:
        return cached
    seen_at = [np.array(row["seen_at"], dtype=np.int64) for row in found]
    numbers = [np.array(row["vectors"], dtype=np.float32) for row in found]
    return replace(
        cached,
        ids=(*cached.ids, *(id_ for row in found for id_ in row["ids"])),
        instances=(*cached.instances, *(name for row in found for name in row["instances"])),
        seen_at=np.concatenate((cached.seen_at, *seen_at)),
        vectors=np.concatenate((cached.vectors, *numbers)),
    )
