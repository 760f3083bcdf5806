"""The records of a file: lines of JSONL, one JSON document, or rows of parquet."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import IO, Any, NamedTuple

import orjson

from contextgraph.errors import ReadError
from contextgraph.readers.fields import is_conversation
from contextgraph.readers.formats import FORMATS, ForeignError, format_of
from contextgraph.readers.json_text import loads
from contextgraph.readers.parquet import is_parquet, parquet_rows
from contextgraph.readers.place import Place
from contextgraph.readers.streams import OnBytes, pieces

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

    A line, or a few rows, is held at a time; a file that is one JSON document is held whole.
    """
    stream = pieces(name, file, on_bytes)
    try:
        head = next(stream, b"")
        if is_parquet(head):
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
        later = ((line, _value(line.text)) for line in lines)
        for line, value in chain(zip(opening, values, strict=True), later):
            yield from _records_on_line(name, line.number, value)


def _foreign(name: str, opening: Sequence[_Line]) -> ForeignError:
    if not opening:
        return ForeignError(name, "", "is empty")
    reason = f"neither json nor parquet: starts with {opening[0].text[:32]!r}"
    return ForeignError(name, "", f"{reason}; known formats: {', '.join(FORMATS)}")


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
            return  # no JSON because the stream broke off, which is told of it
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
    elif isinstance(value, list) and not is_conversation(value):
        for number, item in enumerate(value, 1):
            yield Record(item, Place(name, number, "record"))
    else:
        yield Record(value, Place(name))


def _records_on_line(name: str, number: int, value: Any) -> Iterator[Record | ReadError]:
    if isinstance(value, ValueError):
        yield _invalid(name, number, value)
    elif isinstance(value, list) and not is_conversation(value):
        yield from (Record(item, Place(name, number)) for item in value)
    else:
        yield Record(value, Place(name, number))


def _invalid(name: str, number: int, error: ValueError) -> ReadError:
    if isinstance(error, orjson.JSONDecodeError):
        return ReadError(name, f"line {number}", f"invalid json: {error.msg}, column {error.colno}")
    return ReadError(name, f"line {number}", f"invalid json: {error}")
