"""Values that this process has read, valid until the server has newer ones.

Queries find keys. What these stand for, long tasks and messages above all, is most of what a server
sends and most of what it costs to decode: it is read once (figures in docs/neo4j.md).
"""

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from contextgraph.model import (
    Fragment,
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


@dataclass(frozen=True, slots=True)
class _Values:
    """Values that were read at *revision*, or earlier and have not changed since.

    Fragments and recoveries do not change until they are removed; a run changes with its revision.
    """

    generation: CacheGeneration = NEVER
    revision: int = -1
    trajectories: ValueCache[str, Trajectory] = field(default_factory=ValueCache)
    fragments: ValueCache[FragmentKey, Fragment] = field(default_factory=ValueCache)
    recoveries: ValueCache[RecoveryKey, RecoveryCandidate] = field(default_factory=ValueCache)

    def is_current(self, state: MemoryState) -> bool:
        """True where nothing has changed since."""
        return (self.generation, self.revision) == (state.generation, state.revision)

    def is_newer(self, state: MemoryState) -> bool:
        """True where another thread has seen a later revision of the same memory."""
        return self.generation.identity == state.identity and self.revision > state.revision


@dataclass(frozen=True, slots=True)
class _Found:
    """Values by key; what was removed meanwhile is missing."""

    trajectories: dict[str, Trajectory] = field(default_factory=dict)
    fragments: dict[FragmentKey, Fragment] = field(default_factory=dict)
    recoveries: dict[RecoveryKey, RecoveryCandidate] = field(default_factory=dict)


class CandidateCache:
    """The values of the latest revision that a query of this process has seen."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._process = os.getpid()
        self._latest = _Values()

    def trajectories(self, ids: Iterable[str]) -> list[Trajectory]:
        """The runs of these ids, in their order; unknown ones are missing."""
        ids = list(ids)
        runs = self._find(ids).trajectories
        return [runs[id_] for id_ in ids if id_ in runs]

    def fragments(self, keys: Sequence[FragmentKey]) -> list[FragmentCandidate]:
        """The fragments of these keys with their runs, in their order."""
        found = self._find([key.trajectory_id for key in keys], fragments=keys)
        return [
            FragmentCandidate(found.fragments[key], found.trajectories[key.trajectory_id])
            for key in keys
            if key in found.fragments and key.trajectory_id in found.trajectories
        ]

    def recoveries(self, keys: Collection[RecoveryKey]) -> dict[RecoveryKey, RecoveryCandidate]:
        """The recoveries of these keys, each once, in their order."""
        candidates = self._find(recoveries=keys).recoveries
        return {key: candidates[key] for key in keys if key in candidates}

    def _find(
        self,
        trajectory_ids: Iterable[str] = (),
        fragments: Sequence[FragmentKey] = (),
        recoveries: Collection[RecoveryKey] = (),
    ) -> _Found:
        """What is cached, and with one query all that is not."""
        values = self._current()
        cached_runs, runs = values.trajectories.cached(trajectory_ids)
        cached_fragments, missing = values.fragments.cached(fragments)
        cached_recoveries, cleared = values.recoveries.cached(recoveries)
        found = _Found(cached_runs, cached_fragments, cached_recoveries)
        if runs or missing or cleared:
            new = _read(
                self._connection.rows(
                    "values_of",
                    trajectories=runs,
                    fragments=[key.fragment_id for key in missing],
                    recoveries=[key._asdict() for key in cleared],
                )
            )
            values.trajectories.add(new.trajectories)
            values.fragments.add(new.fragments)
            values.recoveries.add(new.recoveries)
            found.trajectories.update(new.trajectories)
            found.fragments.update(new.fragments)
            found.recoveries.update(new.recoveries)
        return found

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
        return _Values(
            state.generation,
            state.revision,
            before.trajectories.without([row["id"] for row in changed]),
            before.fragments,
            before.recoveries,
        )


def _read(found: Iterable[Row]) -> _Found:
    values = _Found()
    for row in found:
        key, value = row["key"], row["value"]
        match row["kind"]:
            case "trajectory":
                values.trajectories[key[0]] = rows.trajectory_of(value)
            case "fragment":
                values.fragments[FragmentKey(*key)] = rows.fragment_of(value)
            case _:
                values.recoveries[RecoveryKey(*key)] = rows.recovery_of(value)
    return values
