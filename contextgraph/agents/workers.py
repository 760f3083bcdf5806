"""Runs that are read, masked, traced and embedded by other processes or by a Ray cluster.

What is to be read is divided into tasks: small files together, blocks of lines of large ones. The
process that was started takes what the workers find in the order of reading, and writes it alone.
"""

import logging
import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from contextgraph.errors import ContextGraphError, MissingExtraError, ReadError
from contextgraph.learning import RUNS_AT_ONCE, Prepared
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import RawTrajectory, Space
from contextgraph.model.values import replace
from contextgraph.readers.origin import Vouched
from contextgraph.readers.outcomes import GivenOutcomes, given_outcomes
from contextgraph.readers.reading import Reader, divided, last_calls
from contextgraph.readers.sources import SourceFile, is_stream, sources

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from contextgraph.readers.outcomes import OnConflict
    from contextgraph.readers.reading import OnError, OnSkip
    from contextgraph.readers.sources import StrPath
    from contextgraph.system.intake import OnBytes


# Small files are read together: a task costs some milliseconds.
_TASK_BYTES = 1 << 20
_TASK_FILES = 64
# How many bytes one worker of a cluster divides into tasks; a larger file has one to itself.
_CLUSTER_BYTES = 32 << 20
# What a task finds is held by its worker until it is sent: a larger file that has no parts is read
# here, and its runs are traced by workers.
_LARGEST_BYTES = 32 << 20
# What the workers of a cluster send is passed on in blocks of about this size.
_RAY_BLOCK_BYTES = 16 << 20
_SAFE_PATH = "PYTHONSAFEPATH"
_KILLED = (
    "a worker process was killed, perhaps for lack of memory; repeat the command with"
    " fewer --workers to continue"
)


class _Job(Struct, frozen=True):
    """Shared by all workers: how to read, the space of the memory, its runs and who supplies."""

    given: GivenOutcomes | None
    max_run_size: int
    follow_links: bool
    trusted: Vouched | None
    embedder: str
    space: Space | None
    model: bytes | None
    known: frozenset[str]
    source: str

    def reader(self) -> Reader:
        """Return what reads the runs."""
        return Reader(
            self.given, self.max_run_size, follow_links=self.follow_links, trusted=self.trusted
        )


class _Found(Struct, frozen=True):
    """A run and its *source*, or what `read` reports beside runs, by its *kind*.

    That is "run", "error", "skip", "bytes" or "conflict". The run of a worker is `Prepared`.
    """

    kind: str
    value: Any
    source: SourceFile | None = None

    def run(self) -> tuple[SourceFile, RawTrajectory] | None:
        """Return the run of a worker, if it is one."""
        return (self.source, self.value.raw) if self.source else None


# What is to be read or was found already, in order.
_Task: TypeAlias = Sequence[SourceFile | _Found]


class WorkersReader:
    """Has runs read, and all that they teach made, by *workers* processes or a Ray cluster.

    The processors of a cluster at *address* must find the same files at the same paths and URLs.
    *embedder* is that of the command line. Raises `MissingExtraError` for a cluster without ray.
    """

    def __init__(
        self, memory: AgentMemory, workers: int, address: str = "", embedder: str = ""
    ) -> None:
        self._work = partial(_on_cluster, _ray(), address) if address else partial(_here, workers)
        vectors = memory.store.vectors
        space = vectors.active_space()
        self._new_job = partial(
            _Job,
            embedder=embedder,
            space=space,
            model=vectors.space_model(space.name) if space else None,
            known=frozenset(memory.store.runs.ids()),
            source=memory.source,
        )
        self._writer = memory.writer
        self._last: Prepared | None = None

    def read(
        self,
        *paths: "StrPath",
        on_error: "OnError",
        on_skip: "OnSkip",
        on_bytes: "OnBytes",
        on_conflict: "OnConflict",
        outcomes: "StrPath | None",
        max_run_size: int,
        follow_links: bool,
        trusted: Vouched | None = None,
    ) -> Iterator[RawTrajectory]:
        """Yield the runs in *paths*, in the order of `readers.read`, with all that it reports."""
        given = None if outcomes is None else given_outcomes(outcomes)
        job = self._new_job(given, max_run_size, follow_links, trusted)
        handlers: dict[str, Callable[[Any], None]] = {"error": on_error, "skip": on_skip}
        handlers |= {"bytes": on_bytes, "conflict": on_conflict}
        records = _without_aside(self._work(job, paths), handlers)
        # Several workers may have read the calls of one run.
        for record in last_calls(records, _Found.run, lambda _source, error: on_skip(error)):
            if record.kind == "run":
                self._last = record.value
                yield record.value.raw
            else:
                handlers[record.kind](record.value)

    def keep(self, raw: RawTrajectory) -> None:
        """Have the writer use what the workers made of the run that was read last, now *raw*."""
        if self._last:
            self._writer.take(replace(self._last, raw=raw))


def _without_aside(
    records: Iterable[_Found], handlers: Mapping[str, Callable[[Any], None]]
) -> Iterator[_Found]:
    """The *records*, without those that *handlers* take."""
    for record in records:
        if record.kind in ("bytes", "conflict"):
            handlers[record.kind](record.value)
        else:
            yield record


class _Worker:
    """Does tasks."""

    def __init__(self, job: _Job) -> None:
        self._known, self._source = job.known, job.source
        self._reader = job.reader()
        self._memory = AgentMemory.open(":memory:", embedder=job.embedder or None)
        if job.space is not None:
            self._memory.store.vectors.prepare(job.space, job.model)
            self._memory.store.vectors.switch(job.space.name)

    def do(self, task: _Task) -> Iterator[_Found]:
        """Yield the contents of *task*, in order."""
        for record in _read_task(self._reader, task):
            if record.kind == "run":
                try:
                    prepared = self._memory.writer.prepared(record.value, self._known, self._source)
                except ReadError as error:
                    yield _Found("error", error)
                else:
                    yield replace(record, value=prepared)
            else:
                yield record


def _read_task(reader: Reader, task: _Task) -> Iterator[_Found]:
    for _, group in groupby(task, type):
        some = list(group)
        yield from _read(reader, [source for source in some if isinstance(source, SourceFile)])
        yield from (record for record in some if isinstance(record, _Found))


def _read(reader: Reader, some: Iterable[SourceFile]) -> Iterator[_Found]:
    """The runs in *some* sources, as they are, and what was reported before each and at the end."""
    aside: list[_Found] = []

    def report(kind: str) -> Callable[[Any], None]:
        return lambda value: aside.append(_Found(kind, value))

    results = reader.results(
        some,
        on_error=report("error"),
        on_skip=report("skip"),
        on_bytes=report("bytes"),
        on_conflict=report("conflict"),
    )
    for source, result in results:
        if isinstance(result, ReadError):  # none: they are reported
            raise result
        yield from aside
        aside.clear()
        yield _Found("run", result, replace(source, part=None))
    yield from aside


def _sources(paths: "Iterable[StrPath]", *, follow_links: bool) -> Iterator[SourceFile | _Found]:
    """The files behind *paths*, in order, and an error for each path without any."""
    for path in paths:
        try:
            yield from sources(path, follow_links=follow_links)
        except ReadError as error:
            yield _Found("error", error)


def _divided(some: Iterable[SourceFile | _Found], max_size: int) -> Iterator[SourceFile | _Found]:
    """*some* sources, large ones in parts that can be read by themselves."""
    for entry in some:
        if isinstance(entry, SourceFile):
            for part in divided(entry, max_size):
                yield _Found("error", part) if isinstance(part, ReadError) else part
        else:
            yield entry


def _tasks(some: Iterable[SourceFile | _Found], most_bytes: int) -> Iterator[_Task]:
    """*some* in groups that are worth a task each, of about *most_bytes*."""
    task: list[SourceFile | _Found] = []
    size = 0
    for entry in some:
        added = entry.size if isinstance(entry, SourceFile) else most_bytes // RUNS_AT_ONCE
        if task and (size + added > most_bytes or len(task) >= _TASK_FILES):
            yield task
            task, size = [], 0
        task.append(entry)
        size += added
    if task:
        yield task


def _here(workers: int, job: _Job, paths: "Iterable[StrPath]") -> Iterator[_Found]:
    """Yield what *workers* processes find in *paths*, in order."""
    reader = job.reader()

    def divided_or_read() -> Iterator[SourceFile | _Found]:
        entries = _sources(paths, follow_links=job.follow_links)
        for entry in _divided(entries, job.max_run_size):
            if isinstance(entry, SourceFile) and (is_stream(entry) or entry.size > _LARGEST_BYTES):
                yield from _read(reader, [entry])
            else:
                yield entry

    waiting: deque[Connection] = deque()
    with _processes(workers, job) as connections:
        for task in _tasks(divided_or_read(), _TASK_BYTES):
            records: list[_Found] = []
            if len(waiting) == workers:
                connection = waiting.popleft()
                records = _result(connection)
            else:
                connection = next(connections)
            _send(connection, task)  # to work on it while what was found is written
            waiting.append(connection)
            yield from records
        for connection in waiting:
            yield from _result(connection)


def _send(connection: "Connection", task: _Task) -> None:
    try:
        connection.send(task)
    except ConnectionError as error:
        raise ContextGraphError(_KILLED) from error


def _result(connection: "Connection") -> list[_Found]:
    try:
        result: list[_Found] | Exception = connection.recv()
    except (EOFError, ConnectionError) as error:
        raise ContextGraphError(_KILLED) from error
    if isinstance(result, Exception):
        raise result
    return result


@contextmanager
def _processes(count: int, job: _Job) -> "Iterator[Iterator[Connection]]":
    """At most *count* connections, each to a process that ends with the block.

    Each process has a pipe of its own, whose other end closes when it is killed, even while it
    sends a result; the queue of a `ProcessPoolExecutor` would wait for the rest forever.
    """
    from multiprocessing import get_context

    # Not forked: the threads of a driver would be missing, their locks held.
    context = get_context("spawn")
    with ExitStack() as ends:

        def started() -> "Iterator[Connection]":
            for _ in range(count):
                connection, theirs = context.Pipe()
                ends.enter_context(connection)
                process = context.Process(target=_serve, args=(theirs, job), daemon=True)
                with _modules_of_the_folder_left_out():
                    process.start()
                theirs.close()
                ends.callback(process.join)
                ends.callback(process.kill)  # what it still does is not wanted
                yield connection

        yield started()


@contextmanager
def _modules_of_the_folder_left_out() -> Iterator[None]:
    """Have Python that starts in the block import nothing of the working folder, perhaps a clone.

    It would before it takes over the path of this process, and so would the tracker of resources.
    """
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


def _serve(connection: "Connection", job: _Job) -> None:
    """Do the tasks that the parent sends, and end with it; Ctrl-C is left to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker = None
    with suppress(EOFError, ConnectionError):
        while True:
            task = connection.recv()
            try:
                worker = worker or _Worker(job)
                result: object = list(worker.do(task))
            except Exception as error:  # noqa: BLE001  (raised again by the parent)
                result = error
            connection.send(result)


def _ray() -> Any:
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise MissingExtraError("--ray needs ray on each machine", "ray") from error
    return ray


def _on_cluster(ray: Any, address: str, job: _Job, paths: "Iterable[StrPath]") -> Iterator[_Found]:
    """Yield what the workers of the Ray cluster at *address* find in *paths*, in order."""
    tasks = list(_tasks(_sources(paths, follow_links=job.follow_links), _CLUSTER_BYTES))
    if not tasks:
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report to its makers
    options = {"include_dashboard": False} if address == "local" else {}
    ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False, **options)
    try:
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.execution_options.preserve_order = True
        context.target_max_block_size = _RAY_BLOCK_BYTES
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        rows = [{"task": pickle.dumps(task)} for task in tasks]
        data = ray.data.from_items(rows, override_num_blocks=len(rows))
        # With equal shares of a processor Ray would fuse both steps into one.
        data = data.flat_map(partial(_divided_there, job.max_run_size), num_cpus=0.5)
        data = data.map_batches(partial(_done_there, ray.put(job)), batch_size=1)
        for row in data.iter_rows():
            yield pickle.loads(row["found"])
    finally:
        ray.shutdown()


def _divided_there(max_size: int, row: "dict[str, Any]") -> "Iterator[dict[str, Any]]":
    """In a worker of a cluster: the task in *row* as smaller ones, whose lines were read."""
    for task in _tasks(_divided(pickle.loads(row["task"]), max_size), _TASK_BYTES):
        yield {"task": pickle.dumps(task)}


def _done_there(job: Any, batch: "dict[str, Any]") -> "Iterator[dict[str, Any]]":
    """In a worker of a cluster: what is found in the tasks of *batch*, pickled."""
    for task in batch["task"]:
        for record in _worker_there(job).do(pickle.loads(task)):
            yield {"found": [pickle.dumps(record)]}


@lru_cache(1)
def _worker_there(job: Any) -> _Worker:
    import ray

    return _Worker(ray.get(job))
