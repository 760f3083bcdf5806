"""From the recoveries that channels found to the solutions that are shown."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Protocol

from contextgraph.governance import quarantined, trust
from contextgraph.model import (
    ChannelRank,
    ErrorSolution,
    Recovered,
    RecoveryCandidate,
    SignatureLevel,
    Trajectory,
    Why,
)
from contextgraph.ports import ExposureStore, RetrievalStore
from contextgraph.retrieval.findings import RecoveryHit
from contextgraph.retrieval.fuse import final_score, fuse, newest_first
from contextgraph.retrieval.gate import Gate
from contextgraph.retrieval.query import Query
from contextgraph.retrieval.score import about_another, gist, scope_level

NAMED_RUNS = 10
# So many for each that is shown are asked what stands for them: some turn out to be the same.
_ASKED_FOR_ONE = 4

Rankings = Mapping[str, Sequence[RecoveryHit]]


class SolutionStore(RetrievalStore, ExposureStore, Protocol):
    """Knows what stands for a recovery, and what came of showing it."""


@dataclass(frozen=True, slots=True)
class _Told:
    """One advice: the recovery that tells it, and the *runs* in which it was seen to work."""

    by: RecoveryCandidate
    level: SignatureLevel
    score: float
    ranks: tuple[ChannelRank, ...]
    runs: tuple[Trajectory, ...]


def solutions_of(
    query: Query,
    found: Rankings,
    gate: Gate,
    store: SolutionStore,
    limit: int,
    weights: Mapping[str, float],
) -> tuple[ErrorSolution, ...]:
    """What the gate admits of *found* (by channel), best first, at most *limit*.

    The same advice from several runs is one solution, supported by all of them. Of fragments alike
    the one that stands for them is shown.
    """
    ranked = {
        name: [(gist(hit.candidate.recovered.what), hit) for hit in hits]
        for name, hits in found.items()
    }
    groups: dict[str, list[RecoveryHit]] = {}
    for advice, hit in chain.from_iterable(ranked.values()):
        groups.setdefault(advice, []).append(hit)
    admitted = {advice: hits for advice, hits in groups.items() if _admits(gate, query, hits)}
    newest = max((_seen_at(hit) for hits in admitted.values() for hit in hits), default=None)
    rankings = {name: _one_of_each(hits, admitted) for name, hits in ranked.items()}
    fused = fuse(rankings, weights)
    told = [
        _told(admitted[advice], score, ranks, newest) for advice, (score, ranks) in fused.items()
    ]
    best = sorted(told, key=_best_told_first)[: _ASKED_FOR_ONE * limit]
    solutions = [_solution(query, one) for one in _represented(query, best, store)]
    return tuple(sorted(_weighed(solutions, store), key=_best_first)[:limit])


def _admits(gate: Gate, query: Query, hits: Sequence[RecoveryHit]) -> bool:
    best = _best(hits)
    return gate.admits_recovery(
        best.evidence,
        best.level,
        scope_level(best.candidate.trajectory.repo, query.state.repo),
        repositories=len({hit.candidate.trajectory.repo for hit in hits}),
        on_topic=best.on_topic,
        about_another=best.about_another,
    )


def _best(hits: Sequence[RecoveryHit]) -> RecoveryHit:
    return min(hits, key=lambda hit: (-hit.evidence, hit.candidate.recovered.fragment_id))


def _one_of_each(
    ranked: Iterable[tuple[str, RecoveryHit]], admitted: Container[str]
) -> list[tuple[str, float]]:
    best: dict[str, float] = {}
    for advice, hit in ranked:
        if advice in admitted:
            best.setdefault(advice, hit.evidence)
    return list(best.items())


def _told(
    hits: Sequence[RecoveryHit],
    fused: float,
    ranks: tuple[ChannelRank, ...],
    newest: datetime | None,
) -> _Told:
    best = _best(hits)
    return _Told(
        by=best.candidate,
        level=best.level,
        score=final_score(fused, best.evidence, _seen_at(best), newest),
        ranks=ranks,
        runs=tuple(hit.candidate.trajectory for hit in hits),
    )


def _represented(query: Query, told: Sequence[_Told], store: RetrievalStore) -> Iterable[_Told]:
    """*told*, best first, by what stands for each; those that share it are one."""
    heads = store.representatives_of([one.by for one in told], query.scopes[-1])
    shown: dict[str, _Told] = {}
    for one, head in zip(told, heads, strict=True):
        is_fit = not (query.signature and about_another(query.signature, head.recovered))
        by = head if is_fit and _as_certain(head.recovered, one.by.recovered) else one.by
        advice = gist(by.recovered.what)
        first = shown.setdefault(advice, replace(one, by=by))
        shown[advice] = replace(first, runs=(*first.runs, *one.runs, by.trajectory))
    return shown.values()


def _as_certain(one: Recovered, other: Recovered) -> bool:
    return one.verified >= other.verified and one.workaround <= other.workaround


def _solution(query: Query, told: _Told) -> ErrorSolution:
    trajectory, recovered = told.by.trajectory, told.by.recovered
    runs = newest_first(told.runs)
    return ErrorSolution(
        fragment_id=recovered.fragment_id,
        trajectory_id=trajectory.id,
        instance_id=trajectory.instance_id,
        repo=trajectory.repo,
        error_type=told.by.error.error_type,
        signature_level=told.level,
        actions=recovered.actions,
        description=recovered.what,
        workaround=recovered.workaround,
        score=told.score,
        why=Why(
            channels=told.ranks,
            scope=scope_level(trajectory.repo, query.state.repo),
            support=len(runs),
            trajectories=runs[:NAMED_RUNS],
            signature_level=told.level,
        ),
    )


def _weighed(solutions: Sequence[ErrorSolution], store: ExposureStore) -> list[ErrorSolution]:
    """*solutions* with their score times trust, without those that are quarantined."""
    credit = store.credit([solution.fragment_id for solution in solutions])
    return [
        replace(solution, score=solution.score * trust(*credit[solution.fragment_id]))
        for solution in solutions
        if not quarantined(*credit[solution.fragment_id])
    ]


def _seen_at(hit: RecoveryHit) -> datetime:
    return hit.candidate.trajectory.seen_at


def _best_told_first(told: _Told) -> tuple[float, str]:
    return -told.score, told.by.recovered.fragment_id


def _best_first(solution: ErrorSolution) -> tuple[float, str]:
    return -solution.score, solution.fragment_id
