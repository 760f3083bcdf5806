"""How long to try, and how fast."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

_LEAST_INTERVAL, _MOST_INTERVAL = 0.05, 2.0
# After a refusal at half the pace; each answer makes up for most of one: a server that refuses
# three requests in ten, however slowly they come, is not asked ever more slowly.
_SLOWER, _FASTER = 2.0, 0.6


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: for one answer (*timeout*), of an *outage*, of being told to slow down (*limited*).

    Within these a call is tried again.
    """

    timeout: float
    outage: float
    limited: float


# Nobody waits but who asked for it: what is re-embedded is much, and late anyway.
ENDURING = Patience(timeout=60, outage=60, limited=600)
# Models on one's own machine think for minutes, and answer one after the other.
THOUGHTFUL = Patience(timeout=300, outage=20, limited=60)
# A run that was learned may be embedded later.
PATIENT = Patience(timeout=60, outage=20, limited=60)
# An agent waits for the answer.
HASTY = Patience(timeout=5, outage=1, limited=1)


class Pace:
    """When the next request may go out. Threads share it: one that is told to wait slows all."""

    def __init__(self, now: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._now, self._sleep = now, sleep
        self._lock = threading.Lock()
        self._interval = 0.0
        self._next = 0.0

    def wait(self) -> None:
        """Until it is this caller's turn."""
        with self._lock:
            turn = max(self._next, self._now())
            self._next = turn + self._interval
        while (left := turn - self._now()) > 0:
            self._sleep(left)

    def slow_down(self, seconds: float) -> None:
        """No request for *seconds*, and fewer from then on."""
        with self._lock:
            self._next = max(self._next, self._now() + seconds)
            slower = max(self._interval * _SLOWER, _LEAST_INTERVAL)
            self._interval = min(slower, _MOST_INTERVAL)

    def speed_up(self) -> None:
        """A request was answered."""
        with self._lock:
            faster = self._interval * _FASTER
            self._interval = faster if faster > _LEAST_INTERVAL / 2 else 0.0
