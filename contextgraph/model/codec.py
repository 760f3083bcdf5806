"""Values as JSON, by msgspec, and as columns: Structs, dataclasses, and what their fields hold.

Texts, numbers and booleans stay as they are; enumerations become their value, times RFC 3339,
bytes base64, tuples lists, mappings and values objects.
"""

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from datetime import datetime
from enum import Enum
from functools import cache, lru_cache, partial
from operator import attrgetter
from pathlib import Path
from types import NoneType
from typing import (
    Any,
    Generic,
    NamedTuple,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import NODEFAULT, Struct, structs

from contextgraph.errors import ReadError, StoreError
from contextgraph.model.error import RemedyAction, RemedyPattern
from contextgraph.model.methodology import Words
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


# To the database and back.
Form: TypeAlias = tuple[Callable[[Any], Any], Callable[[Any], Any]]

# What reading a stored value raises where it is not what was written.
DAMAGE = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    ReadError,
    msgspec.DecodeError,
)


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


_ACTIONS = msgspec.json.Decoder(tuple[RemedyAction, ...])


@lru_cache(4_096)
def actions_of(text: str) -> tuple[RemedyAction, ...]:
    """Return the actions that are stored as *text*."""
    return _ACTIONS.decode(text)


_JSON: Mapping[Any, Form] = {
    tuple[RemedyAction, ...]: (json_of, actions_of),
    **{kind: (json_of, partial(from_json, kind)) for kind in (tuple[RemedyPattern, ...], Words)},
}


class FieldOf(NamedTuple):
    """A field of a record; *default* is NODEFAULT where it has to be given."""

    name: str
    hint: Any
    default: object


@cache
def fields_of(kind: Any) -> tuple[FieldOf, ...]:
    """Return the fields that the constructor of *kind* takes, in order, without transient ones."""
    hints, defaults = get_type_hints(kind), _defaults(kind)
    return tuple(FieldOf(name, hints[name], defaults[name]) for name in _names_of(kind))


def _defaults(kind: Any) -> Mapping[str, object]:
    if issubclass(kind, Struct):
        return {
            item.name: item.default if item.default_factory is NODEFAULT else item.default_factory()
            for item in structs.fields(kind)
        }
    return {
        item.name: NODEFAULT if item.default is dataclasses.MISSING else item.default
        for item in dataclasses.fields(kind)
    }


class Columns(Generic[Value]):
    """The fields of the dataclass *kind* in their order, but for those *omitted*, as columns.

    Enumerations are stored as their value, remedies and words as JSON text, None as NULL; *forms*
    has the two directions for other types that the database does not hold as they are.
    """

    def __init__(
        self, kind: type[Value], forms: Mapping[Any, Form], omitted: Iterable[str] = ()
    ) -> None:
        self._kind = kind
        fields = [field for field in fields_of(cast(Hashable, kind)) if field.name not in omitted]
        self.names = tuple(field.name for field in fields)
        kinds = [_without_none(field.hint) for field in fields]
        field_forms = [_form_of(hint, {**_JSON, **forms}) for hint in kinds]
        self._given = attrgetter(*self.names)  # there are always several
        self._writers = tuple(
            (at, form[0]) for at, form in enumerate(field_forms) if form is not _AS_IT_IS
        )
        self._readers = tuple(
            (
                field.name,
                None if form is _AS_IT_IS else form[1],
                None if field.default is NODEFAULT else field.default,
            )
            for field, form in zip(fields, field_forms, strict=True)
            if form is not _AS_IT_IS or field.default is not NODEFAULT
        )

    def row(self, value: Value) -> tuple[Any, ...]:
        """Return the columns of *value*."""
        row = list(self._given(value))
        for at, write in self._writers:
            if row[at] is not None:
                row[at] = write(row[at])
        return tuple(row)

    def value(self, row: Iterable[Any], **omitted: object) -> Value:
        """Return the value with the columns *row*, without *omitted*; for NULL, the default."""
        values = dict(zip(self.names, row, strict=True))
        try:
            for name, read, default in self._readers:
                given = values[name]
                if given is None:
                    values[name] = default
                elif read is not None:
                    values[name] = read(given)
        except DAMAGE as error:
            raise StoreError(f"a stored {self._kind.__name__} is damaged: {error}") from error
        return self._kind(**values, **omitted)


def _as_it_is(value: Any) -> Any:
    return value


_AS_IT_IS: Form = (_as_it_is, _as_it_is)


def _form_of(kind: Any, forms: Mapping[Any, Form]) -> Form:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return attrgetter("value"), {member.value: member for member in kind}.__getitem__
    return forms.get(kind, _AS_IT_IS)


def _without_none(hint: Any) -> Any:
    """*hint*, without the None that a field may also hold."""
    arguments = get_args(hint)
    return arguments[0] if NoneType in arguments else hint
