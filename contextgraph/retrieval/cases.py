"""From the past runs that channels found to the cases that are shown."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from contextgraph.model import ChannelRank, SimilarCase, Why, most_telling
from contextgraph.ports import Store
from contextgraph.retrieval.fuse import blend, final_score, ranks_in
from contextgraph.retrieval.gate import Gate
from contextgraph.retrieval.query import CaseHit, Query
from contextgraph.retrieval.score import scope_level

FRAGMENTS_SHOWN = 3


Rankings = Mapping[str, Sequence[CaseHit]]


def cases_of(
    query: Query,
    found: Rankings,
    gate: Gate,
    store: Store,
    limit: int,
    weights: Mapping[str, float],
) -> tuple[SimilarCase, ...]:
    """What the gate admits of *found* (by channel), best first, at most *limit*; one per run."""
    admitted = {
        name: [hit for hit in hits if _admits(gate, query, hit)] for name, hits in found.items()
    }
    by_run: dict[str, list[CaseHit]] = {}
    for hit in chain.from_iterable(admitted.values()):
        by_run.setdefault(hit.trajectory.id, []).append(hit)
    asked = {name: weights[name] for name in found if found[name]}
    scores = _scored(by_run, blend(_said(by_run, found), asked))
    ranks = ranks_in(
        {
            name: [(hit.trajectory.id, hit.evidence) for hit in hits]
            for name, hits in admitted.items()
        }
    )
    cases = [_case(query, hits, scores[run], ranks[run]) for run, hits in by_run.items()]
    best = sorted(cases, key=lambda case: (-case.score, case.trajectory_id))[:limit]
    return _with_fragments(best, store)


def _said(runs: Mapping[str, Sequence[CaseHit]], found: Rankings) -> dict[str, dict[str, float]]:
    """Run -> what each channel goes by, whichever of them found the run."""
    # What is not among the nearest is no nearer than the last of them.
    least = min((hit.similarity for hit in found.get("semantic", ())), default=0.0)
    return {
        run: {
            "task": hits[0].task_overlap,
            "state": max((hit.evidence for hit in hits if hit.fragments), default=0.0),
            "lexical": hits[0].task_overlap,
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


def _admits(gate: Gate, query: Query, hit: CaseHit) -> bool:
    scope = scope_level(hit.trajectory.repo, query.state.repo)
    return gate.admits_case(
        hit.task_overlap, scope, same_file=bool(hit.fragments), similarity=hit.similarity
    )


def _case(
    query: Query, hits: Sequence[CaseHit], score: float, ranks: tuple[ChannelRank, ...]
) -> SimilarCase:
    trajectory = hits[0].trajectory
    return SimilarCase(
        trajectory_id=trajectory.id,
        instance_id=trajectory.instance_id,
        repo=trajectory.repo,
        outcome=trajectory.outcome,
        summary=trajectory.summary,
        files=trajectory.files,
        fragments=tuple(dict.fromkeys(fragment for hit in hits for fragment in hit.fragments)),
        score=score,
        why=Why(
            channels=ranks,
            scope=scope_level(trajectory.repo, query.state.repo),
            support=1,
            trajectories=(trajectory.id,),
        ),
    )


def _with_fragments(cases: Sequence[SimilarCase], store: Store) -> tuple[SimilarCase, ...]:
    found = store.runs.fragments(case.trajectory_id for case in cases if not case.fragments)
    return tuple(
        replace(case, fragments=most_telling(found[case.trajectory_id], FRAGMENTS_SHOWN))
        if case.trajectory_id in found
        else case
        for case in cases
    )
