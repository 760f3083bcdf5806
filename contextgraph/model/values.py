"""Changed copies of values, of Structs and of the few dataclasses at the boundary; batches.

And checks of arguments, which a service words in the same way.
"""

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from functools import cache, wraps
from itertools import chain, islice
from math import inf
from numbers import Real
from os import PathLike
from pathlib import Path
from types import FunctionType, NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, Unpack, get_args, get_origin

from msgspec import Struct, structs

from contextgraph.errors import InvalidArgumentError
from contextgraph.text import meant

Value = TypeVar("Value")
Choice = TypeVar("Choice", bound=Enum)

NEAR_ARGUMENT = 0.5
"""How near the name of an argument is to be: "repository" is near "repo"."""


def replace(value: Value, /, **changes: Any) -> Value:
    """Return a copy of *value* with these *changes*, as `copy.replace` of Python 3.13 does.

    Raises `TypeError` for a name that is none of its fields.
    """
    copied: Any = structs.replace if isinstance(value, Struct) else dataclasses.replace
    changed: Value = copied(value, **changes)
    return changed


def unknown_argument(function: str, name: str, known: Iterable[str]) -> TypeError:
    """Return the error for the argument *name*, with the one of those *known* that was meant."""
    near = meant(name, known, NEAR_ARGUMENT)
    hint = f". Did you mean {near!r}?" if near else ""
    return TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")


def bounded(name: str, given: float, most: float = inf) -> None:
    """Raise `InvalidArgumentError` unless the argument *name* is from 0 to *most*."""
    if isinstance(given, bool):
        raise InvalidArgumentError(f"{name}: Input should be a valid number")
    if not given >= 0:  # as NaN is not
        raise InvalidArgumentError(f"{name}: Input should be greater than or equal to 0")
    if given > most:
        raise InvalidArgumentError(f"{name}: Input should be less than or equal to {most}")


def one_of(name: str, kind: type[Choice], given: object) -> Choice:
    """Return the member of *kind* with the value *given*; raises `InvalidArgumentError`."""
    try:
        return kind(given)
    except ValueError as error:
        *values, last = (f"'{one.value}'" for one in kind)
        known = f"{', '.join(values)} or {last}"
        raise InvalidArgumentError(f"{name}: Input should be {known}") from error


class _Kind(NamedTuple):
    """Types of an argument: those that it has, those that it has not, and the kind of its items."""

    words: str
    types: tuple[type, ...]
    refused: tuple[type, ...] = ()
    items: "_Kind | None" = None


_ACCEPTED: Mapping[Any, tuple[type, ...]] = {float: (float, int, Real), Path: (PathLike,)}
_WORDS = {
    str: "a valid string",
    int: "a valid integer",
    float: "a valid number",
    bool: "a valid boolean",
    datetime: "a valid datetime",
    NoneType: "None",
}


@cache
def _kind_of(annotation: Any) -> _Kind:
    """Return the types that *annotation* names; any where only the type checker knows one."""
    parts = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else [annotation]
    words, types, refused, items = list[str](), list[type](), set[type](), None
    for part in (NoneType if part is None else part for part in parts):
        kind = get_origin(part) or part
        if kind is Annotated:
            kind = get_args(part)[0]
        if not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
            return _Kind("", (object,))
        if kind in (Collection, Iterable, Sequence):
            words.append("a list")
            refused |= {str, bytes}
            items = _kind_of(get_args(part)[0])
        elif kind is not NoneType:
            words.append(_WORDS.get(kind, kind.__name__))
        if kind in (int, float):
            refused.add(bool)
        types += _ACCEPTED.get(kind, (str, kind) if issubclass(kind, Enum) else (kind,))
    return _Kind(" or ".join(words), tuple(types), tuple(refused.difference(types)), items)


def check_types(kinds: dict[str, Any], values: Iterable[tuple[str, Any]]) -> None:
    """Raise `InvalidArgumentError` for one of the *values* by name that is not of its annotation.

    A text is no list, and True no number; items are looked at where that uses none up.
    """
    for name, given in values:
        if name not in kinds:  # one of several options
            for one in kinds.values():
                if get_origin(one) is Unpack:
                    kinds = get_args(one)[0].__annotations__ | kinds
        kind = _kind_of(kinds.get(name, object))
        if not isinstance(given, kind.types) or isinstance(given, kind.refused):
            raise InvalidArgumentError(f"{name}: Input should be {kind.words}")
        if kind.items and isinstance(given, list | tuple | set | frozenset):
            for place, item in enumerate(given):
                if not isinstance(item, kind.items.types) or isinstance(item, kind.items.refused):
                    raise InvalidArgumentError(
                        f"{name}.{place}: Input should be {kind.items.words}"
                    )


def checked(kind: type[Value]) -> type[Value]:
    """Return the class *kind*, whose public methods begin with `check_types`."""
    for name, member in [*vars(kind).items()]:
        method = member.__func__ if isinstance(member, classmethod) else member
        if isinstance(method, FunctionType) and not name.startswith("_"):

            @wraps(method)
            def call(*args: Any, _method: FunctionType = method, **named: Any) -> Any:
                names = _method.__code__.co_varnames[1 : _method.__code__.co_argcount]
                values = chain(zip(names, args[1:], strict=False), named.items())
                check_types(_method.__annotations__, values)
                return _method(*args, **named)

            setattr(kind, name, call if member is method else classmethod(call))
    return kind


def batched(values: Iterable[Value], size: int) -> Iterator[list[Value]]:
    """Yield lists of *size* of *values*, as `itertools.batched` of Python 3.12 does."""
    rest = iter(values)
    while some := list(islice(rest, size)):
        yield some
