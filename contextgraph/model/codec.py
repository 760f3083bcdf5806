"""Values as JSON, by msgspec: Structs, dataclasses, and what their fields hold.

Texts, numbers and booleans stay as they are; enumerations become their value, times RFC 3339,
bytes base64, tuples lists, mappings and values objects.
"""

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast, get_args, get_origin

import msgspec
from msgspec import Struct

from contextgraph.errors import ReadError, StoreError
from contextgraph.model.step import Json
from contextgraph.model.trajectory import TRANSIENT

Value = TypeVar("Value")
Forms: TypeAlias = Mapping[type, Callable[[Any], Mapping[str, object]]]

# No class has a form of its own.
COMPLETE: Forms = {}


def encoded(value: Any, forms: Forms | None = None) -> Json:
    """Return *value*, a Struct, a dataclass, or what the fields of one can hold, as JSON.

    Fields of a Struct that `omit_defaults` are left out, unless *forms* are given: these say which
    keys there are for values of a class, if not one for each field. Raises `TypeError` for a value
    without a JSON form.
    """
    if forms is None:
        return cast(Json, msgspec.to_builtins(value, enc_hook=_other, str_keys=True))
    if is_record(type(value)):
        return {key: encoded(part, forms) for key, part in parts_of(value, forms).items()}
    if isinstance(value, Mapping):
        return {str(key): encoded(entry, forms) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [encoded(entry, forms) for entry in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return encoded(value)


def _other(value: object) -> object:
    """Return the JSON of what msgspec has no form for: numbers of numpy, other mappings."""
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def parts_of(value: object, forms: Forms = COMPLETE) -> Mapping[str, object]:
    """Return keys and values of *value*, a record: those of *forms*, or all fields."""
    if form := forms.get(type(value)):
        return form(value)
    return {name: getattr(value, name) for name in _names_of(cast(Hashable, type(value)))}


def is_record(kind: object) -> bool:
    """Return True for a class whose values have fields: a Struct or a dataclass."""
    return isinstance(kind, type) and (issubclass(kind, Struct) or dataclasses.is_dataclass(kind))


@cache
def _names_of(kind: Any) -> tuple[str, ...]:
    """Return the names of the fields of *kind* that a record has; their types need not be known."""
    if issubclass(kind, Struct):
        names: tuple[str, ...] = kind.__struct_fields__
        return names
    return tuple(one.name for one in dataclasses.fields(kind) if one.metadata != TRANSIENT)


def decoded(kind: type[Value], record: Json) -> Value:
    """Return the value of type *kind* that `encoded` gave *record* for.

    Unknown fields are ignored, but by classes that `forbid_unknown_fields`. Raises `ReadError` (of
    no source: the caller knows it) with the path and the reason of what is wrong.
    """
    try:
        return msgspec.convert(record, kind, dec_hook=_parsed, str_keys=True)
    except msgspec.ValidationError as error:
        raise ReadError("", "", reason_of(error)) from error


def from_bytes(kind: type[Value], data: bytes | str) -> Value:
    """Return the value of type *kind* in the JSON *data*; raises `ReadError` as `decoded` does."""
    try:
        return msgspec.json.decode(data, type=kind, dec_hook=_parsed)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise ReadError("", "", reason_of(error)) from error


def reason_of(error: Exception) -> str:
    """Return the message of *error* behind the path of what is wrong, without its root."""
    message, _, path = str(error).rpartition(" - at `$")
    return f"{path.rstrip('`').removeprefix('.')}: {message}" if message else str(error)


def _parsed(kind: Any, given: Any) -> Any:
    """Return a value of *kind*, which msgspec does not know: a path, or any iterable."""
    if get_origin(kind) in (Iterable, Iterator):
        return msgspec.convert(given, cast(Any, list)[get_args(kind)], dec_hook=_parsed)
    return kind(given)


def decoded_lines(kind: type[Value], path: Path) -> list[Value]:
    """Return the values in a file of JSON lines.

    Raises `ReadError` where the file cannot be read, or with the line of what is wrong.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ReadError(str(path), "", f"cannot be read: {error.strerror or error}") from error
    values = []
    for number, line in enumerate(lines, start=1):
        try:
            values.append(from_bytes(kind, line))
        except ReadError as error:
            raise ReadError(str(path), f"line {number}", error.reason) from error
    return values


def json_bytes(value: Any, name: str) -> bytes:
    """Return `encoded` of *value* as JSON text.

    Raises `StoreError` about *name* for a text that is not valid Unicode.
    """
    try:
        return msgspec.json.encode(value, enc_hook=_other)
    except (TypeError, UnicodeEncodeError) as error:
        raise StoreError(f"{name} cannot be stored: {error}") from error


def json_of(value: Any) -> str:
    """Return *value* as JSON text; raises `StoreError` for a text that is not valid Unicode."""
    return json_bytes(value, "a text").decode()


def from_json(kind: type[Value], text: str) -> Value:
    """Return the value of *kind* that `json_of` gave *text* for; raises `StoreError`."""
    try:
        return from_bytes(kind, text)
    except ReadError as error:
        raise StoreError(f"a stored {kind.__name__} is damaged: {error}") from error
