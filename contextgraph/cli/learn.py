"""``contextgraph learn``, and the intake of runs that other commands read."""

import os
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Container, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, Self, TypeAlias

import click

from contextgraph.agents.hook_files import HookFiles, Queue
from contextgraph.cli.commands import (
    Common,
    FollowLinks,
    Git,
    Yes,
    argument,
    common_options,
    described,
    flag,
    option,
)
from contextgraph.cli.output import (
    DONE,
    FAILED,
    PARTLY_DONE,
    Progress,
    confirm,
    delayed_interrupt,
    emit,
    fail,
    print_table,
    warn,
)
from contextgraph.config import IN_MEMORY, reason_not_to_learn
from contextgraph.errors import ReadError, StoreError, StoreUnavailableError
from contextgraph.model import FORGOTTEN, is_subagent
from contextgraph.model.values import batched, replace
from contextgraph.service.records import learned_record, not_learned_record, unread_record
from contextgraph.system.processes import start_detached
from contextgraph.text import digest, number_of, regex

if TYPE_CHECKING:
    from contextgraph.config import Settings
    from contextgraph.errors import ReadError
    from contextgraph.learning.writer import Spool
    from contextgraph.memory.agent_memory import AgentMemory
    from contextgraph.model import ConsolidationReport, Json, LearnReceipt, RawTrajectory
    from contextgraph.readers import Discovered, ReadCounts, ReadFiles, SkippedError
    from contextgraph.readers.sources import StrPath

    Record: TypeAlias = RawTrajectory | ReadError


_MIB = 1 << 20
_WARNINGS_SHOWN = 20
_SLICE = regex(r"(\d*):(\d*)(?::([1-9]\d*))?")


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
        """Return True where a pattern fits the repository or instance of *raw*, in any case."""
        names = (raw.repo.lower(), raw.instance_id.lower())
        patterns = [pattern.lower() for pattern in self.patterns]
        return not patterns or any(fnmatchcase(n, pattern) for n in names for pattern in patterns)


def numbers_of(text: str) -> range:
    """Return the numbers of a Python slice such as ``100:200``; a usage error otherwise.

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
    trajectories are skipped, as those in a folder are; where it *is_quiet*, what is left out is
    counted and not printed. Where the caller *vouched*, they named the source. Of what *is_shown*
    only, nothing is learned, and it does not matter in whose checkout it lies. With *git*, git
    repositories on this machine say whether the change of each run is still there; *folders* are
    those that runs worked in, and *reasons* counts what was learned of their histories.
    """

    paths: "Sequence[StrPath]"
    settings: "Settings"
    _: KW_ONLY
    outcomes: Path | None = None
    on_unread: "Callable[[ReadError], None]" = _ignore
    on_bytes: Callable[[int], None] = _ignore
    selection: Selection = field(default_factory=Selection)
    discovered: bool = False
    is_quiet: bool = False
    git: bool = False
    follow_links: bool = False
    is_shown: bool = False
    vouched: bool = False
    counts: "ReadCounts" = field(init=False)
    conflicts: int = field(default=0, init=False)
    folders: set[str] = field(default_factory=set, init=False)
    reasons: int = field(default=0, init=False)
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
        if self.paths and not (self.counts.runs or self.reasons):
            return FAILED
        return PARTLY_DONE if self.counts.unread else DONE

    def __iter__(self) -> "Iterator[RawTrajectory]":
        try:
            with closing(self._selected()) as selected:
                yield from islice(selected, self.selection.limit)
        finally:
            self._warnings.close()
        if self._left_out:
            warn(f"{number_of(self._left_out, 'run')} skipped that --filter or --slice leaves out")
        elif self.paths and not self.counts.runs and not self.counts.unread:
            warn(f"no trajectory found in {', '.join(os.fspath(path) for path in self.paths)}")

    def _selected(self) -> "Generator[RawTrajectory]":
        from contextgraph.readers import SkippedError
        from contextgraph.readers.outcomes import change_status

        numbers, number = self.selection.numbers, 0
        with closing(self._all()) as runs:
            for raw in runs:
                if reason := reason_not_to_learn(raw, self.selection.never):
                    self._skip(SkippedError(raw.source, "", reason))
                    continue
                if not self.selection.matches(raw):
                    self._leave_out(raw, "does not match --filter")
                    continue
                if number in numbers:
                    self.counts.runs += 1
                    chosen = replace(raw, change=change_status(raw)) if self.git else raw
                    self.folders |= {step.cwd for step in raw.steps[:1] if step.cwd}
                    self._keep(chosen)
                    yield chosen
                else:
                    self._leave_out(raw, "is not in --slice")
                number += 1
                if number >= numbers.stop:
                    return

    def _all(self) -> "Generator[RawTrajectory]":
        from contextgraph.readers import trusted_histories

        yield from self._read(
            *self.paths,
            on_error=self._fail,
            on_skip=self._skip,
            on_bytes=self.on_bytes,
            outcomes=self.outcomes,
            on_conflict=self.report_conflict,
            max_run_size=int(self.settings.max_run_size * _MIB),
            follow_links=self.follow_links,
            trusted=None if self.is_shown else trusted_histories(data=self.vouched),
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
        self._warn_of(error, "skipped, the rest is read: " if error.position else "skipped: ")
        self.on_unread(error)

    def reject(self, error: "ReadError") -> None:
        """Report a run that was read and not learned; a forgotten one is no failure."""
        from contextgraph.readers import SkippedError

        if isinstance(error, SkippedError):  # the user's wish, no failure
            self._skip(error)
            return
        self.counts.runs -= 1
        self.counts.fail(error)
        self._warn_of(error)

    def _fail(self, error: "ReadError") -> None:
        from contextgraph.readers import ForeignError

        if self.discovered and isinstance(error, ForeignError):
            self._skip(error)
            return
        self.counts.fail(error)
        self._warn_of(error)
        self.on_unread(error)

    def _warn_of(self, error: "ReadError", prefix: str = "") -> None:
        if not self.is_quiet:
            self._warnings.add(error, prefix)


def discovered_paths(
    exclude: Sequence[str],
    *,
    yes: bool,
    address: str,
    new: Callable[[Iterable[Path]], Sequence[Path]] = list,
) -> list[str]:
    """Return the files of the histories on this machine, after the user agreed to learn them.

    Exits where there are none, or the user declines. *yes* answers the question. *new* leaves out
    those that are known; where all are, nothing is asked.
    """
    from rich.filesize import decimal

    from contextgraph.readers import discover, trusted_histories

    found = discover(exclude=exclude, trusted=trusted_histories())
    histories = found.histories
    warn_of_projects(found)
    if not histories:
        fail("no history of a coding agent found on this machine")
    rows = (
        (
            f"{one.agent} (experimental)" if one.experimental else one.agent,
            *(f"{one.runs:,}", decimal(one.bytes), str(one.folder)),
        )
        for one in histories
    )
    columns = ("agent", "runs", "size", "folder")
    print_table(
        "Histories on this machine", columns, rows, numeric=("runs", "size"), on_stderr=True
    )
    files = [file for history in histories for file in history.files]
    unknown = new(files)
    if len(unknown) < len(files):
        warn(known_line(files, unknown))
    if unknown and not yes:
        left = [(one, {*one.files} & {*unknown}) for one in histories]
        count = sum(one.runs if len(some) == len(one.files) else len(some) for one, some in left)
        confirm(f"Learn about {number_of(count, 'run')} into {address}?", "nothing was learned")
    return [str(file) for file in unknown]


def known_line(files: Sequence[Path], new: Sequence[Path]) -> str:
    """Return in a line how many of *files* are known, beside the *new* ones."""
    return f"{number_of(len(files) - len(new), 'file')} known and unchanged, {len(new)} to read"


def warn_of_projects(found: "Discovered") -> None:
    """Report the histories in projects that were not discovered, and the command that asks."""
    if not found.in_projects:
        return
    folders = sorted(found.in_projects, key=found.in_projects.__getitem__, reverse=True)
    named = " ".join(shlex.quote(str(folder)) for folder in folders[:_FOLDERS_NAMED])
    more = len(folders) - _FOLDERS_NAMED
    rest = f" (and {number_of(more, 'more folder')}; `setup --json` lists all)" if more > 0 else ""
    files = number_of(sum(found.in_projects.values()), "file")
    warn(
        f"left out: {files} of histories in projects; if yours: "
        f"contextgraph trust --histories {named}{rest}"
    )


# Folders with histories in projects that one line names.
_FOLDERS_NAMED = 5
# Between two looks at a watched folder.
_WATCH_SECONDS = 2.0
# Of the runs in files; the others can be read again.
_MAX_SPOOLED = 256
_ORIGINS = {"log": "by its log", "report": "by a report", "hand": "by hand"}


@common_options("embedder", "max_cost", "max_run_size", "source")
def learn(  # noqa: PLR0913  (one parameter per flag)
    common: Common,
    paths: Annotated[
        list[str] | None,
        argument("[PATH]...", "Trajectory files, folders or globs; - for standard input."),
    ] = None,
    *,
    discover: Annotated[
        bool,
        flag(
            "Learn what coding agents have recorded on this machine, but in checkouts; asks first."
        ),
    ] = False,
    queued: Annotated[
        bool, flag("Learn the sessions that the hook of an agent reported as ended.")
    ] = False,
    exclude: Annotated[
        list[str] | None, option("PATTERN", "Skip these files (repeatable).")
    ] = None,
    yes: Yes = False,
    outcomes: Annotated[
        Path | None,
        option(
            "PATH",
            "Which instances were solved: reports, predictions or logs of SWE-bench, or CSV; a file"
            " or a folder.",
            exists=True,
        ),
    ] = None,
    git: Git = False,
    filters: Annotated[
        list[str] | None,
        described(
            "--filter",
            metavar="GLOB",
            help="Only runs of this repository or instance (repeatable).",
        ),
    ] = None,
    limit: Annotated[int | None, option("N", "At most N runs.", min=1)] = None,
    numbers: Annotated[
        str | None,
        described(
            "--slice", metavar="A:B", help="Only the runs A to B - 1, as in Python; after --filter."
        ),
    ] = None,
    workers: Annotated[
        int, described(metavar="N", min=1, help="Read and trace in N processes; one writes.")
    ] = 1,
    ray: Annotated[
        str,
        option(
            "ADDRESS",
            "Read, trace and embed on this Ray cluster; local starts one on this machine.",
        ),
    ] = "",
    again: Annotated[bool, flag("Also sessions that were forgotten.")] = False,
    reviews: Annotated[
        bool, flag("PATH are reviews of pull requests, as `gh api` exports them.")
    ] = False,
    ci: Annotated[bool, flag("PATH are logs of jobs of GitHub Actions here.")] = False,
    watch: Annotated[bool, flag("Keep learning new and changed files until interrupted.")] = False,
    follow_links: FollowLinks = False,
) -> None:
    """Learn finished runs.

    Runs that are known stay as they are, so an interrupted command continues when it is repeated.
    PATH may be a URL (s3://, hf://). Runs are counted once they are stored durably. While
    a server cannot be reached, runs are put into a spool folder; the next such command learns them
    first.

    \b
    Example:
      contextgraph learn runs/ 'more/*.jsonl.gz'
      contextgraph learn runs/ --outcomes report.json
      contextgraph learn --discover --exclude '*/private/*'
      contextgraph learn ~/.claude/projects --watch
      contextgraph learn ~/.claude/projects --git
      contextgraph learn ~/src/shop --git
      contextgraph learn 's3://bucket/runs/*.jsonl.gz' --ray auto
      contextgraph learn --queued
      contextgraph learn nightly/ --source ci
      contextgraph learn --reviews comments.json
      contextgraph learn --ci failed.txt passed.txt
      cat run.traj | contextgraph learn -
    """
    has_stream = _has_stream(paths or ())
    misuses = {
        "give PATH, --discover or --queued": sum((bool(paths), discover, queued)) != 1,
        "--exclude and --yes belong to --discover": (exclude or yes) and not discover,
        "--queued learns all that waits": queued and (filters or numbers or limit),
        "--again takes PATH or --discover": again and queued,
        "--again is for the machine of the service: contextgraph learn PATH --again --store FILE"
        " --tenant NAME there": again and common.settings().is_service,
        "--watch takes files, folders or globs": watch and (not paths or has_stream),
        "--ray does not go with --workers or --watch": ray and (workers > 1 or watch),
        "--ray takes files, folders, globs or URLs": ray and has_stream,
        "give --reviews or --ci alone": bool(reviews) + bool(ci) + bool(watch) + bool(ray) > 1,
        "--reviews and --ci take files": (reviews or ci) and (not paths or has_stream),
    }
    for misuse in (reason for reason, is_given in misuses.items() if is_given):
        raise click.BadParameter(misuse)
    if reviews or ci:
        from contextgraph.cli.teachers import learn_ci, learn_reviews

        (learn_reviews if reviews else learn_ci)(common, [Path(path) for path in paths or ()])
        return
    common = common.of_ended() if queued else common
    settings = common.settings()
    queue = HookFiles(settings).take_queue() if queued else None
    inputs: Sequence[str] = queue.transcripts if queue else paths or ()
    known = None
    if discover:
        known = read_files(settings)
        new = partial(known.new, learned=partial(learned_in, common, again=again))
        inputs = discovered_paths(exclude or (), yes=yes, address=settings.address, new=new)
    never = settings.never_learned
    selection = Selection(tuple(filters or ()), limit, numbers_of(numbers or ":"), never)
    intake = partial(
        Intake,
        outcomes=outcomes,
        selection=selection,
        discovered=discover,
        git=git,
        follow_links=follow_links,
        vouched=common.flags["source"] is not None or bool(settings.source),
    )
    # Of a selection of its runs a file is not known.
    known = known if selection == Selection() else None
    learning = Learning(common, intake, follow_links, workers, ray, queue, known, again=again)
    raise click.exceptions.Exit(learning.watch(inputs) if watch else learning.learn(inputs))


def learn_ended(common: Common) -> None:
    """Learn the sessions that ended since an agent started one, which would learn them."""
    common = common.of_ended()
    settings = common.settings()
    files = HookFiles(settings)
    if settings.is_service or not files.waiting():
        return
    queue = files.take_queue()
    intake = partial(Intake, is_quiet=True, selection=Selection(never=settings.never_learned))
    Learning(common, intake, queue=queue, is_quiet=True).learn(queue.transcripts)


def read_files(settings: "Settings") -> "ReadFiles":
    """Return the files that were read into the memory of *settings* from this machine."""
    from importlib.metadata import version

    from contextgraph.config import data_folder
    from contextgraph.readers import ReadFiles

    # Another version may read more of them.
    memory = f"{version('contextgraph-memory')}\n{settings.address}\n{settings.tenant}"
    name = digest(memory)
    return ReadFiles(Path(data_folder(), "read", f"{name}.json"))


def learned_in(common: Common, runs: Sequence[str], *, again: bool = False) -> "Container[str]":
    """Return the runs among *runs* that the memory has; none where it cannot say.

    Also the names of sessions that were forgotten, unless *again*.
    """
    if not runs or common.settings().is_service:
        return ()
    try:
        with common.open(read_only=True) as memory:
            names = () if again else [one for one in runs if one.startswith(FORGOTTEN)]
            return {*memory.store.runs.learned(runs), *memory.store.exposures.forgotten(names)}
    except StoreError:
        return ()


def _has_stream(paths: "Iterable[StrPath]") -> bool:
    from contextgraph.readers import is_stream

    return any(map(is_stream, paths))


@dataclass(frozen=True, slots=True)
class Learning:
    """Options of learning, whatever the paths.

    *is_quiet*: report on stderr only; *again*: what was forgotten, too.
    """

    common: Common
    intake: Callable[..., Intake]
    follow_links: bool = False
    workers: int = 1
    ray: str = ""
    queue: Queue | None = None
    known: "ReadFiles | None" = None
    is_quiet: bool = False
    again: bool = False

    def watch(self, paths: "Sequence[StrPath]") -> NoReturn:
        """Learn the files in *paths*, then new and changed ones; ends by an exception."""
        from contextgraph.readers import Watch

        watched = Watch(paths, follow_links=self.follow_links)
        warn(f"watching {', '.join(map(str, paths))}; Ctrl-C ends it")
        while True:
            if due := watched.due(time.time()):
                self.learn(due)
            time.sleep(_WATCH_SECONDS)

    def learn(self, paths: "Sequence[StrPath]") -> int:
        """Learn the runs in *paths* and print a summary; the exit code."""
        from contextgraph.learning.writer import Spool
        from contextgraph.readers import FILE_WEIGHT, size_of

        settings = self.common.settings()
        # Only for a server: where the file cannot be written, nothing can be spooled.
        spool = Spool(settings) if settings.is_remote else None
        unread: list[ReadError] = []
        progress = Progress(
            lambda: size_of(paths, follow_links=self.follow_links, of_each_file=FILE_WEIGHT)
        )
        intake = self.intake(paths, settings, on_unread=unread.append, on_bytes=progress.advance)
        results = _Results(
            progress, self.common.as_json, settings.address, intake, is_quiet=self.is_quiet
        )
        records = _in_order(intake, unread)
        if self.queue:
            records = map(_with_content_hashes, records)
        with results:
            try:
                with self.common.open() as memory:
                    self._learn_into(memory, spool, records, results)
            except StoreUnavailableError as error:
                if spool is not None:
                    limit = None if _has_stream(paths) else _MAX_SPOOLED
                    _spool_rest(spool, chain(results.waiting, records), limit, results, error)
                raise
        if self.known and paths:
            self.known.note(results.runs_by_file(paths))
        return intake.exit_code

    def _learn_into(
        self,
        memory: "AgentMemory",
        spool: "Spool | None",
        records: "Iterator[Record]",
        results: "_Results",
    ) -> None:
        """Learn the runs in *spool*, then *records*."""
        from contextgraph.learning import RUNS_AT_ONCE

        if self.ray or self.workers > 1:
            from contextgraph.agents.workers import WorkersReader

            embedder = str(self.common.flags["embedder"] or "")
            reader = WorkersReader(memory, self.workers, self.ray, embedder)
            results.intake.read_with(reader.read, reader.keep)
        self.common.note_shown(memory)
        waiting, progress = results.waiting, results.progress
        with progress, memory.batch(progress.consolidating, results.reports.append):
            for run in spool or ():
                failed = results.intake.counts.unread
                _learn_some(memory, [run.raw], results, run.source)
                if results.intake.counts.unread > failed:  # kept, and not tried again
                    run.path.replace(run.path.with_name(f"{run.path.name}.failed"))
                run.path.unlink(missing_ok=True)  # another process may have learned it, too
            for some in batched(records, RUNS_AT_ONCE):
                waiting += some
                if self.again:
                    memory.learn_again(run for run in some if not isinstance(run, ReadError))
                _learn_some(memory, waiting, results)
            progress.embedding()
        if self.queue:
            self.queue.settle(results.broken)
        if not memory.is_service:
            if results.intake.git:
                _learn_histories(memory, results.intake)
            if results.intake.folders:
                _age_lessons(memory, results.intake.folders)
            self._end(memory, results)

    def _end(self, memory: "AgentMemory", results: "_Results") -> None:
        """Warn, and embed passages in another process, where a model of meaning is used."""
        if not results.counts:  # there may be no memory, which a question would create
            return
        results.warn_about(memory)
        settings = self.common.settings()
        if settings.store in IN_MEMORY or not (waiting := memory.store.waiting_passages()):
            return
        named = ("--store", settings.address, "--tenant", settings.tenant)
        start_detached("contextgraph", "call", "embed", *named)
        warn(f"{number_of(waiting, 'passage')} will be embedded in the background")


def _age_lessons(memory: "AgentMemory", folders: Iterable[str]) -> None:
    """Silence lessons whose names are gone from the repositories around *folders*."""
    from contextgraph.readers import GitFolder

    roots = {found.root for folder in folders if (found := GitFolder.around(folder))}
    for root in sorted(roots):
        memory.age_lessons(root)


def _learn_histories(memory: "AgentMemory", intake: Intake) -> None:
    """Learn the reasons in the histories of the trusted repositories that *intake* names.

    A warning names untrusted ones.
    """
    from contextgraph.readers import GitFolder, own_origins, trusted_histories

    named = sorted({*(os.fspath(path) for path in intake.paths), *intake.folders})
    found = (GitFolder.around(folder) for folder in named)
    origins = own_origins(trusted_histories())
    for root in dict.fromkeys(one.root for one in found if one):
        if origins.is_trusted(Path(root, ".git")):
            count = memory.learn_history(root)
            intake.reasons += count
            warn(f"{number_of(count, 'lesson')} in the history of {root}")
        else:
            warn(
                f"left out: the history of {root}; if its commits may be quoted, first"
                f" `contextgraph trust --histories {shlex.quote(root)}`"
            )


def _in_order(intake: Intake, unread: "list[ReadError]") -> "Iterator[Record]":
    """The runs of *intake*, and what it put into *unread* before each of them and at the end."""
    for raw in intake:
        yield from unread
        unread.clear()
        yield raw
    yield from unread


def _with_content_hashes(record: "Record") -> "Record":
    """The run *record* with content hashes, if the folder that its agent worked in is here."""
    if isinstance(record, ReadError):
        return record
    from contextgraph.advising.freshness import with_content_hashes
    from contextgraph.system.working_tree import WorkingTree

    folder = next((step.cwd for step in record.steps if step.cwd), "")
    is_here = bool(folder) and Path(folder).is_dir()
    return with_content_hashes(record, WorkingTree.around(folder)) if is_here else record


@dataclass(slots=True)
class _Results:
    """Counts of what was learned, usage of the embedder, and why vectors are missing.

    As a context it prints a summary at its end. *waiting* holds what was read and is not learned.
    """

    progress: Progress
    as_json: bool
    address: str
    intake: Intake
    counts: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    cost: float = 0.0
    not_embedded: str = ""
    reports: "list[ConsolidationReport]" = field(default_factory=list)
    waiting: "list[Record]" = field(default_factory=list)
    runs: dict[str, set[str]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    helpers: Counter[str] = field(default_factory=Counter)
    is_quiet: bool = False
    clones: Counter[tuple[str, str]] = field(default_factory=Counter)
    data: Counter[str] = field(default_factory=Counter)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        if kind is KeyboardInterrupt:
            stored = number_of(self.counts.total(), "run")
            warn(f"interrupted; {stored} stored, repeat the command to continue")
        self._summarize()

    def add(self, raw: "RawTrajectory", receipt: "LearnReceipt") -> None:
        """Count a run that is stored, and report it."""
        self.counts[receipt.status] += 1
        self.helpers[receipt.status] += is_subagent(raw.agent)
        from contextgraph.readers.origin import repository_of

        if raw.origin and raw.repo == repository_of(raw.origin):
            self.clones[raw.repo, raw.folder] += 1
        elif raw.origin:
            self.data[raw.origin] += 1
        self.runs.setdefault(raw.source, set()).add(receipt.trajectory_id)
        if raw.outcome not in ("unknown", receipt.outcome):
            solved = "true" if raw.outcome == "solved" else "false"
            self.intake.report_conflict(
                f"{raw.source}: {receipt.outcome} as in the memory"
                f" ({_ORIGINS[receipt.outcome_source]}), not {raw.outcome};"
                f" `contextgraph call outcome instance_id={raw.instance_id} solved={solved}"
                f" run={receipt.trajectory_id}` changes it"
            )
        self.tokens += receipt.usage.tokens
        self.cost += receipt.usage.cost
        self.not_embedded = receipt.not_embedded or self.not_embedded
        self.emit(learned_record, raw, receipt)

    def leave(self, error: ReadError) -> None:
        """Report what is not learned."""
        from contextgraph.readers import SkippedError

        if not isinstance(error, SkippedError):
            self.broken.add(error.source)
        self.emit(unread_record, error)

    def runs_by_file(self, paths: "Iterable[StrPath]") -> dict[Path, list[str]]:
        """Return ids of the runs in each of *paths*, except files learned in part."""
        from contextgraph.readers.sources import sources

        found: dict[str, set[str]] = {}
        for source, runs in self.runs.items():
            for name in _with_files([source]):
                found.setdefault(name, set()).update(runs)
        by_file, unread = {}, self.broken | _with_files(self.refused - self.runs.keys())
        for path in paths:
            names = {source.name for source in sources(path)}
            if names.isdisjoint(unread):
                by_file[Path(path)] = [run for name in names for run in found.get(name, ())]
        return by_file

    def emit(self, record_of: "Callable[..., dict[str, Json]]", *given: object) -> None:
        """Print the record of *given* for programs."""
        if self.as_json and not self.is_quiet:
            emit(record_of(*given))

    def warn_about(self, memory: "AgentMemory") -> None:
        """Report clones, consolidation, missing vectors and an embedder of another memory."""
        for (repo, folder), count in self.clones.items():
            warn(
                f"{number_of(count, 'run')} in {folder} count for {repo} alone; if yours:"
                f" contextgraph trust --histories {shlex.quote(folder)}, and learn them again"
            )
        for origin, count in self.data.items():
            warn(
                f"{number_of(count, 'run')} for other repositories count as one source, {origin};"
                " if yours: --source ''"
            )
        for report in self.reports:
            if not self.is_quiet and (report.changed or not report.started):
                warn(_consolidation_line(report))
        missing = memory.spaces.waiting() if self.not_embedded else 0
        if missing:
            warn(
                f"{number_of(missing, 'run')} still to be embedded, by the next consolidation or "
                f"`contextgraph call reembed`: {self.not_embedded}"
            )
        if mismatch := memory.spaces.mismatch():
            warn(mismatch)

    def _summarize(self) -> None:
        """Print how many records were learned, failed and skipped."""
        from contextgraph.model import LearnStatus

        learned, seconds = self.counts.total(), self.intake.seconds
        counts = {str(status): self.counts[status] for status in LearnStatus}
        unread = self.intake.counts
        counts |= {"failed": unread.failed, "not_understood": unread.not_understood}
        counts |= {"skipped": unread.skipped}
        counts = {"records": sum(counts.values()), **counts}
        if self.is_quiet:
            new = self.counts[LearnStatus.CREATED]
            others = (
                f"; {learned - new:,} beside were known, or are copies" if learned > new else ""
            )
            sessions = _sessions(new, self.helpers[LearnStatus.CREATED])
            if learned:
                warn(f"{sessions} learned in {seconds:.0f} s{others}")
            # What a client keeps beside its sessions is nothing that is missed.
            if left := unread.failed + unread.not_understood:
                parts = {"damaged": unread.failed, "of an unknown version": unread.not_understood}
                why = ", ".join(f"{count:,} {what}" for what, count in parts.items() if count)
                warn(f"{left:,} left out ({why}); `contextgraph learn FOLDER` names each")
            if self.refused:
                some = number_of(len(self.refused), "session")
                all_again = "`contextgraph learn --discover --again` learns them"
                warn(f"{some} left out (forgotten); {all_again}")
        elif self.as_json:
            summary: dict[str, Json] = {"store": self.address, **counts}
            summary |= {"conflicts": self.intake.conflicts, "seconds": round(seconds, 3)}
            emit({"summary": {**summary, "tokens": self.tokens, "cost": round(self.cost, 6)}})
        elif learned or counts["skipped"]:  # each failure is printed where it is met
            rate = f"{learned / max(seconds, 0.001):.0f}/s"
            print(f"Memory: {self.address}")
            sessions = _sessions(learned, self.helpers.total())
            title = f"{sessions} in {seconds:.1f} s, {rate}"
            print_table(title, [*counts], [[f"{count:,}" for count in counts.values()]], [*counts])


def _sessions(runs: int, helpers: int) -> str:
    """Return so many *runs* as sessions with their sub-agents, in words."""
    inside = f" with {number_of(helpers, 'sub-agent')}" if helpers else ""
    return f"{number_of(runs - helpers, 'session')}{inside}"


def _consolidation_line(report: "ConsolidationReport") -> str:
    if not report.started:
        return f"not consolidated: {report.reason}; the next `learn` does it"
    steps = {step.name: step for step in report.steps}
    abstract, merge, cleanup = steps["abstract"], steps["merge"], steps["clean up"]
    updated = abstract.updated + steps["statistics"].updated
    removed = abstract.removed + merge.removed + cleanup.removed
    return (
        f"consolidated in {report.seconds:.1f} s: "
        f"{number_of(abstract.created, 'way')} to clear errors new, {updated} updated, "
        f"{removed} gone"
    )


def _spool_rest(
    spool: "Spool",
    rest: "Iterator[Record]",
    limit: int | None,
    results: _Results,
    error: StoreUnavailableError,
) -> None:
    """Put at most *limit* of the runs that are not learned yet into *spool*."""
    for record in islice(rest, limit):
        if isinstance(record, ReadError):
            results.emit(unread_record, record)
        else:
            spool.put(record)
            reason = f"waits in the spool: {error}"
            results.emit(not_learned_record, record.source, record.instance_id, reason)
    warn(
        f"{number_of(len(spool), 'trajectory')} in {spool.folder}; "
        "the next `contextgraph learn` for this memory learns them first"
    )
    if next(rest, None):
        warn("the others were not read: repeat the command to continue")


def _with_files(sources: "Iterable[str]") -> set[str]:
    """Return the *sources* of runs, a file and often a number there, and their files."""
    return {name for source in sources for name in (source, source.rpartition(":")[0])}


def _learn_some(
    memory: "AgentMemory", waiting: "list[Record]", results: _Results, source: str = ""
) -> None:
    """Learn what is *waiting* and remove it; report each in the order of reading."""
    runs = [record for record in waiting if not isinstance(record, ReadError)]
    with delayed_interrupt(), closing(_learned(memory, runs, source)) as learned:
        for record in waiting:
            if isinstance(record, ReadError):
                results.leave(record)
            elif isinstance(result := next(learned), ReadError):
                results.intake.reject(result)
                results.leave(result)
                results.refused.add(record.source)
                if not memory.is_service and (names := _forgotten(memory, record, source)):
                    results.runs.setdefault(record.source, set()).update(names)
            else:
                results.add(record, result)
        waiting.clear()


def _forgotten(memory: "AgentMemory", raw: "RawTrajectory", source: str) -> "Collection[str]":
    """Return the names by which *raw* was forgotten."""
    return memory.store.exposures.forgotten(memory.writer.forgotten_names(raw, source))


def _learned(
    memory: "AgentMemory", runs: "Sequence[RawTrajectory]", source: str
) -> "Generator[LearnReceipt | ReadError]":
    """The receipt of each of *runs*, or why it cannot be learned."""
    failed: list[ReadError] = []
    for receipt in memory.learn_many(runs, source=source, on_error=failed.append):
        yield from failed
        failed.clear()
        yield receipt
    yield from failed
