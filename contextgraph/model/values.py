"""Changed copies of values, of Structs and of the few dataclasses at the boundary; batches."""

import dataclasses
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from msgspec import Struct, structs

Value = TypeVar("Value")


def replace(value: Value, /, **changes: Any) -> Value:
    """Return a copy of *value* with these *changes*, as `copy.replace` of Python 3.13 does.

    Raises `TypeError` for a name that is none of its fields.
    """
    copied: Any = structs.replace if isinstance(value, Struct) else dataclasses.replace
    changed: Value = copied(value, **changes)
    return changed


def batched(values: Iterable[Value], size: int) -> Iterator[list[Value]]:
    """Yield lists of *size* of *values*, as `itertools.batched` of Python 3.12 does."""
    rest = iter(values)
    while some := list(islice(rest, size)):
        yield some
