"""From a path to the runs in it."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import IO, TypeAlias

from contextgraph.errors import ReadError
from contextgraph.model import Outcome, RawTrajectory
from contextgraph.readers.chat import is_continued_by
from contextgraph.readers.formats import UnknownFormatError, runs_in
from contextgraph.readers.outcomes import Outcomes, outcomes_by_folder
from contextgraph.readers.place import ForeignError, SkippedError, file_stem
from contextgraph.readers.records import Record, records, records_of_parts
from contextgraph.readers.reports import GivenOutcomes, OnConflict, given_outcomes
from contextgraph.readers.sources import STANDARD_INPUT, Source, StrPath, files_in, sources
from contextgraph.readers.streams import OnBytes

OnError: TypeAlias = Callable[[ReadError], None]
OnSkip: TypeAlias = Callable[[SkippedError], None]


@dataclass(slots=True)
class ReadCounts:
    """How many records were runs, failed, or were skipped: all that were read.

    Its methods are made for `read`: ``read(path, on_error=counts.fail, on_skip=counts.skip)``;
    *runs* is counted by who takes them.
    """

    runs: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def records(self) -> int:
        """The sum."""
        return self.runs + self.failed + self.skipped

    def fail(self, error: ReadError) -> None:
        """Count what cannot be read."""
        self.failed += error.records

    def skip(self, error: SkippedError) -> None:
        """Count what holds nothing to learn."""
        self.skipped += error.records


def read(
    path: StrPath,
    *,
    on_error: OnError | None = None,
    on_skip: OnSkip | None = None,
    on_bytes: OnBytes | None = None,
    outcomes: StrPath | None = None,
    on_conflict: OnConflict | None = None,
) -> Iterator[RawTrajectory]:
    """The runs in *path*: a file, a folder, a glob, or "-" for standard input.

    The format is recognised by content: those of `FORMATS` and of installed packages that add
    some, as JSON or JSONL (plain, gzip or zstandard) or parquet, also in rows of data sets that
    wrap them. Runs are read one at a time, in the order of the sorted file names.

    Each record is a run, fails, or is skipped. *on_error* gets each record that cannot be read,
    with file, position and reason, and reading goes on; without it the first is raised, which ends
    the iteration. *on_skip* gets what was understood and holds nothing to learn: runs in which the
    agent did nothing (without *on_skip*, errors), and in a folder or glob what claims to be no
    trajectory, such as reports (in a file that was named, an error).

    *on_bytes* gets how many more bytes were taken from disk, of `size_of` in all. *outcomes* is a
    file or folder of SWE-bench reports, predictions, logs of the harness or CSV: an outcome in it
    precedes that of the log, and each conflict is passed to *on_conflict*. Without it the reports
    beside a file, or in the folder given, are used where the log is silent.

    Raises MissingExtraError for parquet without pyarrow, and ReadError for *outcomes* that hold
    none.
    """
    return read_many(
        [path],
        on_error=on_error,
        on_skip=on_skip,
        on_bytes=on_bytes,
        outcomes=outcomes,
        on_conflict=on_conflict,
    )


def read_many(
    paths: Iterable[StrPath],
    *,
    on_error: OnError | None = None,
    on_skip: OnSkip | None = None,
    on_bytes: OnBytes | None = None,
    outcomes: StrPath | None = None,
    on_conflict: OnConflict | None = None,
) -> Iterator[RawTrajectory]:
    """The runs in all *paths*, one after the other; as `read` of each."""
    given = None if outcomes is None else given_outcomes(outcomes)
    judge = _Judge(given, on_conflict or _ignore)
    count = on_bytes or _ignore
    for path in paths:
        for source, found in _found_in(path, count):
            if isinstance(found, RawTrajectory):
                yield judge.judged(found, source)
            elif isinstance(found, SkippedError) and _is_skipped(found, source, on_skip):
                (on_skip or _ignore)(found)
            elif on_error:
                on_error(found)
            else:
                raise found


def read_file(file: IO[bytes], name: str) -> Iterator[RawTrajectory | ReadError]:
    """The runs in an open *file*, and an error at the place of each record that is none.

    Formats as `read`, without the reports beside it. *name* is what sources and errors name, and
    gives an instance id where the content has none.
    """
    return _same_once(one for record in records(name, file, _ignore) for one in _runs_of(record))


def _ignore(_value: object) -> None:
    """Do nothing."""


def _is_skipped(found: SkippedError, source: Source, on_skip: OnSkip | None) -> bool:
    """Whether *found* is passed over; a file that the caller named was to hold runs."""
    if isinstance(found, ForeignError):
        return source.folder is not None
    return on_skip is not None


def _found_in(
    path: StrPath, on_bytes: OnBytes
) -> Iterator[tuple[Source, RawTrajectory | ReadError]]:
    try:
        found = sources(path)
    except ReadError as error:
        yield Source(str(path)), error
        return
    yield from _last_calls(
        (source, found) for source in found for found in _in_source(source, on_bytes)
    )


def _last_calls(
    found: Iterable[tuple[Source, RawTrajectory | ReadError]],
) -> Iterator[tuple[Source, RawTrajectory | ReadError]]:
    """*found*, but of logged calls of a model that repeat one conversation only the longest."""
    held: tuple[Source, RawTrajectory] | None = None
    for source, one in found:
        if held and isinstance(one, RawTrajectory) and _is_next_call(held, (source, one)):
            reason = f"an earlier call of the run in {one.source}"
            yield held[0], SkippedError(held[0].name, "", reason)
        elif held:
            yield held
        held = (source, one) if isinstance(one, RawTrajectory) else None
        if held is None:
            yield source, one
    if held:
        yield held


def _is_next_call(
    earlier: tuple[Source, RawTrajectory], later: tuple[Source, RawTrajectory]
) -> bool:
    """Whether *later* continues *earlier*, and both were read from logs in one folder.

    What was read from logs before and written in the own format is never put together.
    """
    is_log = all(run.source.startswith(source.name) for source, run in (earlier, later))
    folders = {Path(source.name).parent for source, _ in (earlier, later)}
    return is_log and len(folders) == 1 and is_continued_by(earlier[1], later[1])


def _in_source(source: Source, on_bytes: OnBytes) -> Iterator[RawTrajectory | ReadError]:
    left = source.size

    def count(taken: int) -> None:
        nonlocal left
        taken = min(taken, left)  # a growing file, or one that was read again in part
        left -= taken
        on_bytes(taken)

    yield from _same_once(one for record in _records_in(source, count) for one in _runs_of(record))
    count(left)


def _records_in(source: Source, on_bytes: OnBytes) -> Iterator[Record | ReadError]:
    if source.parts:
        yield from records_of_parts(source.name, source.parts)
        return
    with ExitStack() as stack:
        try:
            file = _opened(source, stack)
        except OSError as error:
            yield ReadError(source.name, "", f"cannot be opened: {error.strerror or error}")
            return
        yield from records(source.name, file, on_bytes)


def _opened(source: Source, stack: ExitStack) -> IO[bytes]:
    if source.name == STANDARD_INPUT:
        return sys.stdin.buffer
    return stack.enter_context(open(source.name, "rb"))


def _runs_of(record: Record | ReadError) -> Iterable[RawTrajectory | ReadError]:
    return [record] if isinstance(record, ReadError) else runs_in(record.value, record.place)


def _same_once(
    found: Iterable[RawTrajectory | ReadError],
) -> Iterator[RawTrajectory | ReadError]:
    """*found*, with one error for records of the same kind that follow one another.

    A log of unknown format, or a file of predictions, has hundreds of lines.
    """
    for reason, group in groupby(found, _repeatable):
        if reason is None:
            yield from group
            continue
        first, *others = (item for item in group if isinstance(item, ReadError))
        if others and isinstance(first, ForeignError | UnknownFormatError):
            more = f"{first.reason} ({len(others)} more records like it)"
            first = type(first)(first.source, first.position, more)
            first.records += len(others)
        yield first


def _repeatable(found: RawTrajectory | ReadError) -> str | None:
    """What records that are reported together have in common; None where each is reported."""
    if isinstance(found, UnknownFormatError):
        return "unknown"
    return found.reason if isinstance(found, ForeignError) else None


class _Judge:
    """Sets outcomes: those that were *given*, else those of the reports beside the runs.

    Reports are looked for once per folder, and only for runs whose log is silent.
    """

    def __init__(self, given: GivenOutcomes | None, on_conflict: OnConflict) -> None:
        self._given = given
        self._on_conflict = on_conflict
        self._by_folder: dict[tuple[Path, bool], Mapping[Path, Outcomes]] = {}

    def judged(self, run: RawTrajectory, source: Source) -> RawTrajectory:
        """*run*, with the outcome that a report gives."""
        names = (run.instance_id, file_stem(source.name))
        if self._given is not None:
            return replace(run, outcome=self._given.judge(run, names, self._on_conflict))
        if run.outcome is not Outcome.UNKNOWN:
            return run
        for report in self._reports(source):
            for name in names:
                if name in report:
                    return replace(run, outcome=report[name])
        return run

    def _reports(self, source: Source) -> Iterator[Outcomes]:
        """The reports about a file, nearest folder first."""
        if source.name == STANDARD_INPUT:
            return
        by_folder = self._found(source)
        for folder in (Path(source.name), *Path(source.name).parents):
            if folder in by_folder:
                yield by_folder[folder]

    def _found(self, source: Source) -> Mapping[Path, Outcomes]:
        root, deep = source.folder or Path(source.name).parent, source.folder is not None
        if (root, deep) not in self._by_folder:
            files = map(Path, files_in(str(root))) if deep else root.iterdir()
            self._by_folder[root, deep] = outcomes_by_folder(root, files)
        return self._by_folder[root, deep]
