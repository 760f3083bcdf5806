"""When consolidation is started by itself, and what becomes of its failures."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from contextgraph.consolidation.consolidator import MemoryConsolidator
from contextgraph.errors import ContextGraphError
from contextgraph.model import ConsolidationReport

_log = logging.getLogger(__name__)


class Routine:
    """Consolidates after what was learned, when it is due; never raises, and says when it failed.

    In a batch it is put off to the end: to consolidate a growing memory every 16 runs would take
    longer than to learn them.
    """

    def __init__(self, consolidator: MemoryConsolidator) -> None:
        self._consolidator = consolidator
        self._batches = 0
        self._learned = 0

    def after_learning(self) -> ConsolidationReport | None:
        """Consolidate if it is time to; None where it is not, or where it failed."""
        self._learned += 1
        return None if self._batches else self._run(self._consolidator.is_due)

    def after_rebuilding(self) -> ConsolidationReport | None:
        """Consolidate: with the old reading of a run goes what was abstracted from it."""
        return self._run(lambda: True)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Put consolidation off while many runs are learned."""
        before = self._learned
        self._batches += 1
        try:
            yield
        finally:
            self._batches -= 1
        # Not after an error: whoever interrupts does not want to wait.
        if not self._batches:
            many = self._learned - before >= self._consolidator.policy.every
            self._run(lambda: many or self._consolidator.is_due())

    def _run(self, is_due: Callable[[], bool]) -> ConsolidationReport | None:
        try:
            return self._consolidator.consolidate() if is_due() else None
        except ContextGraphError as error:
            _log.warning("consolidation is put off, the runs are learned: %s", error)
            return None
