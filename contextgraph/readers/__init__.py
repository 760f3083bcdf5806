"""Reading recorded runs, whatever agent wrote them."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextgraph.readers.atif import to_atif as to_atif
    from contextgraph.readers.discovery import History as History, discover as discover
    from contextgraph.readers.format import Format as Format
    from contextgraph.readers.formats import FORMATS as FORMATS, all_formats as all_formats
    from contextgraph.readers.own import (
        from_record as from_record,
        to_record as to_record,
        write_jsonl as write_jsonl,
    )
    from contextgraph.readers.place import (
        ForeignError as ForeignError,
        Place as Place,
        SkippedError as SkippedError,
    )
    from contextgraph.readers.reading import (
        ReadCounts as ReadCounts,
        read as read,
        read_file as read_file,
        read_many as read_many,
    )
    from contextgraph.readers.repository import repository_name as repository_name
    from contextgraph.readers.sources import is_stream as is_stream, size_of as size_of
    from contextgraph.readers.watch import Watch as Watch

# Resolved at first use: a hook that only names a repository must not load all readers.
_MODULES = {
    "FORMATS": "formats",
    "ForeignError": "place",
    "Format": "format",
    "History": "discovery",
    "Place": "place",
    "ReadCounts": "reading",
    "SkippedError": "place",
    "Watch": "watch",
    "all_formats": "formats",
    "discover": "discovery",
    "from_record": "own",
    "is_stream": "sources",
    "read": "reading",
    "read_file": "reading",
    "read_many": "reading",
    "repository_name": "repository",
    "size_of": "sources",
    "to_atif": "atif",
    "to_record": "own",
    "write_jsonl": "own",
}

__all__ = sorted(_MODULES)  # noqa: PLE0605  (a list; the linter cannot see it)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'contextgraph.readers' has no attribute {name!r}")
    return getattr(import_module(f"contextgraph.readers.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
