"""When consolidation starts automatically, and how its failures are handled."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from contextgraph.errors import ContextGraphError
from contextgraph.learning.consolidator import MemoryConsolidator, Progress
from contextgraph.model import (
    ConsolidationReport,
    LearnReceipt,
    LearnStatus,
)

_log = logging.getLogger(__name__)


class ConsolidationTrigger:
    """Consolidates after learning when it is due; logs errors and never raises them.

    In a batch it waits for the end: to consolidate a growing memory every 16 runs would take longer
    than learning them. Without a *consolidator* it does nothing: a service consolidates by itself.
    """

    def __init__(self, consolidator: MemoryConsolidator | None) -> None:
        self._consolidator = consolidator
        self._batches = 0
        self._has_unembedded = False
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def after_learning(self, receipt: LearnReceipt, *, background: bool = False) -> None:
        """Consolidate if it is due; in *background* a thread finds out, and does it."""
        known = receipt.status is LearnStatus.UNCHANGED
        self._has_unembedded |= known and receipt.to_embed > 0
        if self._batches or self._consolidator is None:
            return
        if background:
            self._start()
        else:
            self._run_if_due()

    def wait(self) -> None:
        """Return when nothing is consolidated in the background any more."""
        with self._starting:
            if self._thread is not None:
                self._thread.join()

    def _start(self) -> None:
        """Consolidate in a thread, unless one is at work, which looks for later runs itself.

        Not a daemon: a process that ends waits for it, or no short process would ever finish one.
        """
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run_if_due, name="consolidation")
                self._thread.start()

    def _run_if_due(self) -> None:
        self._run(MemoryConsolidator.is_due, interactive=True)

    def after_rebuilding(self) -> ConsolidationReport | None:
        """Consolidate: what was abstracted from the previous reading of the runs is gone."""
        return self._run(lambda _: True)

    @contextmanager
    def batch(
        self,
        progress: Progress | None = None,
        on_report: Callable[[ConsolidationReport], None] | None = None,
    ) -> Iterator[None]:
        """Put consolidation off while many runs are learned; *on_report* is given its report.

        *progress* is as for `MemoryConsolidator.consolidate`.
        """
        self._batches += 1
        try:
            yield
        finally:
            self._batches -= 1
        # Not after an error: a user who interrupts does not want to wait. Whatever was learned: an
        # earlier batch may have been killed before it came here.
        if not self._batches:
            report = self._run(MemoryConsolidator.is_due, progress)
            if on_report is not None and report is not None:
                on_report(report)

    def _run(
        self,
        is_due: Callable[[MemoryConsolidator], bool],
        progress: Progress | None = None,
        *,
        interactive: bool = False,
    ) -> ConsolidationReport | None:
        consolidator = self._consolidator
        try:
            if consolidator is not None and is_due(consolidator):
                return consolidator.consolidate(progress=progress, interactive=interactive)
            if consolidator is not None and self._has_unembedded:
                self._has_unembedded = False
                consolidator.embed_waiting()
        except ContextGraphError as error:
            _log.warning("the runs are learned, but not consolidated: %s", error)
        return None
