"""Working on a memory alone, for as long as this process lives."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import uuid4

from contextgraph.errors import StoreError
from contextgraph.ports import ConsolidationStore

LEASE = timedelta(minutes=1)
RENEWED_AFTER = 20.0
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
    holder = uuid4().hex
    _take(store, holder, now, waiting)
    with kept(store, holder, now):
        yield


@dataclass(frozen=True, slots=True)
class Tenure:
    """The lease of *holder*, for as long as nobody else has it."""

    store: ConsolidationStore
    holder: str
    now: Callable[[], datetime]

    def renew(self) -> None:
        """Hold it for a minute more; raises `StoreError` where another process has taken over."""
        now = self.now()
        until = self.store.take_lease(self.holder, now, now + LEASE)
        if until is not None:
            raise StoreError(
                "another process took over, since this one was not heard of for too long; "
                f"it works until {until:%H:%M:%S} UTC at most"
            )


@contextmanager
def kept(
    store: ConsolidationStore,
    holder: str,
    now: Callable[[], datetime],
    every: float = RENEWED_AFTER,
) -> Iterator[Tenure]:
    """Renew the lease of *holder* meanwhile, *every* so many seconds; return it at the end."""
    tenure, stop = Tenure(store, holder, now), threading.Event()
    renewing = threading.Thread(target=_renew, args=(tenure, stop, every), daemon=True)
    renewing.start()
    try:
        yield tenure
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


def _renew(tenure: Tenure, stop: threading.Event, every: float) -> None:
    while not stop.wait(every):
        try:
            tenure.renew()
        except StoreError:
            # Whoever holds the store for so long, or took over, is met by what is written next.
            continue
