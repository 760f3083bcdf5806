"""Reading recorded runs, whatever agent wrote them."""

from contextgraph.readers.formats import FORMATS
from contextgraph.readers.own import from_record, to_record, write_jsonl
from contextgraph.readers.reading import read, read_many
from contextgraph.readers.sources import is_stream, size_of

__all__ = [
    "FORMATS",
    "from_record",
    "is_stream",
    "read",
    "read_many",
    "size_of",
    "to_record",
    "write_jsonl",
]
