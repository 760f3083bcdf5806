"""Values that this process has read, valid until the server has newer ones.

Queries find keys. What these stand for, long tasks and messages above all, is most of what a server
sends and most of what it costs to decode: it is read once (figures in docs/neo4j.md).
"""

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from contextgraph.model import (
    FragmentCandidate,
    RecoveryCandidate,
    Trajectory,
)
from contextgraph.store.cache import ValueCache
from contextgraph.store.neo4j import rows
from contextgraph.store.neo4j.connection import Connection
from contextgraph.store.neo4j.rows import Row

# When more runs have changed, reading again what is needed costs less.
MAX_CHANGED_RUNS = 1_000


class CacheGeneration(NamedTuple):
    """A time in which no node was removed, so that an id names the same node.

    *identity* differs where all was deleted and a memory was created in its place.
    """

    identity: str
    removals: int


# The generation of a cache that is empty.
NEVER = CacheGeneration("", -1)


@dataclass(frozen=True, slots=True)
class MemoryState:
    """The *revision* of a memory, how often something was removed, and how many texts it has.

    *identity* is empty in memories of early versions. *gate* is the text of its gate, *space* the
    row of the active space.
    """

    identity: str = ""
    revision: int = 0
    removals: int = 0
    trajectories: int = 0
    recoveries: int = 0
    gate: str | None = None
    space: Row | None = None

    @property
    def generation(self) -> CacheGeneration:
        """Cached values of what may be removed are valid for as long as this is the same."""
        return CacheGeneration(self.identity, self.removals)


def memory_state(connection: Connection) -> MemoryState:
    """The state of the memory, read once in a snapshot; an empty one where there is none."""
    row = connection.row_of_snapshot("memory_state")
    return MemoryState(**row) if row else MemoryState()


class FragmentKey(NamedTuple):
    """Names a fragment and its run."""

    trajectory_id: str
    fragment_id: str


class RecoveryKey(NamedTuple):
    """Names a recovery, its run and its error."""

    trajectory_id: str
    fragment_id: str
    error_id: str
    error_step: int


# A run is named by its id.
Key: TypeAlias = str | FragmentKey | RecoveryKey


@dataclass(frozen=True, slots=True)
class _Values:
    """Values that were read at *revision*, or earlier and have not changed since.

    Fragments and recoveries do not change until they are removed; a run changes with its revision.
    """

    generation: CacheGeneration = NEVER
    revision: int = -1
    by_key: ValueCache[Key, Any] = field(default_factory=lambda: ValueCache(kinds=3))

    def is_current(self, state: MemoryState) -> bool:
        """True where nothing has changed since."""
        return (self.generation, self.revision) == (state.generation, state.revision)

    def is_newer(self, state: MemoryState) -> bool:
        """True where another thread has seen a later revision of the same memory."""
        return self.generation.identity == state.identity and self.revision > state.revision


class CandidateCache:
    """The values of the latest revision that a query of this process has seen."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._process = os.getpid()
        self._latest = _Values()

    def trajectories(self, ids: Iterable[str]) -> list[Trajectory]:
        """The runs of these ids, in their order; unknown ones are missing."""
        ids = list(ids)
        runs = self._find(ids)
        return [runs[id_] for id_ in ids if id_ in runs]

    def fragments(self, keys: Sequence[FragmentKey]) -> list[FragmentCandidate]:
        """The fragments of these keys with their runs, in their order."""
        values = self._find([*(key.trajectory_id for key in keys), *keys])
        return [
            FragmentCandidate(values[key], values[key.trajectory_id])
            for key in keys
            if key in values and key.trajectory_id in values
        ]

    def recoveries(self, keys: Collection[RecoveryKey]) -> dict[RecoveryKey, RecoveryCandidate]:
        """The recoveries of these keys, each once, in their order."""
        candidates = self._find(keys)
        return {key: candidates[key] for key in keys if key in candidates}

    def _find(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """What is cached, and with one query all that is not; what was removed is missing."""
        return self._current().by_key.get_or_read(keys, self._read)

    def _read(self, keys: Sequence[Key]) -> dict[Key, Any]:
        values = self._connection.rows(
            "values_of",
            trajectories=[key for key in keys if isinstance(key, str)],
            fragments=[key.fragment_id for key in keys if isinstance(key, FragmentKey)],
            recoveries=[key._asdict() for key in keys if isinstance(key, RecoveryKey)],
        )
        return dict(map(_value, values))

    def _current(self) -> _Values:
        """The values that are valid in the state that this snapshot sees."""
        if self._process != os.getpid():
            # A thread of the parent process may hold a lock in its values.
            self._process, self._latest = os.getpid(), _Values()
        state = memory_state(self._connection)
        latest = self._latest
        if latest.is_current(state):
            return latest
        if latest.is_newer(state):
            return _Values()
        values = self._updated(latest, state)
        if self._latest.is_current(state):  # another thread was faster
            return self._latest
        if not self._latest.is_newer(state):
            self._latest = values
        return values

    def _updated(self, before: _Values, state: MemoryState) -> _Values:
        """*before* without what has changed up to *state*."""
        empty = _Values(state.generation, state.revision)
        # A run that is removed and learned again has the same id.
        if before.generation != state.generation:
            return empty
        changed = self._connection.rows(
            "runs_changed_since", revision=before.revision, limit=MAX_CHANGED_RUNS + 1
        )
        if len(changed) > MAX_CHANGED_RUNS:
            return empty
        kept = before.by_key.without([row["id"] for row in changed])
        return _Values(state.generation, state.revision, kept)


def _value(row: Row) -> tuple[Key, Any]:
    """The value of *row*, after its key."""
    key, value = row["key"], row["value"]
    match row["kind"]:
        case "trajectory":
            return key[0], rows.trajectory_of(value)
        case "fragment":
            return FragmentKey(*key), rows.fragment_of(value)
        case _:
            return RecoveryKey(*key), rows.recovery_of(value)
