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
    """Values by key, at most `_MOST`; those that were added first are dropped first."""

    def __init__(self, values: Mapping[Key, Value] | None = None) -> None:
        self._values = dict(values or {})
        self._lock = threading.Lock()

    def get_or_read(
        self, keys: Iterable[Key], read: Callable[[Sequence[Key]], Mapping[Key, Value]]
    ) -> dict[Key, Value]:
        """The values of *keys*; those that are not cached are *read*."""
        found, missing = self.cached(keys)
        if missing:
            new = read(missing)
            self.add(new)
            found.update(new)
        return found

    def cached(self, keys: Iterable[Key]) -> tuple[dict[Key, Value], list[Key]]:
        """The values of those of *keys* that are cached, and the other keys, each once."""
        values = {key: self._values.get(key) for key in keys}
        missing = [key for key, value in values.items() if value is None]
        if not missing:
            return cast(dict[Key, Value], values), missing
        return {key: value for key, value in values.items() if value is not None}, missing

    def add(self, new: Mapping[Key, Value]) -> None:
        """Cache *new* as well."""
        with self._lock:
            self._values.update(new)
            too_many = max(0, len(self._values) - _MOST)
            for key in list(islice(self._values, too_many)):
                del self._values[key]

    def without(self, keys: Iterable[Key]) -> "ValueCache[Key, Value]":
        """A copy without *keys*."""
        with self._lock:
            copy = ValueCache(self._values)
        for key in keys:
            copy._values.pop(key, None)
        return copy
