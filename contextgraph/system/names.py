"""Names of a package that are imported at their first use."""

from collections.abc import Callable, Mapping


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
