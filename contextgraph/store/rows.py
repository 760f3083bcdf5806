"""Rows of the tables as values, and values as rows; nobody else knows the columns."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import orjson

from contextgraph.errors import StoreError
from contextgraph.model import (
    CausedError,
    ErrorPattern,
    Family,
    Fragment,
    FragmentOutcome,
    FragmentType,
    Outcome,
    Phase,
    Recovered,
    TaskType,
    Trajectory,
)

Row: TypeAlias = tuple[Any, ...]

TRAJECTORY = (
    "id, instance_id, repo, task, task_type, outcome, exit_status, total_steps, summary, files, "
    "agent, model, source_format, source, run_at, learned_at"
)
FRAGMENT = (
    "id, position, start, stop, fragment_type, phase, outcome, description, action_sequence, "
    "files, open_file, repo, task_type"
)
RECOVERED = "error_step, cleared_step, message, location, what, actions, verified, workaround"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def columns_of(alias: str, columns: str) -> str:
    """*columns* of the table that is called *alias*."""
    return ", ".join(f"{alias}.{column}" for column in columns.split(", "))


def trajectory_row(value: Trajectory) -> Row:
    """The columns TRAJECTORY of *value*."""
    return (
        value.id,
        value.instance_id,
        value.repo,
        value.task,
        value.task_type.value,
        value.outcome.value,
        value.exit_status,
        value.total_steps,
        value.summary,
        text_of(value.files),
        value.agent,
        value.model,
        value.source_format,
        value.source,
        None if value.run_at is None else moment(value.run_at),
        moment(value.learned_at),
    )


def trajectory_of(row: Row) -> Trajectory:
    """The value of the columns TRAJECTORY."""
    return Trajectory(
        id=row[0],
        instance_id=row[1],
        repo=row[2],
        task=row[3],
        task_type=TaskType(row[4]),
        outcome=Outcome(row[5]),
        exit_status=row[6],
        total_steps=row[7],
        summary=row[8],
        files=tuple_of(row[9]),
        agent=row[10],
        model=row[11],
        source_format=row[12],
        source=row[13],
        run_at=None if row[14] is None else time_of(row[14]),
        learned_at=time_of(row[15]),
    )


def fragment_row(value: Fragment) -> Row:
    """The columns FRAGMENT of *value*."""
    return (
        value.id,
        value.order,
        value.start,
        value.end,
        value.fragment_type.value,
        value.phase.value,
        value.outcome.value,
        value.description,
        text_of(value.action_sequence),
        text_of(value.files),
        value.open_file,
        value.repo,
        value.task_type.value,
    )


def fragment_of(row: Row, trajectory_id: str) -> Fragment:
    """The value of the columns FRAGMENT."""
    return Fragment(
        id=row[0],
        trajectory_id=trajectory_id,
        order=row[1],
        start=row[2],
        end=row[3],
        fragment_type=FragmentType(row[4]),
        phase=Phase(row[5]),
        outcome=FragmentOutcome(row[6]),
        description=row[7],
        action_sequence=tuple_of(row[8]),
        files=tuple_of(row[9]),
        open_file=row[10],
        repo=row[11],
        task_type=TaskType(row[12]),
    )


def recovered_row(value: Recovered) -> Row:
    """The columns RECOVERED of *value*."""
    return (
        value.error_step,
        value.cleared_step,
        value.message,
        value.location,
        value.what,
        text_of(value.actions),
        value.verified,
        value.workaround,
    )


def recovered_of(row: Row, fragment_id: str, error_id: str) -> Recovered:
    """The value of the columns RECOVERED."""
    return Recovered(
        fragment_id=fragment_id,
        error_id=error_id,
        error_step=row[0],
        cleared_step=row[1],
        message=row[2],
        location=row[3],
        what=row[4],
        actions=tuple_of(row[5]),
        verified=bool(row[6]),
        workaround=bool(row[7]),
    )


def caused_row(value: CausedError) -> Row:
    """The columns step_count, steps, locations of *value*."""
    return len(value.steps), text_of(value.steps), text_of(value.locations)


def error_of(row: Row) -> ErrorPattern:
    """The value of the columns id, family, error_type, template, keywords, context."""
    return ErrorPattern(
        id=row[0],
        family=Family(row[1]),
        error_type=row[2],
        template=row[3],
        keywords=tuple_of(row[4]),
        context=row[5],
    )


def moment(time: datetime) -> int:
    """Microseconds since 1970, UTC; raises `StoreError` for a time without zone."""
    if time.tzinfo is None:
        raise StoreError(f"time {time.isoformat()} has no time zone")
    return (time - _EPOCH) // _MICROSECOND


def text_of(items: Iterable[object]) -> str:
    """A tuple as JSON; raises `StoreError` for a text that is not valid Unicode."""
    try:
        return orjson.dumps(tuple(items)).decode()
    except TypeError as error:
        raise StoreError(f"a text cannot be kept: {error}") from error


def tuple_of(text: str) -> tuple[Any, ...]:
    """The tuple that `text_of` gave *text* for."""
    return tuple(orjson.loads(text))


def time_of(microseconds: int) -> datetime:
    """The time that `moment` gave *microseconds* for."""
    return _EPOCH + timedelta(microseconds=microseconds)
