"""When consolidation is started by itself, and what becomes of its failures."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from contextgraph.consolidation.consolidator import MemoryConsolidator, Progress
from contextgraph.errors import ContextGraphError
from contextgraph.model import ConsolidationReport, LearnStatus

_log = logging.getLogger(__name__)

Told = Callable[[ConsolidationReport], None]


class Routine:
    """Consolidates after what was learned, when it is due; never raises, and says when it failed.

    In a batch it is put off to the end: to consolidate a growing memory every 16 runs would take
    longer than to learn them.
    """

    def __init__(self, consolidator: MemoryConsolidator) -> None:
        self._consolidator = consolidator
        self._batches = 0
        self._learned = 0

    def after_learning(self, status: LearnStatus) -> ConsolidationReport | None:
        """Consolidate if it is time to; None where it is not, or where it failed."""
        self._learned += status is not LearnStatus.UNCHANGED
        return None if self._batches else self._run(self._consolidator.is_due, hurried=True)

    def after_rebuilding(self) -> ConsolidationReport | None:
        """Consolidate: with the old reading of a run goes what was abstracted from it."""
        return self._run(lambda: True)

    @contextmanager
    def batch(self, progress: Progress | None = None, told: Told | None = None) -> Iterator[None]:
        """Put consolidation off while many runs are learned; *told* gets the report of what is due.

        *progress* is as for `MemoryConsolidator.consolidate`.
        """
        before = self._learned
        self._batches += 1
        try:
            yield
        finally:
            self._batches -= 1
        # Not after an error: whoever interrupts does not want to wait.
        learned = self._learned - before
        if learned and not self._batches:
            many = learned >= self._consolidator.policy.every
            report = self._run(lambda: many or self._consolidator.is_due(), progress)
            if told is not None and report is not None:
                told(report)

    def _run(
        self,
        is_due: Callable[[], bool],
        progress: Progress | None = None,
        *,
        hurried: bool = False,
    ) -> ConsolidationReport | None:
        try:
            return self._consolidator.consolidate(progress, hurried=hurried) if is_due() else None
        except ContextGraphError as error:
            _log.warning("consolidation is put off, the runs are learned: %s", error)
            return None
