"""Changed copies of values: of Structs of msgspec, and of the few dataclasses at the boundary."""

import dataclasses
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
