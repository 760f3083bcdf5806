"""The files of a repository as they are now, to look up what advice names."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

# Longer files are generated; their symbols are taken to be there.
_LONGEST_FILE = 2_000_000
_ELSEWHERE = ("/", "..", "~")


@dataclass(frozen=True, slots=True)
class WorkingTree:
    """The files below *root*. Paths that lead outside it are taken to be right."""

    root: Path

    @classmethod
    def around(cls, folder: Path | str) -> Self:
        """The git working tree that holds *folder*, else *folder* itself.

        Raises `ValueError` where there is no such folder.
        """
        start = Path(folder).absolute()
        if not os.path.isdir(start):  # `Path` raises for a name that is too long
            raise ValueError(f"no folder {folder}")
        roots = (path for path in (start, *start.parents) if (path / ".git").exists())
        return cls(next(roots, start))

    def has(self, path: str, symbol: str = "") -> bool:
        """Whether there is a file or folder at *path*, relative to the root.

        With a *symbol* it has to be a file that contains this name.
        """
        if path.startswith(_ELSEWHERE):
            return True
        file = self.root / path
        try:
            if not symbol or not file.exists():
                return file.exists()
            if file.stat().st_size > _LONGEST_FILE:
                return True
            text = file.read_text(encoding="utf-8", errors="replace")
        except (OSError, ValueError):  # such as a name that is too long
            return False
        return re.search(rf"\b{re.escape(symbol)}\b", text) is not None
