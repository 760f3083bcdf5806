"""From the past runs that channels found to the cases that are shown."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from contextgraph.model import ChannelRank, Fragment, FragmentType, SimilarCase, Why
from contextgraph.ports import TrajectoryStore
from contextgraph.retrieval.findings import CaseHit
from contextgraph.retrieval.fuse import final_score, fuse
from contextgraph.retrieval.gate import Gate
from contextgraph.retrieval.query import Query
from contextgraph.retrieval.score import scope_level

FRAGMENTS_SHOWN = 3

# What another run learns most from, first.
_TELLING = (
    FragmentType.ERROR_RECOVERY,
    FragmentType.SUCCESSFUL_FIX,
    FragmentType.LOOP,
    FragmentType.FAILED_ATTEMPT,
    FragmentType.EXPLORATION,
)

Rankings = Mapping[str, Sequence[CaseHit]]


def cases_of(
    query: Query,
    found: Rankings,
    gate: Gate,
    store: TrajectoryStore,
    limit: int,
    weights: Mapping[str, float],
) -> tuple[SimilarCase, ...]:
    """What the gate admits of *found* (by channel), best first, at most *limit*; one per run."""
    admitted = {
        name: [hit for hit in hits if _admits(gate, query, hit)] for name, hits in found.items()
    }
    by_run: dict[str, list[CaseHit]] = {}
    for hits in admitted.values():
        for hit in hits:
            by_run.setdefault(hit.trajectory.id, []).append(hit)
    newest = max((hits[0].trajectory.seen_at for hits in by_run.values()), default=None)
    fused = fuse(
        {name: [(h.trajectory.id, h.evidence) for h in hits] for name, hits in admitted.items()},
        weights,
    )
    cases = [
        _case(query, by_run[run], score, ranks, newest) for run, (score, ranks) in fused.items()
    ]
    best = sorted(cases, key=lambda case: (-case.score, case.trajectory_id))[:limit]
    return _with_fragments(best, store)


def _admits(gate: Gate, query: Query, hit: CaseHit) -> bool:
    scope = scope_level(hit.trajectory.repo, query.state.repo)
    return gate.admits_case(
        hit.task_overlap, scope, same_file=bool(hit.fragments), similarity=hit.similarity
    )


def _case(
    query: Query,
    hits: Sequence[CaseHit],
    fused: float,
    ranks: tuple[ChannelRank, ...],
    newest: datetime | None,
) -> SimilarCase:
    trajectory = hits[0].trajectory
    evidence = max(hit.evidence for hit in hits)
    return SimilarCase(
        trajectory_id=trajectory.id,
        instance_id=trajectory.instance_id,
        repo=trajectory.repo,
        outcome=trajectory.outcome,
        summary=trajectory.summary,
        files=trajectory.files,
        fragments=tuple(dict.fromkeys(fragment for hit in hits for fragment in hit.fragments)),
        score=final_score(fused, evidence, trajectory.seen_at, newest),
        why=Why(
            channels=ranks,
            scope=scope_level(trajectory.repo, query.state.repo),
            support=1,
            trajectories=(trajectory.id,),
        ),
    )


def _with_fragments(
    cases: Sequence[SimilarCase], store: TrajectoryStore
) -> tuple[SimilarCase, ...]:
    found = store.fragments_of(case.trajectory_id for case in cases if not case.fragments)
    return tuple(
        replace(case, fragments=_most_telling(found[case.trajectory_id]))
        if case.trajectory_id in found
        else case
        for case in cases
    )


def _most_telling(fragments: Sequence[Fragment]) -> tuple[Fragment, ...]:
    telling = sorted(fragments, key=lambda f: (_TELLING.index(f.fragment_type), f.order))
    return tuple(telling[:FRAGMENTS_SHOWN])
