"""How a format is recognised and read, where a record was found, and why it may be skipped."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeAlias

from msgspec import Struct

from contextgraph.errors import ReadError
from contextgraph.model import RawTrajectory
from contextgraph.system.intake import opened
from contextgraph.text import regex

_SUFFIXES = frozenset({".gz", ".zst", ".json", ".jsonl", ".ndjson", ".parquet", ".arrow", ".traj"})
_SWE_SMITH_ID = regex(r"(?P<owner>[A-Za-z0-9-]+)__(?P<repo>[\w.-]+?)\.[0-9a-f]{8}\.\S+")


class SkippedError(ReadError):
    """A record that was understood and holds nothing to learn."""


class EmptyRunError(SkippedError):
    """A run in which the agent did nothing, such as one that the infrastructure ended."""


class NotUnderstoodError(ReadError):
    """Records of no known kind: how many *records*, and the *version* of the client that they name.

    A session of which nothing else is known is not empty: a newer reader may understand it.
    """

    def __init__(
        self,
        source: str,
        position: str,
        kind: str,
        detail: str = "",
        *,
        records: int = 1,
        version: str = "",
    ) -> None:
        super().__init__(source, position, kind, detail)
        self.records, self.version = records, version

    def __reduce__(self) -> tuple[Any, ...]:
        make = partial(type(self), records=self.records, version=self.version)
        return make, (self.source, self.position, self.kind, self.detail)


class ForeignError(SkippedError):
    """A file that does not claim to be a trajectory, such as a README or an evaluation report."""


class Place(Struct, frozen=True):
    """A record's file as the caller named it, and the *number* of the record where it has several.

    *unit* is what is counted: "line" or "record". *parts* are the numbers, or names, of the parts
    of a record that is spread over lines or files; *instance* the id that a wrapper row gives it.
    *is_sent*: the name is of a file elsewhere, which somebody sent. *is_kept*: a client of this
    machine keeps the file, and knows the folder that it worked in.
    """

    file: str
    number: int | None = None
    unit: str = "line"
    parts: tuple[int | str, ...] = ()
    instance: str = ""
    is_sent: bool = False
    is_kept: bool = False

    def beside(self, path: "os.PathLike[str] | str", above: int = 1) -> IO[bytes]:
        """Open a file below a folder *above* that of this one; raises `OSError` for any other.

        There is none where this file was sent, and links are of other sessions.
        """
        base = os.path.dirname(os.path.abspath(self.file))
        for _ in range(above):
            base = os.path.dirname(base)
        below = os.path.relpath(os.path.abspath(path), base)
        if self.is_sent or os.path.realpath(path) != os.path.join(os.path.realpath(base), below):
            raise FileNotFoundError(path)
        return opened(path)

    @property
    def source(self) -> str:
        """``runs.jsonl:12``, or only the file where it holds a single record."""
        return self.file if self.number is None else f"{self.file}:{self.number}"

    @property
    def position(self) -> str:
        """``line 12``; empty where the file holds a single record."""
        return "" if self.number is None else f"{self.unit} {self.number}"

    def part(self, index: int) -> str:
        """Return the position of one part of the record, such as ``line 12`` of a session."""
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
        from contextgraph.model import instance_id_in

        stem = file_stem(self.file)
        # A prefix such as "v1__" may stand before owner__repo-12; owners have no underscore.
        named = instance_id_in("__".join(stem.split("__")[-2:])) or instance_id_in(stem)
        return named or instance_id_in(os.path.basename(os.path.dirname(self.file))) or ""


def file_stem(file: str) -> str:
    """Return the file's name without the folders before it and the format suffixes after it."""
    name = os.path.basename(file.rstrip(os.sep))
    while True:
        stem, suffix = os.path.splitext(name)
        if suffix not in _SUFFIXES:
            return name
        name = stem


def repo_named(instance_id: str) -> str:
    """``owner/repo`` of an instance id of SWE-bench or SWE-smith; empty for any other form."""
    from contextgraph.model import repo_of

    smith = _SWE_SMITH_ID.fullmatch(instance_id)
    return f"{smith['owner']}/{smith['repo']}" if smith else repo_of(instance_id)


class Kept(Struct, frozen=True):
    """Where an agent keeps its sessions: files at *patterns* below a folder.

    That folder is the one in the environment *variable*, where it is set, else *folder* in the
    home. *agent* is who keeps them, where another than the format is named after. Pages that are
    kept in projects, below what the first wildcards stand for, show sessions of other agents:
    *session_shown* returns the id of the one in a file.
    """

    folder: str
    patterns: tuple[str, ...]
    variable: str = ""
    agent: str = ""
    session_shown: Callable[[Path], str] | None = None


# Where Visual Studio Code and its relatives keep the data of a user, here and on remote hosts: a
# folder in the home, and what is below it.
VS_CODE = (
    (".config", "*/User"),
    ("Library/Application Support", "*/User"),
    (".vscode-server", "data/User"),
)


class Format(Struct, frozen=True):
    """A format: recognising and reading it, and the places where it is kept.

    *recognises* decides on a parsed record, *runs* gives the runs in it, with a ReadError for each
    part that cannot be read. In a format with *is_part* a run is spread over the lines of a file,
    or over files: *is_part* decides on one of them, and the record is the list of all. *omits* is
    what is logged and not read, *kept* where discovery looks for it.
    """

    name: str
    description: str
    keeps: str
    recognises: Callable[[object], bool]
    runs: "Callable[[Any, Place], Iterable[RawTrajectory | ReadError]]"
    is_part: Callable[[object], bool] | None = None
    experimental: bool = False
    omits: str = ""
    kept: tuple[Kept, ...] = ()


def is_list_of(is_line: Callable[[object], bool], value: object) -> bool:
    """Return True if *value* is a list of lines of a log; the first may be of other kinds."""
    return isinstance(value, list) and any(map(is_line, value[:3]))


Row: "TypeAlias" = Mapping[str, "Any"]


def text(row: Row, name: str) -> str:
    """Return the text at *name*; empty where it is absent or null."""
    value = row.get(name)
    if value is None:
        return ""
    return value if isinstance(value, str) else text_or_none(row, name) or ""


def text_or_none(row: Row, name: str) -> str | None:
    """Return the text at *name*, None where there is none; raises `ValueError` for others."""
    value = row.get(name)
    if value is None or isinstance(value, str):
        return value
    raise ValueError(_wrong(name, value, "text"))


def loose_text(row: Row, name: str) -> str:
    """Return the text at *name*; empty where it is anything else, as in rows of many hands."""
    value = row.get(name)
    return value if isinstance(value, str) else ""


def integer(row: Row, name: str) -> int | None:
    """Return the integer at *name*; None where it is anything else, such as true."""
    value = row.get(name)
    return value if type(value) is int else None


def count(row: Row, name: str) -> int:
    """Return the count at *name*; 0 where it is absent, negative or anything else."""
    value = row.get(name)
    return value if type(value) is int and value > 0 else 0


def dollars(row: Row, name: str) -> float | None:
    """Return the amount of money at *name*; None where it is absent, negative or anything else."""
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < float("inf") else None


def row_at(row: Row, name: str) -> Row:
    """Return the object at *name*; empty where it is absent or null."""
    value = row.get(name)
    if value is None:
        return {}
    return as_row(value, name)


def rows_at(row: Row, name: str) -> Sequence[Row]:
    """Return the list of objects at *name*; empty where it is absent or null.

    Raises `ValueError` for others.
    """
    value = row.get(name)
    if value is None:
        return ()
    if isinstance(value, list) and {dict}.issuperset(map(type, value)):
        return value
    raise ValueError(_wrong(name, value, "a list of objects"))


def as_row(value: object, name: str) -> Row:
    """Return *value* itself; raises `ValueError` where it is no object."""
    if isinstance(value, dict):
        return value
    raise ValueError(_wrong(name, value, "an object"))


def content_text(row: Row, name: str = "content") -> str:
    """Return the text of a chat message: one text, or a list of ``{"type", "text"}`` parts."""
    value = row.get(name)
    if isinstance(value, list):
        parts = (as_row(part, name) for part in value)
        return "\n".join(text(part, "text") for part in parts if "text" in part)
    return text(row, name)


def is_conversation(value: object) -> bool:
    """Return True if *value* is a list of chat messages, as opposed to a list of runs."""
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(message, dict) and "role" in message for message in value)


def _wrong(name: str, value: object, wanted: str) -> str:
    return f"{name} is {kind(value)}, not {wanted}"


def kind(value: object) -> str:
    """Name the JSON type of *value*, such as "an object"."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "text"
        case int() | float():
            return "a number"
        case dict():
            return "an object"
        case list():
            return "a list"
    return type(value).__name__
