"""Values as parameters, rows as values, and the cache of these; only here keys are named."""

import hashlib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from contextgraph.errors import StoreError
from contextgraph.lazy import dataclass, field
from contextgraph.model import (
    CausedError,
    ErrorPattern,
    ErrorSignature,
    Exposure,
    Family,
    Fragment,
    FragmentCandidate,
    Methodology,
    Recovered,
    RecoveryCandidate,
    Scope,
    ShownItem,
    Source,
    Trajectory,
    Verdict,
)
from contextgraph.store.rules import Columns, Form, Value, ValueCache, scored_words
from contextgraph.trace import describe_remedy

if TYPE_CHECKING:
    from contextgraph.store.neo4j.connection import Connection

# What the driver returns and takes has no narrower type.
Row: TypeAlias = Mapping[str, Any]
Parameters: TypeAlias = dict[str, object]
# Columns and properties that every node or relation of their kind has. Ids alone do not suffice:
# Neo4j returns those that it has read from an index after their node is gone.
_NEVER_NULL = frozenset(
    "id name label data facts properties key value trajectory methodology error fragment "
    "representative task total_steps fragment_type family error_type template message strategy "
    "shown_at".split()
)


def is_torn(row: Row) -> bool:
    """Whether *row* has a part that was deleted while it was read: what is left of it is null."""
    return _is_torn(dict(row.items()))


def _is_torn(value: dict[str, object] | list[object]) -> bool:
    if isinstance(value, list):
        if value and isinstance(value[0], float):  # a vector: long, and whole or null
            return False
        parts, is_torn = value, None in value
    else:
        parts = [*value.values()]
        is_torn = None in parts and any(
            part is None and name in _NEVER_NULL for name, part in value.items()
        )
    return is_torn or any(_is_torn(part) for part in parts if isinstance(part, list | dict))


def scope_parameters(scope: Scope) -> Parameters:
    """The parameters repo, excluded, as_of."""
    return {
        "repo": scope.repo,
        "excluded": sorted(scope.exclude_instances),
        "as_of": None if scope.as_of is None else moment(scope.as_of),
    }


def where(name: str, repo: str | Collection[str] | None) -> str:
    """The name of a query that has one form for some repositories, and one for all of them."""
    return f"{name}_everywhere" if repo is None else f"{name}_in_repo"


def trajectory_row(value: Trajectory) -> Parameters:
    """The properties of the node of *value*."""
    return {
        **_properties(_TRAJECTORIES, value),
        "seen_at": moment(value.seen_at),
        **outcome_row(value),
    }


def outcome_row(value: Trajectory) -> Parameters:
    """Those properties of the node of *value* that later judgements may change."""
    return {
        "name": value.name,
        "outcome": value.outcome.value,
        "outcome_source": value.outcome_source.value,
        "exit_status": value.exit_status,
        "change": value.change.value,
        "success": value.success,
        "solved": bool(value.success),
    }


def trajectory_of(row: Row) -> Trajectory:
    """The value of the properties of a node."""
    return _value(_TRAJECTORIES, row)


def fragment_row(value: Fragment) -> Parameters:
    """The properties of the node of *value*, but for those of its run."""
    return {
        **_properties(_FRAGMENTS, value),
        "name": value.name,
        "loop_command": value.loop_command or None,
        "repetitions": value.repetitions or None,
    }


def fragment_of(row: Row) -> Fragment:
    """The value of the properties of a node."""
    return _value(_FRAGMENTS, row, trajectory_id=row["trajectory_id"])


def error_row(value: ErrorPattern) -> Parameters:
    """The properties of the node of *value*, without those that differ from run to run."""
    return {
        "id": value.id,
        "name": value.name,
        "family": value.family.value,
        "error_type": value.error_type,
        "template": value.template,
        "fingerprint": fingerprint(value),
    }


def error_of(row: Row) -> ErrorPattern:
    """The value of the properties of a node."""
    return _value(_ERRORS, row)


def fingerprint(value: ErrorPattern | ErrorSignature) -> str:
    """Key of errors of one family, type and template, short enough for an index."""
    text = f"{value.family.value}\n{value.error_type}\n{value.template}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def caused_row(value: CausedError) -> Parameters:
    """The properties of the relation of *value*."""
    return {"steps": list(value.steps), "locations": list(value.locations)}


def recovered_row(value: Recovered) -> Parameters:
    """The properties of the relation of *value*."""
    return {
        **_properties(_RECOVERIES, value),
        "description": describe_remedy(value.actions),
        "scored_words": scored_words(value.message, value.actions),
    }


def recovered_of(row: Row, fragment_id: str, error_id: str) -> Recovered:
    """The value of the properties of a relation."""
    return _value(_RECOVERIES, row, fragment_id=fragment_id, error_id=error_id)


def recovery_of(row: Row) -> RecoveryCandidate:
    """The value of the properties of a relation, of its two nodes and of its run."""
    pattern, run = row["error"], row["run"]
    done = recovered_of(row["recovered"], row["fragment_id"], pattern["id"])
    words = row["recovered"]["scored_words"]
    return RecoveryCandidate(
        done.fragment_id,
        done.error_id,
        done.error_step,
        done.cleared_step,
        done.message,
        done.location,
        done.actions,
        done.verified,
        done.workaround,
        done.circumstances,
        scored_words(done.message, done.actions) if words is None else words,
        Family(pattern["family"]),
        pattern["error_type"],
        pattern["template"],
        run["id"],
        run["instance_id"],
        run["repo"],
        run["contributor"] or "",
        run["agent"],
        time_of(run["seen_at"]),
    )


def methodology_row(value: Methodology) -> Parameters:
    """The properties of the node of *value*; its sources are relations."""
    return {**_properties(_METHODOLOGIES, value), "name": value.name}


def methodology_of(row: Row) -> Methodology:
    """The value of the columns methodology and sources: (run, fragment) of each."""
    sources = tuple(sorted(Source(run, fragment) for run, fragment in row["sources"]))
    return _value(_METHODOLOGIES, row["methodology"], sources=sources)


def exposure_row(value: Exposure) -> Parameters:
    """The properties of the node of *value*, and those of its items in their order."""
    items = [
        {"position": position, **_properties(_SHOWN_ITEMS, item)}
        for position, item in enumerate(value.items)
    ]
    return {**_properties(_EXPOSURES, value), "items": items}


def exposure_of(row: Row) -> Exposure:
    """The value of the columns context (properties) and items (properties of each)."""
    items = sorted(row["items"], key=lambda item: item["position"])
    return _value(
        _EXPOSURES, row["context"], items=tuple(_value(_SHOWN_ITEMS, item) for item in items)
    )


def verdict_row(value: Verdict) -> Parameters:
    """The properties of the node of *value*."""
    return _properties(_VERDICTS, value)


def verdict_of(row: Row) -> Verdict:
    """The value of the properties of a node."""
    return _value(_VERDICTS, row)


def _properties(columns: Columns[Value], value: Value) -> Parameters:
    return dict(zip(columns.names, columns.row(value), strict=True))


def _value(columns: Columns[Value], row: Row, **omitted: object) -> Value:
    # A property that is None does not exist.
    return columns.value(map(row.get, columns.names), **omitted)


def moment(time: datetime) -> datetime:
    """*time* in UTC; raises `StoreError` for a time without zone."""
    if time.tzinfo is None:
        raise StoreError(f"time {time.isoformat()} has no time zone")
    return time.astimezone(UTC)


def time_of(value: Any) -> datetime:
    """The time that the server returned."""
    time: datetime = value.to_native().astimezone(UTC)
    return time


_FORMS: Mapping[Any, Form] = {datetime: (moment, time_of), tuple[str, ...]: (list, tuple)}
_TRAJECTORIES = Columns(Trajectory, _FORMS)
_FRAGMENTS = Columns(Fragment, _FORMS, omitted=["trajectory_id"])
_ERRORS = Columns(ErrorPattern, _FORMS)
_RECOVERIES = Columns(Recovered, _FORMS, omitted=["fragment_id", "error_id"])
_METHODOLOGIES = Columns(Methodology, _FORMS, omitted=["sources"])
_EXPOSURES = Columns(Exposure, _FORMS, omitted=["items"])
_SHOWN_ITEMS = Columns(ShownItem, _FORMS)
_VERDICTS = Columns(Verdict, _FORMS)


def vector_data(value: Any) -> bytes:
    """The data of a vector that the server returned."""
    import numpy as np

    return np.asarray(value, dtype="<f4").tobytes()


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


def memory_state(connection: "Connection") -> MemoryState:
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

    def __init__(self, connection: "Connection") -> None:
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
        """Return what is cached, and with one query the rest; removed ones are missing."""
        return self._current().by_key.get_or_read(keys, self._read)

    def _read(self, keys: Sequence[Key]) -> dict[Key, Any]:
        values = self._connection.rows(
            "values_of",
            trajectories=[key for key in keys if isinstance(key, str)],
            fragments=[key.fragment_id for key in keys if isinstance(key, FragmentKey)],
            recoveries=[key._asdict() for key in keys if isinstance(key, RecoveryKey)],
        )
        return dict(map(_candidate_of, values))

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


def _candidate_of(row: Row) -> tuple[Key, Any]:
    """The value of *row*, after its key."""
    key, value = row["key"], row["value"]
    match row["kind"]:
        case "trajectory":
            return key[0], trajectory_of(value)
        case "fragment":
            return FragmentKey(*key), fragment_of(value)
        case _:
            return RecoveryKey(*key), recovery_of(value)
