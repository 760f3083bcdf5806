"""Rows of the tables as values, and values as rows."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeAlias

import orjson

from contextgraph.errors import StoreError
from contextgraph.model import (
    ErrorPattern,
    Exposure,
    Family,
    Fragment,
    Methodology,
    Recovered,
    RecoveryCandidate,
    ShownItem,
    Trajectory,
    Verdict,
)
from contextgraph.store import rules
from contextgraph.store.columns import (
    Columns,
    Form,
    Value,
    actions_of,
)
from contextgraph.vectors import Vector

Row: TypeAlias = tuple[Any, ...]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def moment(time: datetime) -> int:
    """Microseconds since 1970, UTC; raises `StoreError` for a time without zone."""
    if time.tzinfo is None:
        raise StoreError(f"time {time.isoformat()} has no time zone")
    return (time - _EPOCH) // _MICROSECOND


def text_of(items: Iterable[object]) -> str:
    """*items* as a JSON list; raises `StoreError` for a text that is not valid Unicode."""
    try:
        return orjson.dumps(tuple(items)).decode()
    except TypeError as error:
        raise StoreError(f"a text cannot be stored: {error}") from error


def tuple_of(text: str) -> tuple[Any, ...]:
    """Return the tuple that `text_of` gave *text* for; raises `StoreError`."""
    try:
        return tuple(orjson.loads(text))
    except ValueError as error:
        raise StoreError(f"a stored list is damaged: {error}") from error


@lru_cache(1_024)
def time_of(microseconds: int) -> datetime:
    """The time that `moment` gave *microseconds* for."""
    return _EPOCH + timedelta(microseconds=microseconds)


def vector_of(space: str, data: bytes) -> Vector | None:
    """The vector of *data*; None for zeros, which are stored for a text that has no vector."""
    return Vector(space, data) if any(data) else None


_FAMILIES = {family.value: family for family in Family}
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
VERDICTS = Columns(Verdict, _FORMS)


def recovery_of(row: Row) -> RecoveryCandidate:
    """The value of columns in the order of its fields."""
    (fragment, error, step, cleared, message, location, actions, verified, workaround) = row[:9]
    circumstances, words, family, error_type, template = row[9:14]
    run, instance, repo, source, agent, seen = row[14:]
    done = actions_of(actions)
    return RecoveryCandidate(
        fragment,
        error,
        step,
        cleared,
        message,
        location,
        done,
        bool(verified),
        bool(workaround),
        tuple_of(circumstances),
        rules.scored_words(message, done) if words is None else words,
        _FAMILIES[family],
        error_type,
        template,
        run,
        instance,
        repo,
        source,
        agent,
        time_of(seen),
    )


# Words of SQL cannot be names of columns.
_RENAMED = {"order": "position", "end": "stop"}


def named(columns: Columns[Value], value: Value) -> dict[str, Any]:
    """The columns of *value* by their names."""
    names = (_RENAMED.get(name, name) for name in columns.names)
    return dict(zip(names, columns.row(value), strict=True))


def columns_of(columns: Columns[Any], alias: str = "") -> str:
    """The names of *columns* for a statement, in the table that is called *alias*."""
    prefix = f"{alias}." if alias else ""
    return ", ".join(prefix + _RENAMED.get(name, name) for name in columns.names)
