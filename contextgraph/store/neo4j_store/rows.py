"""Values as parameters, and what queries return as values; nobody else knows the keys."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from contextgraph.errors import StoreError
from contextgraph.model import (
    CausedError,
    ErrorPattern,
    ErrorSignature,
    ErrorTally,
    Family,
    Fragment,
    FragmentOutcome,
    FragmentType,
    Outcome,
    Phase,
    Recovered,
    Scope,
    TaskType,
    Trajectory,
)

# What the driver returns and takes has no narrower type.
Row: TypeAlias = Mapping[str, Any]
Parameters: TypeAlias = dict[str, object]


def scope_parameters(scope: Scope) -> Parameters:
    """The parameters repo, excluded, as_of."""
    return {
        "repo": scope.repo,
        "excluded": sorted(scope.exclude_instances),
        "as_of": None if scope.as_of is None else moment(scope.as_of),
    }


def trajectory_row(value: Trajectory) -> Parameters:
    """The properties of the node of *value*."""
    return {
        "id": value.id,
        "instance_id": value.instance_id,
        "repo": value.repo,
        "task": value.task,
        "task_type": value.task_type.value,
        "total_steps": value.total_steps,
        "summary": value.summary,
        "files": list(value.files),
        "agent": value.agent,
        "model": value.model,
        "source_format": value.source_format,
        "source": value.source,
        "run_at": None if value.run_at is None else moment(value.run_at),
        "learned_at": moment(value.learned_at),
        "seen_at": moment(value.seen_at),
        **outcome_row(value),
    }


def outcome_row(value: Trajectory) -> Parameters:
    """Those properties of the node of *value* that its outcome decides."""
    return {
        "name": value.name,
        "outcome": value.outcome.value,
        "exit_status": value.exit_status,
        "success": value.success,
        "solved": bool(value.success),
    }


def trajectory_of(row: Row) -> Trajectory:
    """The value of the properties of a node."""
    return Trajectory(
        id=row["id"],
        instance_id=row["instance_id"],
        repo=row["repo"],
        task=row["task"],
        task_type=TaskType(row["task_type"]),
        outcome=Outcome(row["outcome"]),
        exit_status=row["exit_status"],
        total_steps=row["total_steps"],
        summary=row["summary"],
        files=tuple(row["files"]),
        agent=row["agent"],
        model=row["model"],
        source_format=row["source_format"],
        source=row["source"],
        run_at=None if row["run_at"] is None else time_of(row["run_at"]),
        learned_at=time_of(row["learned_at"]),
    )


def fragment_row(value: Fragment) -> Parameters:
    """The properties of the node of *value*, but for those of its run."""
    return {
        "id": value.id,
        "name": value.name,
        "order": value.order,
        "start": value.start,
        "end": value.end,
        "fragment_type": value.fragment_type.value,
        "phase": value.phase.value,
        "outcome": value.outcome.value,
        "description": value.description,
        "action_sequence": list(value.action_sequence),
        "files": list(value.files),
        "open_file": value.open_file,
        "repo": value.repo,
        "task_type": value.task_type.value,
    }


def fragment_of(row: Row) -> Fragment:
    """The value of the properties of a node."""
    return Fragment(
        id=row["id"],
        trajectory_id=row["trajectory_id"],
        order=row["order"],
        start=row["start"],
        end=row["end"],
        fragment_type=FragmentType(row["fragment_type"]),
        phase=Phase(row["phase"]),
        outcome=FragmentOutcome(row["outcome"]),
        description=row["description"],
        action_sequence=tuple(row["action_sequence"]),
        files=tuple(row["files"]),
        open_file=row["open_file"],
        repo=row["repo"],
        task_type=TaskType(row["task_type"]),
    )


def error_row(value: ErrorPattern) -> Parameters:
    """The properties of the node of *value*, but for those that each run tells in its own words."""
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
    return ErrorPattern(
        id=row["id"],
        family=Family(row["family"]),
        error_type=row["error_type"],
        template=row["template"],
        keywords=tuple(row["keywords"]),
        context=row["context"],
    )


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
        "error_step": value.error_step,
        "cleared_step": value.cleared_step,
        "message": value.message,
        "location": value.location,
        "what": value.what,
        "actions": list(value.actions),
        "verified": value.verified,
        "workaround": value.workaround,
    }


def tally_of(row: Row) -> ErrorTally:
    """The value of the columns error, runs, steps, cleared, trajectories."""
    return ErrorTally(
        error=error_of(row["error"]),
        runs=row["runs"],
        steps=row["steps"],
        cleared_runs=row["cleared"],
        trajectories=tuple(row["trajectories"]),
    )


def recovered_of(row: Row, fragment_id: str, error_id: str) -> Recovered:
    """The value of the properties of a relation."""
    return Recovered(
        fragment_id=fragment_id,
        error_id=error_id,
        error_step=row["error_step"],
        cleared_step=row["cleared_step"],
        message=row["message"],
        location=row["location"],
        what=row["what"],
        actions=tuple(row["actions"]),
        verified=row["verified"],
        workaround=row["workaround"],
    )


def moment(time: datetime) -> datetime:
    """*time* in UTC; raises `StoreError` for a time without zone."""
    if time.tzinfo is None:
        raise StoreError(f"time {time.isoformat()} has no time zone")
    return time.astimezone(UTC)


def time_of(value: Any) -> datetime:
    """The time that the server returned."""
    time: datetime = value.to_native().astimezone(UTC)
    return time


def numbers(value: Any) -> bytes:
    """The data of a vector that the server returned."""
    import numpy as np

    return np.asarray(value, dtype="<f4").tobytes()
