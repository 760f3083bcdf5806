"""The project's own JSONL, one run per line: ``{"contextgraph": 1, ...}``; keeps every field."""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields
from datetime import datetime
from typing import IO, Any

import orjson

from contextgraph.model import Action, Json, Outcome, RawTrajectory, Step
from contextgraph.readers.fields import Row, kind, row_at, rows_at
from contextgraph.readers.json_text import without_surrogates
from contextgraph.readers.place import Place

NAME = "contextgraph"
VERSION = 1

_MARK = "contextgraph"


def recognises(record: object) -> bool:
    """Whether *record* carries the mark of this format."""
    return isinstance(record, dict) and _MARK in record


def parse(record: Row, place: Place) -> RawTrajectory:
    """The run of one record, with the source that it was written with."""
    del place
    return from_record(record)


def write_jsonl(trajectories: Iterable[RawTrajectory], file: IO[bytes]) -> int:
    """Write one line per trajectory to a binary *file*; the number of lines written.

    Reading them gives equal trajectories. A lone surrogate, which UTF-8 cannot carry, becomes
    U+FFFD; an integer of more than 64 bits in the arguments of an action raises TypeError.
    """
    written = 0
    for trajectory in trajectories:
        file.write(_encoded(to_record(trajectory)) + b"\n")
        written += 1
    return written


def to_record(trajectory: RawTrajectory) -> dict[str, Json]:
    """*trajectory* as a JSON object; fields that have their default value are left out."""
    return {_MARK: VERSION, **_plain(trajectory)}


def from_record(record: Row) -> RawTrajectory:
    """The trajectory that `to_record` wrote. Raises ValueError if it did not write *record*."""
    version = record[_MARK]
    if version != VERSION:
        raise ValueError(f"version {version!r} of the format is not known, only {VERSION}")
    steps = tuple(_step(row) for row in rows_at(record, "steps"))
    values = {name: value for name, value in record.items() if name not in (_MARK, "steps")}
    return RawTrajectory(**_checked(RawTrajectory, values), steps=steps)


def _encoded(record: dict[str, Json]) -> bytes:
    try:
        return orjson.dumps(record)
    except orjson.JSONEncodeError:
        return orjson.dumps(without_surrogates(record))


def _plain(value: RawTrajectory | Step | Action) -> dict[str, Json]:
    plain: dict[str, Json] = {}
    for field in fields(value):
        item = getattr(value, field.name)
        if item != _default(field):
            plain[field.name] = _json(item)
    return plain


def _default(field: Field[Any]) -> object:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


def _json(item: Any) -> Json:
    match item:
        case Step() | Action():
            return _plain(item)
        case tuple():
            return [_json(member) for member in item]
        case datetime():
            return item.isoformat()
        case Outcome():
            return item.value
        case Mapping():
            return dict(item)
    return item  # type: ignore[no-any-return]  # fields hold text, numbers and None


def _step(row: Row) -> Step:
    action = Action(**_checked(Action, row_at(row, "action")))
    values = {name: value for name, value in row.items() if name != "action"}
    return Step(**_checked(Step, values), action=action)


_TYPES: Mapping[str, tuple[type, ...]] = {
    "index": (int,),
    "observation": (str, type(None)),
    "exit_code": (int, type(None)),
    "is_error": (bool, type(None)),
    "cwd": (str, type(None)),
    "open_file": (str, type(None)),
    "exit_status": (str, type(None)),
    "patch": (str, type(None)),
    "arguments": (dict,),
    "outcome": (Outcome,),
    "timestamp": (datetime, type(None)),
    "started_at": (datetime, type(None)),
}
_TEXT = (str,)
_TIMES = ("timestamp", "started_at")
# What to_record leaves out of a Step is its default; only these may be missing in a record.
_GIVEN_APART = ("steps", "action")


def _checked(of: type[RawTrajectory | Step | Action], row: Row) -> dict[str, Any]:
    """*row* as keyword arguments of *of*; ValueError for what is missing, unknown, or mistyped."""
    known, needed = _NAMES[of]
    if unknown := row.keys() - known:
        raise ValueError(f"unknown field {min(unknown)!r}")
    for name in needed:
        if name not in row:
            raise ValueError(f"field {name!r} is missing")
    return {name: _value(name, value) for name, value in row.items()}


def _names(of: type[RawTrajectory | Step | Action]) -> tuple[frozenset[str], tuple[str, ...]]:
    """The names of all fields of a record, and of those that it must have."""
    known = [field for field in fields(of) if field.name not in _GIVEN_APART]
    needed = tuple(field.name for field in known if _default(field) is MISSING)
    return frozenset(field.name for field in known), needed


# Asked of dataclasses once, not for every step.
_NAMES: Mapping[type, tuple[frozenset[str], tuple[str, ...]]] = {
    of: _names(of) for of in (RawTrajectory, Step, Action)
}


def _value(name: str, value: object) -> object:
    if name in _TIMES and isinstance(value, str):
        value = datetime.fromisoformat(value)
    if name == "outcome" and isinstance(value, str):
        value = Outcome(value)
    wanted = _TYPES.get(name, _TEXT)
    # A boolean is an integer to Python, but not in these records.
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
        raise ValueError(f"field {name!r} is {kind(value)}")
    return value
