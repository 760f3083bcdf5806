"""From the recoveries that channels found to the solutions that are shown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from contextgraph.governance import quarantined, trust
from contextgraph.model import ChannelRank, ErrorSolution, Why
from contextgraph.ports import ExposureStore
from contextgraph.retrieval.channels import RecoveryHit
from contextgraph.retrieval.fuse import final_score, fuse, newest_first
from contextgraph.retrieval.gate import Gate
from contextgraph.retrieval.query import Query
from contextgraph.retrieval.score import scope_level
from contextgraph.text import words

NAMED_RUNS = 10

Rankings = Mapping[str, Sequence[RecoveryHit]]


def solutions_of(
    query: Query, found: Rankings, gate: Gate, store: ExposureStore, limit: int
) -> tuple[ErrorSolution, ...]:
    """What the gate admits of *found* (by channel), best first, at most *limit*.

    The same advice from several runs is one solution, supported by all of them.
    """
    admitted = {name: _admitted(hits, gate) for name, hits in found.items()}
    groups = _by_advice(hit for hits in admitted.values() for hit in hits)
    newest = max((_seen_at(hit) for hits in groups.values() for hit in hits), default=None)
    fused = fuse({name: _one_of_each(hits) for name, hits in admitted.items()})
    solutions = [
        _solution(query, groups[advice], score, ranks, newest)
        for advice, (score, ranks) in fused.items()
    ]
    return tuple(sorted(_weighed(solutions, store), key=_best_first)[:limit])


def _admitted(hits: Sequence[RecoveryHit], gate: Gate) -> list[RecoveryHit]:
    return [hit for hit in hits if gate.admits_recovery(hit.evidence, hit.level)]


def _by_advice(hits: Iterable[RecoveryHit]) -> dict[str, list[RecoveryHit]]:
    groups: dict[str, list[RecoveryHit]] = {}
    for hit in hits:
        groups.setdefault(_advice(hit), []).append(hit)
    return groups


def _one_of_each(hits: Iterable[RecoveryHit]) -> list[tuple[str, float]]:
    best: dict[str, float] = {}
    for hit in hits:
        best.setdefault(_advice(hit), hit.evidence)
    return list(best.items())


def _advice(hit: RecoveryHit) -> str:
    return " ".join(words(hit.candidate.recovered.what))


def _solution(
    query: Query,
    hits: Sequence[RecoveryHit],
    fused: float,
    ranks: tuple[ChannelRank, ...],
    newest: datetime | None,
) -> ErrorSolution:
    best = min(hits, key=lambda hit: (-hit.evidence, hit.candidate.recovered.fragment_id))
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
