"""Who worded a methodology, and the last step: a language model rewords methodologies.

The words of a model stand below what was counted, in lines of their own: the counts change with
every run, the words only with the remedies. `Methodology.made_by` names the template, or the model,
the version of its prompt and a fingerprint of the remedies; while the model has not answered, or
after an unusable answer, the template with that in brackets.

Requests are sent outside of all transactions, and everything is complete without their answers:
where the model is slow, fails or may not be used, the words of the template stay.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from hashlib import blake2b

from contextgraph.consolidation.changes import Derived, StepCounts, in_batches
from contextgraph.embedding import Lease
from contextgraph.errors import MissingExtraError, RemoteError
from contextgraph.model import (
    NO_USAGE,
    Methodology,
    MethodologyGroup,
    MethodologyStatus,
    Usage,
    Wording,
    WordingPlan,
    Words,
)
from contextgraph.ports import ModelSummarizer, Store

_WAITING = " (waits for {})"
_UNUSABLE = " ({}: unusable answer)"


def with_words_of(before: Methodology | None, now: Methodology) -> Methodology:
    """*now* in the words of *before*, where its remedies are still the same."""
    if before is None or fingerprint(now) not in before.made_by:
        return now
    _, *words = before.strategy.split("\n")
    if not words:
        _, bracket, why = before.made_by.partition(" (")
        return replace(now, made_by=f"{now.made_by}{bracket}{why}")
    return replace(
        now,
        situation=before.situation,
        strategy="\n".join((_counts(now), *words)),
        made_by=before.made_by,
    )


def needs_words(methodology: Methodology, model: ModelSummarizer) -> bool:
    """True where *model* has not answered yet for the remedies as they are now."""
    return methodology.status is not MethodologyStatus.RETIRED and (
        _mark(methodology, model) not in methodology.made_by
        or methodology.made_by == waiting(methodology, model).made_by
    )


def worded(methodology: Methodology, words: Words, model: ModelSummarizer) -> Methodology:
    """*methodology* in the *words* of *model*, below what was counted."""
    lines = [_counts(methodology), f"How: {words.strategy}"]
    if words.not_when:
        lines.append(f"Not when: {words.not_when}")
    return replace(
        methodology,
        situation=words.situation,
        strategy="\n".join(lines),
        made_by=_mark(methodology, model),
    )


def unusable(methodology: Methodology, model: ModelSummarizer) -> Methodology:
    """*methodology* as it is; the answers of *model* cannot be used."""
    return _marked(methodology, _UNUSABLE.format(_mark(methodology, model)))


def waiting(methodology: Methodology, model: ModelSummarizer) -> Methodology:
    """*methodology* as it is, to be worded once *model* answers."""
    return _marked(methodology, _WAITING.format(_mark(methodology, model)))


def fingerprint(methodology: Methodology) -> str:
    """The same while it has the same remedies in the same order."""
    remedies = [
        (one.kind.value, one.target, one.replaced, one.pattern) for one in methodology.remedies
    ]
    content = f"{methodology.id}\n{remedies}"
    return blake2b(content.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _counts(methodology: Methodology) -> str:
    """The first line of the strategy, which the template made of the counts."""
    return methodology.strategy.split("\n", 1)[0]


def _mark(methodology: Methodology, model: ModelSummarizer) -> str:
    return f"{model.name} {fingerprint(methodology)}"


def _marked(methodology: Methodology, remark: str) -> Methodology:
    template, _, _ = methodology.made_by.partition(" (")
    return replace(methodology, made_by=f"{template}{remark}")


# Requests at the same time, and answers written together: a killed process loses no more of them.
_PARALLEL = 4
_BATCH = 8


@dataclass(slots=True)
class RewordingResult:
    """What the requests used, how many methodologies still wait, and why.

    Once there is a *reason*, no further request is sent. *unusable* counts answers that were
    rejected and are not requested again, *fault* is what was wrong with one of them.
    """

    usage: Usage = NO_USAGE
    waiting: int = 0
    reason: str = ""
    unusable: int = 0
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Rewriter:
    """Lets *model* reword the methodologies of *store* that are not in its words."""

    store: Store
    derive: Callable[[Sequence[str]], Iterator[Derived]]
    model: ModelSummarizer

    def plan(self) -> WordingPlan:
        """What a consolidation would send now, at most: merging may leave less."""
        changed = self.store.admin.unconsolidated()
        known = [one for batch in self._stale(_all_ids(self.store)) for one in batch]
        errors = {*changed.error_ids, *_errors(known)}
        usage, prompts = NO_USAGE, []
        for group, methodology in self.derive(sorted(errors)):
            if needs_words(methodology, self.model):
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
        deadline = None if within is None else time.monotonic() + within.total_seconds()
        request = partial(self.model.reword, interactive=within is not None)
        ids = self._ids_of(of_changed) if within is not None else _all_ids(self.store)
        for stale in self._stale(ids):
            todo = self._with_groups(stale)
            counts.examined += len(todo)
            for start in range(0, len(todo), _BATCH):
                batch = todo[start : start + _BATCH]
                if not result.reason and deadline is not None and time.monotonic() > deadline:
                    result.reason = "learning does not wait for a model any longer"
                answers = [None] * len(batch) if result.reason else _answers(batch, request, result)
                lease.check()
                counts.updated += self._write(batch, answers, result)
        return result

    def _ids_of(self, error_ids: Sequence[str]) -> Iterator[Sequence[str]]:
        for batch in in_batches(error_ids):
            yield [one.id for one in self.store.methodologies.find(batch)]

    def _stale(self, batches: Iterable[Sequence[str]]) -> Iterator[list[Methodology]]:
        """Those that need words, a batch at a time."""
        for ids in batches:
            known = self.store.methodologies.get(ids)
            yield [one for one in known if needs_words(one, self.model)]

    def _with_groups(self, stale: Sequence[Methodology]) -> list[Derived]:
        by_id = {one.id: one for one in stale}
        found = self.derive(sorted(_errors(stale)))
        return [(group, by_id[one.id]) for group, one in found if one.id in by_id]

    def _write(
        self, batch: Sequence[Derived], answers: Sequence[Wording | None], result: RewordingResult
    ) -> int:
        """Write the answers for a batch; how many methodologies were reworded.

        What was changed or removed meanwhile is left as it is.
        """
        ids = [methodology.id for _, methodology in batch]
        now = {one.id: one for one in self.store.methodologies.get(ids)}
        changed, count = [], 0
        for (_, before), answer in zip(batch, answers, strict=True):
            if now.get(before.id) != before:
                continue
            if answer is None:
                result.waiting += 1
                after = waiting(before, self.model)
            elif answer.words is None:
                after = unusable(before, self.model)
            else:
                after = worded(before, answer.words, self.model)
                count += 1
            if after != before:
                changed.append(after)
        if changed:
            self.store.methodologies.put(changed)
        return count


def _answers(
    batch: Sequence[Derived],
    request: Callable[[MethodologyGroup], Wording],
    result: RewordingResult,
) -> list[Wording | None]:
    """The answers for *batch*, None for those that failed; counted in *result*."""

    def answer_or_reason(derived: Derived) -> Wording | str:
        try:
            return request(derived[0])
        except (RemoteError, MissingExtraError) as error:
            return str(error)

    with ThreadPoolExecutor(_PARALLEL) as pool:
        answers = list(pool.map(answer_or_reason, batch))
    for answer in answers:
        if isinstance(answer, str):
            result.reason = answer
            continue
        result.usage += answer.usage
        if answer.words is None:
            result.unusable += 1
            result.fault = answer.reason
    return [None if isinstance(answer, str) else answer for answer in answers]


def _all_ids(store: Store) -> Iterator[Sequence[str]]:
    return in_batches(store.methodologies.ids())


def _errors(methodologies: Iterable[Methodology]) -> set[str]:
    return {one.error_id for one in methodologies}
