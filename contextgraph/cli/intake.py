"""Trajectories from the paths of a command, and what could not be read of them."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from contextgraph.cli.output import complain
from contextgraph.errors import ReadError
from contextgraph.model import RawTrajectory
from contextgraph.readers import read_many

DONE = 0
FAILED = 1
PARTLY_DONE = 3


class Intake:
    """Iterate over it for the trajectories in *paths*, in order.

    What cannot be read is said on stderr, handed to *on_failure*, and passed over. *on_bytes* is
    told how many more bytes were read. Iterating raises `ReadError` for *outcomes* that hold none.
    """

    def __init__(
        self,
        paths: Sequence[str],
        outcomes: Path | None = None,
        on_failure: Callable[[ReadError], None] | None = None,
        on_bytes: Callable[[int], None] | None = None,
    ) -> None:
        self._paths = paths
        self._outcomes = outcomes
        self._on_failure = on_failure
        self._on_bytes = on_bytes
        self._begun = time.monotonic()
        self.read = 0
        self.failed = 0

    @property
    def seconds(self) -> float:
        """Since this was made."""
        return time.monotonic() - self._begun

    @property
    def exit_code(self) -> int:
        """0 all was read, 3 some of it, 1 none."""
        if not self.read:
            return FAILED
        return PARTLY_DONE if self.failed else DONE

    def __iter__(self) -> Iterator[RawTrajectory]:
        for raw in read_many(
            self._paths, on_error=self._fail, on_bytes=self._on_bytes, outcomes=self._outcomes
        ):
            self.read += 1
            yield raw
        if not self.read and not self.failed:
            complain(f"no trajectory found in {', '.join(self._paths)}")

    def _fail(self, error: ReadError) -> None:
        self.failed += 1
        complain(str(error))
        if self._on_failure:
            self._on_failure(error)
