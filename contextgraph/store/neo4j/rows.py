"""Values as parameters, and rows that queries return as values; only this module names the keys."""

import hashlib
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from contextgraph.errors import StoreError
from contextgraph.model import (
    CausedError,
    ErrorPattern,
    ErrorSignature,
    Exposure,
    Family,
    Fragment,
    Methodology,
    Recovered,
    RecoveryCandidate,
    Scope,
    ShownItem,
    Source,
    Trajectory,
    Verdict,
)
from contextgraph.store.columns import (
    Columns,
    Form,
    Value,
)
from contextgraph.store.rules import scored_words
from contextgraph.trace import describe_remedy

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
    """What errors of one family, type and template share, short enough for an index."""
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


def numbers(value: Any) -> bytes:
    """The data of a vector that the server returned."""
    import numpy as np

    return np.asarray(value, dtype="<f4").tobytes()
