"""Reads the runs named on the command line or found on this machine; reports what is skipped."""

import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from contextgraph.cli.output import (
    DONE,
    FAILED,
    PARTLY_DONE,
    confirm,
    fail,
    print_table,
    warn,
)
from contextgraph.text import number_of

if TYPE_CHECKING:
    from contextgraph.config import Settings
    from contextgraph.errors import ReadError
    from contextgraph.model import RawTrajectory
    from contextgraph.readers import (
        History,
        ReadCounts,
        SkippedError,
    )
    from contextgraph.readers.sources import StrPath

_MIB = 1 << 20
_WARNINGS_SHOWN = 20
_NEVER = "never learned: the setting never_learn names its repository or folder"
_NOT_A_LETTER = re.compile(r"[^A-Za-z0-9]")
_SLICE = re.compile(r"(\d*):(\d*)(?::([1-9]\d*))?")


@dataclass(frozen=True, slots=True)
class Selection:
    """Selects runs of a repository or instance like one of *patterns*, at most *limit*.

    Of those with such a repository or instance, counted from 0, the ones whose *numbers* are given.
    None of the repositories and folders *never*.
    """

    patterns: tuple[str, ...] = ()
    limit: int | None = None
    numbers: range = range(sys.maxsize)
    never: tuple[str, ...] = ()

    def matches(self, raw: "RawTrajectory") -> bool:
        """Whether *raw* has a repository or an instance like one of the patterns, in any case."""
        names = (raw.repo.lower(), raw.instance_id.lower())
        patterns = [pattern.lower() for pattern in self.patterns]
        return not patterns or any(fnmatchcase(n, pattern) for n in names for pattern in patterns)

    def excludes(self, raw: "RawTrajectory") -> bool:
        """Whether *raw* is of a repository that is never learned, or worked in such a folder."""
        folders = {step.cwd for step in raw.steps if step.cwd} if self.never else set[str]()
        return any(
            fnmatchcase(raw.repo.lower(), pattern.lower())
            or any(f"{place}/".startswith(f"{pattern}/") for place in (*folders, raw.source))
            # Claude Code names the folder of a session's log after the one that it worked in.
            or (os.path.isabs(pattern) and f"{_NOT_A_LETTER.sub('-', pattern)}/" in raw.source)
            for pattern in self.never
        )


def numbers_of(text: str) -> range:
    """The numbers that a Python slice such as ``100:200`` selects; a usage error for another text.

    How many there are is not known before all is read, so that none can be counted from the end.
    """
    if not (match := _SLICE.fullmatch(text)):
        raise click.BadParameter(f"--slice {text!r} is not a slice such as 0:100, 100: or ::2")
    return range(sys.maxsize)[slice(*(int(part) if part else None for part in match.groups()))]


@dataclass(slots=True)
class Warnings:
    """Prints the first warnings of each file and reason, and at the end how many more there were.

    Files that are not trajectories count together: a folder of runs may hold many. Of a file whose
    records are not trajectories, or of an unknown format, the first is printed.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    printed: Counter[tuple[str, str]] = field(default_factory=Counter)
    named: set[str] = field(default_factory=set)

    def add(self, error: "ReadError", prefix: str = "") -> None:
        """Print *error*, unless there were enough like it."""
        from contextgraph.readers import ForeignError
        from contextgraph.readers.formats import UnknownFormatError

        is_foreign = isinstance(error, ForeignError)
        kind = ("", "no trajectory") if is_foreign else (error.source, error.kind)
        self.counts[kind] += 1
        is_repetitive = is_foreign or isinstance(error, UnknownFormatError)
        if self.printed[kind] < _WARNINGS_SHOWN and not (
            is_repetitive and error.source in self.named
        ):
            self.printed[kind] += 1
            if is_repetitive:
                self.named.add(error.source)
            warn(f"{prefix}{error}")

    def close(self) -> None:
        """Print how many warnings of each kind were not printed."""
        for (source, reason), more in (self.counts - self.printed).items():
            place = f"{source}: " if source else ""
            warn(f"{place}{reason}: {more} more; `learn --json` lists all")


def _ignore(_: object) -> None:
    """Do nothing."""


@dataclass(slots=True)
class Intake:
    """Iterate over it for the trajectories in *paths*, in order.

    What cannot be read or holds nothing to learn is reported on stderr, passed to *on_unread* and
    left out. *on_bytes* is called with the number of bytes of each read. Iterating raises
    `ReadError` for *outcomes* without any. Of paths that were *discovered*, files that are no
    trajectories are skipped, as those in a folder are. With *git*, git repositories on this machine
    say whether the change of each run is still there.
    """

    paths: "Sequence[StrPath]"
    settings: "Settings"
    _: KW_ONLY
    outcomes: Path | None = None
    on_unread: "Callable[[ReadError], None]" = _ignore
    on_bytes: Callable[[int], None] = _ignore
    selection: Selection = field(default_factory=Selection)
    discovered: bool = False
    git: bool = False
    follow_links: bool = False
    counts: "ReadCounts" = field(init=False)
    conflicts: int = field(default=0, init=False)
    _read: "Callable[..., Iterator[RawTrajectory]]" = field(init=False)
    _keep: "Callable[[RawTrajectory], None]" = field(default=_ignore, init=False)
    _warnings: Warnings = field(default_factory=Warnings, init=False)
    _started: float = field(default_factory=time.monotonic, init=False)
    _left_out: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        from contextgraph.readers import ReadCounts, read

        self.counts, self._read = ReadCounts(), read

    def read_with(
        self,
        read: "Callable[..., Iterator[RawTrajectory]]",
        keep: "Callable[[RawTrajectory], None]",
    ) -> None:
        """Read runs with *read*, a function like `readers.read`; *keep* gets each chosen one."""
        self._read, self._keep = read, keep

    @property
    def seconds(self) -> float:
        """Seconds since this was created."""
        return time.monotonic() - self._started

    @property
    def exit_code(self) -> int:
        """0 all was read, 3 some of it, 1 none."""
        if not self.counts.runs and self.paths:
            return FAILED
        return PARTLY_DONE if self.counts.failed else DONE

    def __iter__(self) -> "Iterator[RawTrajectory]":
        try:
            with closing(self._selected()) as selected:
                yield from islice(selected, self.selection.limit)
        finally:
            self._warnings.close()
        if self._left_out:
            warn(f"{number_of(self._left_out, 'run')} skipped that --filter or --slice leaves out")
        elif self.paths and not self.counts.runs and not self.counts.failed:
            warn(f"no trajectory found in {', '.join(os.fspath(path) for path in self.paths)}")

    def _selected(self) -> "Generator[RawTrajectory]":
        from contextgraph.readers import SkippedError

        numbers, number = self.selection.numbers, 0
        with closing(self._all()) as runs:
            for raw in runs:
                if self.selection.excludes(raw):
                    self._skip(SkippedError(raw.source, "", _NEVER))
                    continue
                if not self.selection.matches(raw):
                    self._leave_out(raw, "does not match --filter")
                    continue
                if number in numbers:
                    yield self._chosen(raw)
                else:
                    self._leave_out(raw, "is not in --slice")
                number += 1
                if number >= numbers.stop:
                    return

    def _chosen(self, raw: "RawTrajectory") -> "RawTrajectory":
        self.counts.runs += 1
        if self.git:
            from contextgraph.readers.outcomes import change_status

            raw = replace(raw, change=change_status(raw))
        self._keep(raw)
        return raw

    def _all(self) -> "Generator[RawTrajectory]":
        yield from self._read(
            *self.paths,
            on_error=self._fail,
            on_skip=self._skip,
            on_bytes=self.on_bytes,
            outcomes=self.outcomes,
            on_conflict=self.report_conflict,
            max_run_size=int(self.settings.max_run_size * _MIB),
            follow_links=self.follow_links,
        )

    def report_conflict(self, message: str) -> None:
        """Report two outcomes of one run."""
        self.conflicts += 1
        warn(f"conflict: {message}")

    def _leave_out(self, raw: "RawTrajectory", reason: str) -> None:
        from contextgraph.readers import SkippedError

        self._left_out += 1
        error = SkippedError(raw.source, "", f"{raw.instance_id} {reason}")
        self.counts.skip(error)
        self.on_unread(error)

    def _skip(self, error: "SkippedError") -> None:
        self.counts.skip(error)
        self._warnings.add(error, "skipped: ")
        self.on_unread(error)

    def reject(self, error: "ReadError") -> None:
        """Count and report a run that was read and cannot be learned."""
        self.counts.runs -= 1
        self.counts.fail(error)
        self._warnings.add(error)

    def _fail(self, error: "ReadError") -> None:
        from contextgraph.readers import ForeignError

        if self.discovered and isinstance(error, ForeignError):
            self._skip(error)
            return
        self.counts.fail(error)
        self._warnings.add(error)
        self.on_unread(error)


def discovered_paths(
    exclude: Sequence[str],
    *,
    yes: bool,
    address: str,
    new: Callable[[Iterable[Path]], Sequence[Path]] = list,
) -> list[str]:
    """The files of the histories on this machine, after the user agreed to learn them.

    Exits where there are none, or the user declines. *yes* answers the question. *new* leaves out
    those that are known; where all are, nothing is asked.
    """
    from contextgraph.readers import discover

    histories = discover(exclude=exclude)
    if not histories:
        fail("no history of a coding agent found on this machine")
    rows = [_history_row(history) for history in histories]
    columns = ("agent", "runs", "size", "folder")
    print_table(
        "Histories on this machine", columns, rows, numeric=("runs", "size"), on_stderr=True
    )
    files = [file for history in histories for file in history.files]
    unknown = new(files)
    if known := len(files) - len(unknown):
        warn(f"{number_of(known, 'file')} known and unchanged, {len(unknown)} to read")
    if unknown and not yes:
        left = [(one, {*one.files} & {*unknown}) for one in histories]
        count = sum(one.runs if len(some) == len(one.files) else len(some) for one, some in left)
        confirm(f"Learn about {number_of(count, 'run')} into {address}?", "nothing was learned")
    return [str(file) for file in unknown]


def _history_row(history: "History") -> tuple[str, ...]:
    from rich.filesize import decimal

    agent = f"{history.agent} (experimental)" if history.experimental else history.agent
    return agent, f"{history.runs:,}", decimal(history.bytes), str(history.folder)
