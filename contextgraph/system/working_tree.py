"""The current files of a repository, in which names in advice are looked up."""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Self

from msgspec import Struct, field

# Longer files are generated; their symbols are taken to be there.
_LONGEST_FILE = 2_000_000
_ELSEWHERE = ("/", "..", "~")


class WorkingTree(Struct, frozen=True):
    """The files below *root*. Paths that lead outside it are taken to be right.

    *recorded* are content hashes of files by path, from earlier runs, maybe abbreviated.
    """

    root: "Path | str"
    recorded: Mapping[str, Collection[str]] = field(default_factory=dict)
    _unchanged: dict[str, bool | None] = field(default_factory=dict)

    @classmethod
    def around(cls, folder: "Path | str") -> "Self":
        """Return the git working tree that holds *folder*, else *folder* itself.

        Raises `ValueError` where there is no such folder.
        """
        start = root = os.path.abspath(folder)
        if not os.path.isdir(start):
            raise ValueError(f"no folder {folder}")
        while not os.path.exists(os.path.join(root, ".git")):
            above = os.path.dirname(root)
            if above == root:
                return cls(start)
            root = above
        return cls(root)

    @property
    def is_of_git(self) -> bool:
        """True where the root is the top of a checkout of git."""
        return os.path.exists(os.path.join(self.root, ".git"))

    def has(self, path: str, symbol: str = "") -> bool:
        """Return True where there is a file or folder at *path*, relative to the root.

        With a *symbol* it has to be a file that contains this name; without a path, a program that
        this machine has.
        """
        if symbol and not path:
            from shutil import which  # slow to load

            return which(symbol) is not None
        if path.startswith(_ELSEWHERE):
            return True
        file = os.path.join(self.root, path)
        try:
            if not symbol or not os.path.isfile(file):  # a pipe would be waited for
                return os.path.exists(file)
            if os.path.getsize(file) > _LONGEST_FILE:
                return True
            with open(file, encoding="utf-8", errors="replace") as stream:
                text = stream.read()
        except (OSError, ValueError):  # such as a name that is too long
            return False
        return re.search(rf"\b{re.escape(symbol)}\b", text) is not None

    def size(self, path: str) -> int:
        """Return the size of the file at *path* in bytes."""
        return os.path.getsize(os.path.join(self.root, path))

    def is_same_program(self, name: str, other: str) -> bool:
        """Return whether two names are of one program of this machine."""
        from shutil import which

        first, second = which(name), which(other)
        return first is not None and os.path.realpath(first) == os.path.realpath(second or "")

    def has_package(self, name: str) -> bool:
        """True where the Python of the checkout, else the first of this machine, has a package."""
        return _normal(name) in self._packages()

    def _packages(self) -> Iterator[str]:
        """The names of the packages whose metadata are there; nothing is executed."""
        from pathlib import Path
        from shutil import which

        inner = [Path(self.root, folder) for folder in (".venv", "venv")]
        found = which("python3") or which("python")
        homes = [folder for folder in inner if folder.is_dir()]
        homes = homes[:1] or ([Path(found).parent.parent] if found else [])
        for place in chain.from_iterable(home.glob("lib/python*/*-packages") for home in homes):
            yield from (
                _normal(entry.name.partition("-")[0]) for entry in place.glob("*.dist-info")
            )

    def content_hash(self, path: str) -> str | None:
        """Return git's hash of the content of the file at *path*; None without a file."""
        file = os.path.join(self.root, path)
        try:
            if path.startswith(_ELSEWHERE) or not os.path.isfile(file):
                return None
            if os.path.getsize(file) > _LONGEST_FILE:
                return None
            with open(file, "rb") as stream:
                content = stream.read()
        except (OSError, ValueError):
            return None
        from hashlib import sha1  # slow to load

        header = f"blob {len(content)}\0".encode()
        return sha1(header + content, usedforsecurity=False).hexdigest()

    def is_unchanged(self, path: str) -> bool | None:
        """Return True where the file at *path* has a recorded content; None where it is not known.

        Each file is read once: several items of an answer name the same ones.
        """
        if path not in self._unchanged:
            recorded = self.recorded.get(path, ())
            current = self.content_hash(path) if recorded else None
            self._unchanged[path] = current.startswith(tuple(recorded)) if current else None
        return self._unchanged[path]


def _normal(name: str) -> str:
    """The name of a package as indexes compare it."""
    return re.sub("[-_.]+", "-", name).lower()
