"""The records of a file: lines of JSONL, one JSON document, or rows of parquet.

A record that is spread over lines, such as the session of an agent, is the list of them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import PurePath
from typing import IO, Any, NamedTuple

import orjson

from contextgraph.errors import ReadError
from contextgraph.readers.databases import is_database, sessions_in
from contextgraph.readers.fields import is_conversation
from contextgraph.readers.formats import format_of, format_of_part
from contextgraph.readers.json_text import loads
from contextgraph.readers.marked_text import AIDER_START
from contextgraph.readers.parquet import is_parquet, parquet_rows
from contextgraph.readers.place import ForeignError, Place
from contextgraph.readers.streams import OnBytes, pieces

_TAR_MARK_AT, _TAR_MARK = 257, b"ustar"
_BOM = b"\xef\xbb\xbf"
_JSON_START = re.compile(rb'\s*(?:\[\s*(?:[\[{\]]|\Z)|\{\s*(?:["}]|\Z))')


class Record(NamedTuple):
    """One parsed value and where it was found."""

    value: Any
    place: Place


class _Line(NamedTuple):
    number: int
    text: bytes


def records(name: str, file: IO[bytes], on_bytes: OnBytes) -> Iterator[Record | ReadError]:
    """The records of *file* in order, and at its place the error for each that is broken.

    A line, or a few rows, or one session of a database, is held at a time; a file that is one
    JSON document or one session is held whole.
    """
    stream = pieces(name, file, on_bytes)
    try:
        head = next(stream, b"")
        if is_database(head):
            for number, session in sessions_in(name):
                yield Record(session, Place(name, number, "session"))
        elif head[_TAR_MARK_AT:].startswith(_TAR_MARK):
            yield ReadError(name, "", "a tar archive: unpack it, and give the folder")
        elif head.lstrip().startswith(AIDER_START.encode()):
            text = b"".join(chain([head], stream)).decode("utf-8", "replace")
            yield Record(text, Place(name))
        elif is_parquet(head):
            for number, row in parquet_rows(name, file, head, stream, on_bytes):
                yield Record(row, Place(name, number, "record"))
        else:
            yield from _text_records(name, chain([head], stream))
    except ReadError as error:
        yield error


def _text_records(name: str, stream: Iterable[bytes]) -> Iterator[Record | ReadError]:
    broken: list[ReadError] = []
    for found in _json_records(name, _lines(stream, broken), broken):
        # A stream without any record is not foreign if it is known to be broken.
        if not (broken and isinstance(found, ForeignError)):
            yield found
    yield from broken


def _lines(stream: Iterable[bytes], broken: list[ReadError]) -> Iterator[_Line]:
    """The lines that are not blank, with their number from 1; how *stream* broke, to *broken*."""
    number, carry = 1, list[bytes]()
    try:
        for piece in stream:
            first, *others = piece.split(b"\n")
            carry.append(first)
            for line in others:
                yield from _line(number, b"".join(carry))
                number, carry = number + 1, [line]
    except ReadError as error:
        broken.append(error)
        if isinstance(_value(b"".join(carry)), ValueError):
            return  # the line in which the stream broke off
    yield from _line(number, b"".join(carry))


def _line(number: int, text: bytes) -> Iterator[_Line]:
    text = (text.removeprefix(_BOM) if number == 1 else text).strip()
    if text:
        yield _Line(number, text)


def _json_records(
    name: str, lines: Iterator[_Line], broken: Sequence[ReadError]
) -> Iterator[Record | ReadError]:
    opening = list(islice(lines, 2))
    if not any(_JSON_START.match(line.text) for line in opening):
        yield _foreign(name, opening)
        return
    values = [_value(line.text) for line in opening]
    if _is_document(opening, values):
        yield from _document(name, [*opening, *lines], broken)
    elif len(opening) == 1:
        yield from _records_in(name, values[0])
    else:
        later = ((line.number, _value(line.text)) for line in lines)
        first = zip((line.number for line in opening), values, strict=True)
        yield from _line_records(name, chain(first, later))


def _line_records(name: str, lines: Iterator[tuple[int, Any]]) -> Iterator[Record | ReadError]:
    """A record for each line, up to the line that is part of a session: it and all that follow."""
    for number, value in lines:
        if _is_part(value):
            yield from _session(name, chain([(number, value)], lines))
        else:
            yield from _records_on_line(name, number, value)


def _is_part(value: Any) -> bool:
    return isinstance(value, dict) and format_of_part(value) is not None


def _session(name: str, lines: Iterator[tuple[int, Any]]) -> Iterator[Record | ReadError]:
    numbers, values = list[int](), list[Any]()
    for number, value in lines:
        if isinstance(value, ValueError):
            yield _invalid(name, number, value)
        else:
            numbers.append(number)
            values.append(value)
    yield Record(values, Place(name, parts=tuple(numbers)))


def _foreign(name: str, opening: Sequence[_Line]) -> ForeignError:
    if not opening:
        return ForeignError(name, "", "is empty")
    return ForeignError(name, "", f"neither json nor parquet: starts with {opening[0].text[:32]!r}")


def _value(text: bytes) -> Any:
    """The value of a JSON *text*, or the ValueError that says why it has none."""
    try:
        return loads(text)
    except ValueError as error:
        return error


def _is_document(opening: Sequence[_Line], values: Sequence[Any]) -> bool:
    """Whether the file is one JSON document over many lines, by its first two lines."""
    first, *others = (line.text for line in opening)
    if not isinstance(values[0], ValueError):
        return False
    if first in (b"{", b"["):  # also where the stream broke off after it
        return True
    return bool(others) and not first.endswith(b"}") and isinstance(values[1], ValueError)


def _document(
    name: str, lines: Sequence[_Line], broken: Sequence[ReadError]
) -> Iterator[Record | ReadError]:
    value = _value(_joined(lines))
    if isinstance(value, ValueError):
        yield from _whole_lines(name, lines)
        if broken:
            return  # no JSON because the stream broke off, which is reported
    yield from _records_in(name, value)


def _joined(lines: Sequence[_Line]) -> bytes:
    """The text of the document, each line at its number."""
    text, at = list[bytes](), 1
    for line in lines:
        text.append(b"\n" * (line.number - at) + line.text)
        at = line.number
    return b"".join(text)


def _whole_lines(name: str, lines: Sequence[_Line]) -> Iterator[Record]:
    """The runs that a broken document has on lines of their own."""
    for line in lines:
        value = _value(line.text.rstrip(b","))
        if isinstance(value, dict) and format_of(value):
            yield Record(value, Place(name, line.number))


def _records_in(name: str, value: Any) -> Iterator[Record | ReadError]:
    """The record or records of a file that is one JSON value."""
    if isinstance(value, ValueError):
        yield _invalid(name, getattr(value, "lineno", 1), value)
    elif value == []:
        yield ForeignError(name, "", "an empty list")
    elif isinstance(value, list) and not (is_conversation(value) or format_of(value)):
        for number, item in enumerate(value, 1):
            yield Record(item, Place(name, number, "record"))
    elif isinstance(value, dict) and not format_of(value) and format_of_part(value):
        yield Record([value], Place(name))
    else:
        yield Record(value, Place(name))


def _records_on_line(name: str, number: int, value: Any) -> Iterator[Record | ReadError]:
    if isinstance(value, ValueError):
        yield _invalid(name, number, value)
    elif value == []:
        yield ForeignError(name, f"line {number}", "an empty list")
    elif isinstance(value, list) and not (is_conversation(value) or format_of(value)):
        yield from (Record(item, Place(name, number)) for item in value)
    else:
        yield Record(value, Place(name, number))


def _invalid(name: str, number: int, error: ValueError) -> ReadError:
    if isinstance(error, orjson.JSONDecodeError):
        return ReadError(name, f"line {number}", f"invalid json: {error.msg}, column {error.colno}")
    return ReadError(name, f"line {number}", f"invalid json: {error}")


def records_of_parts(name: str, files: Sequence[str]) -> Iterator[Record | ReadError]:
    """The one record that is spread over *files* of the folder *name*.

    Of numbered events it is their list, of files of several kinds an object by file name.
    """
    values: dict[str, Any] = {}
    for file in files:
        try:
            with open(file, "rb") as stream:
                content = stream.read()
        except OSError as error:
            yield ReadError(file, "", f"cannot be opened: {error.strerror or error}")
            continue
        is_json = file.endswith(".json")
        value = _value(content) if is_json else content.decode("utf-8", "replace")
        if isinstance(value, ValueError):
            yield _invalid(file, 1, value)
        else:
            values[PurePath(file).name] = value
    is_log = all(isinstance(v, dict) and format_of_part(v) for v in list(values.values())[:3])
    parts = tuple(values)
    yield Record(list(values.values()) if is_log else values, Place(name, parts=parts))
