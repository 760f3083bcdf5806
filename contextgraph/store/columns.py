"""Values as columns of a database and back, by the types of their fields, and their cache."""

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache, partial
from itertools import islice
from operator import attrgetter
from types import NoneType
from typing import Any, Generic, TypeAlias, TypeVar, cast, get_args

import orjson

from contextgraph.codec import (
    decoded,
    encoded,
    fields_of,
)
from contextgraph.errors import (
    DamagedRunError,
    ReadError,
    StoreError,
)
from contextgraph.lazy import MISSING
from contextgraph.model import (
    RawTrajectory,
    RemedyAction,
    RemedyPattern,
    Words,
)
from contextgraph.processes import load

Value = TypeVar("Value")
# To the database and back.
Form: TypeAlias = tuple[Callable[[Any], Any], Callable[[Any], Any]]

# What reading a stored value raises where it is not what was written.
DAMAGE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, ReadError)
# Measured on a run of 75 kB: 0.4 of the time that zlib 1 takes, and 13 % smaller.
_COMPRESSION = 1


def packed(raw: RawTrajectory) -> bytes:
    """*raw* as compressed bytes; raises `StoreError` for a text that is not valid Unicode."""
    data = _json(raw, f"run {raw.instance_id or raw.source}")
    load("zstandard")
    import zstandard

    return zstandard.ZstdCompressor(_COMPRESSION, write_checksum=True).compress(data)


def unpacked(data: bytes, identity: str) -> RawTrajectory:
    """The run *identity*, which `packed` gave *data* for; raises `DamagedRunError`."""
    load("zstandard")
    import zstandard

    try:
        return decoded(RawTrajectory, orjson.loads(zstandard.decompress(data)))
    except (zstandard.ZstdError, ValueError, ReadError) as error:
        raise DamagedRunError(f"run {identity} is damaged: {error}") from error


def _json(value: Any, name: str) -> bytes:
    try:
        return orjson.dumps(encoded(value))
    except TypeError as error:
        raise StoreError(f"{name} cannot be stored: {error}") from error


def json_of(value: Any) -> str:
    """*value* as JSON text; raises `StoreError` for a text that is not valid Unicode."""
    return _json(value, "a text").decode()


def from_json(kind: type[Value], text: str) -> Value:
    """Return the value of *kind* that `json_of` gave *text* for; raises `StoreError`."""
    try:
        return decoded(kind, orjson.loads(text))
    except DAMAGE as error:
        raise StoreError(f"a stored {kind.__name__} is damaged: {error}") from error


@lru_cache(4_096)
def actions_of(text: str) -> tuple[RemedyAction, ...]:
    """The actions that are stored as *text*."""
    # Version 0.1 stored sentences in the place of actions: a rebuild finds these.
    records = orjson.loads(text)
    return tuple(decoded(RemedyAction, record) for record in records if isinstance(record, dict))


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
        self._writers = tuple(
            (name, form[0]) for name, form in zip(self.names, field_forms, strict=True)
        )
        self._readers = tuple(
            (field.name, form[1], None if field.default is MISSING else field.default)
            for field, form in zip(fields, field_forms, strict=True)
            if form is not _AS_IT_IS or field.default is not MISSING
        )

    def row(self, value: Value) -> tuple[Any, ...]:
        """The columns of *value*."""
        return tuple(
            None if (given := getattr(value, name)) is None else write(given)
            for name, write in self._writers
        )

    def value(self, row: Iterable[Any], **omitted: object) -> Value:
        """The value with the columns *row* and the fields *omitted*; for NULL, the default."""
        values = dict(zip(self.names, row, strict=True))
        try:
            for name, read, default in self._readers:
                given = values[name]
                values[name] = default if given is None else read(given)
        except DAMAGE as error:
            raise StoreError(f"a stored {self._kind.__name__} is damaged: {error}") from error
        return self._kind(**values, **omitted)


def _same(value: Any) -> Any:
    return value


_AS_IT_IS: Form = (_same, _same)


def _form_of(kind: Any, forms: Mapping[Any, Form]) -> Form:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return attrgetter("value"), {member.value: member for member in kind}.__getitem__
    return forms.get(kind, _AS_IT_IS)


def _without_none(hint: Any) -> Any:
    """*hint*, without the None that a field may also hold."""
    arguments = get_args(hint)
    return arguments[0] if NoneType in arguments else hint


# About 3 kB each, and three kinds of them: 75 MB at most of ordinary runs.
_MOST = 8_192

Key = TypeVar("Key", bound=Hashable)
Cached = TypeVar("Cached")


class ValueCache(Generic[Key, Cached]):
    """Values by key, at most `_MOST` for each of so many *kinds*; the oldest are dropped first."""

    def __init__(self, kinds: int = 1) -> None:
        self._kinds = kinds
        self._values: dict[Key, Cached] = {}
        self._lock = threading.Lock()

    def get_or_read(
        self, keys: Iterable[Key], read: Callable[[Sequence[Key]], Mapping[Key, Cached]]
    ) -> dict[Key, Cached]:
        """The values of *keys*; those that are not cached are *read*."""
        values = {key: self._values.get(key) for key in keys}
        missing = [key for key, value in values.items() if value is None]
        if not missing:
            return cast(dict[Key, Cached], values)
        new = read(missing)
        with self._lock:
            self._values.update(new)
            too_many = max(0, len(self._values) - _MOST * self._kinds)
            for key in list(islice(self._values, too_many)):
                del self._values[key]
        return {key: value for key, value in values.items() if value is not None} | dict(new)

    def without(self, keys: Iterable[Key]) -> "ValueCache[Key, Cached]":
        """A copy without *keys*."""
        copy = ValueCache[Key, Cached](self._kinds)
        with self._lock:
            copy._values.update(self._values)
        for key in keys:
            copy._values.pop(key, None)
        return copy
