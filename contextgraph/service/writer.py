"""Learns in the background: runs are stored as files until one thread has learned them."""

import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice, takewhile

from contextgraph.codec import encoded
from contextgraph.errors import ContextGraphError, StoreUnavailableError
from contextgraph.learning import RUNS_AT_ONCE
from contextgraph.memory import AgentMemory
from contextgraph.model import (
    Json,
    LearnReceipt,
    RawTrajectory,
)
from contextgraph.records import learned_record, not_learned_record
from contextgraph.spool import Spool, WaitingRun

# So many seconds pass before a store that was away is tried again: doubled up to the second.
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 5.0
_MAX_JOBS = 1024
_IDLE_SECONDS = 1.0

_log = logging.getLogger(__name__)


class JobState(StrEnum):
    """Waiting: also while the store is away. Done: each record has its status."""

    WAITING = "waiting"
    LEARNING = "learning"
    DONE = "done"


@dataclass(slots=True)
class Job:
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
        """The JSON object of the job; *complete* with the receipts."""
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
        """A job that learns *runs* of *source*, which are stored in files on return.

        The same job again is the one that is known. *unread* are records of what was no run.
        """
        if (known := self.job(memory, identity)) and not known.done.is_set():
            return known
        waiting = [spool.put(raw, source) for raw in runs]
        return self._add(Job(identity, memory, deque(waiting), [*unread]))

    def recover(self, memory: AgentMemory, left: Iterable[WaitingRun]) -> Job:
        """A job that learns what an earlier process *left*, which the thread reads."""
        return self._add(Job("recovery", memory, deque(), unread=left))

    def job(self, memory: AgentMemory, identity: str) -> Job | None:
        """The job of this id and memory; None where it is unknown, or forgotten."""
        with self._changed:
            return self._jobs.get((id(memory), identity))

    def waiting(self, memory: AgentMemory) -> int:
        """How many runs wait to be learned by *memory*."""
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
            self._forget_old()
            self._queue.append(job)
            self._changed.notify_all()
        return job

    def _forget_old(self) -> None:
        old = [key for key, job in self._jobs.items() if job.done.is_set()]
        for key in old[: max(0, len(self._jobs) - _MAX_JOBS)]:
            del self._jobs[key]

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
