"""Where a record was found, and what its file's name says of it."""

import re
from dataclasses import dataclass
from pathlib import PurePath

from contextgraph.model import instance_id_in, repo_of

_SUFFIXES = frozenset({".gz", ".zst", ".json", ".jsonl", ".ndjson", ".parquet", ".traj"})
_SWE_SMITH_ID = re.compile(r"(?P<owner>[A-Za-z0-9-]+)__(?P<repo>[\w.-]+?)\.[0-9a-f]{8}\.\S+")


@dataclass(frozen=True, slots=True)
class Place:
    """A record's file as the caller named it, and the *number* of the record where it has several.

    *unit* is what is counted: "line" or "record".
    """

    file: str
    number: int | None = None
    unit: str = "line"

    @property
    def source(self) -> str:
        """``runs.jsonl:12``, or the file alone where it holds a single record."""
        return self.file if self.number is None else f"{self.file}:{self.number}"

    @property
    def position(self) -> str:
        """``line 12``; empty where the file holds a single record."""
        return "" if self.number is None else f"{self.unit} {self.number}"

    def instance_id(self) -> str:
        """The instance id that the file is named after; otherwise its name and record number."""
        stem = file_stem(self.file)
        # A prefix such as "v1__" may stand before owner__repo-12; owners have no underscore.
        named = instance_id_in("__".join(stem.split("__")[-2:]))
        return named or (stem if self.number is None else f"{stem}:{self.number}")


def file_stem(file: str) -> str:
    """The file's name without the folders before it and the format suffixes after it."""
    name = PurePath(file).name
    while PurePath(name).suffix in _SUFFIXES:
        name = PurePath(name).stem
    return name


def repo_named(instance_id: str) -> str:
    """``owner/repo`` of an instance id of SWE-bench or SWE-smith; empty for any other form."""
    smith = _SWE_SMITH_ID.fullmatch(instance_id)
    return f"{smith['owner']}/{smith['repo']}" if smith else repo_of(instance_id)
