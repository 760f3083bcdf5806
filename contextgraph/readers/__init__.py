"""Readers of recorded runs."""

from typing import TYPE_CHECKING

from contextgraph.system.names import attached

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
        is_kept as is_kept,
        own_origins as own_origins,
        read as read,
        read_file as read_file,
        to_trust as to_trust,
        trust_histories as trust_histories,
        trusted_histories as trusted_histories,
    )
    from contextgraph.readers.repository import (
        GitFolder as GitFolder,
        repository_name as repository_name,
    )
    from contextgraph.readers.resume import (
        resume_command as resume_command,
        resumption_of as resumption_of,
    )
    from contextgraph.readers.sources import (
        FILE_WEIGHT as FILE_WEIGHT,
        Watch as Watch,
        is_stream as is_stream,
        size_of as size_of,
    )

# Resolved at first use: a hook that only names a repository must not load all readers.
_HOMES = {
    "Discovered": "contextgraph.readers.reading",
    "FORMATS": "contextgraph.readers.formats",
    "ForeignError": "contextgraph.readers.format",
    "Format": "contextgraph.readers.format",
    "History": "contextgraph.readers.reading",
    "Place": "contextgraph.readers.format",
    "ReadCounts": "contextgraph.readers.reading",
    "ReadFiles": "contextgraph.readers.reading",
    "NotUnderstoodError": "contextgraph.readers.format",
    "SkippedError": "contextgraph.readers.format",
    "Watch": "contextgraph.readers.sources",
    "all_formats": "contextgraph.readers.formats",
    "discover": "contextgraph.readers.reading",
    "from_record": "contextgraph.readers.exchange",
    "is_kept": "contextgraph.readers.reading",
    "is_stream": "contextgraph.readers.sources",
    "own_origins": "contextgraph.readers.reading",
    "to_trust": "contextgraph.readers.reading",
    "trust_histories": "contextgraph.readers.reading",
    "trusted_histories": "contextgraph.readers.reading",
    "read": "contextgraph.readers.reading",
    "read_file": "contextgraph.readers.reading",
    "GitFolder": "contextgraph.readers.repository",
    "repository_name": "contextgraph.readers.repository",
    "resume_command": "contextgraph.readers.resume",
    "resumption_of": "contextgraph.readers.resume",
    "FILE_WEIGHT": "contextgraph.readers.sources",
    "size_of": "contextgraph.readers.sources",
    "to_atif": "contextgraph.readers.exchange",
    "to_record": "contextgraph.readers.exchange",
    "write_jsonl": "contextgraph.readers.exchange",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605  (a list; the linter cannot see it)
if not TYPE_CHECKING:  # a checker would take any name
    __getattr__, __dir__ = attached(__name__, _HOMES)
