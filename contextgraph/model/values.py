"""Changed copies of values, of Structs and of the few dataclasses at the boundary; batches.

And checks of arguments by msgspec.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping, ValuesView
from contextlib import suppress
from enum import Enum, EnumType
from functools import cache, wraps
from inspect import get_annotations, signature
from itertools import islice
from pathlib import Path, PurePath
from types import FunctionType, UnionType
from typing import Any, TypeVar, Unpack, cast, get_args, get_origin

import msgspec
from msgspec import Struct, structs

from contextgraph.errors import InvalidArgumentError
from contextgraph.text import encodable, meant, quoted

Value = TypeVar("Value")

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


def checked(kind: type[Value]) -> type[Value]:
    """Return the class *kind*, whose public methods take arguments of the annotated types alone.

    A number of numpy is taken as one of Python, the value of an enumeration as its member. Raises
    `InvalidArgumentError` for all else.
    """
    for name, member in [*vars(kind).items()]:
        method = member.__func__ if isinstance(member, classmethod) else member
        if isinstance(method, FunctionType) and not name.startswith("_"):

            @wraps(method)
            def call(*args: Any, _method: FunctionType = method, **named: Any) -> Any:
                names, kinds = kinds_of(_method)
                given = [*map(argument, names, map(kinds.get, names), args)]
                for unknown in named.keys() - kinds.keys() if ANY not in kinds else ():
                    raise unknown_argument(_method.__qualname__, unknown, kinds)
                for key, value in named.items():
                    named[key] = argument(key, kinds.get(key, object), value)
                return _method(*given, *args[len(given) :], **named)

            setattr(kind, name, call if member is method else classmethod(call))
    return kind


ANY = "**"
"""The name for arguments of any other name."""


@cache
def kinds_of(method: Callable[..., Any]) -> tuple[tuple[str, ...], Mapping[str, Any]]:
    """Return the names of the positional parameters of *method*, and the types of all.

    Of a type that is imported for the type checker alone, nothing is known. Without the cache a
    call takes five times as long.
    """
    kinds, names = dict[str, Any](), list[str]()
    for one in signature(method).parameters.values():
        if get_origin(one.annotation) is Unpack:
            kinds |= get_args(one.annotation)[0].__annotations__
            continue
        if one.kind is one.VAR_KEYWORD:
            kinds[ANY] = object
        is_known = one.annotation is not one.empty and not isinstance(one.annotation, str)
        kinds[one.name] = one.annotation if is_known else object
        if one.kind is one.POSITIONAL_OR_KEYWORD:
            names.append(one.name)
    return tuple(names), kinds


def argument(name: str, kind: Any, given: Any) -> Any:
    """Return the argument *name*, a text `encodable`.

    Raises `InvalidArgumentError` where it is not of this *kind*.
    """
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if str in kinds and isinstance(kinds[0], EnumType):  # the text is a value of it
        kind, kinds = kinds[0], kinds[:1]
    is_record = isinstance(given, Struct) or dataclasses.is_dataclass(given)
    if kind is object or (type(given) in kinds and not is_record):
        return encodable(given) if type(given) is str and not given.isascii() else given
    place = ""
    try:
        try:
            found = msgspec.convert(given, kind, dec_hook=_instance)
        except (TypeError, msgspec.ValidationError) as error:
            found = _in_another_form(kind, given, error)
        is_list = isinstance(found, list | tuple) and isinstance(given, list | tuple)
        is_list = is_list and get_origin(kind) is not Iterable  # whose items are taken one by one
        if is_list and {*map(type, found)} <= _PLAIN:
            return found
        for number, one in enumerate(found if is_list else (found,)):
            # msgspec looks at no field of a record, and takes a mapping for one.
            if isinstance(one, Struct) or dataclasses.is_dataclass(one):
                place = f"[{number}]" if is_list else ""
                if one is not (given[number] if is_list else given):
                    raise TypeError(f"Expected {type(one).__name__}")
                plain = msgspec.to_builtins(one, enc_hook=_plain, builtin_types=(bytes,))
                msgspec.convert(plain, type(one), dec_hook=_instance)
    except (TypeError, msgspec.ValidationError) as error:
        message, _, path = str(error).partition(" - at `$")
        path = f"{place}{path.rstrip('`')}"
        with suppress(TypeError):  # a set has no places
            for field, index in _STEPS.findall(path):
                kind = get_annotations(type(given)).get(field, object) if field else kind
                given = getattr(given, field) if field else given[int(index)]
        expected = _words(kind, message.partition(", got ")[0])
        shown = quoted(given, _SHOWN_CHARS)
        raise InvalidArgumentError(f"{name}{path}: {expected}, got {shown}") from error
    return found


_PLAIN = frozenset({str, int, float, bool})
_SHOWN_CHARS = 100  # of an argument that is refused
_STEPS = re.compile(r"\.(\w+)|\[(\d+)\]")  # of a path


def _instance(kind: Any, given: Any) -> Any:
    """Return *given* if it is of a *kind* that has no JSON; a text or a mapping is no list."""
    origin = get_origin(kind) or kind
    if origin is Path and isinstance(given, str):
        return Path(given)
    if not isinstance(given, origin) or isinstance(given, str | bytes | Mapping):
        raise TypeError(f"Expected {origin.__name__}")
    if isinstance(given, list | tuple):
        with suppress(TypeError):  # of items that are records or mappings
            return msgspec.convert(given, cast(Any, list)[get_args(kind)], dec_hook=_instance)
    return given


def _in_another_form(kind: Any, given: Any, error: Exception) -> Any:
    """Return *given* from numpy or a view of a mapping, or as one of an ambiguous union."""
    if isinstance(error, msgspec.ValidationError):
        if isinstance(given, KeysView | ValuesView):
            return msgspec.convert([*given], kind, dec_hook=_instance)
        items = given if isinstance(given, list | tuple) else [given]
        if not any(hasattr(one, "tolist") for one in items):
            raise error
        plain = [one.tolist() if hasattr(one, "tolist") else one for one in items]
        return msgspec.convert(plain if items is given else plain[0], kind, dec_hook=_instance)
    kinds = tuple(get_origin(one) or one for one in get_args(kind))
    if not isinstance(given, kinds):
        raise TypeError(f"Expected {' | '.join(one.__name__ for one in kinds)}") from None
    return given


def _plain(value: object) -> object:
    """Return the JSON of a part of a record for which msgspec has none."""
    if hasattr(value, "tolist"):  # of numpy
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, float | PurePath):
        return float(value) if isinstance(value, float) else str(value)
    raise TypeError(f"Expected a value that has a JSON form, not {type(value).__name__}")


def _words(kind: Any, expected: str) -> str:
    """Return what msgspec *expected*, in words of Python; values of an enumeration each."""
    expected = expected.replace("`", "").replace("array", "list").replace("null", "None")
    for one in (kind, *get_args(kind)) if expected != "Expected list" else ():
        if isinstance(one, EnumType):
            *values, last = (f"'{choice.value}'" for choice in cast(type[Enum], one))
            return f"Expected {', '.join(values)} or {last}"
        if isinstance(one, type) and (issubclass(one, Struct) or dataclasses.is_dataclass(one)):
            expected = expected.replace("object", one.__name__)
    return expected


def batched(values: Iterable[Value], size: int) -> Iterator[list[Value]]:
    """Yield lists of *size* of *values*, as `itertools.batched` of Python 3.12 does."""
    rest = iter(values)
    while some := list(islice(rest, size)):
        yield some
