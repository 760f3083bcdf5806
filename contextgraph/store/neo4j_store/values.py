"""Values of what queries named, remembered by this process while the server has no other.

Queries name what they find. What it holds, tasks and messages above all, is most of what a server
sends and of what it costs to read: it is asked for once.
"""

import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from contextgraph.model import (
    ErrorPattern,
    Fragment,
    FragmentCandidate,
    Recovered,
    RecoveryCandidate,
    Trajectory,
)
from contextgraph.store.neo4j_store import memory_state, rows
from contextgraph.store.neo4j_store.memory_state import NEVER, Era, MemoryState
from contextgraph.store.neo4j_store.rows import Row
from contextgraph.store.neo4j_store.transaction import Transaction
from contextgraph.store.remembered import Remembered

# Where more runs have changed, it costs less to read again what is asked for.
_MOST_CHANGED = 1_000


class FragmentKey(NamedTuple):
    """Names a fragment, and the run it is part of."""

    trajectory_id: str
    fragment_id: str


class RecoveryKey(NamedTuple):
    """Names a recovery, the run it happened in, and the error."""

    trajectory_id: str
    fragment_id: str
    error_id: str
    error_step: int


@dataclass(frozen=True, slots=True)
class _Values:
    """What was read at *revision* of an *era*, or before it and is the same still.

    Fragments and what cleared errors never change unless they are removed; a run changes with its
    revision, and with it how the errors that it met may be told.
    """

    era: Era = NEVER
    revision: int = -1
    trajectories: Remembered[str, Trajectory] = field(default_factory=Remembered)
    fragments: Remembered[FragmentKey, Fragment] = field(default_factory=Remembered)
    recovered: Remembered[RecoveryKey, Recovered] = field(default_factory=Remembered)
    errors: Remembered[str, ErrorPattern] = field(default_factory=Remembered)

    def is_of(self, state: MemoryState) -> bool:
        """True where nothing has changed since."""
        return (self.era, self.revision) == (state.era, state.revision)

    def is_after(self, state: MemoryState) -> bool:
        """True where another thread has seen more of the same memory."""
        return self.era.identity == state.identity and self.revision > state.revision


@dataclass(frozen=True, slots=True)
class _Found:
    """Values by key; what was removed meanwhile is missing."""

    trajectories: dict[str, Trajectory]
    fragments: dict[FragmentKey, Fragment]
    recovered: dict[RecoveryKey, Recovered]
    errors: dict[str, ErrorPattern]


class LatestValues:
    """The values of the newest revision that a transaction of this process has seen."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest = _Values()

    def trajectories(self, transaction: Transaction, ids: Sequence[str]) -> list[Trajectory]:
        """The runs of these ids, in their order."""
        found = self._found(transaction, ids).trajectories
        return [found[id_] for id_ in ids if id_ in found]

    def fragments(
        self, transaction: Transaction, keys: Sequence[FragmentKey]
    ) -> list[FragmentCandidate]:
        """The fragments of these keys with their runs, in their order."""
        found = self._found(transaction, [key.trajectory_id for key in keys], fragments=keys)
        return [
            FragmentCandidate(found.fragments[key], found.trajectories[key.trajectory_id])
            for key in keys
            if key in found.fragments and key.trajectory_id in found.trajectories
        ]

    def recoveries(
        self, transaction: Transaction, keys: Collection[RecoveryKey]
    ) -> dict[RecoveryKey, RecoveryCandidate]:
        """The recoveries of these keys, each once, in their order."""
        found = self._found(transaction, [key.trajectory_id for key in keys], recoveries=keys)
        return {
            key: RecoveryCandidate(
                found.recovered[key],
                found.errors[key.error_id],
                found.trajectories[key.trajectory_id],
            )
            for key in keys
            if key in found.recovered
            and key.error_id in found.errors
            and key.trajectory_id in found.trajectories
        }

    def _found(
        self,
        transaction: Transaction,
        trajectory_ids: Iterable[str],
        fragments: Sequence[FragmentKey] = (),
        recoveries: Collection[RecoveryKey] = (),
    ) -> _Found:
        """What is known, and in one question all that is not."""
        values = self._at(transaction)
        known_runs, runs = values.trajectories.known(trajectory_ids)
        known_fragments, unknown = values.fragments.known(fragments)
        known_recovered, cleared = values.recovered.known(recoveries)
        known_errors, errors = values.errors.known(key.error_id for key in recoveries)
        found = _Found(known_runs, known_fragments, known_recovered, known_errors)
        if runs or unknown or cleared or errors:
            asked = {
                "trajectories": runs,
                "fragments": [key.fragment_id for key in unknown],
                "recoveries": [key._asdict() for key in cleared],
                "errors": errors,
            }
            new = _read(transaction.rows("values_of", **asked))
            values.trajectories.add(new.trajectories)
            values.fragments.add(new.fragments)
            values.recovered.add(new.recovered)
            values.errors.add(new.errors)
            found.trajectories.update(new.trajectories)
            found.fragments.update(new.fragments)
            found.recovered.update(new.recovered)
            found.errors.update(new.errors)
        return found

    def _at(self, transaction: Transaction) -> _Values:
        state = memory_state.of(transaction)
        latest = self._latest
        if latest.is_of(state):
            return latest
        if latest.is_after(state):
            return _Values()
        values = _kept(latest, state, transaction)
        with self._lock:
            if self._latest.is_of(state):  # another thread was faster
                return self._latest
            if not self._latest.is_after(state):
                self._latest = values
        return values


def _kept(before: _Values, state: MemoryState, transaction: Transaction) -> _Values:
    anew = _Values(state.era, state.revision)
    # What is removed and learned again has the same name.
    if before.era != state.era:
        return anew
    changed = transaction.rows(
        "runs_changed_since", revision=before.revision, limit=_MOST_CHANGED + 1
    )
    if len(changed) > _MOST_CHANGED:
        return anew
    return _Values(
        state.era,
        state.revision,
        before.trajectories.without([row["id"] for row in changed]),
        before.fragments,
        before.recovered,
        before.errors.without({error for row in changed for error in row["errors"]}),
    )


def _read(found: Iterable[Row]) -> _Found:
    values = _Found({}, {}, {}, {})
    for row in found:
        key, value = row["key"], row["value"]
        match row["kind"]:
            case "trajectory":
                values.trajectories[key[0]] = rows.trajectory_of(value)
            case "fragment":
                values.fragments[FragmentKey(*key)] = rows.fragment_of(value)
            case "recovery":
                named = RecoveryKey(*key)
                values.recovered[named] = rows.recovered_of(
                    value, named.fragment_id, named.error_id
                )
            case _:
                values.errors[key[0]] = rows.error_of(value)
    return values
