"""The records of a file, from its bytes: lines of JSONL, one JSON document, rows or sessions.

Bytes are decompressed first; rows are those of parquet, sessions those of a database of SQLite.

A record that is spread over lines, such as the session of an agent, is the list of them.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from itertools import chain, islice
from pathlib import PurePath
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import orjson

from contextgraph.errors import MissingExtraError, ReadError
from contextgraph.model import ARCHIVE_FORMAT
from contextgraph.readers.database import is_database, sessions_in
from contextgraph.readers.format import ForeignError, Place, SkippedError, is_conversation
from contextgraph.readers.formats import format_of, format_of_part
from contextgraph.readers.marked_text import AIDER_START, SPECSTORY_START
from contextgraph.readers.sources import FilePart, Line
from contextgraph.system.intake import MAX_RATIO, OnBytes, loads, opened, pieces, too_large, whole
from contextgraph.text import mask_secrets, regex

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyarrow.parquet import ParquetFile


# Files of about this size or more are read in parts, each of about this size, decompressed.
BLOCK_SIZE = 1 << 20

_TAR_MARK_AT, _TAR_MARK = 257, b"ustar"
# What histories in plain text start with.
_ARCHIVE = f'{{"format":"{ARCHIVE_FORMAT}"'.encode()
_PAGES = (AIDER_START.encode(), SPECSTORY_START.encode())
# Each costs memory or time, even an empty one.
_MAX_LINES = 10_000_000
_JSON_NAMES = frozenset({".json", ".jsonl", ".ndjson", ".traj"})
_JSON_START = regex(rb'\s*(?:\[\s*(?:[\[{\]]|\Z)|\{\s*(?:["}]|\Z))')


class Record(NamedTuple):
    """One parsed value and where it was found."""

    value: Any
    place: Place


class _Parsed(NamedTuple):
    line: Line
    value: Any


def records(
    name: str, file: IO[bytes], on_bytes: OnBytes, max_size: int, group: int | None = None
) -> Iterator[Record | ReadError]:
    """Yield the records of *file* in order, and at its place the error for each that is broken.

    A line, or a few rows, or one session of a database, is held at a time; a file that is one
    JSON document or one session is held whole. What would be more than *max_size* bytes is an
    error, which ends the file. Of a parquet file only one *group* of rows is read, where one is
    given.
    """
    stream = pieces(name, file, on_bytes, max_size)
    try:
        head = next(stream, b"")
        if is_database(head):
            _refuse_unless_plain(name, file, head, stream)
        if is_parquet(head) or is_arrow(head):
            if not file.seekable():
                file = BytesIO(whole(name, chain([head], stream), max_size))
            if is_parquet(head):
                rows = parquet_rows(name, file, on_bytes, max_size, group)
            else:
                rows = arrow_rows(name, file, on_bytes, max_size)
            for number, row in rows:
                yield Record(row, Place(name, number, "record"))
        elif (parsed := _not_in_lines(name, head, stream, max_size)) is not None:
            yield from parsed
        else:
            yield from _text_records(name, chain([head], stream), max_size)
    except ReadError as error:
        yield error


def _refuse_unless_plain(name: str, file: IO[bytes], head: bytes, stream: Iterator[bytes]) -> None:
    """Raise ReadError for a database that was sent or is compressed: SQLite opens files by name.

    An archive is read to its end first: where it ends early or is corrupt, the error says so.
    """
    if not _is_at(file, name):
        raise ReadError(name, "", "a database can be read from a file only")
    if not file.seekable():
        return
    place = file.tell()
    file.seek(0)
    start = file.read(len(head))
    file.seek(place)
    if not is_database(start):
        for _ in stream:
            pass
        raise ReadError(name, "", "a compressed database: decompress it first")


def _is_at(file: IO[bytes], name: str) -> bool:
    """Return True where *file* is the one on disk at *name*, and not one that was sent."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(name))
    except (OSError, ValueError):
        return False


def parts(name: str, file: IO[bytes], max_size: int) -> Iterator[FilePart | ReadError]:
    """Yield *file* in parts that can be read by themselves, and at the end how it broke.

    Blocks of lines with a record each, or groups of rows; nothing where there is but one, or the
    file is one document, session or database.
    """
    taken: list[int] = []
    stream = pieces(name, file, taken.append, max_size)
    try:
        head = next(stream, b"")
        if is_parquet(head):
            yield from row_groups(file)
        elif is_arrow(head):
            return
        elif _not_in_lines(name, head, stream, max_size) is None:
            yield from _blocks(name, chain([head], stream), taken, max_size)
    except ReadError:
        return  # which reading all of it reports


def _blocks(
    name: str, stream: Iterable[bytes], taken: list[int], max_size: int
) -> Iterator[FilePart | ReadError]:
    """Blocks of lines of about a MiB; nothing where those of the first are no records."""
    broken: list[ReadError] = []
    block, size, is_first = list[Line](), 0, True
    for line in _lines(name, stream, broken, max_size):
        block.append(line)
        size += len(line.text)
        if size < BLOCK_SIZE or len(block) < 2:
            continue
        if is_first and not _are_records(name, block):
            return
        yield FilePart(sum(taken), tuple(block))
        taken.clear()
        block, size, is_first = [], 0, False
    if not is_first:
        if block:
            yield FilePart(sum(taken), tuple(block))
        yield from broken


def _are_records(name: str, lines: Sequence[Line]) -> bool:
    """Return True if each of the first *lines* of a file is a record, and no part of one."""
    values = [_value(line.text) for line in lines]
    return (
        _is_json(name, lines[:2])
        and not _is_document(lines[:2], values[:2])
        and not any(map(_is_part, values))
    )


def records_on_lines(name: str, lines: Iterable[Line]) -> Iterator[Record | ReadError]:
    """Yield the records of a block of *lines* of the file *name*."""
    for line in lines:
        value = _value(line.text)
        if _is_part(value):
            reason = "a session begins inside of a large file of records, which is read in parts"
            yield ReadError(name, f"line {line.number}", reason)
        else:
            yield from _records_on_line(name, line.number, value)


def _not_in_lines(
    name: str, head: bytes, stream: Iterable[bytes], max_size: int
) -> Iterator[Record | ReadError] | None:
    """The records of a database or a history in plain text; None for a file of JSON."""
    if is_database(head):
        sessions = sessions_in(name, max_size)
        return (Record(session, Place(name, number, "session")) for number, session in sessions)
    if head.startswith(_ARCHIVE):
        reason = "an archive that `contextgraph export` wrote: `contextgraph import` reads it"
        return iter([ReadError(name, "", reason)])
    if head[_TAR_MARK_AT:].startswith(_TAR_MARK):
        return iter([ReadError(name, "", "a tar archive: unpack it, and give the folder")])
    if head.lstrip().startswith(_PAGES):
        return _history(name, chain([head], stream), max_size)
    return None


def _history(name: str, stream: Iterable[bytes], max_size: int) -> Iterator[Record | ReadError]:
    text = whole(name, stream, max_size)
    yield Record(text.decode("utf-8", "replace"), Place(name))


def _text_records(
    name: str, stream: Iterable[bytes], max_size: int
) -> Iterator[Record | ReadError]:
    broken: list[ReadError] = []
    lines = _lines(name, stream, broken, max_size)
    for record in _json_records(name, lines, broken, max_size):
        # A stream without any record is not foreign if it is known to be broken.
        if not (broken and isinstance(record, ForeignError)):
            yield record
    yield from broken


def _lines(
    name: str, stream: Iterable[bytes], broken: list[ReadError], max_size: int
) -> Iterator[Line]:
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
    yield from _line(number, b"".join(carry), is_ended=False)


def _line(number: int, text: bytes, *, is_ended: bool = True) -> Iterable[Line]:
    text = text.strip()
    return (Line(number, text, is_ended),) if text else ()


def _json_records(
    name: str, lines: Iterator[Line], broken: Sequence[ReadError], max_size: int
) -> Iterator[Record | ReadError]:
    opening = list(islice(lines, 2))
    values = [_value(line.text) for line in opening]
    if not _is_json(name, opening):
        yield _foreign(name, opening)
    elif _is_cut(name, opening, values):
        yield ForeignError(name, "", "its only line is not complete: an agent may be writing it")
    elif _is_document(opening, values):
        yield from _document(name, chain(opening, lines), broken, max_size)
    elif len(opening) == 1:
        yield from _records_in(name, values[0])
    else:
        later = (_Parsed(line, _value(line.text)) for line in lines)
        yield from _line_records(name, chain(map(_Parsed, opening, values), later), max_size)


def _is_cut(name: str, opening: Sequence[Line], values: Sequence[Any]) -> bool:
    """Return True for a file of lines that has nothing but the beginning of its first one."""
    if len(opening) != 1 or not isinstance(values[0], ValueError) or opening[0].is_ended:
        return False
    line = opening[0].text
    is_cut = line.startswith(b"{") and not line.endswith(b"}")
    return is_cut and PurePath(name).suffix == ".jsonl"


def _is_json(name: str, opening: Sequence[Line]) -> bool:
    is_named_so = not _JSON_NAMES.isdisjoint(PurePath(name).suffixes)
    return bool(opening) and (is_named_so or any(_JSON_START.match(line.text) for line in opening))


def _line_records(
    name: str, lines: Iterator[_Parsed], max_size: int
) -> Iterator[Record | ReadError]:
    """A record for each line, up to the line that is part of a session: it and all that follow."""
    for parsed in lines:
        if _is_part(parsed.value):
            yield from _session(name, chain([parsed], lines), max_size)
        else:
            yield from _records_on_line(name, parsed.line.number, parsed.value)


def _is_part(value: Any) -> bool:
    return bool(value) and isinstance(value, dict) and format_of_part(value) is not None


def _session(name: str, lines: Iterable[_Parsed], max_size: int) -> Iterator[Record | ReadError]:
    numbers, values, size = list[int](), list[Any](), 0
    for line, value in lines:
        size += len(line.text)
        if size > max_size:
            yield too_large(name, f"line {line.number}", max_size)
            return
        if isinstance(value, ValueError) and numbers and _is_fragment(line):
            reason = "the last line is not complete: its agent may be writing it"
            if line.is_ended:
                reason = "a line that was written in part, as where two programs write at once"
            yield SkippedError(name, f"line {line.number}", reason)
        elif isinstance(value, ValueError):
            yield _invalid(name, line.number, value)
        else:
            numbers.append(line.number)
            values.append(value)
    yield Record(values, Place(name, parts=tuple(numbers)))


def _is_fragment(line: Line) -> bool:
    """Return True if the beginning or the end of a line of a session is missing."""
    is_whole = line.text.startswith(b"{") and line.text.endswith(b"}")
    return not line.is_ended or not is_whole


def _foreign(name: str, opening: Sequence[Line]) -> ForeignError:
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
        try:
            text.decode()
        except UnicodeDecodeError as undecodable:
            return undecodable
        return error


def _is_document(opening: Sequence[Line], values: Sequence[Any]) -> bool:
    """Return True if the file is one JSON document over many lines, by its first two lines."""
    first, *others = (line.text for line in opening)
    if not isinstance(values[0], ValueError):
        return False
    if first in (b"{", b"["):  # also where the stream broke off after it
        return True
    return bool(others) and not first.endswith(b"}") and isinstance(values[1], ValueError)


def _document(
    name: str, lines: Iterable[Line], broken: Sequence[ReadError], max_size: int
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
    if isinstance(error, UnicodeDecodeError):
        return ReadError(name, f"line {number}", "not text in UTF-8")
    if isinstance(error, orjson.JSONDecodeError):
        detail = f"{error.msg}, column {error.colno}"
        return ReadError(name, f"line {number}", "invalid json", detail)
    return ReadError(name, f"line {number}", "invalid json", str(error))


def records_of_parts(name: str, files: Sequence[str]) -> Iterator[Record | ReadError]:
    """Yield the one record that is spread over *files* of the folder *name*.

    Of numbered events it is their list, of files of several kinds an object by file name.
    """
    values: dict[str, Any] = {}
    for file in files:
        try:
            with opened(file) as stream:
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


_PARQUET_MAGIC = b"PAR1"
# The beginning of a stream of Arrow, in which `datasets` keeps the rows of a data set.
_ARROW_MAGIC = b"\xff\xff\xff\xff"
_BATCH = 16


def is_parquet(head: bytes) -> bool:
    """Return True if a file that starts with *head* is in parquet format."""
    return head.startswith(_PARQUET_MAGIC)


def parquet_rows(
    name: str, file: IO[bytes], on_bytes: OnBytes, max_size: int, group: int | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of *file*, which can seek, with their number from 1; those of a *group* only.

    Raises ReadError after the rows that could be read, also where one has more than *max_size*
    bytes or a column is packed to nearly nothing; MissingExtraError without pyarrow.
    """
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise MissingExtraError(f"{name}: parquet needs pyarrow", "parquet") from error
    number = 0
    size = file.seek(0, 2)
    file.seek(0)
    try:
        opened = ParquetFile(file)
        most = max(max_size, MAX_RATIO * size)
        for first, batch in _batches(name, opened, max_size, most, group):
            for number, row in enumerate(batch.to_pylist(), first):
                yield number, row
            on_bytes(size * batch.num_rows // max(1, opened.metadata.num_rows))
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        position = f"record {number + 1}" if number else ""
        reason = f"parquet data is corrupt: {str(error).partition(chr(10))[0]}"
        raise ReadError(name, position, reason) from error


def _batches(
    name: str, opened: "ParquetFile", max_size: int, most: int, wanted: int | None
) -> Iterator[tuple[int, "RecordBatch"]]:
    """Batches whose rows have at most *max_size* bytes, up to *most* bytes of all.

    Each with the number of its first row; those of the *wanted* group of rows only.
    """
    number = total = 0
    for group in range(opened.metadata.num_row_groups):
        if wanted not in (None, group):
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
            _check_rows(name, batch, number, max_size)
            yield number + 1, batch
            number += batch.num_rows


def _check_rows(name: str, batch: "RecordBatch", before: int, max_size: int) -> None:
    """Raise ReadError where a row of *batch*, after *before* others, exceeds *max_size* bytes."""
    if batch.nbytes > max_size:
        for row in range(batch.num_rows):
            if batch.slice(row, 1).nbytes > max_size:
                raise too_large(name, f"record {before + row + 1}", max_size)


def _packed(name: str, position: str, kind: str = "parquet") -> ReadError:
    reason = f"{kind} data of more than {MAX_RATIO} times its size; not read further"
    return ReadError(name, position, reason)


def is_arrow(head: bytes) -> bool:
    """Return True if a file that starts with *head* is a stream of Arrow."""
    return head.startswith(_ARROW_MAGIC)


def arrow_rows(
    name: str, file: IO[bytes], on_bytes: OnBytes, max_size: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield rows of *file*, a stream of Arrow, with numbers from 1; raises as `parquet_rows`."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingExtraError(f"{name}: Arrow needs pyarrow", "parquet") from error
    number = total = 0
    size = file.seek(0, 2)
    most = max(max_size, MAX_RATIO * size)
    file.seek(0)
    try:
        for batch in pa.ipc.open_stream(file):
            batch.validate(full=True)  # offsets of a damaged file lead out of its buffers
            total += batch.nbytes
            if total > most:
                raise _packed(name, f"record {number + 1}", "Arrow")
            _check_rows(name, batch, number, max_size)
            for start in range(0, batch.num_rows, _BATCH):
                for row in batch.slice(start, _BATCH).to_pylist():
                    number += 1
                    yield number, row
        on_bytes(size)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        position = f"record {number + 1}" if number else ""
        reason = f"Arrow data is corrupt: {str(error).partition(chr(10))[0]}"
        raise ReadError(name, position, reason) from error


def row_groups(file: IO[bytes]) -> Iterator[FilePart]:
    """Yield the groups of rows of *file*; none if there is one, or it cannot be read."""
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile
    except ImportError:
        return
    try:
        size = file.seek(0, 2)
        groups = ParquetFile(file).metadata.num_row_groups
    except (pa.ArrowException, OSError, ValueError, KeyError):
        return
    if groups > 1:
        for group in range(groups):
            yield FilePart(size * (group + 1) // groups - size * group // groups, group=group)
