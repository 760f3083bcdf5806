"""Frozen values as JSON and back, by the types of their fields."""

import base64
import binascii
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from contextgraph.errors import ReadError, SpaceMismatchError
from contextgraph.model import Json, RawTrajectory
from contextgraph.model.codec import raw_from_record, raw_to_record


def encoded(value: Any) -> Json:
    """*value* as JSON: fields by name, those that are None left out; bytes as base64."""
    if isinstance(value, RawTrajectory):
        return raw_to_record(value)
    if is_dataclass(value):
        told = ((item.name, getattr(value, item.name)) for item in fields(value))
        return {name: encoded(one) for name, one in told if one is not None}
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {str(key): encoded(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return [encoded(one) for one in value]
    plain: Json = value
    return plain


def decoded(kind: Any, record: Json, name: str = "record") -> Any:
    """The value of type *kind* that `encoded` gave *record* for.

    Raises `ReadError` (of no source: the caller knows it) with the name of what is wrong.
    """
    if kind is RawTrajectory:
        return raw_from_record(record)
    if is_dataclass(kind):
        return _dataclass(kind, record, name)
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _optional(kind, record, name)
    if origin is tuple:
        return _tuple(get_args(kind), record, name)
    if origin is not None and issubclass(origin, Mapping):
        return {
            key: decoded(get_args(kind)[1], one, f"{name}.{key}")
            for key, one in _object(record, name).items()
        }
    return _scalar(kind, record, name)


def _dataclass(kind: Any, record: Json, name: str) -> Any:
    given = _object(record, name)
    values = {}
    for item, hint in _fields(kind):
        if item.name in given:
            values[item.name] = decoded(hint, given[item.name], f"{name}.{item.name}")
        elif item.default is MISSING and item.default_factory is MISSING:
            values[item.name] = decoded(hint, None, f"{name}.{item.name}")
    try:
        return kind(**values)
    except (ValueError, TypeError, SpaceMismatchError) as error:
        raise ReadError("", "", f"{name}: {error}") from error


@cache
def _fields(kind: type) -> tuple[tuple["Field[Any]", Any], ...]:
    hints = get_type_hints(kind)
    return tuple((item, hints[item.name]) for item in fields(kind))


def _optional(kind: Any, record: Json, name: str) -> Any:
    if record is None:
        return None
    (one,) = (choice for choice in get_args(kind) if choice is not types.NoneType)
    return decoded(one, record, name)


def _tuple(kinds: tuple[Any, ...], record: Json, name: str) -> tuple[Any, ...]:
    if not isinstance(record, list):
        raise ReadError("", "", f"{name} is not a list")
    if kinds[1:] == (Ellipsis,):
        return tuple(decoded(kinds[0], one, f"{name}[{n}]") for n, one in enumerate(record))
    if len(kinds) != len(record):
        raise ReadError("", "", f"{name} has not {len(kinds)} items")
    pairs = zip(kinds, record, strict=True)
    return tuple(decoded(kind, one, f"{name}[{n}]") for n, (kind, one) in enumerate(pairs))


def _object(record: Json, name: str) -> dict[str, Json]:
    if not isinstance(record, dict):
        raise ReadError("", "", f"{name} is {'missing' if record is None else 'not an object'}")
    return record


def _scalar(kind: Any, record: Json, name: str) -> Any:
    if record is None:
        raise ReadError("", "", f"{name} is missing")
    if kind is float and type(record) is int:
        return float(record)
    if kind in (str, int, float, bool):
        if type(record) is not kind:
            raise ReadError("", "", f"{name} is not of type {kind.__name__}")
        return record
    if not isinstance(record, str):
        raise ReadError("", "", f"{name} is not a text")
    return _from_text(kind, record, name)


def _from_text(kind: Any, text: str, name: str) -> Any:
    try:
        if kind is bytes:
            return base64.b64decode(text, validate=True)
        if kind is datetime:
            return _with_zone(datetime.fromisoformat(text))
        return kind(text)
    except (ValueError, binascii.Error) as error:
        raise ReadError("", "", f"{name}: {error}") from error


def _with_zone(time: datetime) -> datetime:
    if time.tzinfo is None:
        raise ValueError(f"{time.isoformat()} has no time zone")
    return time
