"""Ctrl-C that lets a write finish."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def finishing() -> Iterator[None]:
    """Delay the first Ctrl-C to the end of the block, so that what is stored is also counted.

    A second one is not delayed: the store may be waiting for another process.
    """
    asked = False

    def remember(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        raise KeyboardInterrupt
