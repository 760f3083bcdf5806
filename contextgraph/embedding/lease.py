"""The lease of a memory: only one process at a time consolidates or re-embeds it."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from uuid import uuid4

from contextgraph.errors import LeaseLostError, StoreError
from contextgraph.ports import Store
from contextgraph.processes import this_process

LEASE = timedelta(minutes=5)
RENEWAL_SECONDS = 60.0
_POLL_SECONDS = 0.5


class Lease:
    """The lease of *store*, held by this object until it is released, expires or is lost.

    That of a process that ended on this machine is free at once. After any other crash, or while a
    machine sleeps, a lease expires and another process may take over.
    What it held is not worked on any longer then: `check` before each write.
    """

    def __init__(self, store: Store, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now
        self._holder = uuid4().hex
        self._expires_at: datetime | None = None
        self._lost = False

    def acquire(self) -> datetime | None:
        """Take the lease; where another process holds it, when that lease expires."""
        now = self._now()
        held_until = self._store.admin.take_lease(self._holder, now, now + LEASE, this_process())
        if held_until is None:
            self._expires_at = now + LEASE
        return held_until

    def check(self) -> None:
        """Renew the lease for another `LEASE`.

        Raises `LeaseLostError` where it expired meanwhile, or another process has it: what is not
        written by now must not be written any more.
        """
        expired = self._expires_at is None or self._now() >= self._expires_at
        self._lost = self._lost or expired or self.acquire() is not None
        if self._lost:
            raise LeaseLostError(
                "the lease of the memory was lost: this process did not renew it in time, or "
                "another process took over"
            )

    def release(self) -> None:
        """Give it back; harmless where another process took over."""
        self._store.admin.take_lease(self._holder, self._now(), until=None)


@contextmanager
def renewing(lease: Lease, every: float = RENEWAL_SECONDS) -> Iterator[None]:
    """Renew an acquired *lease* in a thread, *every* so many seconds, and release it at the end."""
    stop = threading.Event()
    thread = threading.Thread(target=_renew_until, args=(stop, lease, every), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        lease.release()


@contextmanager
def exclusive(
    store: Store,
    now: Callable[[], datetime],
    waiting: Callable[[datetime], None],
) -> Iterator[Lease]:
    """Hold the lease of *store*, renewed meanwhile.

    Waits for another holder; *waiting* is called with the time at which that lease expires,
    whenever it changes.
    """
    lease = Lease(store, now)
    expires_at: datetime | None = None
    while (held_until := lease.acquire()) is not None:
        if held_until != expires_at:
            expires_at = held_until
            waiting(held_until)
        time.sleep(_POLL_SECONDS)
    with renewing(lease):
        yield lease


def _renew_until(stop: threading.Event, lease: Lease, every: float) -> None:
    while not stop.wait(every):
        try:
            lease.check()
        except LeaseLostError:
            return  # the next `check` raises it again
        except StoreError:
            continue  # busy or out of reach: tried again before the lease expires
