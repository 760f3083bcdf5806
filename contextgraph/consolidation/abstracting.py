"""The first step and the third: what the history of an error teaches, and how well that does."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from contextgraph.consolidation.grouping import groups_of
from contextgraph.consolidation.identity import methodology_id
from contextgraph.consolidation.likeness import Likeness
from contextgraph.consolidation.merging import similar_fragments
from contextgraph.consolidation.policy import ConsolidationPolicy
from contextgraph.consolidation.statistics import measured
from contextgraph.consolidation.tallies import Changes, Work, resolved_by
from contextgraph.model import (
    ErrorHistory,
    Methodology,
    MethodologyGroup,
    MethodologyStatus,
    Summary,
)
from contextgraph.ports import LearntStore, Summarizer

_SAID = ("situation", "strategy", "made_by", "sources")


@dataclass(frozen=True, slots=True)
class Abstraction:
    """Compares what errors teach with what is known, and gathers the differences."""

    store: LearntStore
    summarizer: Summarizer
    policy: ConsolidationPolicy
    likeness: Likeness

    def of_errors(self, error_ids: Sequence[str], work: Work) -> Changes:
        """What is new, other or gone for these errors; counted in *work*."""
        changes = Changes()
        for error_id in error_ids:
            history = self.store.error_history(error_id, self.policy.window)
            if history is not None:
                work.abstract.examined += len(history.clearances)
                self._compare(history, changes, work)
                changes.similar += similar_fragments(error_id, history.clearances, self.policy)
        work.merge.examined += len(changes.similar)
        return changes

    def _compare(self, history: ErrorHistory, changes: Changes, work: Work) -> None:
        found = self._taught_by(history)
        known = {one.id: one for one in self.store.methodologies_of_error(history.error.id)}
        for methodology in found:
            before = known.pop(methodology.id, None)
            now = self._with_tombstone(methodology, before)
            work.statistics.examined += 1
            if now == before:
                continue
            changes.methodologies.append(now)
            if before is None:
                work.abstract.created += 1
            elif any(getattr(now, part) != getattr(before, part) for part in _SAID):
                work.abstract.updated += 1
            else:
                work.statistics.updated += 1
            if not (now.status is MethodologyStatus.RETIRED and now.superseded_by is None):
                survivor = now.superseded_by or now.id
                changes.resolved.append(resolved_by(now, now.error_id, survivor))
        gone = [one.id for one in known.values() if not _is_given_up(one)]
        changes.removed += gone
        work.abstract.removed += len(gone)

    def _taught_by(self, history: ErrorHistory) -> list[Methodology]:
        groups = groups_of(history, self.policy)
        ids = [_identity(group) for group in groups]
        credit = self.store.credit(ids)
        found = [
            measured(_methodology(group, self.summarizer.summarise(group)), group, credit)
            for group in groups
        ]
        return sorted(found, key=lambda methodology: methodology.id)

    def _with_tombstone(self, now: Methodology, before: Methodology | None) -> Methodology:
        """*now*, still given up where *before* was, and for the same reason."""
        if before is None or before.status is not MethodologyStatus.RETIRED:
            return now
        if before.superseded_by is None:
            return before
        survivors = self.store.methodologies_of([before.superseded_by])
        if not survivors:
            return now
        if self.likeness.of(now.strategy, survivors[0].strategy) < self.policy.alike:
            return now
        return replace(now, status=before.status, superseded_by=before.superseded_by)


def _is_given_up(methodology: Methodology) -> bool:
    """True for a tombstone that keeps a methodology from coming up again."""
    return methodology.status is MethodologyStatus.RETIRED and methodology.superseded_by is None


def _identity(group: MethodologyGroup) -> str:
    return methodology_id(group.error.id, group.keyword, group.task_type, group.repo)


def _methodology(group: MethodologyGroup, summary: Summary) -> Methodology:
    """What *group* teaches, in the words of *summary*, not measured yet."""
    return Methodology(
        id=_identity(group),
        error_id=group.error.id,
        keyword=group.keyword,
        task_type=group.task_type,
        repo=group.repo,
        situation=summary.situation,
        strategy=summary.strategy,
        made_by=summary.made_by,
        status=MethodologyStatus.PROBATION,
        confidence=0.0,
        support=len({clearance.trajectory_id for clearance in group.clearances}),
        repositories=len({clearance.repo for clearance in group.clearances}),
        success_rate=0.0,
        avg_steps=0.0,
        frequency=group.met,
        sources=tuple(sorted({clearance.source for clearance in group.clearances})),
    )
