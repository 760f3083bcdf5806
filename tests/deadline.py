"""A net under tests of hostile input: what would take minutes fails instead of hanging."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SECONDS = 60


@contextmanager
def deadline(seconds: int = _SECONDS) -> Iterator[None]:
    """Raise TimeoutError where the body goes on for *seconds*, some hundred times what it needs.

    No budget: those depend on the machine. `re` looks for signals while it matches.
    """
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError("far from linear")
