"""The file of an archive: JSON lines, compressed for ``.zst``.

The first line is a header, the last one counts the lines before it, so that a truncated file is
detected.
"""

import io
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias, TypeVar

import orjson

from contextgraph.codec import decoded, encoded
from contextgraph.errors import ReadError, StoreError
from contextgraph.model import (
    Bundle,
    Exposure,
    Json,
    Methodology,
    Note,
    NoteKind,
    ResolvedBy,
    SimilarTo,
    Space,
    Verdict,
)
from contextgraph.processes import create_private

FORMAT = "contextgraph-memory-archive"
VERSION = 2
# Version 1, of release 0.1, has remedies as sentences, which are found again by a rebuild, and
# credit of items in shares.
_WITH_SENTENCES = 1


@dataclass(frozen=True, slots=True)
class Header:
    """The first line: the tenant, and how much it held when the export began."""

    format: str
    version: int
    tenant: str
    vectors: bool
    runs: int
    methodologies: int


@dataclass(frozen=True, slots=True)
class SpaceLine:
    """The active space with its model."""

    space: Space
    model: bytes | None = None


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run; *steps* is `Bundle.met`."""

    bundle: Bundle
    steps: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class MethodologyLine:
    """A methodology with the edges to it."""

    methodology: Methodology
    resolved: tuple[ResolvedBy, ...]


@dataclass(frozen=True, slots=True)
class SimilarLine:
    """The `SIMILAR_TO` edges of the fragments of one run."""

    similar: tuple[SimilarTo, ...]


@dataclass(frozen=True, slots=True)
class ConsolidatedLine:
    """All of the archive was consolidated."""


@dataclass(frozen=True, slots=True)
class EndLine:
    """The last line: the number of lines before it."""

    lines: int


Line: TypeAlias = (
    SpaceLine
    | RunLine
    | MethodologyLine
    | SimilarLine
    | Exposure
    | Verdict
    | Note
    | ConsolidatedLine
    | EndLine
)
Kind = TypeVar("Kind")
_KINDS: dict[str, type[Line]] = {
    "space": SpaceLine,
    "run": RunLine,
    "methodology": MethodologyLine,
    "similar": SimilarLine,
    "exposure": Exposure,
    "verdict": Verdict,
    # A note has its own kind, which is also that of its line.
    **dict.fromkeys(NoteKind, Note),
    "consolidated": ConsolidatedLine,
    "end": EndLine,
}
_NAMES = {**{kind: name for name, kind in _KINDS.items()}, Note: NoteKind.NOTE}


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """A file that replaces *path* when it is complete; compressed for ``.zst``."""
    import zstandard

    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    opened = zstandard.open if path.suffix == ".zst" else open
    try:
        create_private(part)
        with opened(part, "wb") as file:
            yield file
        part.replace(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


def write_line(file: IO[bytes], value: Header | Line) -> None:
    """Write *value*; raises `StoreError` for a text that is not valid Unicode."""
    record = encoded(value)
    assert isinstance(record, dict)  # all lines are dataclasses
    kind = {} if isinstance(value, Header) else {"kind": _NAMES[type(value)]}
    try:
        file.write(orjson.dumps({**kind, **record}) + b"\n")
    except orjson.JSONEncodeError as error:
        raise StoreError(f"a text cannot be exported: {error}") from error


def read_header(path: Path) -> Header:
    """The first line of *path*; raises `ReadError` for no archive, or one of a later version."""
    with _opened(path) as file:
        record = _parsed(path, 1, file.readline())
    if record.get("format") != FORMAT:
        raise ReadError(str(path), "line 1", f"is not the first line of a {FORMAT}")
    if record.get("version") not in (VERSION, _WITH_SENTENCES):
        raise ReadError(
            str(path),
            "line 1",
            f"is of version {record.get('version')}, this version knows {VERSION}; "
            "upgrade contextgraph-memory",
        )
    return _decoded(path, 1, Header, record)


def read_lines(path: Path) -> Iterator[Line]:
    """All lines after the first but the last.

    Raises `ReadError` with the line that is damaged, or where the file was truncated.
    """
    number, ended = 1, False
    has_sentences = read_header(path).version == _WITH_SENTENCES
    with _opened(path) as file:
        file.readline()
        for number, text in enumerate(file, start=2):
            record = _parsed(path, number, text)
            kind = _KINDS.get(str(record.get("kind", "")))
            if kind is None or ended:
                raise ReadError(str(path), f"line {number}", "is of an unknown kind")
            if kind is RunLine and has_sentences:
                _drop_sentences(record)
            if kind is Exposure and has_sentences:
                _drop_shares(record)
            line = _decoded(path, number, kind, record)
            if not isinstance(line, EndLine):
                yield line
            elif line.lines != number - 1:
                reason = f"{number - 1} lines came before the last one, not {line.lines}"
                raise ReadError(str(path), f"line {number}", reason)
            else:
                ended = True
    if not ended:
        raise ReadError(str(path), f"line {number}", "is the last one: the file was cut off")


def _drop_sentences(record: dict[str, Json]) -> None:
    """Drop the actions of the recoveries of a run of version 0.1."""
    bundle = record.get("bundle")
    recovered = bundle.get("recovered") if isinstance(bundle, dict) else None
    for recovery in recovered if isinstance(recovered, list) else ():
        if isinstance(recovery, dict):
            recovery["actions"] = []


def _drop_shares(record: dict[str, Json]) -> None:
    """Give the items of an exposure of version 0.1 its outcome, in place of shares of it."""
    shares, helped = record.get("items"), record.get("helped")
    record["items"] = [
        {"id": pair[0], "helped": helped}
        for pair in (shares if isinstance(shares, list) else ())
        if isinstance(pair, list)
    ]


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    import zstandard

    opened = zstandard.open if path.suffix == ".zst" else open
    try:
        # What decompresses gives no lines.
        with io.BufferedReader(opened(path, "rb"), 1 << 20) as file:
            yield file
    except OSError as error:
        raise ReadError(str(path), "", f"cannot be read: {error.strerror or error}") from error
    except zstandard.ZstdError as error:
        raise ReadError(str(path), "", f"is damaged: {error}") from error


def _parsed(path: Path, number: int, text: bytes) -> dict[str, Json]:
    try:
        record = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ReadError(str(path), f"line {number}", f"is not JSON: {error}") from error
    if not isinstance(record, dict):
        raise ReadError(str(path), f"line {number}", "is not an object")
    return record


def _decoded(path: Path, number: int, kind: type[Kind], record: dict[str, Json]) -> Kind:
    try:
        return decoded(kind, record)
    except ReadError as error:
        raise ReadError(str(path), f"line {number}", error.reason) from error
