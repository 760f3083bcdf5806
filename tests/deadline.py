"""A net under tests of hostile input: what would take minutes fails instead of hanging."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SECONDS = 60


@contextmanager
def deadline(seconds: int = _SECONDS) -> Iterator[None]:
    """Raise TimeoutError where the body computes for *seconds*, some hundred times what it needs.

    No budget: those depend on the machine. Nor does what else runs there count: it is processor
    time of this process. `re` looks for signals while it matches.
    """
    before = signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError("far from linear")
