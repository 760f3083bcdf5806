"""When consolidation is started by itself, and what becomes of its failures."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from contextgraph.consolidation.consolidator import MemoryConsolidator
from contextgraph.errors import ContextGraphError
from contextgraph.model import ConsolidationReport

_log = logging.getLogger(__name__)


class Routine:
    """Consolidates after what was learned, when it is due; never raises, and says when it failed.

    In a batch it is put off until the memory has doubled, and to the end: to consolidate a growing
    memory every 16 runs would take longer than to learn them.
    """

    def __init__(self, consolidator: MemoryConsolidator) -> None:
        self._consolidator = consolidator
        self._batches = 0

    def run_if_due(self) -> ConsolidationReport | None:
        """Consolidate if it is time to; None where it is not, or where it failed."""
        try:
            due = self._consolidator.is_due(in_batch=self._batches > 0)
            return self._consolidator.consolidate() if due else None
        except ContextGraphError as error:
            _log.warning("consolidation is put off, the runs are learned: %s", error)
            return None

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Put consolidation off while many runs are learned."""
        self._batches += 1
        try:
            yield
        finally:
            self._batches -= 1
        if not self._batches:  # not after an error: whoever interrupts does not want to wait
            self.run_if_due()
