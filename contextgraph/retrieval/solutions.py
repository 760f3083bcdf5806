"""From the recoveries that channels found to the solutions that are shown."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain

from contextgraph.governance import quarantined, trust
from contextgraph.model import ChannelRank, ErrorSolution, Why
from contextgraph.ports import ExposureStore
from contextgraph.retrieval.findings import RecoveryHit
from contextgraph.retrieval.fuse import final_score, fuse, newest_first
from contextgraph.retrieval.gate import Gate
from contextgraph.retrieval.query import Query
from contextgraph.retrieval.score import gist, scope_level

NAMED_RUNS = 10

Rankings = Mapping[str, Sequence[RecoveryHit]]


def solutions_of(
    query: Query, found: Rankings, gate: Gate, store: ExposureStore, limit: int
) -> tuple[ErrorSolution, ...]:
    """What the gate admits of *found* (by channel), best first, at most *limit*.

    The same advice from several runs is one solution, supported by all of them.
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
    fused = fuse({name: _one_of_each(hits, admitted) for name, hits in ranked.items()})
    solutions = [
        _solution(query, admitted[advice], score, ranks, newest)
        for advice, (score, ranks) in fused.items()
    ]
    return tuple(sorted(_weighed(solutions, store), key=_best_first)[:limit])


def _admits(gate: Gate, query: Query, hits: Sequence[RecoveryHit]) -> bool:
    best = _best(hits)
    return gate.admits_recovery(
        best.evidence,
        best.level,
        scope_level(best.candidate.trajectory.repo, query.state.repo),
        repositories=len({hit.candidate.trajectory.repo for hit in hits}),
        on_topic=best.on_topic,
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


def _solution(
    query: Query,
    hits: Sequence[RecoveryHit],
    fused: float,
    ranks: tuple[ChannelRank, ...],
    newest: datetime | None,
) -> ErrorSolution:
    best = _best(hits)
    trajectory, recovered = best.candidate.trajectory, best.candidate.recovered
    runs = newest_first(hit.candidate.trajectory for hit in hits)
    return ErrorSolution(
        fragment_id=recovered.fragment_id,
        trajectory_id=trajectory.id,
        instance_id=trajectory.instance_id,
        repo=trajectory.repo,
        error_type=best.candidate.error.error_type,
        signature_level=best.level,
        actions=recovered.actions,
        description=recovered.what,
        workaround=recovered.workaround,
        score=final_score(fused, best.evidence, trajectory.seen_at, newest),
        why=Why(
            channels=ranks,
            scope=scope_level(trajectory.repo, query.state.repo),
            support=len(runs),
            trajectories=runs[:NAMED_RUNS],
            signature_level=best.level,
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


def _best_first(solution: ErrorSolution) -> tuple[float, str]:
    return -solution.score, solution.fragment_id
