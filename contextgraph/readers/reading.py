"""From a path to the runs in it."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import IO, TypeAlias

from contextgraph.errors import ReadError
from contextgraph.model import Outcome, RawTrajectory
from contextgraph.readers.formats import ForeignError, UnknownFormatError, trajectory_in
from contextgraph.readers.outcomes import (
    Outcomes,
    agreed,
    outcomes_by_folder,
    outcomes_of,
)
from contextgraph.readers.place import file_stem
from contextgraph.readers.records import Record, records
from contextgraph.readers.sources import STANDARD_INPUT, Source, StrPath, files_in, sources
from contextgraph.readers.streams import OnBytes

OnError: TypeAlias = Callable[[ReadError], None]


def read(
    path: StrPath,
    *,
    on_error: OnError | None = None,
    on_bytes: OnBytes | None = None,
    outcomes: StrPath | None = None,
) -> Iterator[RawTrajectory]:
    """The runs in *path*: a file, a folder, a glob, or "-" for standard input.

    The format is told by content, never by name: nebius rows, SWE-agent, mini-swe-agent and the
    project's own, as JSON or JSONL (plain, gzip or zstandard) or parquet. Runs are read one at a
    time, in the order of the sorted file names. In a folder or glob, files that claim to be no
    trajectory (no JSON, predictions, evaluation reports) are skipped.

    *on_error* is handed each record that cannot be read, and reading goes on. Without it the
    first is raised where it is met, which ends the iteration. *on_bytes* is told how many more
    bytes were taken from disk, of `size_of` in all. *outcomes* is an SWE-bench report, or a folder
    of them; without it the reports beside a file, or in the folder given, are used. Either sets
    only outcomes on which the log is silent.

    Raises MissingExtraError for parquet without pyarrow, and ReadError for *outcomes* that hold
    none.
    """
    return read_many([path], on_error=on_error, on_bytes=on_bytes, outcomes=outcomes)


def read_many(
    paths: Iterable[StrPath],
    *,
    on_error: OnError | None = None,
    on_bytes: OnBytes | None = None,
    outcomes: StrPath | None = None,
) -> Iterator[RawTrajectory]:
    """The runs in all *paths*, one after the other; as `read` of each."""
    judge = _Judge(None if outcomes is None else _outcomes_at(outcomes))
    count = on_bytes or _ignore
    for path in paths:
        for found in _runs_and_errors(path, judge, count):
            if isinstance(found, RawTrajectory):
                yield found
            elif on_error:
                on_error(found)
            else:
                raise found


def _ignore(_count: int) -> None:
    """Tell nobody."""


def _runs_and_errors(
    path: StrPath, judge: "_Judge", on_bytes: OnBytes
) -> Iterator[RawTrajectory | ReadError]:
    try:
        behind = sources(path)
    except ReadError as error:
        yield error
        return
    for source in behind:
        for found in _in_file(source, on_bytes):
            if isinstance(found, RawTrajectory):
                yield judge.judged(found, source)
            elif source.folder is None or not isinstance(found, ForeignError):
                yield found


def _in_file(source: Source, on_bytes: OnBytes) -> Iterator[RawTrajectory | ReadError]:
    left = source.size

    def count(taken: int) -> None:
        nonlocal left
        taken = min(taken, left)  # a growing file, or one that was read again in part
        left -= taken
        on_bytes(taken)

    with ExitStack() as stack:
        try:
            file = _opened(source, stack)
        except OSError as error:
            yield ReadError(source.name, "", f"cannot be opened: {error.strerror or error}")
            return
        found = (_trajectory(record) for record in records(source.name, file, count))
        yield from _unknown_once(found)
    count(left)


def _opened(source: Source, stack: ExitStack) -> IO[bytes]:
    if source.name == STANDARD_INPUT:
        return sys.stdin.buffer
    return stack.enter_context(open(source.name, "rb"))


def _trajectory(record: Record | ReadError) -> RawTrajectory | ReadError:
    if isinstance(record, ReadError):
        return record
    try:
        return trajectory_in(record.value, record.place)
    except ReadError as error:
        return error


def _unknown_once(
    found: Iterable[RawTrajectory | ReadError],
) -> Iterator[RawTrajectory | ReadError]:
    """*found*, with one error for records of unknown format that follow one another.

    A log of another kind has hundreds of lines, each of which would be reported.
    """
    for is_unknown, group in groupby(found, lambda item: isinstance(item, UnknownFormatError)):
        if not is_unknown:
            yield from group
            continue
        first, *others = (item for item in group if isinstance(item, UnknownFormatError))
        more = f" ({len(others)} more records like it)" if others else ""
        yield UnknownFormatError(first.source, first.position, first.reason + more)


def _outcomes_at(path: StrPath) -> Outcomes:
    """The outcomes in a report, or in all reports in a folder."""
    found = [_outcomes_in_file(source) for source in sources(path)]
    reports = [outcomes for outcomes in found if outcomes is not None]
    if not reports:
        raise ReadError(str(path), "", "holds no evaluation report that tells of outcomes")
    return agreed(reports)


def _outcomes_in_file(source: Source) -> Outcomes | None:
    try:
        return outcomes_of(Path(source.name))
    except OSError as error:
        raise ReadError(source.name, "", f"cannot be read: {error.strerror or error}") from error


class _Judge:
    """Sets outcomes that logs do not tell; looks for reports once per folder, when first needed."""

    def __init__(self, given: Outcomes | None) -> None:
        self._given = given
        self._by_folder: dict[tuple[Path, bool], Mapping[Path, Outcomes]] = {}

    def judged(self, run: RawTrajectory, source: Source) -> RawTrajectory:
        """*run*, with the outcome that a report tells if its log does not."""
        if run.outcome is not Outcome.UNKNOWN:
            return run
        names = (run.instance_id, file_stem(source.name))
        for report in self._reports(source):
            for name in names:
                if name in report:
                    return replace(run, outcome=report[name])
        return run

    def _reports(self, source: Source) -> Iterator[Outcomes]:
        """The reports about a file, nearest folder first."""
        if self._given is not None:
            yield self._given
            return
        if source.name == STANDARD_INPUT:
            return
        by_folder = self._found(source)
        for folder in Path(source.name).parents:
            if folder in by_folder:
                yield by_folder[folder]

    def _found(self, source: Source) -> Mapping[Path, Outcomes]:
        root, deep = source.folder or Path(source.name).parent, source.folder is not None
        if (root, deep) not in self._by_folder:
            files = map(Path, files_in(str(root))) if deep else root.iterdir()
            self._by_folder[root, deep] = outcomes_by_folder(root, files)
        return self._by_folder[root, deep]
