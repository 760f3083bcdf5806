"""The rows of a parquet file, within bounds of memory."""

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from contextgraph.errors import MissingExtraError, ReadError
from contextgraph.readers.sources import Part
from contextgraph.readers.streams import (
    MAX_RATIO,
    OnBytes,
    too_large,
)

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyarrow.parquet import ParquetFile

_MAGIC = b"PAR1"
_BATCH = 16


def is_parquet(head: bytes) -> bool:
    """Whether a file that starts with *head* is in parquet format."""
    return head.startswith(_MAGIC)


def parquet_rows(
    name: str, file: IO[bytes], on_bytes: OnBytes, max_size: int, group: int | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of *file*, which can seek, with their number from 1; those of a *group* only.

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
            if batch.nbytes > max_size:
                for row in range(batch.num_rows):
                    if batch.slice(row, 1).nbytes > max_size:
                        raise too_large(name, f"record {number + row + 1}", max_size)
            yield number + 1, batch
            number += batch.num_rows


def _packed(name: str, position: str) -> ReadError:
    reason = f"parquet data of more than {MAX_RATIO} times its size; not read further"
    return ReadError(name, position, reason)


def row_groups(file: IO[bytes]) -> Iterator[Part]:
    """The groups of rows of *file*; nothing where there is but one, or reading it would fail."""
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
            yield Part(size * (group + 1) // groups - size * group // groups, group=group)
