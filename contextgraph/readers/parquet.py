"""Rows of a parquet file, a few at a time."""

from collections.abc import Iterator
from typing import IO, Any

from contextgraph.errors import MissingExtraError, ReadError
from contextgraph.readers.streams import OnBytes

_MAGIC = b"PAR1"
_BATCH = 16


def is_parquet(head: bytes) -> bool:
    """Whether a file that starts with *head* is in parquet format."""
    return head.startswith(_MAGIC)


def parquet_rows(
    name: str, file: IO[bytes], on_bytes: OnBytes
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of *file*, which can seek, with their number from 1.

    Raises ReadError after the rows that could be read, MissingExtraError without pyarrow.
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
        for batch in opened.iter_batches(batch_size=_BATCH):
            for row in batch.to_pylist():
                number += 1
                yield number, row
            on_bytes(size * batch.num_rows // max(1, opened.metadata.num_rows))
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        position = f"record {number + 1}" if number else ""
        reason = f"parquet data is corrupt: {str(error).partition(chr(10))[0]}"
        raise ReadError(name, position, reason) from error
