"""Readers of recorded runs."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextgraph.readers.exchange import (
        from_record as from_record,
        to_atif as to_atif,
        to_record as to_record,
        write_jsonl as write_jsonl,
    )
    from contextgraph.readers.format import (
        ForeignError as ForeignError,
        Format as Format,
        NotUnderstoodError as NotUnderstoodError,
        Place as Place,
        SkippedError as SkippedError,
    )
    from contextgraph.readers.formats import FORMATS as FORMATS, all_formats as all_formats
    from contextgraph.readers.reading import (
        Discovered as Discovered,
        History as History,
        ReadCounts as ReadCounts,
        ReadFiles as ReadFiles,
        discover as discover,
        read as read,
        read_file as read_file,
    )
    from contextgraph.readers.repository import repository_name as repository_name
    from contextgraph.readers.sources import (
        Watch as Watch,
        is_stream as is_stream,
        size_of as size_of,
    )

# Resolved at first use: a hook that only names a repository must not load all readers.
_MODULES = {
    "Discovered": "reading",
    "FORMATS": "formats",
    "ForeignError": "format",
    "Format": "format",
    "History": "reading",
    "Place": "format",
    "ReadCounts": "reading",
    "ReadFiles": "reading",
    "NotUnderstoodError": "format",
    "SkippedError": "format",
    "Watch": "sources",
    "all_formats": "formats",
    "discover": "reading",
    "from_record": "exchange",
    "is_stream": "sources",
    "read": "reading",
    "read_file": "reading",
    "repository_name": "repository",
    "size_of": "sources",
    "to_atif": "exchange",
    "to_record": "exchange",
    "write_jsonl": "exchange",
}

__all__ = sorted(_MODULES)  # noqa: PLE0605  (a list; the linter cannot see it)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'contextgraph.readers' has no attribute {name!r}")
    module = f"contextgraph.readers.{_MODULES[name]}"
    __import__(module)  # to load `importlib` takes longer than most modules
    return getattr(sys.modules[module], name)


def __dir__() -> list[str]:
    return __all__
