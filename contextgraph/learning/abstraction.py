"""Derives methodologies from the history of an error, with their statistics and changes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from operator import attrgetter

from contextgraph.advising.gate import Credits, credits_for
from contextgraph.governance import Credit, confidence
from contextgraph.learning.changes import (
    Changes,
    Counts,
    Derived,
    in_batches,
    resolved_by,
)
from contextgraph.learning.grouping import ConsolidationPolicy, groups_of
from contextgraph.learning.merging import Similarity, similar_fragments
from contextgraph.llm import template_summary
from contextgraph.model import (
    Methodology,
    MethodologyGroup,
    MethodologyStatus,
    TaskType,
)
from contextgraph.ports import Store

_DIGITS = 4
_ALL_HOPS = 1_000


def credit_of_methodologies(store: Store, ids: Iterable[str]) -> Credits:
    """The credit of the methodologies *ids*; the same whichever others are among them."""
    return credits_for(store, ids, attrgetter("id"), hops=_ALL_HOPS)


def measured(methodology: Methodology, group: MethodologyGroup, known: Credits) -> Methodology:
    """*methodology* with its statistics from *group* and its credit."""
    credit = known.of(methodology.id)
    lift, rate, steps = _rates(group, methodology.support, credit)
    instances = {clearance.instance_id for clearance in group.clearances}
    sources = {clearance.contributor for clearance in group.clearances} - known.distrusted
    is_active = known.is_active(len(instances), len(sources))
    is_silenced = known.is_silenced(methodology.id, len(sources)) or not sources
    return replace(
        methodology,
        status=_status_of(lift, is_silenced=is_silenced, is_active=is_active),
        confidence=round(lift, _DIGITS),
        success_rate=round(rate, _DIGITS),
        avg_steps=round(steps, _DIGITS),
        success_count=credit.helped,
        failure_count=credit.failed,
    )


def _rates(group: MethodologyGroup, support: int, credit: Credit) -> tuple[float, float, float]:
    """Confidence, success rate and mean steps.

    Runs that never cleared the error may have tried this remedy: they count against it and against
    the base rate. Support and the times it was shown are both evidence for the confidence.
    """
    never = group.met - group.cleared
    lift = confidence(
        support + credit.helped,
        support + credit.helped + never + credit.failed,
        group.otherwise,
        group.cleared - support + never,
    )
    steps = [clearance.steps for clearance in group.clearances]
    return lift, support / (support + never), sum(steps) / len(steps)


def _status_of(lift: float, *, is_silenced: bool, is_active: bool) -> MethodologyStatus:
    if is_silenced:
        return MethodologyStatus.QUARANTINED
    return MethodologyStatus.ACTIVE if is_active and lift > 0 else MethodologyStatus.PROBATION


_CONTENT = ("situation", "strategy", "words", "sources", "remedies")


@dataclass(frozen=True, slots=True)
class _Known:
    """Methodologies that are stored already, and those that superseded them, by id."""

    before: Mapping[str, Methodology]
    survivors: Mapping[str, Methodology]

    def survivor_of(self, methodology: Methodology) -> Methodology:
        """Return what superseded *methodology*; itself where nothing did."""
        return self.survivors.get(methodology.superseded_by or "", methodology)


@dataclass(frozen=True, slots=True)
class Abstraction:
    """Makes methodologies of what histories have in common, and gathers what changed."""

    store: Store
    policy: ConsolidationPolicy
    similarity: Similarity

    def of_errors(self, error_ids: Sequence[str], counts: Counts) -> Changes:
        """Derive what is new, changed or gone for these errors; counted in *counts*."""
        changes = Changes()
        histories = self.store.recoveries.histories(error_ids, self.policy.window)
        known = self._known([history.error.id for history in histories])
        groups = [group for history in histories for group in groups_of(history, self.policy)]
        self._compare(self._derived(groups, known), known, changes, counts)
        for history in histories:
            counts.abstract.examined += len(history.clearances)
            changes.similar += similar_fragments(history.error.id, history.clearances, self.policy)
        counts.merge.examined += len(changes.similar)
        return changes

    def derive(self, error_ids: Sequence[str]) -> Iterator[Derived]:
        """All that these errors teach, as it would be stored."""
        for batch in in_batches(error_ids):
            histories = self.store.recoveries.histories(batch, self.policy.window)
            known = self._known(batch)
            groups = [group for history in histories for group in groups_of(history, self.policy)]
            yield from self._derived(groups, known)

    def _known(self, error_ids: Sequence[str]) -> _Known:
        before = self.store.methodologies.get(errors=error_ids)
        gone = sorted(
            {methodology.superseded_by for methodology in before if methodology.superseded_by}
        )
        survivors = self.store.methodologies.get(gone) if gone else ()
        return _Known(
            {methodology.id: methodology for methodology in before},
            {survivor.id: survivor for survivor in survivors},
        )

    def _derived(self, groups: Sequence[MethodologyGroup], known: _Known) -> list[Derived]:
        """The methodology of each of *groups*, worded and retired as before."""
        made = [(group, _methodology(group)) for group in groups]
        credit = credit_of_methodologies(self.store, (methodology.id for _, methodology in made))
        new = [(group, measured(methodology, group, credit)) for group, methodology in made]
        self.similarity.prepare(
            methodology
            for _, now in new
            if (before := known.before.get(now.id)) and before.superseded_by
            for methodology in (now, known.survivor_of(before))
        )
        return [(group, self._as_before(methodology, known)) for group, methodology in new]

    def _as_before(self, now: Methodology, known: _Known) -> Methodology:
        """*now* with the words for the same remedies, and still retired for the same reason.

        What was merged stays so while both are nearly as similar as they had to be for that: the
        similarity varies a little with each fitting of the embedding space.
        """
        before = known.before.get(now.id)
        if before is not None and before.remedies == now.remedies:
            now = replace(now, words=before.words)
        if before is None or before.status is not MethodologyStatus.RETIRED:
            return now
        if before.superseded_by is None:
            return before
        survivor = known.survivor_of(before)
        similarity = self.similarity.of(now, survivor)
        if survivor is before or similarity < self.policy.separation_threshold:
            return now
        return replace(now, status=before.status, superseded_by=before.superseded_by)

    def _compare(
        self, derived: Iterable[Derived], known: _Known, changes: Changes, counts: Counts
    ) -> None:
        not_derived = dict(known.before)
        for _, now in derived:
            before = not_derived.pop(now.id, None)
            counts.statistics.examined += 1
            if now == before:
                continue
            changes.methodologies.append(now)
            if before is None:
                counts.abstract.created += 1
            elif any(getattr(now, name) != getattr(before, name) for name in _CONTENT):
                counts.abstract.updated += 1
            else:
                counts.statistics.updated += 1
            survivor = known.survivor_of(now)
            if survivor.status is not MethodologyStatus.RETIRED:
                changes.resolved.append(resolved_by(now, survivor.id))
        gone = [
            methodology.id for methodology in not_derived.values() if not _is_tombstone(methodology)
        ]
        changes.removed += gone
        counts.abstract.removed += len(gone)


def methodology_id(
    error_id: str, keyword: str, task_type: TaskType | None, repo: str | None
) -> str:
    """The id of the methodology for an error (narrowed by *keyword*), type of task and scope.

    It does not depend on the wording.
    """
    scope = "" if repo is None else f"repo:{repo}"
    parts = (error_id, keyword, task_type or "", scope)
    encoded = b"\x1f".join(part.encode("utf-8", "surrogatepass") for part in parts)
    return f"mth_{blake2b(encoded, digest_size=12).hexdigest()}"


def _methodology(group: MethodologyGroup) -> Methodology:
    """Word what *group* teaches by the template; it is not measured yet."""
    summary = template_summary(group)
    sources = {clearance.source for clearance in group.clearances}
    return Methodology(
        id=methodology_id(group.error.id, group.keyword, group.task_type, group.repo),
        error_id=group.error.id,
        keyword=group.keyword,
        task_type=group.task_type,
        repo=group.repo,
        situation=summary.situation,
        strategy=summary.strategy,
        made_by=summary.made_by,
        status=MethodologyStatus.PROBATION,
        confidence=0.0,
        support=len({source.trajectory_id for source in sources}),
        repositories=len({clearance.repo for clearance in group.clearances}),
        success_rate=0.0,
        avg_steps=0.0,
        frequency=group.met,
        sources=tuple(sorted(sources)),
        remedies=tuple(remedy.action for remedy in group.remedies),
    )


def _is_tombstone(methodology: Methodology) -> bool:
    """True for what was retired for good, so that it does not come up again."""
    return methodology.status is MethodologyStatus.RETIRED and methodology.superseded_by is None
