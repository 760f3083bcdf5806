"""State of the service between requests: memories of tenants, live runs, the writer."""

import asyncio
import fcntl
import logging
import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import partial
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import ParamSpec, TypeVar
from uuid import uuid4

import orjson
from anyio import CapacityLimiter, fail_after
from anyio.to_thread import run_sync
from msgspec import Struct, field

from contextgraph.agents.live import LiveRun
from contextgraph.agents.shown import Session
from contextgraph.config import Settings
from contextgraph.errors import ContextGraphError, StoreError, StoreUnavailableError
from contextgraph.learning import RUNS_AT_ONCE, masked
from contextgraph.learning.writer import Spool, WaitingRun
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.memory.wiring import build
from contextgraph.model import Json, LearnReceipt, RawTrajectory, Step
from contextgraph.model.codec import decoded, encoded
from contextgraph.model.values import replace
from contextgraph.readers import SkippedError, from_record, to_record
from contextgraph.service.monitoring import Metrics, TooBusyError
from contextgraph.service.records import learned_record, not_learned_record, unread_record
from contextgraph.service.tokens import TokenFile
from contextgraph.system.processes import locked

_LOCK = "lock"
_LARGE = 64 << 10

_log = logging.getLogger(__name__)

_P = ParamSpec("_P")
_R = TypeVar("_R")


# Seconds before a store that was away is tried again: doubled up to the second figure.
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 5.0
# Wrong secrets of one token a second, in bursts of twice as many; each costs a hash.
_GUESSES = 5.0
_MAX_JOBS, _MAX_SESSIONS = 1024, 4096
_IDLE_SECONDS = 1.0


class JobState(StrEnum):
    """Waiting: also while the store is away. Done: each record has its status."""

    WAITING = "waiting"
    LEARNING = "learning"
    DONE = "done"


class Job(Struct):
    """Runs that were handed in together. They are safe in files; *records* says what was learned.

    *error* is why it waits, empty where it does not.
    """

    id: str
    memory: AgentMemory
    waiting: deque[WaitingRun]
    records: list[dict[str, Json]] = field(default_factory=list)
    receipts: list[LearnReceipt] = field(default_factory=list)
    state: JobState = JobState.WAITING
    error: str = ""
    unread: Iterable[WaitingRun] = ()
    done: threading.Event = field(default_factory=threading.Event)

    def record(self, *, complete: bool = False) -> dict[str, Json]:
        """Return the JSON object of the job; if *complete*, with receipts."""
        records = [*self.records]
        statuses = [record["status"] for record in records]
        names = ("created", "unchanged", "updated", "failed", "skipped")
        counts: dict[str, Json] = {name: statuses.count(name) for name in names}
        receipts: dict[str, Json] = (
            {"receipts": [encoded(receipt) for receipt in self.receipts]} if complete else {}
        )
        return {
            **receipts,
            "job": self.id,
            "state": self.state.value,
            "error": self.error or None,
            "runs": [*records],
            "summary": {"records": len(records), "waiting": len(self.waiting), **counts},
        }


class Writer:
    """The one thread that learns. *idle* is called every second in which nothing is learned."""

    def __init__(self, idle: Callable[[], None]) -> None:
        self._idle = idle
        self._jobs: OrderedDict[tuple[int, str], Job] = OrderedDict()
        self._queue: deque[Job] = deque()
        self._changed = threading.Condition()
        self._is_closing = False
        self._thread = threading.Thread(target=self._work, name="writer", daemon=True)
        self._thread.start()

    def submit(
        self,
        identity: str,
        memory: AgentMemory,
        spool: Spool,
        runs: Sequence[RawTrajectory],
        source: str,
        unread: Sequence[dict[str, Json]] = (),
    ) -> Job:
        """Store *runs* of *source* in files; return the job that learns them.

        For the same runs it is the job that there is. *unread* are records of lines without a run.
        """
        if (known := self.job(memory, identity)) and not known.done.is_set():
            return known
        waiting = [spool.put(raw, source) for raw in runs]
        return self._add(Job(identity, memory, deque(waiting), [*unread]))

    def recover(self, memory: AgentMemory, left: Iterable[WaitingRun]) -> Job:
        """Return a job that reads and learns the runs that an earlier process *left*."""
        return self._add(Job("recovery", memory, deque(), unread=left))

    def job(self, memory: AgentMemory, identity: str) -> Job | None:
        """Return the job of this id and memory; None if it is unknown or forgotten."""
        with self._changed:
            return self._jobs.get((id(memory), identity))

    def waiting(self, memory: AgentMemory) -> int:
        """Return the number of runs that wait to be learned by *memory*."""
        with self._changed:
            return sum(len(job.waiting) for job in self._jobs.values() if job.memory is memory)

    def close(self) -> None:
        """Learn what waits, unless the store is away; the files of the rest remain."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join()

    def _add(self, job: Job) -> Job:
        key = (id(job.memory), job.id)
        with self._changed:
            known = self._jobs.get(key)
            if known is not None and not known.done.is_set():
                return known
            self._jobs[key] = job
            self._jobs.move_to_end(key)
            old = [key for key, job in self._jobs.items() if job.done.is_set()]
            for name in old[: max(0, len(self._jobs) - _MAX_JOBS)]:
                del self._jobs[name]
            self._queue.append(job)
            self._changed.notify_all()
        return job

    def _work(self) -> None:
        pause = _FIRST_WAIT
        while (job := self._next()) is not None:
            try:
                self._learn_some(job)
                pause = _FIRST_WAIT
            except StoreUnavailableError as error:
                job.state, job.error = JobState.WAITING, str(error)
                _log.warning("runs wait in files: %s", error)
                with self._changed:
                    self._queue.append(job)
                    if self._is_closing:
                        return
                    self._changed.wait_for(lambda: self._is_closing, pause)
                pause = min(2 * pause, _LONGEST_WAIT)

    def _next(self) -> Job | None:
        """The job whose turn it is; None at the end."""
        while True:
            with self._changed:
                if self._queue:
                    return self._queue.popleft()
                if self._is_closing:
                    return None
                self._changed.wait(_IDLE_SECONDS)
            try:
                self._idle()
            except ContextGraphError as error:
                _log.warning("tried again later: %s", error)

    def _learn_some(self, job: Job) -> None:
        """Learn the next runs of *job*; after them it is the turn of others."""
        job.state, job.error = JobState.LEARNING, ""
        try:
            job.waiting.extend(job.unread)
        except (ContextGraphError, OSError) as error:
            _log.warning("waiting runs cannot be read: %s", error)
        job.unread = ()
        source = job.waiting[0].source if job.waiting else ""
        of_source = takewhile(lambda run: run.source == source, job.waiting)
        some = [*islice(of_source, RUNS_AT_ONCE)]
        try:
            receipts = [*job.memory.learn_many((run.raw for run in some), source=source)]
        except StoreUnavailableError:
            raise
        except Exception:  # noqa: BLE001  (by one of them: the others are not to go with it)
            for run in some:
                self._learn_one(job, run)
        else:
            for run, receipt in zip(some, receipts, strict=True):
                _learned(job, run, receipt)
        with self._changed:
            if job.waiting:
                self._queue.append(job)
                return
        job.state = JobState.DONE
        job.done.set()

    @staticmethod
    def _learn_one(job: Job, run: WaitingRun) -> None:
        path, raw, source = run
        try:
            _learned(job, run, job.memory.learn(raw, source=source, background=True))
        except StoreUnavailableError:
            raise
        except SkippedError as error:  # it was forgotten
            path.unlink(missing_ok=True)
            job.records.append(unread_record(error))
            job.waiting.popleft()
        except Exception as error:  # noqa: BLE001  (it must not stop the learning of others)
            _log.exception("a run cannot be stored; it is kept in %s.failed", path)
            path.replace(path.with_name(f"{path.name}.failed"))
            job.records.append(not_learned_record(raw.source, raw.instance_id, str(error)))
            job.waiting.popleft()


def _learned(job: Job, run: WaitingRun, receipt: LearnReceipt) -> None:
    run.path.unlink(missing_ok=True)  # another process may have learned it, too
    job.records.append(learned_record(run.raw, receipt))
    job.receipts.append(receipt)
    job.waiting.popleft()


class Limits(Struct, frozen=True):
    """Bounds of the service: bytes of an upload, requests a second and seconds for each.

    *rate* is of one token, in bursts of twice as many; a live run that was not used for *idle*
    seconds is learned as it is.
    """

    upload: int = 64 << 20
    rate: float = 500.0
    seconds: float = 30.0
    idle: float = 3600.0
    live_runs: int = 1024
    waiting: int = 4096


class RateLimiter:
    """Lets each key pass *rate* times a second, twice as often for a moment."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._left: dict[str, tuple[float, float]] = {}

    def wait(self, key: str) -> float:
        """Return the seconds until *key* may pass; 0 if it passes now."""
        left = self._tokens(key)
        self._left[key] = (max(left - 1, 0.0) if left >= 1 else left, time.monotonic())
        return 0.0 if left >= 1 else (1 - left) / self._rate

    def left(self, key: str) -> float:
        """Return the seconds until *key* may pass, which does not pass now."""
        left = self._tokens(key) if key in self._left else 1.0
        return 0.0 if left >= 1 else (1 - left) / self._rate

    def _tokens(self, key: str) -> float:
        now = time.monotonic()
        left, at = self._left.get(key, (2 * self._rate, now))
        return min(2 * self._rate, left + (now - at) * self._rate)


class Journal:
    """The live runs of one process: a file each in a folder that it holds a lock on.

    The first line is who supplied the run, the second the run without steps, each other line a
    step of it; secrets are masked.
    """

    def __init__(self, folder: Path) -> None:
        self._parent = folder
        self._folder = folder / f"{uuid4().hex}.server"
        self._lock: int | None = None
        self._opening = threading.Lock()
        self._written: dict[str, int] = {}
        self.sizes: dict[str, int] = {}
        """Bytes of the runs that go on."""

    def write(self, identity: str, run: RawTrajectory, source: str) -> None:
        """Append those steps of *run* that are not written yet."""
        self._open()
        done = self._written.get(identity, 0)
        new = masked(replace(run, steps=run.steps[done:]), with_playbooks=True)[0]
        head = [orjson.dumps(source), orjson.dumps(to_record(replace(new, steps=())))]
        lines = [] if done else head
        lines += [orjson.dumps(encoded(step)) for step in new.steps]
        with open(self._folder / identity, "ab") as file:
            file.writelines(line + b"\n" for line in lines)
            self.sizes[identity] = file.tell()
        self._written[identity] = len(run.steps)

    def remove(self, identity: str) -> None:
        """Forget a run that is finished and safe elsewhere."""
        self._written.pop(identity, None)
        self.sizes.pop(identity, None)
        (self._folder / identity).unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the folder, which holds no run any more."""
        if self._lock is not None:
            (self._folder / _LOCK).unlink()
            os.close(self._lock)
            self._folder.rmdir()

    def abandoned(self) -> Iterator[WaitingRun]:
        """Yield runs of processes that ended, to one process at a time."""
        for lock in self._parent.glob(f"*.server/{_LOCK}"):
            with locked(lock, wait=False) as is_alone:
                if not is_alone:
                    continue  # its process is at work
                for path in lock.parent.glob("live_*"):
                    try:
                        yield _read(path)
                    except (ContextGraphError, ValueError) as error:
                        kept = path.replace(self._parent / f"{path.name}.failed")
                        _log.warning("a live run cannot be read; it is kept in %s: %s", kept, error)
                with suppress(FileNotFoundError):  # another process had the lock before
                    lock.unlink()
                    lock.parent.rmdir()

    def _open(self) -> None:
        with self._opening:
            if self._lock is None:
                # Under another name until it is locked, or it would seem to be abandoned.
                new = self._folder.with_suffix(".new")
                new.mkdir(mode=0o700, parents=True)
                self._lock = os.open(new / _LOCK, os.O_WRONLY | os.O_CREAT, 0o600)
                fcntl.flock(self._lock, fcntl.LOCK_EX)
                new.rename(self._folder)


def _read(path: Path) -> WaitingRun:
    """The run in a file; a step that was not written whole was not answered either."""
    source, first, *rest = map(orjson.loads, path.read_bytes().split(b"\n")[:-1])
    raw = replace(from_record(first), steps=tuple(decoded(Step, step) for step in rest))
    return WaitingRun(path, raw, source)


class OpenRun(Struct):
    """A live run, the lock under which it is used, and when it last was (monotonic seconds).

    With more than *most* bytes it can only be finished.
    """

    id: str
    run: LiveRun
    source: str
    journal: Journal
    most: int
    used_at: float = field(default_factory=time.monotonic)
    is_open: bool = True
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def in_use(self) -> Iterator[LiveRun]:
        """Yield the run, to one thread; at the end, its new steps are written to a file.

        Raises ValueError if it is finished, or has to be.
        """
        with self.lock:
            if not self.is_open:
                raise ValueError("the run is finished: begin another one")
            if self.journal.sizes.get(self.id, 0) > self.most:
                raise ValueError(f"the run has more than {self.most:,} bytes: finish it")
            self.used_at = time.monotonic()
            yield self.run
            if (raw := self.run.raw).steps:
                self.journal.write(self.id, raw, self.source)


class Tenant:
    """The memory of a tenant, the runs that wait for it, and those that go on."""

    def __init__(self, settings: Settings) -> None:
        self.name = settings.tenant
        parts = build(settings)
        self.memory = AgentMemory.of(parts)
        # Records nothing of what is shown.
        self.reading = AgentMemory.of(parts.for_readers())
        self.spool = Spool(settings)
        self.live: dict[str, OpenRun] = {}
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self.journal = Journal(self.spool.folder / "live")
        self.metrics = Metrics(self.name)

    def session(self, memory: AgentMemory, name: str, source: str) -> Session:
        """Return the session of this name of a client of *source*; a new one where it has none.

        Kept here, too, for a client that may only read: what it is shown is not recorded.
        """
        if not name:
            return Session(memory)
        session = self._sessions.setdefault(name, Session(memory, name, source=source))
        self._sessions.move_to_end(name)
        while len(self._sessions) > _MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def left(self) -> Iterator[WaitingRun]:
        """Return the runs that earlier processes left, live ones as they were.

        Their files are listed now: what is submitted later has a job of its own.
        """
        return chain(iter(self.spool), self._abandoned())

    def _abandoned(self) -> Iterator[WaitingRun]:
        for run in self.journal.abandoned():
            yield self.spool.put(run.raw, run.source)
            run.path.unlink()


class Service:
    """The state of one server process."""

    def __init__(self, settings: Settings, tokens: TokenFile | None, limits: Limits) -> None:
        self.settings = settings
        self.tokens = tokens
        self.limits = limits
        self.rates = RateLimiter(limits.rate)
        self.guesses = RateLimiter(_GUESSES)
        self.is_closing = False
        self._tenants: dict[str, Tenant] = {}
        self._opening = threading.Lock()
        self.writer = Writer(self._tidy)
        # Uploads are read beside the queries and never instead of one.
        self._queries, self._uploads = CapacityLimiter(32), CapacityLimiter(2)
        self._chores = CapacityLimiter(1)

    def open(self) -> None:
        """Open the memories of all tenants that have a token, and learn what waits for them."""
        names = {token.tenant for token in self.tokens.all()} if self.tokens else set()
        for name in sorted({*names, self.settings.tenant}):
            self.tenant(name)

    async def known(self, name: str) -> Tenant:
        """Return the tenant of this name, opened in a thread where it is not open."""
        tenant = self._tenants.get(name)
        return tenant if tenant is not None else await self.answer(self.tenant, name)

    def tenant(self, name: str) -> Tenant:
        """Return the tenant of this name; its memory is opened at first use."""
        with self._opening:
            if name not in self._tenants:
                tenant = Tenant(replace(self.settings, tenant=name))
                self._tenants[name] = tenant
                self.writer.recover(tenant.memory, tenant.left())
            return self._tenants[name]

    async def answer(
        self, function: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> _R:
        """Return the result of *function*, called in a thread; raises TimeoutError."""
        with fail_after(self.limits.seconds):
            return await run_sync(
                partial(function, *args, **kwargs),
                abandon_on_cancel=True,
                limiter=self._queries,
            )

    async def read_upload(self, function: Callable[[], _R]) -> _R:
        """Return the result of *function*, called in one of two threads, without a time limit."""
        return await run_sync(function, limiter=self._uploads)

    async def parsed(self, parse: Callable[[], _R], size: int) -> _R:
        """Return what *parse* returns, in a thread where it is of many bytes."""
        return await self.read_upload(parse) if size > _LARGE else parse()

    async def maintain(self, function: Callable[[], _R]) -> _R:
        """Return the result of *function*, called in the thread for maintenance."""
        return await run_sync(function, limiter=self._chores)

    def begin(self, tenant: Tenant, run: LiveRun, source: str) -> str:
        """Register *run*; return the id that continues it.

        A source may have as many as it leaves free: none takes all. Else raises `TooBusyError`.
        """
        own = sum(run.source == source for run in [*tenant.live.values()])
        if own >= self.limits.live_runs - len(tenant.live):
            raise TooBusyError(f"{own} live runs of this source are open; finish some of them")
        identity = f"live_{uuid4().hex[:16]}"
        most = self.limits.upload
        tenant.live[identity] = OpenRun(identity, run, source, tenant.journal, most)
        return identity

    def end(
        self, tenant: Tenant, run: OpenRun, end: Callable[[LiveRun], RawTrajectory]
    ) -> Job | None:
        """Return the job that learns the run that *end* returns; None if it has no steps."""
        with run.lock:
            if not run.is_open:
                return None
            raw = end(run.run)
            job = (
                self.writer.submit(run.id, tenant.memory, tenant.spool, [raw], run.source)
                if raw.steps
                else None
            )
            run.is_open = False
            tenant.journal.remove(run.id)
            tenant.live.pop(run.id, None)
        return job

    def close(self) -> None:
        """Learn the runs that go on as they are, and what waits; then close the memories."""
        self.is_closing = True
        self._end_live_runs(idle=0.0)
        self.writer.close()
        for tenant in self._tenants.values():
            tenant.journal.close()
            try:
                tenant.memory.close()
            except StoreError as error:
                _log.warning("what was shown last is not recorded: %s", error)

    def _tidy(self) -> None:
        """Store what was shown, and learn live runs that are not used any more."""
        self._end_live_runs(self.limits.idle)
        for tenant in [*self._tenants.values()]:
            tenant.memory.note_exposures()

    def _end_live_runs(self, idle: float) -> None:
        now = time.monotonic()
        for tenant in [*self._tenants.values()]:
            for run in [*tenant.live.values()]:
                if now - run.used_at >= idle:
                    self.end(tenant, run, LiveRun.end)


async def finished(job: Job, seconds: float) -> bool:
    """Return True once *job* is done, False where it is not within *seconds*."""
    until = time.monotonic() + seconds
    while not job.done.is_set() and time.monotonic() < until:
        await asyncio.sleep(0.02)
    return job.done.is_set()
