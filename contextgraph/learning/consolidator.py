"""Keeps methodologies up to date with the learned runs, and starts automatically."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

from contextgraph.errors import ContextGraphError, EmbeddingError, MemoryNotFoundError
from contextgraph.inference.answering import Answerer
from contextgraph.inference.fitting import catch_up, embed_missing, embed_nodes
from contextgraph.inference.spaces import Lease, renewing
from contextgraph.knowledge.pages import fill_grown
from contextgraph.learning.abstraction import (
    BATCH,
    Abstraction,
    ConsolidationPolicy,
    Counts,
    RewordingResult,
    Rewriter,
    Similarity,
    StepCounts,
    Wordings,
    credit_of_methodologies,
    merge,
)
from contextgraph.model import (
    NO_USAGE,
    ConsolidationReport,
    HealthCheck,
    LearnReceipt,
    LearnStatus,
    MemoryGate,
    Methodology,
    MethodologyStatus,
    Unconsolidated,
    WordingPlan,
)
from contextgraph.model.values import batched, replace
from contextgraph.store.memory_store import Store
from contextgraph.store.protocols import EmbedderSource
from contextgraph.system.processes import load
from contextgraph.text import number_of

# Others may learn all the time; what comes later is for the next consolidation.
_ROUNDS = 4

_log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
"""Called with how many of how many kinds of error are done."""


class MemoryConsolidator:
    """Derives, merges and scores methodologies and cleans up, in one process per memory at a time.

    It visits the errors that changed since the last time, and for each of them the newest runs, so
    that the cost does not grow with the memory. Of what was said it keeps *max_said* megabytes and
    the last *said_retention*; 0 and None keep everything.
    """

    def __init__(
        self,
        store: Store,
        embedder: EmbedderSource = lambda: None,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        policy: ConsolidationPolicy | None = None,
        model: Answerer | None = None,
        embeds_nodes: bool = False,
        max_said: float = 0,
        said_retention: timedelta | None = None,
    ) -> None:
        self._store = store
        self._now = clock
        self._embedder = embedder
        self.policy = policy or ConsolidationPolicy()
        self.model = model
        self._embeds_nodes = embeds_nodes
        self._max_said, self._said_retention = max_said, said_retention

    def is_due(self) -> bool:
        """Return True if enough runs were learned since the last consolidation.

        The number is stored in the memory, so that processes share it.
        """
        return self._store.admin.unconsolidated().trajectories >= self.policy.interval

    def health(self) -> Iterator[HealthCheck]:
        """Check that no consolidation is overdue, as after an interruption."""
        try:
            waiting = self._store.admin.unconsolidated().trajectories
        except MemoryNotFoundError:  # nothing was written yet
            return
        ok = waiting < self.policy.interval
        remedy = "" if ok else "run contextgraph call consolidate, unless a process is learning now"
        yield HealthCheck(
            "consolidation", ok, f"{number_of(waiting, 'run')} not consolidated", remedy
        )

    def embed_waiting(self) -> None:
        """Embed runs that an interrupted command stored without a vector.

        Raises `EmbeddingError`.
        """
        embedder = self._embedder()
        if embedder is not None:
            embed_missing(self._store, embedder)

    def consolidate(
        self,
        batch_size: int = BATCH,
        *,
        progress: Progress | None = None,
        interactive: bool = False,
    ) -> ConsolidationReport:
        """Update the methodologies; do nothing if another process holds the lease.

        Errors are processed *batch_size* per transaction. With *interactive* a language model gets
        little time to answer. After an interruption the next consolidation continues where this one
        ended. Entities are filled from runs of repositories that have grown. Raises `StoreError` if
        the store fails, and `LeaseLostError` if another process took the lease.
        """
        load("contextgraph.learning.gate_fitting", "numpy")
        began, lease, counts = time.perf_counter(), Lease(self._store, self._now), Counts()
        held_until = lease.acquire()
        if held_until is not None:
            reason = f"another process holds the lease, until {held_until:%H:%M:%S} at most"
            return ConsolidationReport(False, reason, 0, (), time.perf_counter() - began)
        with renewing(lease):
            self._embed(lease, counts.embed)
            abstraction = self._abstraction()
            batches = partial(batched, size=batch_size)
            changed = self._work_through(
                abstraction, lease, counts, batches, progress or _no_progress
            )
            reworded = self._reword(abstraction, lease, counts, changed, interactive=interactive)
            self._embed(lease, counts.embed, is_last=True)
        return ConsolidationReport(
            started=True,
            reason="",
            trajectories=counts.trajectories,
            steps=counts.reports(),
            seconds=time.perf_counter() - began,
            usage=reworded.usage,
            waiting=reworded.waiting,
            not_worded=reworded.reason,
            unusable=reworded.unusable,
            fault=reworded.fault,
        )

    def plan_wording(self) -> WordingPlan:
        """Return what `consolidate` would send to a language model; nothing is sent or written."""
        if self.model is None:
            return WordingPlan("", (), NO_USAGE)
        return Rewriter(self.wordings(), self.model).plan()

    def wordings(self) -> Wordings:
        """Return the methodologies as models word them."""
        return Wordings(self._store, self._abstraction().derive)

    def _abstraction(self) -> Abstraction:
        return Abstraction(self._store, self.policy, Similarity(self._embedder))

    def _work_through(
        self,
        abstraction: Abstraction,
        lease: Lease,
        counts: Counts,
        batches: Callable[[Sequence[str]], Iterator[Sequence[str]]],
        progress: Progress,
    ) -> Sequence[str]:
        """Abstract, merge, measure and clean up; the ids of the errors that were looked at."""
        todo = self._store.admin.unconsolidated()
        is_changed = bool(todo.trajectories or todo.error_ids or todo.repos)
        todo = self._with_newly_credited(todo)
        done, repos = list[str](), {*todo.repos}
        for _ in range(_ROUNDS):
            counts.trajectories += todo.trajectories
            total = len(done) + len(todo.error_ids)
            for batch in batches(sorted(todo.error_ids)):
                changes = abstraction.of_errors(batch, counts)
                lease.check()
                counts.merge.updated += changes.write(self._store)
                done += batch
                progress(len(done), total)
            # What others learned meanwhile, and what removed methodologies had superseded.
            at, todo = todo.revision, self._store.admin.unconsolidated(todo.revision)
            repos.update(todo.repos)
            if not todo.error_ids:
                break
        changed = sorted({*done})
        merge(self._store, changed, self.policy, abstraction.similarity, lease, counts.merge)
        lease.check()
        self._clean_up(changed, counts.clean_up)
        self._limit_said()
        fill_grown(self._store.notes, self._store.runs, sorted(repos), self._now(), lease.check)
        gate = self._gate(lease)
        if is_changed or gate:
            self._store.admin.mark_consolidated(at, gate)
        return changed

    def _limit_said(self) -> None:
        """Delete the oldest of what was said, where it is limited."""
        if self._max_said or self._said_retention:
            since = self._now() - self._said_retention if self._said_retention else None
            characters = int(self._max_said * 1e6) if self._max_said else None
            self._store.passages.keep(since, characters)

    def _gate(self, lease: Lease) -> MemoryGate | None:
        """The gate, fitted again where that is due."""
        from contextgraph.learning.gate_fitting import fitted_gate, gate_due

        return fitted_gate(self._store, lease.check) if gate_due(self._store) else None

    def _clean_up(self, error_ids: Sequence[str], counts: StepCounts) -> None:
        """Remove orphans, old failed fragments and methodologies that proved weak."""
        store = self._store.methodologies
        for batch in batched(error_ids, BATCH):
            known = store.get(errors=batch)
            counts.examined += len(known)
            weak = [
                replace(methodology, status=MethodologyStatus.RETIRED)
                for methodology in known
                if is_weak(methodology, self.policy)
            ]
            if weak:
                store.put(weak)
                counts.removed += len(weak)
        counts.removed += self._store.recoveries.clean_up(
            error_ids, self.policy.max_failed_fragments
        )

    def _reword(
        self,
        abstraction: Abstraction,
        lease: Lease,
        counts: Counts,
        changed: Sequence[str],
        *,
        interactive: bool,
    ) -> RewordingResult:
        if self.model is None:
            return RewordingResult()
        rewriter = Rewriter(Wordings(self._store, abstraction.derive), self.model)
        within = self.policy.rewording_time if interactive else None
        result = rewriter.reword(lease, counts.word, changed, within)
        if result.waiting:
            waiting = number_of(result.waiting, "methodology")
            _log.warning("%s still to be worded: %s", waiting, result.reason)
        return result

    def _embed(self, lease: Lease, counts: StepCounts, *, is_last: bool = False) -> None:
        """Fit the space of the memory again where that is due, and embed what waits for it.

        The *is_last* time fragments and methodologies, where that is set.
        """

        def count(runs: int) -> None:
            lease.check()
            counts.created += runs

        try:
            if is_last:
                embedder = self._embedder() if self._embeds_nodes else None
                if embedder:
                    embed_nodes(self._store, embedder, lambda nodes: lease.check())
            elif catch_up(self._store, self._embedder, count):
                counts.created, counts.updated = 0, self._store.runs.word_counts(()).total
        except EmbeddingError as error:
            _log.warning("runs wait to be embedded: %s", error)

    def _with_newly_credited(self, todo: Unconsolidated) -> Unconsolidated:
        """*todo*, and the methodologies whose credit is not the one that is stored with them."""
        known = credit_of_methodologies(self._store, self._store.methodologies.ids())
        other = [
            methodology
            for methodology in self._store.methodologies.get([*known.by_name])
            for credit in [known.of(methodology.id)]
            if (methodology.success_count, methodology.failure_count)
            != (credit.helped, credit.failed)
        ]
        errors = {*todo.error_ids, *(methodology.error_id for methodology in other)}
        return replace(todo, error_ids=tuple(sorted(errors)))


def is_weak(methodology: Methodology, policy: ConsolidationPolicy) -> bool:
    """Return True if it was shown often, and neither effect nor sources support it."""
    return (
        methodology.status is not MethodologyStatus.RETIRED
        and methodology.success_count + methodology.failure_count >= policy.probation_exposures
        and methodology.confidence < policy.min_confidence
        and len(methodology.sources) < policy.min_sources
    )


def _no_progress(done: int, total: int) -> None:
    pass


class ConsolidationTrigger:
    """Consolidates after learning when it is due; logs errors and never raises them.

    In a batch it waits for the end: to consolidate a growing memory every 16 runs would take longer
    than learning them. Without a *consolidator* it does nothing: a service consolidates by itself.
    """

    def __init__(self, consolidator: MemoryConsolidator | None) -> None:
        self._consolidator = consolidator
        self._batches = 0
        self._has_learned = False
        self._has_unembedded = False
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def after_learning(self, receipt: LearnReceipt, *, background: bool = False) -> None:
        """Consolidate if it is due; in *background* a thread finds out, and does it."""
        known = receipt.status is LearnStatus.UNCHANGED
        self._has_unembedded |= known and receipt.to_embed > 0
        self._has_learned = True
        if self._batches or self._consolidator is None:
            return
        if background:
            self._start()
        else:
            self._run_if_due()

    def after_importing(self) -> None:
        """Consolidate, if it is due, at the end of the batch in which an archive was imported."""
        self._has_learned = True

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
        """Consolidate after the runs were read again, which removed all methodologies."""
        return self._run(lambda _: True)

    @contextmanager
    def batch(
        self,
        progress: Progress | None = None,
        on_report: Callable[[ConsolidationReport], None] | None = None,
    ) -> Iterator[None]:
        """Postpone consolidation while many runs are learned; *on_report* gets its report.

        *progress* is as for `MemoryConsolidator.consolidate`.
        """
        self._batches += 1
        try:
            yield
        finally:
            self._batches -= 1
        # Not after an error: a user who interrupts does not want to wait. Also where all runs were
        # known: an earlier batch may have been killed before it came here.
        if not self._batches and self._has_learned:
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
            _log.warning("what is learned is not consolidated: %s", error)
        return None
