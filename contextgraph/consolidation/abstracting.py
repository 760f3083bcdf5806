"""The first step and the third: what the history of an error teaches, and how well that does."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from contextgraph.consolidation.grouping import groups_of
from contextgraph.consolidation.identity import methodology_id
from contextgraph.consolidation.likeness import Likeness
from contextgraph.consolidation.merging import similar_fragments
from contextgraph.consolidation.policy import ConsolidationPolicy
from contextgraph.consolidation.practices import practices_of
from contextgraph.consolidation.statistics import Credit, measured, practised
from contextgraph.consolidation.tallies import Changes, Work, in_batches, resolved_by
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
class Known:
    """Methodologies that are kept already, and what took their place, by their ids."""

    before: Mapping[str, Methodology]
    survivors: Mapping[str, Methodology]

    def survivor_of(self, methodology: Methodology) -> Methodology:
        """What took the place of *methodology*, itself where nothing did that is there."""
        return self.survivors.get(methodology.superseded_by or "", methodology)


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
        histories = self.store.error_histories(error_ids, self.policy.window)
        known = self._known(self.store.methodologies_of_errors(_met_in(histories)))
        self._compare(self._taught_by(histories), known, changes, work)
        for history in histories:
            work.abstract.examined += len(history.clearances)
            changes.similar += similar_fragments(history.error.id, history.clearances, self.policy)
        work.merge.examined += len(changes.similar)
        return changes

    def of_repos(self, repos: Sequence[str], work: Work) -> Changes:
        """What is new, other or gone of what worked without an error in these repositories."""
        changes = Changes()
        histories = self.store.repo_histories(repos, self.policy.window)
        known = self._known(self.store.methodologies_of_repos(_named_in(histories)))
        self._compare(self._practised(histories), known, changes, work)
        work.abstract.examined += sum(
            len(run.fragments) for history in histories for run in history.runs
        )
        return changes

    def taught(self, error_ids: Sequence[str], repos: Sequence[str]) -> Iterator[Taught]:
        """All that the histories of these errors and repositories teach, as it would be kept."""
        for batch in in_batches(error_ids):
            histories = self.store.error_histories(batch, self.policy.window)
            known = self._known(self.store.methodologies_of_errors(_met_in(histories)))
            for group, methodology in self._taught_by(histories):
                yield group, self._kept(methodology, known)
        for batch in in_batches(repos):
            past = self.store.repo_histories(batch, self.policy.window)
            known = self._known(self.store.methodologies_of_repos(_named_in(past)))
            for group, methodology in self._practised(past):
                yield group, self._kept(methodology, known)

    def _known(self, before: Sequence[Methodology]) -> Known:
        gone = sorted({one.superseded_by for one in before if one.superseded_by})
        survivors = self.store.methodologies_of(gone) if gone else ()
        return Known({one.id: one for one in before}, {one.id: one for one in survivors})

    def _kept(self, methodology: Methodology, known: Known) -> Methodology:
        before = known.before.get(methodology.id)
        return self._with_tombstone(with_words_of(before, methodology), before, known)

    def _compare(self, found: Iterable[Taught], known: Known, changes: Changes, work: Work) -> None:
        not_found = dict(known.before)
        for _, methodology in found:
            before = not_found.pop(methodology.id, None)
            now = self._kept(methodology, known)
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
            survivor = known.survivor_of(now)
            if now.error_id and survivor.status is not MethodologyStatus.RETIRED:
                changes.resolved.append(resolved_by(now, now.error_id, survivor.id))
        gone = [one.id for one in not_found.values() if not _is_given_up(one)]
        changes.removed += gone
        work.abstract.removed += len(gone)

    def _taught_by(self, histories: Sequence[ErrorHistory]) -> Iterator[Taught]:
        """What each of *histories* teaches, by id."""
        groups = [groups_of(history, self.policy) for history in histories]
        credit = self._credit(_identity(group) for some in groups for group in some)
        for some in groups:
            said = ((group, self.summarizer.summarise(group)) for group in some)
            found = [(one, measured(_methodology(one, it), one, credit)) for one, it in said]
            yield from sorted(found, key=_id_of)

    def _practised(self, histories: Sequence[RepoHistory]) -> Iterator[Taught]:
        """What worked without an error in each of *histories*, by id."""
        groups = [
            practices_of(history, self.policy, partial(self._rarity, history))
            for history in histories
        ]
        credit = self._credit(_identity_of(group) for some in groups for group in some)
        for some in groups:
            said = ((group, self.summarizer.summarise_practice(group)) for group in some)
            found = [(one, practised(_methodology_of(one, it), one, credit)) for one, it in said]
            yield from sorted(found, key=_id_of)

    def _credit(self, ids: Iterable[str]) -> Credit:
        asked = [*ids]
        return self.store.credit(asked) if asked else {}

    def _rarity(self, history: RepoHistory, asked: Collection[str]) -> Mapping[str, float]:
        """Word -> the share of the tasks of other repositories that have it."""
        if not asked:
            return {}
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

    def _with_tombstone(
        self, now: Methodology, before: Methodology | None, known: Known
    ) -> Methodology:
        """*now*, still given up where *before* was, and for the same reason.

        What was merged stays so while both are nearly as much alike as they had to be then: with
        each fitting of the embedding space that varies a little.
        """
        if before is None or before.status is not MethodologyStatus.RETIRED:
            return now
        if before.superseded_by is None:
            return before
        survivor = known.survivor_of(before)
        likeness = self.likeness.of(now.strategy, survivor.strategy)
        if survivor is before or likeness < self.policy.apart:
            return now
        return replace(now, status=before.status, superseded_by=before.superseded_by)


def _met_in(histories: Iterable[ErrorHistory]) -> list[str]:
    return [history.error.id for history in histories]


def _named_in(histories: Iterable[RepoHistory]) -> list[str]:
    return [history.repo for history in histories]


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
