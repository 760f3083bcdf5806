"""Changed copies of values, and names of packages that are resolved at their first use."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec import Struct, structs

Value = TypeVar("Value")


def replace(value: Value, /, **changes: Any) -> Value:
    """Return a copy of *value* with these *changes*, as `copy.replace` of Python 3.13 does.

    It is a Struct of msgspec, or one of the few dataclasses at the boundary.
    Raises `TypeError` for a name that is none of its fields.
    """
    copied: Any = structs.replace if isinstance(value, Struct) else dataclasses.replace
    changed: Value = copied(value, **changes)
    return changed


def attached(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of *package*: each name is an attribute of its home.

    A home is a module, or ``MODULE:ATTRIBUTE`` for an attribute of another name.
    """

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        module, _, attribute = homes[name].partition(":")
        return getattr(import_module(module), attribute or name)

    return get, lambda: sorted(homes)
