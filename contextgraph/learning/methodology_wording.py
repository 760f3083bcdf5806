"""The last step of consolidation: a language model rewords methodologies.

Its words are stored beside what was counted: the counts change with every run, the words only with
the remedies. Requests are sent outside of all transactions, and everything is complete without
their answers: where the model is slow, fails or may not be used, the words of the template stay.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice

from contextgraph.embedding import Lease
from contextgraph.errors import MissingExtraError, RemoteError
from contextgraph.learning.changes import (
    BATCH,
    Derived,
    StepCounts,
)
from contextgraph.llm import RemoteSummarizer
from contextgraph.model import (
    NO_USAGE,
    Methodology,
    MethodologyStatus,
    Usage,
    Wording,
    WordingPlan,
)
from contextgraph.ports import Store, id_pages

# Requests at the same time, and answers written together: a killed process loses no more of them.
_PARALLEL = 4
_BATCH = 8


@dataclass(slots=True)
class RewordingResult:
    """Usage of the requests, the number of methodologies that wait, and why.

    Once there is a *reason*, no further request is sent. *unusable* counts answers that were
    rejected and are not requested again, *fault* is what was wrong with one of them.
    """

    usage: Usage = NO_USAGE
    waiting: int = 0
    reason: str = ""
    unusable: int = 0
    fault: str = ""

    def add(self, answer: Wording | str) -> None:
        """Count an answer, or the reason why there is none."""
        if isinstance(answer, str):
            self.waiting += 1
            self.reason = answer
            return
        self.usage += answer.usage
        if not answer.words:
            self.unusable += 1
            self.fault = answer.reason


@dataclass(frozen=True, slots=True)
class Rewriter:
    """Lets *model* reword the methodologies of *store* that are not in its words."""

    store: Store
    derive: Callable[[Sequence[str]], Iterator[Derived]]
    model: RemoteSummarizer

    def plan(self) -> WordingPlan:
        """Plan what a consolidation would send now, at most: merging may leave less."""
        changed = self.store.admin.unconsolidated().error_ids
        usage, prompts = NO_USAGE, []
        for group, _ in self._todo({*changed, *self._errors()}):
            prompts.append(self.model.prompt(group))
            usage += self.model.estimate(group)
        return WordingPlan(self.model.name, tuple(prompts), usage)

    def reword(
        self,
        lease: Lease,
        counts: StepCounts,
        of_changed: Sequence[str],
        within: timedelta | None = None,
    ) -> RewordingResult:
        """Reword all methodologies that need it.

        With *within*, only those of the errors *of_changed*, and no request starts after that time.
        """
        result = RewordingResult()
        started, limit = time.monotonic(), None if within is None else within.total_seconds()
        todo = self._todo(self._errors() if limit is None else of_changed)
        while batch := list(islice(todo, _BATCH)):
            if not result.reason and limit is not None and time.monotonic() - started > limit:
                result.reason = "learning does not wait for a model any longer"
            answers = self._answers(batch, result.reason, interactive=limit is not None)
            for answer in answers:
                result.add(answer)
            lease.check()
            counts.examined += len(batch)
            counts.updated += self._write(batch, answers)
        return result

    def _errors(self) -> set[str]:
        """The errors of all methodologies that need words."""
        return {
            methodology.error_id
            for ids in id_pages(self.store.methodologies, BATCH)
            for methodology in self.store.methodologies.get(ids)
            if self._needs_words(methodology)
        }

    def _todo(self, error_ids: Collection[str]) -> Iterator[Derived]:
        """The methodologies of these errors that need words, with what to word."""
        return (
            derived for derived in self.derive(sorted(error_ids)) if self._needs_words(derived[1])
        )

    def _needs_words(self, methodology: Methodology) -> bool:
        """True where the model has not answered yet for the remedies as they are now."""
        words = methodology.words
        return methodology.status is not MethodologyStatus.RETIRED and (
            words is None or words.model != self.model.name
        )

    def _answers(
        self, batch: Sequence[Derived], reason: str, *, interactive: bool
    ) -> list[Wording | str]:
        """The answers for *batch*, or why there is none; no request is sent with a *reason*."""

        def answer_or_reason(derived: Derived) -> Wording | str:
            try:
                return reason or self.model.reword(derived[0], interactive=interactive)
            except (RemoteError, MissingExtraError) as error:
                return str(error)

        with ThreadPoolExecutor(_PARALLEL) as pool:
            return list(pool.map(answer_or_reason, batch))

    def _write(self, batch: Sequence[Derived], answers: Sequence[Wording | str]) -> int:
        """Store the words for a batch; how many methodologies were reworded.

        Where remedies were changed or removed meanwhile, the answer is of no use.
        """
        stored = {
            methodology.id: methodology
            for methodology in self.store.methodologies.get([m.id for _, m in batch])
        }
        changed = [
            replace(now, words=answer.words)
            for (_, planned), answer in zip(batch, answers, strict=True)
            if not isinstance(answer, str)
            and (now := stored.get(planned.id)) is not None
            and now.remedies == planned.remedies
        ]
        if changed:
            self.store.methodologies.put(changed)
        return sum(bool(methodology.words) for methodology in changed)
