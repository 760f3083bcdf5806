"""The lines of an archive: what each holds, and how they are written and read."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias, TypeVar

import orjson

from contextgraph.archive.codec import decoded, encoded
from contextgraph.errors import ReadError, StoreError
from contextgraph.model import (
    ArchivedRun,
    Exposure,
    Json,
    Methodology,
    ResolvedBy,
    SimilarTo,
    Space,
)
from contextgraph.vectors import Vector

FORMAT = "contextgraph-memory-archive"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Header:
    """The first line: whose memory it was, and how much there was of it when it was begun."""

    format: str
    version: int
    tenant: str
    vectors: bool
    runs: int
    methodologies: int


@dataclass(frozen=True, slots=True)
class SpaceLine:
    """The active space and what is stored with it."""

    space: Space
    model: bytes | None = None


@dataclass(frozen=True, slots=True)
class MethodologyLine:
    """A methodology with the edges to it and, where it is embedded, its vector."""

    methodology: Methodology
    resolved: tuple[ResolvedBy, ...]
    embedded: bool
    vector: Vector | None = None


@dataclass(frozen=True, slots=True)
class SimilarLine:
    """What the fragments of one run are like."""

    similar: tuple[SimilarTo, ...]


@dataclass(frozen=True, slots=True)
class ConsolidatedLine:
    """Nothing in the archive waits to be consolidated."""


@dataclass(frozen=True, slots=True)
class EndLine:
    """The last line: how many came before it, so that a file that was cut off is seen."""

    lines: int


Line: TypeAlias = (
    SpaceLine | ArchivedRun | MethodologyLine | SimilarLine | Exposure | ConsolidatedLine | EndLine
)
Kind = TypeVar("Kind")
_KINDS: dict[str, type[Line]] = {
    "space": SpaceLine,
    "run": ArchivedRun,
    "methodology": MethodologyLine,
    "similar": SimilarLine,
    "exposure": Exposure,
    "consolidated": ConsolidatedLine,
    "end": EndLine,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of *path* when all is written; compressed for ``.zst``."""
    import zstandard

    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            if path.suffix == ".zst":
                with zstandard.ZstdCompressor().stream_writer(file, closefd=False) as packed:
                    yield packed
            else:
                yield file
        part.replace(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


def write_line(file: IO[bytes], value: Header | Line) -> None:
    """Write *value* as one line."""
    record = encoded(value)
    assert isinstance(record, dict)  # all lines are dataclasses
    kind = {} if isinstance(value, Header) else {"kind": _NAMES[type(value)]}
    try:
        file.write(orjson.dumps({**kind, **record}) + b"\n")
    except orjson.JSONEncodeError as error:
        raise StoreError(f"a text cannot be exported: {error}") from error


def read_header(path: Path) -> Header:
    """The first line of *path*; raises `ReadError` for what is no archive, or a later one's."""
    with _opened(path) as file:
        first = file.readline()
        record = _parsed(path, 1, first)
        if record.get("format") != FORMAT:
            raise ReadError(str(path), "line 1", f"is not the first line of a {FORMAT}")
        if record.get("version") != VERSION:
            raise ReadError(
                str(path),
                "line 1",
                f"is of version {record.get('version')}, this version knows {VERSION}; "
                "upgrade contextgraph-memory",
            )
        return _decoded(path, 1, Header, record)


def read_lines(path: Path, advance: Callable[[int], None]) -> Iterator[Line]:
    """All lines after the first, the last one excepted; *advance* is told of their bytes.

    Raises `ReadError` with the line that is damaged, or where the file was cut off.
    """
    number, ended = 1, False
    with _opened(path) as file:
        file.readline()
        for number, text in enumerate(file, start=2):
            advance(len(text))
            record = _parsed(path, number, text)
            kind = _KINDS.get(str(record.pop("kind", "")))
            if kind is None or ended:
                raise ReadError(str(path), f"line {number}", "is of no kind that is known here")
            line = _decoded(path, number, kind, record)
            if not isinstance(line, EndLine):
                yield line
            elif line.lines != number - 1:
                lost = f"{number - 1} lines came before the last one, not {line.lines}"
                raise ReadError(str(path), f"line {number}", lost)
            else:
                ended = True
    if not ended:
        raise ReadError(str(path), f"line {number}", "is the last one: the file was cut off")


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    import io

    import zstandard

    try:
        with path.open("rb") as file:
            if path.suffix == ".zst":
                reader = zstandard.ZstdDecompressor().stream_reader(file, closefd=False)
                with io.BufferedReader(reader, 1 << 20) as plain:
                    yield plain
            else:
                yield file
    except OSError as error:
        raise ReadError(str(path), "", f"cannot be read: {error.strerror or error}") from error
    except zstandard.ZstdError as error:
        raise ReadError(str(path), "", f"is damaged: {error}") from error


def _parsed(path: Path, number: int, text: bytes) -> dict[str, Json]:
    try:
        record = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ReadError(str(path), f"line {number}", f"is no JSON: {error}") from error
    if not isinstance(record, dict):
        raise ReadError(str(path), f"line {number}", "is no object")
    return record


def _decoded(path: Path, number: int, kind: type[Kind], record: dict[str, Json]) -> Kind:
    try:
        line: Kind = decoded(kind, record)
    except ReadError as error:
        raise ReadError(str(path), f"line {number}", error.reason) from error
    return line
