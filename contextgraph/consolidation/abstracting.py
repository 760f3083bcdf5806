"""The first step and the third: what the history of an error teaches, and how well that does."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from contextgraph.consolidation.grouping import groups_of
from contextgraph.consolidation.identity import methodology_id
from contextgraph.consolidation.likeness import Likeness
from contextgraph.consolidation.merging import similar_fragments
from contextgraph.consolidation.policy import ConsolidationPolicy
from contextgraph.consolidation.practices import practices_of
from contextgraph.consolidation.statistics import measured, practised
from contextgraph.consolidation.tallies import Changes, Work, resolved_by
from contextgraph.consolidation.wording import with_words_of
from contextgraph.model import (
    ErrorHistory,
    Group,
    Methodology,
    MethodologyGroup,
    MethodologyStatus,
    PracticeGroup,
    RepoHistory,
    Summary,
)
from contextgraph.ports import LearntStore, Summarizer
from contextgraph.text import words

Taught = tuple[Group, Methodology]
"""What runs have in common, and the methodology that it makes."""

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
                known = self.store.methodologies_of_error(error_id)
                self._compare(self._taught_by(history), known, changes, work)
                changes.similar += similar_fragments(error_id, history.clearances, self.policy)
        work.merge.examined += len(changes.similar)
        return changes

    def of_repos(self, repos: Sequence[str], work: Work) -> Changes:
        """What is new, other or gone of what worked without an error in these repositories."""
        changes = Changes()
        for repo in repos:
            history = self.store.repo_history(repo, self.policy.window)
            if history is not None:
                work.abstract.examined += sum(len(run.fragments) for run in history.runs)
                known = self.store.methodologies_of_repo(repo)
                self._compare(self._practised(history), known, changes, work)
        return changes

    def taught(self, error_ids: Sequence[str], repos: Sequence[str]) -> Iterator[Taught]:
        """All that the histories of these errors and repositories teach, as it would be kept."""
        for error_id in error_ids:
            history = self.store.error_history(error_id, self.policy.window)
            if history is not None:
                known = self.store.methodologies_of_error(error_id)
                yield from self._as_kept(self._taught_by(history), known)
        for repo in repos:
            past = self.store.repo_history(repo, self.policy.window)
            if past is not None:
                known = self.store.methodologies_of_repo(repo)
                yield from self._as_kept(self._practised(past), known)

    def _as_kept(
        self, found: Iterable[Taught], before_it: Iterable[Methodology]
    ) -> Iterator[Taught]:
        known = {one.id: one for one in before_it}
        for group, methodology in found:
            yield group, self._kept(methodology, known.get(methodology.id))

    def _kept(self, methodology: Methodology, before: Methodology | None) -> Methodology:
        return self._with_tombstone(with_words_of(before, methodology), before)

    def _compare(
        self,
        found: Sequence[Taught],
        before_it: Sequence[Methodology],
        changes: Changes,
        work: Work,
    ) -> None:
        known = {one.id: one for one in before_it}
        for _, methodology in found:
            before = known.pop(methodology.id, None)
            now = self._kept(methodology, before)
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
            survivor = self._survivor_of(now)
            if now.error_id and survivor.status is not MethodologyStatus.RETIRED:
                changes.resolved.append(resolved_by(now, now.error_id, survivor.id))
        gone = [one.id for one in known.values() if not _is_given_up(one)]
        changes.removed += gone
        work.abstract.removed += len(gone)

    def _taught_by(self, history: ErrorHistory) -> list[Taught]:
        groups = groups_of(history, self.policy)
        ids = [_identity(group) for group in groups]
        credit = self.store.credit(ids)
        found: list[Taught] = []
        for group in groups:
            said = self.summarizer.summarise(group)
            found.append((group, measured(_methodology(group, said), group, credit)))
        return sorted(found, key=_id_of)

    def _practised(self, history: RepoHistory) -> list[Taught]:
        groups = practices_of(history, self.policy, partial(self._rarity, history))
        credit = self.store.credit([_identity_of(group) for group in groups])
        found: list[Taught] = []
        for group in groups:
            said = self.summarizer.summarise_practice(group)
            found.append((group, practised(_methodology_of(group, said), group, credit)))
        return sorted(found, key=_id_of)

    def _rarity(self, history: RepoHistory, asked: Iterable[str]) -> Mapping[str, float]:
        """Word -> the share of the tasks of other repositories that have it."""
        words_here = Counter(
            word
            for run in history.runs
            for word in {*words(f"{run.trajectory.task}\n{run.trajectory.summary}")}
        )
        others = max(1, self.store.document_count() - len(history.runs))
        everywhere = self.store.word_frequencies(tuple(asked))
        return {
            word: max(0, count - words_here[word]) / others for word, count in everywhere.items()
        }

    def _with_tombstone(self, now: Methodology, before: Methodology | None) -> Methodology:
        """*now*, still given up where *before* was, and for the same reason.

        What was merged stays so while both are nearly as much alike as they had to be then: with
        each fitting of the embedding space that varies a little.
        """
        if before is None or before.status is not MethodologyStatus.RETIRED:
            return now
        if before.superseded_by is None:
            return before
        survivor = self._survivor_of(before)
        likeness = self.likeness.of(now.strategy, survivor.strategy)
        if survivor is before or likeness < self.policy.apart:
            return now
        return replace(now, status=before.status, superseded_by=before.superseded_by)

    def _survivor_of(self, methodology: Methodology) -> Methodology:
        """What took the place of *methodology*, itself where nothing did that is there."""
        if methodology.superseded_by is None:
            return methodology
        survivors = self.store.methodologies_of([methodology.superseded_by])
        return survivors[0] if survivors else methodology


def _is_given_up(methodology: Methodology) -> bool:
    """True for a tombstone that keeps a methodology from coming up again."""
    return methodology.status is MethodologyStatus.RETIRED and methodology.superseded_by is None


def _id_of(taught: Taught) -> str:
    return taught[1].id


def _identity(group: MethodologyGroup) -> str:
    return methodology_id(group.error.id, group.keyword, group.task_type, group.repo)


def _identity_of(group: PracticeGroup) -> str:
    return methodology_id("", group.keyword, group.task_type, group.repo, group.phase)


def _methodology_of(group: PracticeGroup, summary: Summary) -> Methodology:
    """What *group* did, in the words of *summary*, not measured yet."""
    return Methodology(
        id=_identity_of(group),
        error_id="",
        keyword=group.keyword,
        task_type=group.task_type,
        repo=group.repo,
        situation=summary.situation,
        strategy=summary.strategy,
        made_by=summary.made_by,
        status=MethodologyStatus.PROBATION,
        confidence=0.0,
        support=len({source.trajectory_id for source in group.sources}),
        repositories=1,
        success_rate=0.0,
        avg_steps=0.0,
        frequency=group.about,
        sources=group.sources,
        phase=group.phase,
    )


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
