"""How a format is recognised and read, where a record was found, and why it may be skipped."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from contextgraph.errors import ReadError
from contextgraph.model import (
    RawTrajectory,
    instance_id_in,
    repo_of,
)

_SUFFIXES = frozenset({".gz", ".zst", ".json", ".jsonl", ".ndjson", ".parquet", ".traj"})
_SWE_SMITH_ID = re.compile(r"(?P<owner>[A-Za-z0-9-]+)__(?P<repo>[\w.-]+?)\.[0-9a-f]{8}\.\S+")


class SkippedError(ReadError):
    """What was read and understood, and holds nothing to learn."""


class EmptyRunError(SkippedError):
    """A run in which the agent did nothing, such as one that the infrastructure ended."""


class ForeignError(SkippedError):
    """A file that does not claim to be a trajectory, such as a README or an evaluation report."""


@dataclass(frozen=True, slots=True)
class Place:
    """A record's file as the caller named it, and the *number* of the record where it has several.

    *unit* is what is counted: "line" or "record". *parts* are the numbers, or names, of the parts
    of a record that is spread over lines or files; *instance* the id that a wrapper row gives it.
    """

    file: str
    number: int | None = None
    unit: str = "line"
    parts: tuple[int | str, ...] = ()
    instance: str = ""

    @property
    def source(self) -> str:
        """``runs.jsonl:12``, or only the file where it holds a single record."""
        return self.file if self.number is None else f"{self.file}:{self.number}"

    @property
    def position(self) -> str:
        """``line 12``; empty where the file holds a single record."""
        return "" if self.number is None else f"{self.unit} {self.number}"

    def part(self, index: int) -> str:
        """The position of one part of the record, such as ``line 12`` of a session."""
        if index >= len(self.parts):
            return self.position or f"item {index + 1}"
        part = self.parts[index]
        return f"{self.unit} {part}" if isinstance(part, int) else part

    def instance_id(self) -> str:
        """The instance that a wrapper or the file's name gives; else file name and number."""
        stem = file_stem(self.file)
        named = self.instance or self.instance_in_name()
        return named or (stem if self.number is None else f"{stem}:{self.number}")

    def instance_in_name(self) -> str:
        """The instance id that the file, or else its folder, is named after; empty if none."""
        stem = file_stem(self.file)
        # A prefix such as "v1__" may stand before owner__repo-12; owners have no underscore.
        named = instance_id_in("__".join(stem.split("__")[-2:])) or instance_id_in(stem)
        return named or instance_id_in(PurePath(self.file).parent.name) or ""


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


@dataclass(frozen=True, slots=True)
class Format:
    """How one format is recognised and read.

    *recognises* decides on a parsed record, *runs* gives the runs in it, with a ReadError for each
    part that cannot be read. In a format with *is_part* a run is spread over the lines of a file,
    or over files: *is_part* decides on one of them, and the record is the list of all.
    """

    name: str
    description: str
    keeps: str
    recognises: Callable[[object], bool]
    runs: Callable[[Any, Place], Iterable[RawTrajectory | ReadError]]
    is_part: Callable[[object], bool] | None = None
    experimental: bool = False


def is_list_of(is_line: Callable[[object], bool], value: object) -> bool:
    """Whether *value* is the list of the lines of a log; the first ones may be of other kinds."""
    return isinstance(value, list) and any(map(is_line, value[:3]))
