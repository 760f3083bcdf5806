"""Working on a memory alone, for as long as this process lives."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from uuid import uuid4

from contextgraph.errors import StoreError
from contextgraph.ports import ConsolidationStore

LEASE = timedelta(minutes=1)
_RENEWED_AFTER = 20.0
_LOOKS_AFTER = 0.5


@contextmanager
def alone(
    store: ConsolidationStore,
    now: Callable[[], datetime],
    waiting: Callable[[datetime], None],
) -> Iterator[None]:
    """Hold the lease of *store*, the one of consolidation, and renew it meanwhile.

    Waits for whoever has it, at most until the time that *waiting* is told: a process that was
    killed keeps it for a minute.
    """
    holder, stop = uuid4().hex, threading.Event()
    _take(store, holder, now, waiting)
    renewing = threading.Thread(target=_renew, args=(store, holder, now, stop), daemon=True)
    renewing.start()
    try:
        yield
    finally:
        stop.set()
        renewing.join()
        store.return_lease(holder)


def _take(
    store: ConsolidationStore,
    holder: str,
    now: Callable[[], datetime],
    waiting: Callable[[datetime], None],
) -> None:
    told: datetime | None = None
    while (until := store.take_lease(holder, now(), now() + LEASE)) is not None:
        if until != told:
            told = until
            waiting(until)
        time.sleep(_LOOKS_AFTER)


def _renew(
    store: ConsolidationStore,
    holder: str,
    now: Callable[[], datetime],
    stop: threading.Event,
) -> None:
    while not stop.wait(_RENEWED_AFTER):
        try:
            store.take_lease(holder, now(), now() + LEASE)
        except StoreError:
            # Whoever holds the store for so long will be told by the next write that matters.
            continue
