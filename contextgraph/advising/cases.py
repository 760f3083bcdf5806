"""Ranks the past runs that the channels found, and selects the cases to show."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import PurePosixPath
from typing import NamedTuple

from contextgraph.advising.channels import CaseHit, Query, final_score, scope_level, title_of
from contextgraph.advising.evidence import advice_ids
from contextgraph.advising.files import is_named
from contextgraph.advising.gate import (
    CaseFeatures,
    Gate,
    case_probability,
    credits_for,
)
from contextgraph.lazy import regex, replace
from contextgraph.model import (
    ChannelRank,
    Outcome,
    PatchSummary,
    ScopeLevel,
    SimilarCase,
    Trajectory,
    Why,
    most_informative,
)
from contextgraph.ports import Store
from contextgraph.ranking import (
    blend,
    ranks_in,
    word_counts,
)

FRAGMENTS_SHOWN = 3
# The lines of a traceback that name files, of Python and of others.
_PLACES = regex(r'^.*(?:\bFile "|\.\w+:\d+).*$', re.MULTILINE)


Rankings = Mapping[str, Sequence[CaseHit]]


def cases_of(
    query: Query,
    by_channel: Rankings,
    gate: Gate,
    store: Store,
    limit: int,
    weights: Mapping[str, float],
    changed: Callable[[str], PatchSummary],
) -> tuple[SimilarCase, ...]:
    """*by_channel* as one ranking, at most *limit*; none where the gate admits none.

    *changed* gives what the patch of a run changed.
    """
    ranks = ranks_in(
        {
            name: [(hit.trajectory.id, hit.evidence) for hit in hits]
            for name, hits in by_channel.items()
        }
    )
    ranking = ranking_of(query, by_channel, weights, limit)
    cases = [
        _case(query, ranked, ranks[ranked.run], gate, is_first=place == 0)
        for place, ranked in enumerate(ranking)
    ]
    if not any(case.is_shown or case.probability >= gate.min_case_precision for case in cases):
        return ()
    cases = [
        replace(case, changed=changed(case.trajectory_id))
        if case.why.scope is ScopeLevel.REPO
        else case
        for case in cases
    ]
    return _without_quarantined(_with_fragments(cases, store), store)


class RankedRun(NamedTuple):
    """A past run with what all channels found of it."""

    run: str
    hits: Sequence[CaseHit]
    score: float
    features: CaseFeatures


def ranking_of(
    query: Query, by_channel: Rankings, weights: Mapping[str, float], limit: int
) -> list[RankedRun]:
    """The best run of each of *limit* instances that are in *by_channel*, best first."""
    by_run: dict[str, list[CaseHit]] = {}
    for hit in chain.from_iterable(by_channel.values()):
        by_run.setdefault(hit.trajectory.id, []).append(hit)
    given = {name: weights[name] for name in by_channel if by_channel[name]}
    scores = _scored(by_run, blend(_channel_scores(by_run, by_channel), given))
    ordered = sorted(by_run, key=lambda run: (-scores[run], run))
    best: dict[str, str] = {}
    for run in ordered:
        best.setdefault(by_run[run][0].trajectory.instance_id, run)
    runs = [*best.values()]
    closeness = {run: scores[run] / scores[runs[0]] for run in runs}
    # The same task, given again, is no rival.
    rivals = (
        run for run in runs if by_run[run][0].trajectory.task != by_run[runs[0]][0].trajectory.task
    )
    lead = 1 - closeness.get(next(rivals, ""), 0.0)
    return [
        RankedRun(
            run,
            by_run[run],
            scores[run],
            _features(query, by_run[run], closeness[run], 0.0 if place else lead),
        )
        for place, run in enumerate(runs[:limit])
    ]


def _features(query: Query, hits: Sequence[CaseHit], closeness: float, lead: float) -> CaseFeatures:
    similarity = max(hits[0].task_overlap, *(hit.similarity for hit in hits))
    shared = query.weights.keys() & word_counts(hits[0].trajectory.task).keys()
    return CaseFeatures(similarity, len(shared), closeness, lead)


def _channel_scores(
    runs: Mapping[str, Sequence[CaseHit]], by_channel: Rankings
) -> dict[str, dict[str, float]]:
    """Run -> its score in each channel, whichever found it; by words, except for two channels."""
    # What is not among the nearest is at most as near as the last of them.
    least = min((hit.similarity for hit in by_channel.get("semantic", ())), default=0.0)
    return {
        run: {
            **dict.fromkeys(by_channel, hits[0].task_overlap),
            "state": max((hit.evidence for hit in hits if hit.fragments), default=0.0),
            "semantic": max(least, *(hit.similarity for hit in hits)),
        }
        for run, hits in runs.items()
    }


def _scored(
    runs: Mapping[str, Sequence[CaseHit]], blended: Mapping[str, float]
) -> dict[str, float]:
    """Run -> its final score: all are lifted by what speaks for the best, so the blend orders."""
    everything = list(chain.from_iterable(runs.values()))
    newest = max((hit.trajectory.seen_at for hit in everything), default=None)
    evidence = max((hit.evidence for hit in everything), default=0.0)
    return {
        run: final_score(blended[run], evidence, hits[0].trajectory.seen_at, newest)
        for run, hits in runs.items()
    }


def _case(
    query: Query,
    ranked: RankedRun,
    ranks: tuple[ChannelRank, ...],
    gate: Gate,
    *,
    is_first: bool,
) -> SimilarCase:
    trajectory = ranked.hits[0].trajectory
    scope = scope_level(trajectory.repo, query.state.repo)
    fragments = tuple(dict.fromkeys(fragment for hit in ranked.hits for fragment in hit.fragments))
    is_same_task = trajectory.instance_id == query.state.instance_id
    probability = 1.0 if is_same_task else case_probability(ranked.features)
    at_same_file = bool(fragments) and scope is ScopeLevel.REPO
    # What is as probable and only second to another is hardly ever linked, unless it is named.
    is_close = probability >= gate.close_case_precision and (
        is_first or _names_file(query, trajectory)
    )
    # What a run changed that failed is no evidence of what has to be changed.
    may_be_right = trajectory.outcome is not Outcome.FAILED
    return SimilarCase(
        trajectory_id=trajectory.id,
        instance_id=trajectory.instance_id,
        repo=trajectory.repo,
        outcome=trajectory.outcome,
        summary=trajectory.summary,
        files=trajectory.files,
        fragments=fragments,
        score=ranked.score,
        why=Why(channels=ranks, scope=scope, support=1, trajectories=(trajectory.id,)),
        title=title_of(trajectory.task),
        probability=probability,
        is_shown=at_same_file or is_same_task or (is_close and may_be_right),
    )


def _names_file(query: Query, trajectory: Trajectory) -> bool:
    """True where the task of *query* names a file that *trajectory* changed.

    A traceback names all that was called, and the name of the project is in many tasks.
    """
    terms = word_counts(_PLACES.sub("", query.state.task_description))
    stems = {PurePosixPath(file).stem for file in trajectory.files}
    project = query.state.repo.rpartition("/")[2].casefold()
    return any(is_named(stem, terms) for stem in stems if stem.casefold() != project)


def _with_fragments(cases: Sequence[SimilarCase], store: Store) -> tuple[SimilarCase, ...]:
    fragments = store.runs.fragments(case.trajectory_id for case in cases if not case.fragments)
    return tuple(
        replace(case, fragments=most_informative(fragments[case.trajectory_id], FRAGMENTS_SHOWN))
        if case.trajectory_id in fragments
        else case
        for case in cases
    )


def _without_quarantined(cases: Sequence[SimilarCase], store: Store) -> tuple[SimilarCase, ...]:
    """*cases* without those that would cite quarantined advice."""
    cited = {fragment.id: {fragment.id} for case in cases for fragment in case.fragments}
    for recovery in store.recoveries.of_fragments(cited):
        cited[recovery.fragment_id] |= advice_ids(recovery)
    known = credits_for(store, chain.from_iterable(cited.values()))
    if known.distrusted:
        runs = store.runs.trajectories(case.trajectory_id for case in cases)
        cases = [
            case for case in cases if runs[case.trajectory_id].contributor not in known.distrusted
        ]
    harmful = {
        fragment
        for fragment, names in cited.items()
        if any(known.of(name).is_quarantined for name in names)
    }
    return tuple(
        case for case in cases if harmful.isdisjoint(fragment.id for fragment in case.fragments)
    )
