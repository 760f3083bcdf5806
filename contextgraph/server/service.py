"""What the service holds beside the requests: memories of tenants, live runs, the writer."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ParamSpec, TypeVar
from uuid import uuid4

from anyio import CapacityLimiter, fail_after
from anyio.to_thread import run_sync

from contextgraph.config import Settings
from contextgraph.errors import StoreError
from contextgraph.live import LiveRun
from contextgraph.memory import AgentMemory
from contextgraph.model import RawTrajectory
from contextgraph.server.journal import Journal
from contextgraph.server.monitoring import Metrics
from contextgraph.server.tokens import TokenFile
from contextgraph.server.writer import Job, Writer
from contextgraph.spool import Spool
from contextgraph.wiring import build

_log = logging.getLogger(__name__)

_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class Limits:
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


class TooBusyError(Exception):
    """There is more to do than the service takes; the message says what."""


@dataclass(slots=True)
class OpenRun:
    """A live run, the lock under which it is used, and when it last was (monotonic seconds)."""

    id: str
    run: LiveRun
    source: str
    journal: Journal
    used_at: float = field(default_factory=time.monotonic)
    is_open: bool = True
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def in_use(self) -> Iterator[LiveRun]:
        """The run, for one thread; at the end the steps that it took are safe in a file.

        Raises ValueError where it is finished.
        """
        with self.lock:
            if not self.is_open:
                raise ValueError("the run is finished: begin another one")
            self.used_at = time.monotonic()
            yield self.run
            if (raw := self.run.raw).steps:
                self.journal.write(self.id, raw, self.source)


class Tenant:
    """The memory of a tenant, the runs that wait for it, and those that go on."""

    def __init__(self, settings: Settings) -> None:
        self.name = settings.tenant
        self.memory = AgentMemory.of(build(settings))
        self.spool = Spool(settings)
        self.live: dict[str, OpenRun] = {}
        self.journal = Journal(self.spool.folder / "live")
        self.metrics = Metrics()


class Service:
    """The state of one server process."""

    def __init__(self, settings: Settings, tokens: TokenFile | None, limits: Limits) -> None:
        self.settings = settings
        self.tokens = tokens
        self.limits = limits
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
        """As `tenant`, which waits in a thread where it has to open the memory."""
        tenant = self._tenants.get(name)
        return tenant if tenant is not None else await self.answer(self.tenant, name)

    def tenant(self, name: str) -> Tenant:
        """The tenant of this name, whose memory is opened at first use."""
        with self._opening:
            if name not in self._tenants:
                tenant = Tenant(replace(self.settings, tenant=name))
                self._tenants[name] = tenant
                for run in tenant.journal.abandoned():
                    tenant.spool.put(run.raw, run.source)
                    run.path.unlink()
                if len(tenant.spool):
                    self.writer.recover(tenant.memory, tenant.spool)
            return self._tenants[name]

    async def answer(
        self, function: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> _R:
        """What *function* returns, in a thread; TimeoutError where it takes too long."""
        with fail_after(self.limits.seconds):
            return await run_sync(
                partial(function, *args, **kwargs),
                abandon_on_cancel=True,
                limiter=self._queries,
            )

    async def read_upload(self, function: Callable[[], _R]) -> _R:
        """What *function* returns, in one of two threads, however long it takes."""
        return await run_sync(function, limiter=self._uploads)

    async def maintain(self, function: Callable[[], _R]) -> _R:
        """What *function* returns, in the one thread for it, however long it takes."""
        return await run_sync(function, limiter=self._chores)

    def begin(self, tenant: Tenant, run: LiveRun, source: str) -> str:
        """The id by which *run* goes on."""
        if len(tenant.live) >= self.limits.live_runs:
            raise TooBusyError(f"{self.limits.live_runs} live runs are open; finish some of them")
        identity = f"live_{uuid4().hex[:16]}"
        tenant.live[identity] = OpenRun(identity, run, source, tenant.journal)
        return identity

    def end(
        self, tenant: Tenant, run: OpenRun, end: Callable[[LiveRun], RawTrajectory]
    ) -> Job | None:
        """The job that learns the run that *end* returns; None where it has no steps."""
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
    """Whether *job* is done within so many *seconds*."""
    until = time.monotonic() + seconds
    while not job.done.is_set() and time.monotonic() < until:
        await asyncio.sleep(0.02)
    return job.done.is_set()
