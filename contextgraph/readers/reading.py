"""Reads the runs of a path."""

import glob
import os
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from fnmatch import fnmatch
from functools import cache
from hashlib import blake2b
from itertools import takewhile
from pathlib import Path
from typing import IO, Any, TypeAlias, TypeVar

import orjson
from msgspec import Struct

from contextgraph.config import HISTORIES
from contextgraph.errors import ReadError
from contextgraph.model import Outcome, OutcomeSource, RawTrajectory
from contextgraph.model.values import replace
from contextgraph.readers.chat import is_continued_by
from contextgraph.readers.database import count_sessions
from contextgraph.readers.format import (
    ForeignError,
    Format,
    Kept,
    NotUnderstoodError,
    SkippedError,
    file_stem,
)
from contextgraph.readers.formats import all_formats, runs_in
from contextgraph.readers.origin import NOTHING_VOUCHED, Origins, Vouched, confined
from contextgraph.readers.outcomes import (
    GivenOutcomes,
    OnConflict,
    Outcomes,
    given_outcomes,
    outcomes_by_folder,
)
from contextgraph.readers.records import (
    BLOCK_SIZE,
    Record,
    parts,
    records,
    records_of_parts,
    records_on_lines,
)
from contextgraph.readers.sources import (
    FILE_WEIGHT,
    STANDARD_INPUT,
    SourceFile,
    StrPath,
    files_in,
    is_stream,
    remote_files,
    size_of,
    sources,
)
from contextgraph.system.intake import MAX_RUN_SIZE, OnBytes, kind_of, opened, too_large
from contextgraph.system.processes import replacing

# A file with more records in a row that are not runs is given up.
_MAX_FRUITLESS = 100_000

OnError: TypeAlias = Callable[[ReadError], None]
OnSkip: TypeAlias = Callable[[SkippedError], None]

_Entry = TypeVar("_Entry")


class ReadCounts(Struct):
    """Numbers of records that were runs, failed, were not understood or were skipped.

    Its methods are made for `read`: ``read(path, on_error=counts.fail, on_skip=counts.skip)``;
    *runs* is counted by who takes them.
    """

    runs: int = 0
    failed: int = 0
    skipped: int = 0
    not_understood: int = 0

    @property
    def records(self) -> int:
        """The sum."""
        return self.runs + self.unread + self.skipped

    @property
    def unread(self) -> int:
        """The number of records that were damaged, or of no known kind."""
        return self.failed + self.not_understood

    def fail(self, error: ReadError) -> None:
        """Count what cannot be read."""
        if isinstance(error, NotUnderstoodError):
            self.not_understood += 1
        else:
            self.failed += 1

    def skip(self, _error: SkippedError) -> None:
        """Count what holds nothing to learn."""
        self.skipped += 1


def read(
    *paths: StrPath,
    on_error: OnError | None = None,
    on_skip: OnSkip | None = None,
    on_bytes: OnBytes | None = None,
    outcomes: StrPath | None = None,
    on_conflict: OnConflict | None = None,
    max_run_size: int = MAX_RUN_SIZE,
    follow_links: bool = False,
    trusted: Vouched | None = None,
) -> Iterator[RawTrajectory]:
    """Return the runs in *paths*: files, folders, globs, URLs, or "-" for standard input.

    The format is recognised by content: those of `FORMATS` and of installed packages that add
    some, as JSON or JSONL (plain, gzip or zstandard) or parquet, also in rows of data sets that
    wrap them. Runs are read one at a time, in the order of the sorted file names.

    Each record is a run, fails, or is skipped. *on_error* gets each record that cannot be read,
    with file, position and reason, and reading goes on; without it `next` raises each, and can be
    called again. *on_skip* gets what was understood and holds nothing to learn: runs in which the
    agent did nothing (without *on_skip*, errors), and in a folder or glob what claims to be no
    trajectory, such as reports (in a file that was named, an error).

    *on_bytes* gets how many more bytes were taken from disk, and the weight of each file at its
    end, of `size_of` in all. *outcomes* is a
    file or folder of SWE-bench reports, predictions, logs of the harness or CSV: an outcome in it
    precedes that of the log, and each conflict is passed to *on_conflict*. Without it the reports
    beside a file, or in the folder given, are used where the log is silent.

    *max_run_size* is the most bytes, decompressed, that one run may have; a file is read up to a
    larger one. In folders and globs, pipes, sockets, devices and, unless *follow_links*, links to
    what is outside are passed to *on_skip*.

    With what is *trusted* to be the owner's, each other run has its origin; a history of a clone
    that an agent of this machine has as well is passed to *on_skip*.

    URLs (``s3://bucket/runs/*.jsonl.gz``) are those of fsspec and its packages.

    Raises MissingExtraError for parquet without pyarrow and URLs without fsspec, and ReadError for
    *outcomes* that hold none.
    """
    given = None if outcomes is None else given_outcomes(outcomes)
    reader = Reader(given, max_run_size, follow_links=follow_links, trusted=trusted)
    return _Runs(
        reader.results(
            paths, on_error=on_error, on_skip=on_skip, on_bytes=on_bytes, on_conflict=on_conflict
        )
    )


class _Runs(Iterator[RawTrajectory]):
    """Runs that are read one by one. A generator would end at the first error that it raises."""

    def __init__(self, results: Iterator[tuple[SourceFile, RawTrajectory | ReadError]]) -> None:
        self._results = results

    def __next__(self) -> RawTrajectory:
        _, result = next(self._results)
        if isinstance(result, ReadError):
            raise result
        return result


class Reader:
    """Reads runs as `read` does, path by path, with the outcomes that were *given*."""

    def __init__(
        self,
        given: GivenOutcomes | None,
        max_run_size: int,
        *,
        follow_links: bool,
        trusted: Vouched | None = None,
    ) -> None:
        self._origins = None if trusted is None else own_origins(trusted)
        self._judge = _Judge(given, follow_links=follow_links)
        self._max_run_size = max_run_size
        self._follow_links = follow_links

    def results(
        self,
        paths: Iterable[StrPath],
        *,
        on_error: OnError | None = None,
        on_skip: OnSkip | None = None,
        on_bytes: OnBytes | None = None,
        on_conflict: OnConflict | None = None,
    ) -> Iterator[tuple[SourceFile, RawTrajectory | ReadError]]:
        """Yield the runs in *paths*, each with its source, and without *on_error* the errors."""
        unheard: list[tuple[SourceFile, ReadError]] = []

        def report(source: SourceFile, error: ReadError) -> None:
            if isinstance(error, SkippedError) and _is_skipped(error, source, on_skip):
                (on_skip or _ignore)(error)
            elif on_error:
                on_error(error)
            else:
                unheard.append((source, error))

        found = self._found(paths, on_bytes or _ignore)
        for source, result in last_calls(found, _run_read, report):
            if isinstance(result, ReadError):
                report(source, result)
            yield from unheard
            unheard.clear()
            if isinstance(result, RawTrajectory):
                yield source, self._judge.judged(result, source, on_conflict or _ignore)
        yield from unheard

    def _found(
        self, paths: Iterable[StrPath], on_bytes: OnBytes
    ) -> Iterator[tuple[SourceFile, RawTrajectory | ReadError]]:
        of_clients = _client_roots()
        for path in paths:
            try:
                files = sources(path, follow_links=self._follow_links)
            except ReadError as error:
                yield SourceFile(str(path)), error
                continue
            for source in files:
                for result in _in_source(source, on_bytes, self._max_run_size, of_clients):
                    yield source, self._with_origin(result, source)

    def _with_origin(
        self, result: RawTrajectory | ReadError, source: SourceFile
    ) -> RawTrajectory | ReadError:
        if isinstance(result, ReadError):
            return result
        plain = replace(result, origin="") if result.origin else result
        if self._origins is None or source.is_remote:
            return plain
        if source.name == STANDARD_INPUT:
            return self._origins.of_stream(plain)
        found = self._origins.of(plain, source.name, str(source.folder or source.name))
        return found or SkippedError(source.name, "", "a session that an agent here has, too")


def read_file(file: IO[bytes], name: str) -> Iterator[RawTrajectory | ReadError]:
    """Return the runs in an open *file*, and an error at the place of each record that is none.

    Formats as `read`, without the reports beside it. *name* is what sources and errors name, and
    gives an instance id where the content has none: nothing is read from disk beside it. A run may
    have 256 MiB; one whose sender read it in a clone is of that repository alone.
    """
    parsed = records(name, file, _ignore, MAX_RUN_SIZE)
    runs = (run for record in parsed for run in _runs_of(_sent(record)))
    return _while_fruitful(confined(run) if isinstance(run, RawTrajectory) else run for run in runs)


def _sent(record: Record | ReadError) -> Record | ReadError:
    if isinstance(record, ReadError):
        return record
    return record._replace(place=replace(record.place, is_sent=True))


def _kept(record: Record | ReadError) -> Record | ReadError:
    if isinstance(record, ReadError):
        return record
    return record._replace(place=replace(record.place, is_kept=True))


def _ignore(_value: object) -> None:
    """Do nothing."""


def _is_skipped(error: SkippedError, source: SourceFile, on_skip: OnSkip | None) -> bool:
    """Return True if *error* is passed over; a file that the caller named was to hold runs."""
    if isinstance(error, ForeignError):
        return source.folder is not None
    return on_skip is not None


def last_calls(
    entries: Iterable[_Entry],
    run_in: Callable[[_Entry], tuple[SourceFile, RawTrajectory] | None],
    on_repeated: Callable[[SourceFile, SkippedError], None],
) -> Iterator[_Entry]:
    """*entries*; of logged model calls that repeat one conversation, only the longest.

    *run_in* gives the run that was found, and its source; *on_repeated* gets the other calls.
    """
    pending: tuple[_Entry, tuple[SourceFile, RawTrajectory]] | None = None
    for entry in entries:
        read_run = run_in(entry)
        if pending and read_run and _is_next_call(pending[1], read_run):
            source = pending[1][0]
            reason = f"an earlier call of the run in {read_run[1].source}"
            on_repeated(source, SkippedError(source.name, "", reason))
        elif pending:
            yield pending[0]
        pending = (entry, read_run) if read_run else None
        if pending is None:
            yield entry
    if pending:
        yield pending[0]


def _run_read(
    entry: tuple[SourceFile, RawTrajectory | ReadError],
) -> tuple[SourceFile, RawTrajectory] | None:
    source, result = entry
    return (source, result) if isinstance(result, RawTrajectory) else None


def _is_next_call(
    earlier: tuple[SourceFile, RawTrajectory], later: tuple[SourceFile, RawTrajectory]
) -> bool:
    """Return True if *later* continues *earlier*, and both were read from logs in one folder.

    What was read from logs before and written in the own format is never put together.
    """
    is_log = all(run.source.startswith(source.name) for source, run in (earlier, later))
    folders = {Path(source.name).parent for source, _ in (earlier, later)}
    return is_log and len(folders) == 1 and is_continued_by(earlier[1], later[1])


def _in_source(
    source: SourceFile, on_bytes: OnBytes, max_size: int, of_clients: tuple[str, ...]
) -> Iterator[RawTrajectory | ReadError]:
    left = source.size

    def count(taken: int) -> None:
        nonlocal left
        taken = min(taken, left)  # a growing file, or one that was read again in part
        left -= taken
        on_bytes(taken)

    records_in = _records_in(source, count, max_size)
    if not source.is_remote and os.path.abspath(source.name).startswith(of_clients):
        records_in = map(_kept, records_in)
    yield from _while_fruitful(run for record in records_in for run in _runs_of(record))
    on_bytes(left + (0 if source.part else FILE_WEIGHT))


def _records_in(
    source: SourceFile, on_bytes: OnBytes, max_size: int
) -> Iterator[Record | ReadError]:
    refused = source.refused
    if not refused and source.folder is not None and not source.is_remote:
        refused = _beside_sessions(source.name, source.folder)
    if refused:
        yield ForeignError(source.name, "", refused)
        return
    if source.size > max_size and source.parts:
        yield too_large(source.name, "", max_size)
        return
    if source.parts:
        yield from records_of_parts(source.name, source.parts)
        return
    if source.part and source.part.lines:
        yield from records_on_lines(source.name, source.part.lines)
        return
    group = source.part.group if source.part else None
    with ExitStack() as stack:
        try:
            file = _opened(source, stack)
        except (OSError, ValueError, ImportError) as error:
            reason = getattr(error, "strerror", None) or error
            yield ReadError(source.name, "", f"cannot be opened: {reason}")
            return
        yield from records(source.name, file, on_bytes, max_size, group)


def divided(source: SourceFile, max_size: int) -> Iterator[SourceFile | ReadError]:
    """Yield *source* in parts, in order, that can be read by themselves; itself where it has none.

    At the end the error with which a file of lines broke.
    """
    is_first = True
    if source.size >= BLOCK_SIZE and not source.parts:
        with ExitStack() as stack, suppress(OSError, ValueError, ImportError):
            for part in parts(source.name, _opened(source, stack), max_size):
                is_first = False
                yield part if isinstance(part, ReadError) else replace(source, part=part)
    if is_first:
        yield source


def _opened(source: SourceFile, stack: ExitStack) -> IO[bytes]:
    if source.name == STANDARD_INPUT:
        return sys.stdin.buffer
    if source.is_remote:
        remote: IO[bytes] = stack.enter_context(remote_files(source.name).open(source.name, "rb"))
        return remote
    # What the caller names may be a pipe; what was found is a file.
    is_named = source.folder is None and is_stream(source)
    return stack.enter_context(open(source.name, "rb") if is_named else opened(source.name))


def _runs_of(record: Record | ReadError) -> Iterable[RawTrajectory | ReadError]:
    return [record] if isinstance(record, ReadError) else runs_in(record.value, record.place)


def _while_fruitful(
    results: Iterable[RawTrajectory | ReadError],
) -> Iterator[RawTrajectory | ReadError]:
    """*results*, up to so many records in a row that are not runs."""
    fruitless = 0
    for result in results:
        if isinstance(result, RawTrajectory):
            fruitless = 0
        elif (fruitless := fruitless + 1) > _MAX_FRUITLESS:
            reason = f"{_MAX_FRUITLESS:,} records in a row are not runs; the rest is not read"
            yield ReadError(result.source, result.position, reason)
            return
        yield result


class _Judge:
    """Sets outcomes: those that were *given*, else those of the reports beside the runs.

    Reports are looked for once per folder, and only for runs whose log is silent.
    """

    def __init__(self, given: GivenOutcomes | None, *, follow_links: bool) -> None:
        self._given = given
        self._follow_links = follow_links
        self._by_folder: dict[tuple[Path, bool], Mapping[Path, Outcomes]] = {}

    def judged(
        self, run: RawTrajectory, source: SourceFile, on_conflict: OnConflict
    ) -> RawTrajectory:
        """Return *run*, with the outcome that a report gives."""
        names = (run.instance_id, file_stem(source.name))
        if self._given is not None:
            return self._given.judged(run, names, on_conflict)
        if run.outcome is not Outcome.UNKNOWN:
            return run
        for report in self._reports(source):
            for name in names:
                if name in report:
                    by_report = OutcomeSource.REPORT
                    return replace(run, outcome=report[name], outcome_source=by_report)
        return run

    def _reports(self, source: SourceFile) -> Iterator[Outcomes]:
        """The reports about a file, nearest folder first."""
        if source.name == STANDARD_INPUT or source.is_remote:
            return
        by_folder = self._found(source)
        for folder in (Path(source.name), *Path(source.name).parents):
            if folder in by_folder:
                yield by_folder[folder]

    def _found(self, source: SourceFile) -> Mapping[Path, Outcomes]:
        root, deep = source.folder or Path(source.name).parent, source.folder is not None
        if (root, deep) not in self._by_folder:
            files: Iterable[Path] = root.iterdir()
            if deep:
                files = map(Path, files_in(str(root), follow_links=self._follow_links))
            self._by_folder[root, deep] = outcomes_by_folder(root, files)
        return self._by_folder[root, deep]


# Agents name the file of a session after its id, a UUID.
_ID_CHARS = 36
_DATABASES = (".db", ".vscdb")


class History(Struct, frozen=True):
    """The sessions of one *agent* in *folder*: their *files* (or folders), number and size.

    *runs* counts files, or the sessions of a database; a session may be read as several runs or,
    where nothing was done, as none. *experimental* as in `FORMATS`.
    """

    agent: str
    folder: Path
    files: tuple[Path, ...]
    runs: int
    bytes: int
    experimental: bool = False


class Discovered(Struct, frozen=True):
    """The histories on a machine, and how many files of each folder *in_projects* are in none.

    A history in a checkout, or a page in a folder of a project, comes with a clone, a pull or a
    package, and may be anyone's words: it is learned where its folder is named.
    """

    histories: tuple[History, ...]
    in_projects: Mapping[Path, int]


def discover(
    home: Path | None = None,
    environment: Mapping[str, str] | None = None,
    exclude: Sequence[str] = (),
    trusted: Vouched = NOTHING_VOUCHED,
) -> Discovered:
    """Return the histories on this machine, without files that match a pattern in *exclude*.

    Files in a checkout or project are counted apart, unless in a *trusted* folder. A checkout that
    also holds *home*, or the folder in *home* where an agent keeps its sessions by default, is the
    user's own, such as one of settings.

    Only names and sizes are looked at, and which session a page shows (`Kept.session_shown`): it is
    left out where the agent's own file of that session is there. Patterns are as those of
    `fnmatch`, on the whole path.
    """
    home = home or Path.home()
    environment = os.environ if environment is None else environment
    histories, kept, foreign = list[History](), set[str](), dict[str, set[Path]]()
    origins = Origins(trusted, _own_folders(home))
    for form, place in _places():
        folder = Path(environment.get(place.variable) or home / place.folder)
        files = list[Path]()
        for pattern in place.patterns:
            for file in _files(folder, pattern, exclude):
                if place.session_shown and place.session_shown(file)[-_ID_CHARS:] in kept:
                    continue
                above = origins.clone(file)
                if not above and place.session_shown and not origins.is_trusted(file):
                    above = _project_of(file, folder, pattern)
                if above:
                    foreign.setdefault(above, set()).add(file)
                else:
                    files.append(file)
        kept.update(file_stem(str(file))[-_ID_CHARS:] for file in files)
        if files:
            runs = sum(map(_sessions, files))
            agent, some = place.agent or form.name, tuple(files)
            histories.append(History(agent, folder, some, runs, size_of(some), form.experimental))
    counts = {
        Path(os.path.commonpath([file.parent for file in some])): len(some)
        for some in foreign.values()
    }
    return Discovered(tuple(histories), counts)


def _project_of(page: Path, folder: Path, pattern: str) -> str:
    """Return the project below *folder* that has *page* at *pattern*; empty for *folder* itself."""
    depth = sum(1 for _ in takewhile(glob.has_magic, Path(pattern).parts))
    project = folder.joinpath(*page.relative_to(folder).parts[:depth])
    return "" if project == folder else str(project)


def _places() -> Iterable[tuple[Format, Kept]]:
    """Return where sessions are kept, with their format; pages that show others come last."""
    places = [(form, place) for form in all_formats().values() for place in form.kept]
    return sorted(places, key=lambda entry: entry[1].session_shown is not None)


def is_kept(form: str, source: str) -> bool:
    """Return whether the run *source* is in a file that a client of this machine keeps.

    *form* is the name of its format.
    """
    file = source
    while file and not os.path.isfile(file):
        file = file.rpartition(":")[0]  # of a session in a database
    folders = (_root_of(place) for kind, place in _places() if kind.name == form)
    return bool(file) and any(Path(file).absolute().is_relative_to(one) for one in folders)


def _client_roots() -> tuple[str, ...]:
    """Return the folders in which clients of this machine keep their sessions, each with a `/`."""
    home = str(Path.home())
    return tuple(
        os.path.join(os.environ.get(variable) or os.path.join(home, folder), fixed)
        for variable, folder, fixed in _client_places()
    )


@cache
def _client_places() -> frozenset[tuple[str, str, str]]:
    """Return the variable and the folder of each client, and what all its sessions are below."""
    places = (
        (place.variable, place.folder, _fixed_folder(Path(), pattern).parts)
        for _, place in _places()
        if place.session_shown is None
        for pattern in place.patterns
    )
    # The home itself is no client's.
    return frozenset(
        (variable, folder, os.path.join("", *fixed, ""))
        for variable, folder, fixed in places
        if folder or fixed
    )


def _beside_sessions(file: str, folder: Path) -> str:
    """Return why *file* is no session, where *folder*, in which it was found, is a client's.

    Empty for others. A client also keeps settings, hooks and keys in its folder.
    """
    path = os.path.abspath(folder)
    client, kept = _client_folders().get(os.path.basename(path), ("", frozenset()))
    if not client or os.path.relpath(file, path).partition(os.sep)[0] in kept:
        return ""
    return f"kept beside the sessions of {client}"


@cache
def _client_folders() -> Mapping[str, tuple[str, frozenset[str]]]:
    """Return the folders in a home that one client has, with its name and what has its sessions."""
    clients: dict[str, set[str]] = {}
    kept: dict[str, set[str]] = {}
    for form, place in _places():
        for pattern in place.patterns if place.session_shown is None else ():
            folder, *below = _fixed_folder(Path(place.folder), pattern).parts or ("",)
            clients.setdefault(folder, set()).add(form.name)
            kept.setdefault(folder, set()).update(below[:1])
    return {
        folder: (min(some), frozenset(kept[folder]))
        for folder, some in clients.items()
        if len(some) == 1 and kept[folder]
    }


def _root_of(place: Kept) -> Path:
    return Path(os.environ.get(place.variable) or Path.home() / place.folder)


def _fixed_folder(folder: Path, pattern: str) -> Path:
    """Return the deepest folder that all files at *pattern* below *folder* are in."""
    parts = Path(pattern).parts[:-1]
    return folder.joinpath(*takewhile(lambda part: not glob.has_magic(part), parts))


def own_origins(trusted: Vouched) -> Origins:
    """Return the origins of histories here; what is *trusted* is the owner's."""

    @cache
    def sessions() -> frozenset[str]:
        files = (file for history in discover().histories for file in history.files)
        return frozenset(file_stem(str(file))[-_ID_CHARS:] for file in files)

    return Origins(
        trusted,
        _own_folders(Path.home()),
        lambda session: session[-_ID_CHARS:] in sessions(),
    )


def trust_histories(folders: Iterable[Path]) -> None:
    """Trust histories in *folders* as long as they hold the same repositories; see `to_trust`."""
    origins = own_origins(NOTHING_VOUCHED)
    for folder in folders:
        HISTORIES.add(folder, origins.repository(folder.resolve()))


def to_trust(folders: Iterable[Path]) -> list[Path]:
    """Return *folders*, and the checkouts that are below those in none."""
    origins, found = own_origins(NOTHING_VOUCHED), list[Path]()
    for folder in folders:
        place = folder.resolve()
        below = [] if origins.repository(place) else origins.checkouts(place)
        found += [folder, *below]
    return found


def trusted_histories(*, data: bool = False) -> Vouched:
    """Return the folders whose histories are trusted, and that hold the repository of then.

    With *data* the caller vouches for that of benchmarks.
    """
    origins = own_origins(NOTHING_VOUCHED)
    held = HISTORIES.contents().items()
    folders = [folder for folder, name in held if origins.repository(Path(folder)) == name]
    return Vouched(folders, data)


def _own_folders(home: Path) -> list[Path]:
    """Return *home* and the folders in it where agents keep their sessions by default."""
    patterns = (
        (home / place.folder, pattern) for _, place in _places() for pattern in place.patterns
    )
    return [home, *(_fixed_folder(folder, pattern) for folder, pattern in patterns)]


class ReadFiles:
    """Digests of files that were read, and the runs they gave, kept in the file *record*.

    A file is known while its content is the same and the memory has all of its runs.
    """

    def __init__(self, record: Path) -> None:
        self._record = record
        try:
            self._files: dict[str, dict[str, Any]] = orjson.loads(record.read_bytes())
        except (OSError, ValueError):
            self._files = {}

    def new(
        self, files: Iterable[Path], learned: Callable[[Sequence[str]], Container[str]]
    ) -> list[Path]:
        """Return those of *files* that are to be read; *learned* says which runs a memory has."""
        found = {str(file): self._files.get(str(file)) for file in files}
        known = learned(sorted({run for entry in found.values() if entry for run in entry["runs"]}))
        return [
            Path(file)
            for file, entry in found.items()
            if entry is None
            or any(run not in known for run in entry["runs"])
            or not self._is_same(Path(file), entry)
        ]

    def _is_same(self, file: Path, entry: dict[str, Any]) -> bool:
        size, modified = _state(file)
        if size != entry["size"]:
            return False
        return bool(modified == entry["modified"]) or _digest(file) == entry["digest"]

    def note(self, runs: Mapping[Path, Sequence[str]]) -> None:
        """Keep that files gave *runs*, by their ids."""
        for file, ids in runs.items():
            size, modified = _state(file)
            entry = {"size": size, "modified": modified, "digest": _digest(file)}
            self._files[str(file)] = {**entry, "runs": sorted(ids)}
        self._record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(self._record) as part:
            part.write_bytes(orjson.dumps(self._files))


def _parts(file: Path) -> list[Path]:
    """The files behind *file*: those in a folder, and what a database has not yet taken in."""
    if file.is_dir():
        return sorted(part for part in file.rglob("*") if part.is_file())
    journal = file.with_name(f"{file.name}-wal")
    return [file, journal] if journal.exists() else [file]


def _state(file: Path) -> tuple[int, int]:
    """Size in bytes, and when it was modified last, in nanoseconds."""
    try:
        states = [part.stat() for part in _parts(file)]
    except OSError:
        return -1, 0
    return sum(s.st_size for s in states), max((s.st_mtime_ns for s in states), default=0)


def _digest(file: Path) -> str:
    digest = blake2b(digest_size=16)
    try:
        for part in _parts(file):
            with part.open("rb") as opened:
                while piece := opened.read(1 << 20):
                    digest.update(piece)
    except OSError:
        return ""
    return digest.hexdigest()


def _files(folder: Path, pattern: str, exclude: Sequence[str]) -> Iterator[Path]:
    found = set(glob.glob(f"{glob.escape(str(folder))}/{pattern}", recursive=True))
    for name in sorted(found):
        if not _is_session(name):
            continue
        # Codex packs old sessions; for a while both forms may be there.
        is_packed_copy = name.endswith(".zst") and name.removesuffix(".zst") in found
        if not is_packed_copy and not any(fnmatch(name, excluded) for excluded in exclude):
            yield Path(name)


def _is_session(name: str) -> bool:
    """Return True for a file or a folder; a project may hold a link to a pipe or a device."""
    try:
        return os.path.isdir(name) or not kind_of(name)
    except OSError:
        return False


def _sessions(file: Path) -> int:
    if file.suffix not in _DATABASES:
        return 1
    try:
        return count_sessions(str(file))
    except ReadError:
        return 0  # reading it reports why
