"""The files behind a path: a file, a folder, a glob, or "-" for standard input."""

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from contextgraph.errors import ReadError

StrPath: TypeAlias = str | os.PathLike[str]

STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read, by the *name* the caller would know it by.

    *folder* is the folder in which it was found. It is None for a file that the caller asked for
    by name; what is no trajectory is an error there, and skipped in a folder.
    """

    name: str
    folder: Path | None = None

    @property
    def size(self) -> int:
        """Bytes on disk; 0 for standard input and what cannot be read."""
        if self.name == STANDARD_INPUT:
            return 0
        try:
            return os.path.getsize(self.name)
        except OSError:
            return 0


def sources(path: StrPath) -> Sequence[Source]:
    """The files behind *path*, sorted by name. Raises ReadError where there are none.

    A folder is read with its subfolders, without hidden files. A glob finds what a folder would.
    """
    name = os.fspath(path)
    if is_stream(name) or os.path.isfile(name):
        return [Source(name)]
    if os.path.isdir(name):
        return [Source(file, Path(name)) for file in files_in(name)]
    matches = sorted(glob.glob(name, recursive=True)) if glob.has_magic(name) else []
    if not matches:
        raise ReadError(name, "", "no such file or folder")
    return list(dict.fromkeys(_matched(matches)))


def is_stream(path: StrPath) -> bool:
    """True where *path* can be read only once: standard input, a pipe, a device."""
    name = os.fspath(path)
    return name == STANDARD_INPUT or (
        os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name)
    )


def size_of(paths: Iterable[StrPath]) -> int:
    """Bytes on disk behind *paths*, the total of what ``on_bytes`` of `read` will be told.

    Standard input and paths that do not exist count nothing.
    """
    return sum(_size(path) for path in paths)


def files_in(folder: str) -> list[str]:
    """The files in *folder* and below, sorted by name, without hidden ones."""
    found = []
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [os.path.join(parent, name) for name in files if not name.startswith(".")]
    return sorted(found)


def _size(path: StrPath) -> int:
    try:
        return sum(source.size for source in sources(path))
    except ReadError:
        return 0


def _matched(matches: Sequence[str]) -> Iterator[Source]:
    for match in matches:
        if os.path.isdir(match):
            yield from (Source(file, Path(file).parent) for file in files_in(match))
        else:
            yield Source(match, Path(match).parent)
