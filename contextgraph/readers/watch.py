"""Which files of folders are new or have changed since they were read."""

import os
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from contextgraph.readers.sources import Source, StrPath, sources

# How long a file must not have changed, in seconds: an agent may still write its log.
QUIET_SECONDS = 10.0

# Size in bytes, and when it was modified last, in nanoseconds.
_State: TypeAlias = tuple[int, int]


class Watch:
    """The files in *paths* (files, folders, globs) that are new, or have changed and are quiet."""

    def __init__(self, paths: Iterable[StrPath], *, follow_links: bool = False) -> None:
        self._paths = list(paths)
        self._follow_links = follow_links
        self._read: dict[str, _State] = {}

    def due(self, now: float) -> Sequence[Source]:
        """What is to be read (again) at *now*, in seconds since the epoch; it counts as read.

        Raises `ReadError` where a path does not exist.
        """
        found = {
            source: _state(source)
            for path in self._paths
            for source in sources(path, follow_links=self._follow_links)
            if not source.refused
        }
        due = {
            source: state
            for source, state in found.items()
            if state != self._read.get(source.name) and now - state[1] / 1e9 >= QUIET_SECONDS
        }
        self._read |= {source.name: state for source, state in due.items()}
        return list(due)


def _state(source: Source) -> _State:
    try:
        modified = max(os.stat(name).st_mtime_ns for name in source.parts or (source.name,))
    except OSError:
        modified = 0  # removed meanwhile: reading it reports that, once
    return source.size, modified
