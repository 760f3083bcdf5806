"""The records of a file: lines of JSONL, one JSON document, or rows of parquet.

A record that is spread over lines, such as the session of an agent, is the list of them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from itertools import chain, islice
from pathlib import PurePath
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import orjson

from contextgraph.errors import MissingExtraError, ReadError
from contextgraph.readers.databases import is_database, sessions_in
from contextgraph.readers.fields import is_conversation, loads
from contextgraph.readers.format import ForeignError, Place
from contextgraph.readers.formats import format_of, format_of_part
from contextgraph.readers.marked_text import AIDER_START
from contextgraph.readers.sources import Section
from contextgraph.readers.streams import MAX_RATIO, OnBytes, pieces, too_large, whole
from contextgraph.text import mask_secrets

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyarrow.parquet import ParquetFile

_MAGIC = b"PAR1"
_BATCH = 16

_TAR_MARK_AT, _TAR_MARK = 257, b"ustar"
_BOM = b"\xef\xbb\xbf"
# Each costs memory or time, even an empty one.
_MAX_LINES = 10_000_000
_JSON_NAMES = frozenset({".json", ".jsonl", ".ndjson", ".traj"})
_JSON_START = re.compile(rb'\s*(?:\[\s*(?:[\[{\]]|\Z)|\{\s*(?:["}]|\Z))')


def is_parquet(head: bytes) -> bool:
    """Whether a file that starts with *head* is in parquet format."""
    return head.startswith(_MAGIC)


def parquet_rows(
    name: str, file: IO[bytes], on_bytes: OnBytes, max_size: int, section: Section | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of *file*, which can seek, with their number from 1; those of a *section* only.

    Raises ReadError after the rows that could be read, also where one has more than *max_size*
    bytes or a column is packed to nearly nothing; MissingExtraError without pyarrow.
    """
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        install = 'pip install "contextgraph-memory[parquet]"'
        raise MissingExtraError(f"{name}: parquet needs pyarrow: {install}") from error
    number = 0
    size = file.seek(0, 2)
    file.seek(0)
    try:
        opened = ParquetFile(file)
        most = max(max_size, MAX_RATIO * size)
        for first, batch in _batches(name, opened, max_size, most, section):
            for number, row in enumerate(batch.to_pylist(), first):
                yield number, row
            on_bytes(size * batch.num_rows // max(1, opened.metadata.num_rows))
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        position = f"record {number + 1}" if number else ""
        reason = f"parquet data is corrupt: {str(error).partition(chr(10))[0]}"
        raise ReadError(name, position, reason) from error


def _batches(
    name: str, opened: "ParquetFile", max_size: int, most: int, section: Section | None
) -> Iterator[tuple[int, "RecordBatch"]]:
    """Batches whose rows have at most *max_size* bytes, up to *most* bytes of all.

    Each with the number of its first row. A *section* has whole groups of rows.
    """
    number = total = 0
    groups = opened.metadata.num_row_groups
    for group in range(groups):
        if section and section.at(group, groups) != section.number:
            number += opened.metadata.row_group(group).num_rows
            continue
        # Not the sizes of its columns: pyarrow ends the process where their metadata is damaged.
        unpacked = opened.metadata.row_group(group).total_byte_size
        if unpacked > most:
            raise _packed(name, f"row group {group + 1}")
        # A value that is stored once may stand in each row: as many as could be held.
        size = max(1, min(_BATCH, max_size // max(1, unpacked)))
        for batch in opened.iter_batches(batch_size=size, row_groups=[group]):
            total += batch.nbytes
            if total > most:
                raise _packed(name, f"record {number + 1}")
            if batch.nbytes > max_size:
                for row in range(batch.num_rows):
                    if batch.slice(row, 1).nbytes > max_size:
                        raise too_large(name, f"record {number + row + 1}", max_size)
            yield number + 1, batch
            number += batch.num_rows


def _packed(name: str, position: str) -> ReadError:
    reason = f"parquet data of more than {MAX_RATIO} times its size; not read further"
    return ReadError(name, position, reason)


class Record(NamedTuple):
    """One parsed value and where it was found."""

    value: Any
    place: Place


class _Line(NamedTuple):
    number: int
    text: bytes


class _Parsed(NamedTuple):
    line: _Line
    value: Any


def records(
    name: str, file: IO[bytes], on_bytes: OnBytes, max_size: int, section: Section | None = None
) -> Iterator[Record | ReadError]:
    """The records of *file* in order, and at its place the error for each that is broken.

    Of a *section* those that end in it; a file that is one record is all in the first section.

    A line, or a few rows, or one session of a database, is held at a time; a file that is one
    JSON document or one session is held whole. What would be more than *max_size* bytes is an
    error, which ends the file.
    """
    window = _Window(section, on_bytes)
    stream = pieces(name, file, window.take, max_size)
    try:
        head = next(stream, b"")
        if is_parquet(head):
            if not file.seekable():
                file = BytesIO(whole(name, chain([head], stream), max_size))
            for number, row in parquet_rows(name, file, on_bytes, max_size, section):
                yield Record(row, Place(name, number, "record"))
        elif (found := _not_in_lines(name, head, stream, max_size)) is None:
            yield from _text_records(name, chain([head], stream), max_size, window)
        elif window.is_first:
            yield from found
    except ReadError as error:
        yield error


def _not_in_lines(
    name: str, head: bytes, stream: Iterable[bytes], max_size: int
) -> Iterator[Record | ReadError] | None:
    """The records of a database or a history in plain text; None for a file of JSON."""
    if is_database(head):
        sessions = sessions_in(name, max_size)
        return (Record(found, Place(name, number, "session")) for number, found in sessions)
    if head[_TAR_MARK_AT:].startswith(_TAR_MARK):
        return iter([ReadError(name, "", "a tar archive: unpack it, and give the folder")])
    if head.lstrip().startswith(AIDER_START.encode()):
        return _history(name, chain([head], stream), max_size)
    return None


def _history(name: str, stream: Iterable[bytes], max_size: int) -> Iterator[Record | ReadError]:
    text = whole(name, stream, max_size)
    yield Record(text.decode("utf-8", "replace"), Place(name))


class _Window:
    """Where the reading of a file is, beside the *section* of it that is wanted."""

    def __init__(self, section: Section | None, on_bytes: OnBytes) -> None:
        self.section = section
        self._on_bytes = on_bytes
        self._taken = 0

    def take(self, count: int) -> None:
        """Count bytes taken from the file."""
        self._taken += count
        self._on_bytes(count)

    @property
    def is_first(self) -> bool:
        """Whether the section begins with the file."""
        return self.section is None or self.section.number == 0

    @property
    def distance(self) -> int:
        """How many sections it is to the wanted one: 0 inside, less than 0 behind it."""
        if self.section is None:
            return 0
        return self.section.number - self.section.at(self._taken - 1, self.section.size)


def _text_records(
    name: str, stream: Iterable[bytes], max_size: int, window: _Window
) -> Iterator[Record | ReadError]:
    broken: list[ReadError] = []
    lines = _lines(name, stream, broken, max_size)
    for found in _json_records(name, lines, broken, max_size, window):
        # A stream without any record is not foreign if it is known to be broken.
        if not (broken and isinstance(found, ForeignError)):
            yield found
    if window.distance == 0:
        yield from broken


def _lines(
    name: str, stream: Iterable[bytes], broken: list[ReadError], max_size: int
) -> Iterator[_Line]:
    """The lines that are not blank, with their number from 1; how *stream* broke, to *broken*."""
    number, carry, size = 1, list[bytes](), 0
    try:
        for piece in stream:
            *ended, rest = piece.split(b"\n")
            for line in ended:
                yield from _line(number, b"".join([*carry, line]) if carry else line)
                number, carry, size = number + 1, [], 0
            carry.append(rest)
            size += len(rest)
            if size > max_size:
                raise too_large(name, f"line {number}", max_size)
            if number > _MAX_LINES:
                raise ReadError(name, "", f"more than {_MAX_LINES:,} lines; the rest is not read")
    except ReadError as error:
        broken.append(error)
        if size > max_size or isinstance(_value(b"".join(carry)), ValueError):
            return  # the line in which the stream broke off
    yield from _line(number, b"".join(carry))


def _line(number: int, text: bytes) -> Iterable[_Line]:
    text = (text.removeprefix(_BOM) if number == 1 else text).strip()
    return (_Line(number, text),) if text else ()


def _json_records(
    name: str, lines: Iterator[_Line], broken: Sequence[ReadError], max_size: int, window: _Window
) -> Iterator[Record | ReadError]:
    opening = list(islice(lines, 2))
    values = [_value(line.text) for line in opening]
    is_json = bool(opening) and (_is_named_json(name) or any(map(_starts_json, opening)))
    is_document = is_json and _is_document(opening, values)
    if is_json and len(opening) > 1 and not is_document:
        first = map(_Parsed, opening, values)
        yield from _line_records(name, first, lines, max_size, window)
    elif not window.is_first:
        return
    elif not is_json:
        yield _foreign(name, opening)
    elif is_document:
        yield from _document(name, chain(opening, lines), broken, max_size)
    else:
        yield from _records_in(name, values[0])


def _is_named_json(name: str) -> bool:
    return not _JSON_NAMES.isdisjoint(PurePath(name).suffixes)


def _starts_json(line: _Line) -> bool:
    return _JSON_START.match(line.text) is not None


def _line_records(
    name: str,
    opening: Iterator[_Parsed],
    lines: Iterator[_Line],
    max_size: int,
    window: _Window,
) -> Iterator[Record | ReadError]:
    """A record for each line, up to the line that is part of a session: it and all that follow.

    The *opening* was parsed already; of the other *lines* those in the window are.
    """
    later = (_Parsed(line, _value(line.text)) for line in lines)
    for parsed in opening:
        if _is_part(parsed.value):
            if window.is_first:
                yield from _session(name, chain([parsed], opening, later), max_size)
            return
        if window.is_first:
            yield from _records_on_line(name, parsed.line.number, parsed.value)
    for parsed in _inside(lines, window) if window.section else later:
        if not _is_part(parsed.value):
            yield from _records_on_line(name, parsed.line.number, parsed.value)
        elif window.section:
            reason = "a session begins inside of the file, which is read in sections"
            yield ReadError(name, f"line {parsed.line.number}", reason)
            return
        else:
            yield from _session(name, chain([parsed], later), max_size)


def _inside(lines: Iterator[_Line], window: _Window) -> Iterator[_Parsed]:
    for line in lines:
        if window.distance < 0:
            return
        if window.distance == 0:
            yield _Parsed(line, _value(line.text))


def _is_part(value: Any) -> bool:
    return bool(value) and isinstance(value, dict) and format_of_part(value) is not None


def _session(name: str, lines: Iterable[_Parsed], max_size: int) -> Iterator[Record | ReadError]:
    numbers, values, size = list[int](), list[Any](), 0
    for line, value in lines:
        size += len(line.text)
        if size > max_size:
            yield too_large(name, f"line {line.number}", max_size)
            return
        if isinstance(value, ValueError):
            yield _invalid(name, line.number, value)
        else:
            numbers.append(line.number)
            values.append(value)
    yield Record(values, Place(name, parts=tuple(numbers)))


def _foreign(name: str, opening: Sequence[_Line]) -> ForeignError:
    if not opening:
        return ForeignError(name, "", "is empty")
    # Masked before it is cut: half a secret is not recognised.
    start = mask_secrets(opening[0].text[:1024].decode("utf-8", "replace"))[:32]
    return ForeignError(name, "", f"neither json nor parquet: starts with {start!r}")


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
    name: str, lines: Iterable[_Line], broken: Sequence[ReadError], max_size: int
) -> Iterator[Record | ReadError]:
    text, at = bytearray(), 1
    for line in lines:
        text += b"\n" * (line.number - at) + line.text  # each line at its number
        at = line.number
        if len(text) > max_size:
            yield too_large(name, f"line {at}", max_size)
            return
    value = _value(bytes(text))
    if isinstance(value, ValueError):
        yield from _whole_lines(name, text)
        if broken:
            return  # no JSON because the stream broke off, which is reported
    yield from _records_in(name, value)


def _whole_lines(name: str, text: bytearray) -> Iterator[Record]:
    """The runs that a broken document has on lines of their own."""
    for number, line in enumerate(BytesIO(text), 1):
        value = _value(line.rstrip(b"\n,"))
        if isinstance(value, dict) and format_of(value):
            yield Record(value, Place(name, number))


def _records_in(name: str, value: Any) -> Iterator[Record | ReadError]:
    """The record or records of a file that is one JSON value."""
    if isinstance(value, ValueError):
        yield _invalid(name, getattr(value, "lineno", 1), value)
    elif value and isinstance(value, list) and not (is_conversation(value) or format_of(value)):
        for number, item in enumerate(value, 1):
            yield Record(item, Place(name, number, "record"))
    elif isinstance(value, dict) and not format_of(value) and format_of_part(value):
        yield Record([value], Place(name))
    else:
        yield Record(value, Place(name))


def _records_on_line(name: str, number: int, value: Any) -> Iterator[Record | ReadError]:
    if isinstance(value, ValueError):
        yield _invalid(name, number, value)
    elif value and isinstance(value, list) and not (is_conversation(value) or format_of(value)):
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
