"""Changed copies of values, of Structs and of the few dataclasses at the boundary; batches.

And checks of arguments, which a service words in the same way.
"""

import dataclasses
from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import Enum
from itertools import islice
from math import inf
from typing import Any, TypeVar

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


def check_time(name: str, given: object) -> None:
    """Raise `InvalidArgumentError` if the argument *name* is neither a datetime nor None."""
    if given is not None and not isinstance(given, datetime):
        raise InvalidArgumentError(f"{name}: Input should be a valid datetime")


def several(name: str, given: Iterable[Value]) -> Iterable[Value]:
    """Return the argument *name*; raises `InvalidArgumentError` for a text in place of several."""
    if isinstance(given, str):
        raise InvalidArgumentError(f"{name}: Input should be a list, not a text")
    return given


def batched(values: Iterable[Value], size: int) -> Iterator[list[Value]]:
    """Yield lists of *size* of *values*, as `itertools.batched` of Python 3.12 does."""
    rest = iter(values)
    while some := list(islice(rest, size)):
        yield some
