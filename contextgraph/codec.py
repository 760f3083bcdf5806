"""Converts frozen dataclasses to JSON, or to columns, and back, by the types of their fields.

Texts, numbers and booleans stay as they are; enumerations become their value, times ISO 8601,
bytes base64, tuples lists, mappings and dataclasses objects.
"""

import base64
import binascii
import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import datetime
from enum import Enum
from functools import cache, lru_cache, partial
from itertools import chain
from operator import attrgetter, call
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Any,
    Generic,
    NamedTuple,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import orjson
from msgspec import NODEFAULT, Struct, structs

from contextgraph.errors import ReadError, SpaceMismatchError, StoreError
from contextgraph.model.error import RemedyAction, RemedyKind, RemedyPattern
from contextgraph.model.methodology import Words
from contextgraph.model.step import Json
from contextgraph.model.trajectory import TRANSIENT

Value = TypeVar("Value")
Forms: TypeAlias = Mapping[type, Callable[[Any], Mapping[str, object]]]
Encoder: TypeAlias = Callable[[Any, Forms | None], Json]
Decoder: TypeAlias = Callable[[Json], Any]

# No class has a form of its own.
COMPLETE: Forms = {}

_SCALARS = (str, int, float, bool)
_AS_THEY_ARE = frozenset(_SCALARS)


def encoded(value: Any, forms: Forms | None = None) -> Json:
    """*value*, a dataclass or what the fields of one can hold, as JSON.

    Fields that are None or have their default value are left out, unless *forms* are given: these
    say which keys there are for values of a class, if not one for each field.
    """
    if isinstance(value, str | int | float | None) and not isinstance(value, Enum):
        return value
    kind: Any = type(value)
    return _encoder(kind)(value, forms)


def parts_of(value: object, forms: Forms = COMPLETE) -> Mapping[str, object]:
    """The keys of the dataclass *value* with what they hold: those of *forms*, or all fields."""
    if form := forms.get(type(value)):
        return form(value)
    return {name: getattr(value, name) for name in _names_of(cast(Hashable, type(value)))}


@cache
def _names_of(kind: Any) -> tuple[str, ...]:
    """Return the names of the fields of *kind* that a record has; their types need not be known."""
    if issubclass(kind, Struct):
        names: tuple[str, ...] = kind.__struct_fields__
        return names
    return tuple(one.name for one in dataclasses.fields(kind) if one.metadata != TRANSIENT)


def decoded(kind: type[Value], record: Json, *, strict: bool = False) -> Value:
    """The value of type *kind* that `encoded` gave *record* for.

    Unknown fields are ignored, or refused when it is to be *strict*. Raises `ReadError` (of no
    source: the caller knows it) with the path and the reason of what is wrong.
    """
    try:
        return cast(Value, _decoder(cast(Hashable, kind), strict)(record))
    except _InvalidError as error:
        raise ReadError("", "", f"{error.path or 'record'} {error.reason}") from error


def decoded_lines(kind: type[Value], path: Path, *, strict: bool = False) -> list[Value]:
    """The values in a file of JSON lines: see `decoded`.

    Raises `ReadError` where the file cannot be read, or with the line of what is wrong.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ReadError(str(path), "", f"cannot be read: {error.strerror or error}") from error
    values = []
    for number, line in enumerate(lines, start=1):
        try:
            values.append(decoded(kind, orjson.loads(line), strict=strict))
        except (orjson.JSONDecodeError, ReadError) as error:
            raise ReadError(str(path), f"line {number}", str(error)) from error
    return values


class _InvalidError(Exception):
    """A decoding error; its path is composed on the way up, so that valid records pay nothing."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.path, self.reason = "", reason

    def within(self, part: str) -> "_InvalidError":
        """The error as the value sees it that holds the wrong one as *part*: ``name``, ``[3]``."""
        separator = "" if self.path[:1] in ("", "[") else "."
        self.path = f"{part}{separator}{self.path}"
        return self


def is_record(kind: object) -> bool:
    """Return True for a class whose values have fields: a Struct or a dataclass."""
    return isinstance(kind, type) and (issubclass(kind, Struct) or dataclasses.is_dataclass(kind))


@cache
def _encoder(kind: Any) -> Encoder:
    """Return the function that encodes values whose class is *kind*."""
    if is_record(kind):
        return partial(_encoded_fields, *_fields_given(kind))
    if issubclass(kind, Enum):
        return lambda value, forms: cast(Json, value.value)
    if issubclass(kind, datetime):
        return _time_text
    if issubclass(kind, bytes):
        return lambda value, forms: base64.b64encode(value).decode()
    if issubclass(kind, Mapping):
        return lambda value, forms: {
            str(key): encoded(entry, forms) for key, entry in value.items()
        }
    if issubclass(kind, tuple | list):
        return lambda value, forms: [encoded(entry, forms) for entry in value]
    raise TypeError(f"{kind.__name__} has no JSON form")


def _time_text(value: datetime, _: Forms | None) -> Json:
    if value.tzinfo is None:  # it could not be read again
        raise TypeError(f"time {value.isoformat()} has no time zone")
    return value.isoformat()


class FieldOf(NamedTuple):
    """A field of a dataclass; *default* is NODEFAULT where it has to be given."""

    name: str
    hint: Any
    default: object


@cache
def fields_of(kind: type) -> tuple[FieldOf, ...]:
    """The fields that the constructor of the dataclass *kind* takes, in order.

    Without transient ones: these are not part of a record.
    """
    hints = get_type_hints(kind)
    return tuple(
        FieldOf(name, hints[name], default)
        for name, default in _defaults(cast(Hashable, kind)).items()
    )


@cache
def _defaults(kind: Any) -> Mapping[str, object]:
    """The names of `fields_of` the dataclass *kind* with their defaults."""
    if issubclass(kind, Struct):
        return {
            item.name: item.default if item.default_factory is NODEFAULT else item.default_factory()
            for item in structs.fields(kind)
        }
    return {
        item.name: NODEFAULT if item.default is dataclasses.MISSING else item.default
        for item in dataclasses.fields(kind)
        if item.metadata != TRANSIENT  # none of those that can be decoded has a factory
    }


Defaults: TypeAlias = tuple[tuple[str, object], ...]
Getter: TypeAlias = Callable[[object], tuple[Any, ...]]


def _fields_given(kind: Any) -> tuple[Defaults, Getter]:
    """The fields of the dataclass *kind* with their defaults, and what gives those of a value."""
    defaults = tuple(_defaults(kind).items())
    names = [name for name, _ in defaults]
    if len(names) > 1:  # all in one call
        return defaults, attrgetter(*names)
    return defaults, lambda value: tuple(getattr(value, name) for name in names)


def _encoded_fields(
    defaults: Defaults,
    given_in: Getter,
    value: object,
    forms: Forms | None,
) -> Json:
    if forms is not None:
        return {key: encoded(part, forms) for key, part in parts_of(value, forms).items()}
    return {
        # Most fields are texts and numbers: a call for each would take half of the time.
        name: given if type(given) in _AS_THEY_ARE else encoded(given)
        for name, given in _told(defaults, given_in(value)).items()
    }


def _told(defaults: Defaults, values: tuple[Any, ...]) -> dict[str, Any]:
    """The fields of a record, without those that are None or have their default value."""
    return {
        name: given
        for (name, default), given in zip(defaults, values, strict=True)
        # Most often a field is its default itself; comparing values would take longer.
        if given is not None and given is not default and (default is NODEFAULT or given != default)
    }


@cache
def _decoder(hint: Any, strict: bool) -> Decoder:
    """Return the function that decodes a value of the type *hint*."""
    if is_record(hint):
        return partial(_dataclass, hint, strict)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        choices = [choice for choice in arguments if choice is not NoneType]
        # Several choices are the type of any JSON.
        return _optional(_decoder(choices[0], strict)) if len(choices) == 1 else _as_it_is
    if origin is not None:
        return _container(origin, arguments, strict)
    if hint in _SCALARS:
        return partial(_scalar, hint)
    if hint is NoneType:
        return _as_it_is
    if issubclass(hint, Enum):
        return partial(_member, {str(member.value): member for member in hint})
    return partial(_from_text, _TEXT_FORMS.get(hint, hint))


def _container(origin: Any, arguments: tuple[Any, ...], strict: bool) -> Decoder:
    """Return the function that decodes a collection *origin* of items of the types *arguments*."""
    kinds = [argument for argument in arguments if argument is not Ellipsis]
    items = [_decoder(kind, strict) for kind in kinds]
    if issubclass(origin, Mapping):
        return partial(_mapping, items[0], items[1])
    if origin is frozenset:
        return lambda record: frozenset(_sequence(items[0], record))
    is_row = origin is tuple and Ellipsis not in arguments
    decode = partial(_row, items) if is_row else partial(_sequence, items[0])
    return partial(_texts, len(items) if is_row else None, decode) if {*kinds} == {str} else decode


def _member(members: Mapping[str, Enum], record: Json) -> Enum:
    member = members.get(record) if isinstance(record, str) else None
    if member is None:
        raise _InvalidError(f"{_checked(str, record)!r} is not one of {', '.join(members)}")
    return member


def _as_it_is(record: Json) -> Json:
    return record


def _optional(decode: Decoder) -> Decoder:
    return lambda record: None if record is None else decode(record)


def _sequence(decode: Decoder, record: Json) -> tuple[Any, ...]:
    return _items(map(decode, _checked(list, record)))


def _row(decoders: list[Decoder], record: Json) -> tuple[Any, ...]:
    items = _checked(list, record)
    if len(items) != len(decoders):
        raise _InvalidError(f"does not have {len(decoders)} items")
    return _items(map(call, decoders, items))


def _texts(count: int | None, decode: Decoder, record: Json) -> Any:
    """A tuple of texts, *count* of them where that is given, without a call for each."""
    if isinstance(record, list) and count in (None, len(record)) and {*map(type, record)} <= {str}:
        return tuple(record)
    return decode(record)


def _items(decoded_items: Iterable[Any]) -> tuple[Any, ...]:
    values: list[Any] = []
    try:
        values.extend(decoded_items)
    except _InvalidError as error:  # what came before it is in the list
        raise error.within(f"[{len(values)}]") from error
    return tuple(values)


def _mapping(key: Decoder, decode: Decoder, record: Json) -> dict[Any, Any]:
    values: dict[Any, Any] = {}
    name = ""
    try:
        for name, value in _checked(dict, record).items():
            values[key(name)] = decode(value)
    except _InvalidError as error:
        raise error.within(name) from error
    return values


def _dataclass(kind: Any, strict: bool, record: Json) -> Any:
    given = _checked(dict, record)
    decoders = _field_decoders(kind, strict)
    if strict and (unknown := given.keys() - decoders.keys()):
        raise _InvalidError("is not a known field").within(min(unknown))
    values: dict[str, Any] = {}
    name = ""
    try:
        for name, (decode, has_default, scalar) in decoders.items():
            if name in given:
                value = given[name]
                # Most fields are texts: a call for each would take half of the time.
                values[name] = value if type(value) is scalar else decode(value)
            elif not has_default:
                values[name] = decode(None)
    except _InvalidError as error:
        raise error.within(name) from error
    try:
        return kind(**values)
    except (ValueError, TypeError, SpaceMismatchError) as error:
        raise _InvalidError(str(error)) from error


@cache
def _field_decoders(kind: Any, strict: bool) -> Mapping[str, tuple[Decoder, bool, type | None]]:
    return {
        name: (_decoder(hint, strict), default is not NODEFAULT, hint if hint in _SCALARS else None)
        for name, hint, default in fields_of(kind)
    }


def _scalar(kind: type, record: Json) -> Json:
    # A boolean is an integer to Python, but not in a record.
    if type(record) is kind:
        return record
    if kind is float and type(record) is int:
        return float(record)
    raise _InvalidError("is missing" if record is None else f"is not of type {kind.__name__}")


def _from_text(parse: Callable[[str], Any], record: Json) -> Any:
    try:
        return parse(_checked(str, record))
    except (ValueError, binascii.Error) as error:
        raise _InvalidError(str(error)) from error


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return time


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


_TEXT_FORMS: Mapping[type, Callable[[str], Any]] = {datetime: _time, bytes: _bytes}


_NAMES_OF_KINDS: Mapping[type, str] = {str: "of type str", dict: "an object", list: "a list"}


def _checked(kind: type[Value], record: Any) -> Value:
    """Return *record*, which must be of this *kind* of JSON."""
    if not isinstance(record, kind):
        is_other = f"is not {_NAMES_OF_KINDS[kind]}"
        raise _InvalidError("is missing" if record is None else is_other)
    return record


# To the database and back.
Form: TypeAlias = tuple[Callable[[Any], Any], Callable[[Any], Any]]

# What reading a stored value raises where it is not what was written.
DAMAGE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, ReadError)


def json_bytes(value: Any, name: str) -> bytes:
    """`encoded` of *value* as JSON text.

    Raises `StoreError` about *name* for a text that is not valid Unicode.
    """
    try:
        return orjson.dumps(value, default=_for_orjson, option=_ORJSON)
    except TypeError as error:
        reason = error.__cause__ or error  # the error of a value that it asked for is the cause
        raise StoreError(f"{name} cannot be stored: {reason}") from error


# What orjson does not know, or writes in another form than `encoded`, it asks for; the rest, such
# as members of enumerations, lists and texts, it writes in a fraction of the time.
_ORJSON = (
    orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_NON_STR_KEYS  # members of an enumeration
)


def _for_orjson(value: Any) -> object:
    kind: Any = type(value)
    if (fields := _field_getters(kind)) is None:
        return _encoder(kind)(value, None)
    defaults, given_in = fields
    return _told(defaults, given_in(value))


@cache
def _field_getters(kind: Any) -> tuple[Defaults, Getter] | None:
    """Return what `_fields_given` does for a dataclass, None for another *kind* of value."""
    return _fields_given(kind) if is_record(kind) else None


def json_of(value: Any) -> str:
    """*value* as JSON text; raises `StoreError` for a text that is not valid Unicode."""
    return json_bytes(value, "a text").decode()


def from_json(kind: type[Value], text: str) -> Value:
    """Return the value of *kind* that `json_of` gave *text* for; raises `StoreError`."""
    try:
        return decoded(kind, orjson.loads(text))
    except DAMAGE as error:
        raise StoreError(f"a stored {kind.__name__} is damaged: {error}") from error


@lru_cache(4_096)
def actions_of(text: str) -> tuple[RemedyAction, ...]:
    """The actions that are stored as *text*."""
    return tuple(map(_action, orjson.loads(text)))


def _action(record: dict[str, Any]) -> RemedyAction:
    """Return what `decoded` does, in half of its time: a query reads hundreds of actions."""
    pattern = record["pattern"]
    target, replaced = record["target"], record.get("replaced", "")
    parameters = tuple([(name, value) for name, value in record.get("parameters", ())])
    of_pattern = pattern.get("target", ""), pattern.get("replaced", "")
    qualifiers = tuple(pattern.get("parameters", ()))
    texts = (target, replaced, *of_pattern, *qualifiers, *chain.from_iterable(parameters))
    if {*map(type, texts)} != {str}:
        raise ReadError("", "", "an action is not made of texts")
    kind, shared = RemedyKind(record["kind"]), RemedyKind(pattern["kind"])
    return RemedyAction(
        kind, target, RemedyPattern(shared, *of_pattern, qualifiers), replaced, parameters
    )


_JSON: Mapping[Any, Form] = {
    tuple[RemedyAction, ...]: (json_of, actions_of),
    **{kind: (json_of, partial(from_json, kind)) for kind in (tuple[RemedyPattern, ...], Words)},
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
        """The columns of *value*."""
        row = list(self._given(value))
        for at, write in self._writers:
            if row[at] is not None:
                row[at] = write(row[at])
        return tuple(row)

    def value(self, row: Iterable[Any], **omitted: object) -> Value:
        """The value with the columns *row* and the fields *omitted*; for NULL, the default."""
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


_AS_IT_IS: Form = (_as_it_is, _as_it_is)


def _form_of(kind: Any, forms: Mapping[Any, Form]) -> Form:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return attrgetter("value"), {member.value: member for member in kind}.__getitem__
    return forms.get(kind, _AS_IT_IS)


def _without_none(hint: Any) -> Any:
    """*hint*, without the None that a field may also hold."""
    arguments = get_args(hint)
    return arguments[0] if NoneType in arguments else hint
