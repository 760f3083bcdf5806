"""Rows of a parquet file, a few at a time."""

from collections.abc import Iterator
from io import BytesIO
from typing import IO, Any

from contextgraph.errors import MissingExtraError, ReadError
from contextgraph.readers.streams import OnBytes

_MAGIC = b"PAR1"
_BATCH = 16


def is_parquet(head: bytes) -> bool:
    """Whether a file that starts with *head* is in parquet format."""
    return head.startswith(_MAGIC)


def parquet_rows(
    name: str, file: IO[bytes], head: bytes, stream: Iterator[bytes], on_bytes: OnBytes
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows with their number from 1.

    *head* and the rest in *stream* are used where *file*, such as standard input, cannot go back
    to its start: parquet has its index at the end. Raises ReadError after the rows that could be
    read, MissingExtraError without pyarrow.
    """
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        install = 'pip install "contextgraph-memory[parquet]"'
        raise MissingExtraError(f"{name}: parquet needs pyarrow: {install}") from error
    number = 0
    whole = file if file.seekable() else BytesIO(head + b"".join(stream))
    size = whole.seek(0, 2)
    whole.seek(0)
    try:
        opened = ParquetFile(whole)
        for batch in opened.iter_batches(batch_size=_BATCH):
            for row in batch.to_pylist():
                number += 1
                yield number, row
            if whole is file:
                on_bytes(size * batch.num_rows // max(1, opened.metadata.num_rows))
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        position = f"record {number + 1}" if number else ""
        reason = f"parquet data is corrupt: {str(error).partition(chr(10))[0]}"
        raise ReadError(name, position, reason) from error
