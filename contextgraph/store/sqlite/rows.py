"""Rows of the tables as values, and values as rows."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import orjson

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
    ShownItem,
    Trajectory,
)
from contextgraph.store import rules
from contextgraph.store.columns import Columns, Form
from contextgraph.vectors import Vector

Row: TypeAlias = tuple[Any, ...]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def caused_row(value: CausedError) -> Row:
    """The columns step_count, steps, locations of *value*."""
    return len(value.steps), text_of(value.steps), text_of(value.locations)


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
        raise StoreError(f"a text cannot be stored: {error}") from error


def tuple_of(text: str) -> tuple[Any, ...]:
    """The tuple that `text_of` gave *text* for."""
    return tuple(orjson.loads(text))


def time_of(microseconds: int) -> datetime:
    """The time that `moment` gave *microseconds* for."""
    return _EPOCH + timedelta(microseconds=microseconds)


def vector_of(space: str, data: bytes) -> Vector | None:
    """The vector of *data*; None for zeros, which are stored for a text that has no vector."""
    return Vector(space, data) if any(data) else None


_FORMS: Mapping[Any, Form] = {
    datetime: (moment, time_of),
    tuple[str, ...]: (text_of, tuple_of),
    bool: (int, bool),
}
TRAJECTORIES = Columns(Trajectory, _FORMS)
FRAGMENTS = Columns(Fragment, _FORMS, omitted=["trajectory_id"])
ERRORS = Columns(ErrorPattern, _FORMS)
RECOVERIES = Columns(Recovered, _FORMS, omitted=["fragment_id", "error_id"])
METHODOLOGIES = Columns(Methodology, _FORMS, omitted=["sources"])
EXPOSURES = Columns(Exposure, _FORMS, omitted=["items"])
SHOWN_ITEMS = Columns(ShownItem, _FORMS)


def recovery_of(row: Row) -> RecoveryCandidate:
    """The value of the columns of RECOVERIES after those of its error, its run and its key.

    They are family, error_type, template; id, instance_id, repo, contributor, seen_at; fragment_id,
    error_id, scored_words.
    """
    family, error_type, template, run, instance, repo, contributor, seen_at, *rest = row[:11]
    recovered = RECOVERIES.value(row[11:], fragment_id=rest[0], error_id=rest[1])
    words = rules.scored_words(recovered) if rest[2] is None else rest[2]
    error = ErrorSignature(
        Family(family), error_type, recovered.message, template, location=recovered.location
    )
    of_run = (run, instance, repo, contributor, time_of(seen_at))
    return RecoveryCandidate(recovered, words, error, *of_run)


# Words of SQL cannot be names of columns.
_RENAMED = {"order": "position", "end": "stop"}


def columns_of(columns: Columns[Any], alias: str = "") -> str:
    """The names of *columns* for a statement, in the table that is called *alias*."""
    prefix = f"{alias}." if alias else ""
    return ", ".join(prefix + _RENAMED.get(name, name) for name in columns.names)
