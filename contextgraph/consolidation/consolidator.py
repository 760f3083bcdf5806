"""Keeping methodologies up to date with what was learned."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import uuid4

from contextgraph.consolidation.abstracting import Abstraction
from contextgraph.consolidation.asking import Reworded
from contextgraph.consolidation.cleaning import clean_up
from contextgraph.consolidation.likeness import Likeness
from contextgraph.consolidation.merging import merge
from contextgraph.consolidation.policy import ConsolidationPolicy
from contextgraph.consolidation.retelling import Reteller
from contextgraph.consolidation.rewording import Rewording
from contextgraph.consolidation.tallies import Work, in_batches
from contextgraph.consolidation.wording import GroupEditor
from contextgraph.embedding import (
    Tenure,
    calibrate,
    calibration_due,
    embed_methodologies,
    embed_missing,
    fit_due,
    kept,
    refit,
)
from contextgraph.errors import EmbeddingError
from contextgraph.model import (
    NO_USAGE,
    ConsolidationReport,
    RunWords,
    Story,
    Unconsolidated,
    WordingPlan,
)
from contextgraph.ports import Editor, EmbedderSource, GraphStore, Summarizer
from contextgraph.text import number_of

# Others may learn all the time; what comes later is for the next consolidation.
_ROUNDS = 4

_log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]


class MemoryConsolidator:
    """Abstracts, merges, measures and cleans up; one at a time for each memory.

    It works on the errors met in what changed since the last time, and for each of these on the
    newest runs that met it, so that the cost does not grow with the memory.
    """

    def __init__(
        self,
        store: GraphStore,
        summarizer: Summarizer,
        now: Callable[[], datetime],
        policy: ConsolidationPolicy,
        embedder: EmbedderSource = lambda: None,
        editor: GroupEditor | None = None,
        run_editor: Editor[Story, RunWords] | None = None,
    ) -> None:
        self._store = store
        self._now = now
        self._embedder = embedder
        self._likeness = Likeness(embedder)
        self._abstraction = Abstraction(store, summarizer, policy, self._likeness)
        self._rewording = Rewording(store, self._abstraction, editor) if editor else None
        self._reteller = Reteller(store, run_editor) if run_editor else None
        self.policy = policy
        self.editor = editor

    def is_due(self) -> bool:
        """True where as many trajectories were learned since the last time as make it due.

        That is stored with the memory, so that processes share it.
        """
        return self._store.learned_since_consolidation() >= self.policy.every

    def consolidate(
        self, progress: Progress | None = None, *, hurried: bool = False, retelling: bool = False
    ) -> ConsolidationReport:
        """Bring the methodologies up to date; says so where another process is at it.

        *progress* is told how many of how many errors are done. *hurried*: do not wait long for a
        language model. *retelling*: let it tell runs again, too, where that was chosen. It can be
        interrupted: what was written stands, and the next one goes on from there. Raises
        `StoreError` where the store does not do its part.
        """
        began, holder, now = time.perf_counter(), uuid4().hex, self._now()
        taken_until = self._store.take_lease(holder, now, now + self.policy.lease)
        if taken_until is not None:
            reason = f"another consolidation is at work, until {taken_until:%H:%M:%S} at most"
            return ConsolidationReport(False, reason, 0, (), time.perf_counter() - began)
        work = Work()
        with kept(self._store, holder, self._now) as tenure:
            self._embed(work)
            self._work_through(work, progress or _tell_nobody)
            said = self._word(work, tenure, hurried=hurried, retelling=retelling)
            self._embed_methodologies()
        return ConsolidationReport(
            started=True,
            reason="",
            trajectories=work.trajectories,
            steps=work.reports(),
            seconds=time.perf_counter() - began,
            usage=said.usage,
            waiting=said.waiting,
            runs_waiting=said.runs_waiting,
            not_worded=said.reason,
            unusable=said.unusable,
            fault=said.fault,
        )

    def plan_wording(self) -> WordingPlan:
        """What `consolidate` would ask a language model; nothing is sent or written."""
        plan = self._rewording.plan() if self._rewording else WordingPlan("", (), NO_USAGE)
        if self._reteller is None:
            return plan
        runs = self._reteller.plan()
        return replace(
            runs, editor=plan.editor, prompts=plan.prompts, usage=plan.usage + runs.usage
        )

    def _word(self, work: Work, tenure: Tenure, *, hurried: bool, retelling: bool) -> Reworded:
        said = Reworded()
        if self._rewording:
            within = self.policy.wording if hurried else None
            self._rewording.word(work.word, tenure, said, within)
        if self._reteller and retelling:
            self._reteller.tell(work.retell, tenure, said)
        if said.waiting:
            waiting = number_of(said.waiting, "methodology")
            _log.warning("%s still to be worded: %s", waiting, said.reason)
        return said

    def _work_through(self, work: Work, progress: Progress) -> None:
        todo = self._store.unconsolidated()
        changed = bool(todo.trajectories or todo.error_ids or todo.repos)
        todo = self._with_newly_credited(todo)
        done, repos = list[str](), set[str]()
        for _ in range(_ROUNDS):
            work.trajectories += todo.trajectories
            self._abstract(sorted(todo.error_ids), done, work, progress)
            self._practise(todo.repos, work)
            repos.update(todo.repos)
            # What others learned meanwhile, and what removed methodologies had superseded.
            at, todo = todo.revision, self._store.unconsolidated(todo.revision)
            if not (todo.error_ids or todo.repos):
                break
        errors = sorted({*done})
        merge(self._store, errors, self.policy, self._likeness, work.merge)
        clean_up(self._store, errors, sorted(repos), self.policy, work.clean_up)
        if changed:
            self._store.mark_consolidated(at)

    def _abstract(
        self, error_ids: Sequence[str], done: list[str], work: Work, progress: Progress
    ) -> None:
        total = len(done) + len(error_ids)
        for batch in in_batches(error_ids):
            changes = self._abstraction.of_errors(batch, work)
            work.merge.updated += changes.write(self._store)
            done += batch
            progress(len(done), total)

    def _practise(self, repos: Sequence[str], work: Work) -> None:
        for batch in in_batches(repos):
            self._abstraction.of_repos(batch, work).write(self._store)

    def _embed(self, work: Work) -> None:
        """Fit the space of the memory anew where that is due, and embed what is waiting."""

        def count(runs: int) -> None:
            work.embed.created += runs

        try:
            embedder = self._embedder()  # first of all: it may begin the space that was chosen
            if fit_due(self._store):
                refit(self._store)
                work.embed.updated = self._store.document_count()
            elif embedder is not None:
                embed_missing(self._store, embedder, count)
                if calibration_due(self._store):
                    calibrate(self._store, embedder)
        except EmbeddingError as error:
            _log.warning("runs wait to be embedded: %s", error)

    def _embed_methodologies(self) -> None:
        try:
            if embedder := self._embedder():
                embed_methodologies(self._store, embedder)
        except EmbeddingError as error:
            _log.warning("methodologies wait to be embedded: %s", error)

    def _with_newly_credited(self, todo: Unconsolidated) -> Unconsolidated:
        """*todo*, and the methodologies that were shown, with another effect than is noted."""
        shown = self._store.shown_methodologies()
        credit = self._store.credit(shown)
        other = [
            one
            for one in self._store.methodologies_of(shown)
            if (one.success_count, one.failure_count) != credit[one.id]
        ]
        errors = {*todo.error_ids, *(one.error_id for one in other if one.error_id)}
        repos = {*todo.repos, *(one.repo for one in other if one.repo and not one.error_id)}
        return replace(todo, error_ids=tuple(sorted(errors)), repos=tuple(sorted(repos)))


def _tell_nobody(done: int, total: int) -> None:
    pass
