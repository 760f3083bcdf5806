"""A progress bar on stderr, drawn only on a terminal."""

import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from contextgraph.text import number_of

if TYPE_CHECKING:
    from rich.progress import Progress as Bar, TaskID


class Progress:
    """How far a command is, with a rate and the time to go.

    *total* is asked once, if at all; it has the unit of what `advance` is told (bytes, runs), and
    0 means unknown. `count` says how many trajectories are done, whatever the unit.
    """

    def __init__(self, total: Callable[[], int]) -> None:
        self._total = total
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._bar = _bar()
            self._task = self._bar.add_task("", total=self._total() or None, done=0, doing="")
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar:
            self._bar.stop()
            self._bar = None

    def advance(self, amount: int) -> None:
        """So much more of the total is behind."""
        if self._bar and self._task is not None:
            self._bar.update(self._task, advance=amount)

    def consolidating(self, done: int, total: int) -> None:
        """All is learned; so many of *total* kinds of error are consolidated."""
        if self._bar and self._task is not None:
            self._bar.update(self._task, completed=done, total=total, doing="consolidating")

    def count(self, done: int) -> None:
        """So many trajectories are done."""
        if self._bar and self._task is not None:
            self._bar.update(self._task, done=done)


def _bar() -> "Bar":
    from rich.progress import (
        BarColumn,
        Progress as Bar,
        ProgressColumn,
        Task,
        TaskProgressColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    from contextgraph.cli.output import margin

    class Rate(ProgressColumn):
        """Trajectories so far, and how many a second."""

        def render(self, task: Task) -> Text:
            if doing := task.fields["doing"]:
                return Text(doing)
            done, elapsed = task.fields["done"], task.elapsed
            rate = f", {done / elapsed:.0f}/s" if elapsed else ""
            return Text(f"{number_of(done, 'trajectory')}{rate}")

    return Bar(
        BarColumn(),
        TaskProgressColumn(),
        Rate(),
        TimeRemainingColumn(),
        console=margin(),
        transient=True,
    )
