"""Bundles that are made in other processes or on other machines, before they are written."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING

from contextgraph.errors import ContextGraphError
from contextgraph.learning.identity import RunIds
from contextgraph.model import Bundle, RawTrajectory

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor


@dataclass(frozen=True, slots=True)
class Begun:
    """A run whose bundle is made in another process, and its ids."""

    raw: RawTrajectory
    ids: RunIds
    future: Future[Bundle]

    def bundle(self) -> Bundle:
        """The bundle, once it is made. Raises `ContextGraphError` where the process was killed."""
        try:
            return self.future.result()
        except BrokenExecutor as error:
            raise ContextGraphError(
                "a worker process was killed, perhaps for lack of memory; repeat the command with"
                " fewer --workers to continue"
            ) from error


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that was read elsewhere, its ids, and what it teaches; None where that is known."""

    raw: RawTrajectory
    ids: RunIds
    made: Bundle | None


@contextmanager
def worker_processes(count: int) -> "Iterator[ProcessPoolExecutor]":
    """At most *count* processes, which end with the block; each starts when it is needed."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # Not forked: the threads of a driver would be missing, their locks held.
    pool = ProcessPoolExecutor(count, get_context("spawn"), _obey_parent)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _obey_parent() -> None:
    """Leave Ctrl-C to the parent, and end with it, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    from multiprocessing import parent_process

    if parent := parent_process():
        parent.join()
    os._exit(1)
