"""Caches of values that were read, valid for one revision."""

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Generic, TypeVar, cast

# About 3 kB each, and three kinds of them: 75 MB at most of ordinary runs.
_MOST = 8_192

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class ValueCache(Generic[Key, Value]):
    """Values by key, at most `_MOST` for each of so many *kinds*; the oldest are dropped first."""

    def __init__(self, kinds: int = 1) -> None:
        self._kinds = kinds
        self._values: dict[Key, Value] = {}
        self._lock = threading.Lock()

    def get_or_read(
        self, keys: Iterable[Key], read: Callable[[Sequence[Key]], Mapping[Key, Value]]
    ) -> dict[Key, Value]:
        """The values of *keys*; those that are not cached are *read*."""
        values = {key: self._values.get(key) for key in keys}
        missing = [key for key, value in values.items() if value is None]
        if not missing:
            return cast(dict[Key, Value], values)
        new = read(missing)
        with self._lock:
            self._values.update(new)
            too_many = max(0, len(self._values) - _MOST * self._kinds)
            for key in list(islice(self._values, too_many)):
                del self._values[key]
        return {key: value for key, value in values.items() if value is not None} | dict(new)

    def without(self, keys: Iterable[Key]) -> "ValueCache[Key, Value]":
        """A copy without *keys*."""
        copy = ValueCache[Key, Value](self._kinds)
        with self._lock:
            copy._values.update(self._values)
        for key in keys:
            copy._values.pop(key, None)
        return copy
