"""The channels: each finds, in its own way, what may help. Leaving one out is the ablation."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import PurePosixPath

from contextgraph.model import (
    Fragment,
    FragmentCandidate,
    RecoveryCandidate,
    ScopeLevel,
    SignatureLevel,
    Trajectory,
)
from contextgraph.ports import RetrievalStore
from contextgraph.retrieval.query import Query
from contextgraph.retrieval.score import on_topic, overlap, recovery_evidence, scope_level

# Candidates taken from the store per question; scores decide among them.
OVERFETCH = 48
# With so many candidates from the repository, others are not asked.
ENOUGH = 12
_LEVELS = (SignatureLevel.TEMPLATE, SignatureLevel.TYPE)
FRAGMENTS_AT_FILE = 2
_SAME_REPO, _SAME_TYPE, _SAME_FILE = 0.15, 0.05, 0.5


@dataclass(frozen=True, slots=True)
class RecoveryHit:
    """A recovery that a channel found, with its evidence (0 to 1).

    *on_topic*: what was done names what the error is about, so that it may help elsewhere too.
    """

    candidate: RecoveryCandidate
    evidence: float
    level: SignatureLevel
    on_topic: bool


@dataclass(frozen=True, slots=True)
class CaseHit:
    """A past run that a channel found, with its evidence (0 to 1) and the likeness of its task."""

    trajectory: Trajectory
    evidence: float
    task_overlap: float
    fragments: tuple[Fragment, ...] = ()


@dataclass(frozen=True, slots=True)
class Findings:
    """What one channel found, best first."""

    recoveries: tuple[RecoveryHit, ...] = ()
    cases: tuple[CaseHit, ...] = ()


Channel = Callable[[Query, RetrievalStore], Findings]


def by_error(query: Query, store: RetrievalStore) -> Findings:
    """What cleared this error before: nearest scope first, and most exact level of agreement."""
    signature = query.signature
    if signature is None:
        return Findings()
    found: list[RecoveryCandidate] = []
    for scope, level in product(query.scopes, _LEVELS):
        if len(found) < ENOUGH:
            found += store.recoveries_for_error(signature, level, scope, OVERFETCH)
    return Findings(recoveries=_ranked_recoveries(query, found))


def by_task(query: Query, store: RetrievalStore) -> Findings:
    """Past runs of the same repository, those of the same type of task first."""
    if not query.state.repo or not query.task_words:
        return Findings()
    found = [
        *store.trajectories_for_task(query.task_type, query.scope, OVERFETCH),
        *store.trajectories_for_task(None, query.scope, OVERFETCH),
    ]
    return Findings(cases=_ranked_cases(query, found))


def by_state(query: Query, store: RetrievalStore) -> Findings:
    """Past runs that had the same file open in the same phase, with what they did there."""
    state = query.state
    if not state.repo or not (state.open_file and state.phase):
        return Findings()
    name = PurePosixPath(state.open_file).name
    found = store.fragments_for_state(state.phase, name, query.scope, OVERFETCH)
    return Findings(cases=_best_first([_at_file(query, group) for group in _by_run(found)]))


def by_lexical(query: Query, store: RetrievalStore) -> Findings:
    """Runs whose task, and recoveries whose message, have the same rare words."""
    cases: Sequence[Trajectory] = ()
    recoveries: Sequence[RecoveryCandidate] = ()
    for scope in query.scopes:
        if query.task_words and not cases:
            cases = store.trajectories_for_text(query.task_words, scope, OVERFETCH)
        if query.error_words and not recoveries:
            recoveries = store.recoveries_for_text(query.error_words, scope, OVERFETCH)
    return Findings(_ranked_recoveries(query, recoveries), _ranked_cases(query, cases))


CHANNELS: Mapping[str, Channel] = {
    "error": by_error,
    "task": by_task,
    "state": by_state,
    "lexical": by_lexical,
}


def _ranked_recoveries(query: Query, found: Iterable[RecoveryCandidate]) -> tuple[RecoveryHit, ...]:
    signature = query.signature
    if signature is None:
        return ()
    unique = {_identity(candidate): candidate for candidate in found}
    hits = [
        RecoveryHit(
            candidate,
            *recovery_evidence(signature, candidate, query.state.repo),
            on_topic(signature, candidate.recovered),
        )
        for candidate in unique.values()
    ]
    return tuple(sorted(hits, key=lambda hit: (-hit.evidence, *_identity(hit.candidate))))


def _identity(candidate: RecoveryCandidate) -> tuple[str, str, int]:
    recovered = candidate.recovered
    return recovered.fragment_id, recovered.error_id, recovered.error_step


def _ranked_cases(query: Query, found: Iterable[Trajectory]) -> tuple[CaseHit, ...]:
    unique = {trajectory.id: trajectory for trajectory in found}
    return _best_first([_case(query, trajectory) for trajectory in unique.values()])


def _case(query: Query, trajectory: Trajectory) -> CaseHit:
    alike = overlap(query.weights, trajectory.task)
    near = scope_level(trajectory.repo, query.state.repo) is ScopeLevel.REPO
    evidence = (1 - _SAME_REPO - _SAME_TYPE) * alike + _SAME_REPO * near
    evidence += _SAME_TYPE * (trajectory.task_type is query.task_type)
    return CaseHit(trajectory, evidence, alike)


def _by_run(found: Sequence[FragmentCandidate]) -> list[list[FragmentCandidate]]:
    runs: dict[str, list[FragmentCandidate]] = {}
    for candidate in found:
        runs.setdefault(candidate.trajectory.id, []).append(candidate)
    return list(runs.values())


def _at_file(query: Query, run: Sequence[FragmentCandidate]) -> CaseHit:
    case = _case(query, run[0].trajectory)
    fragments = tuple(candidate.fragment for candidate in run[:FRAGMENTS_AT_FILE])
    return replace(case, evidence=_SAME_FILE + case.evidence / 2, fragments=fragments)


def _best_first(hits: Sequence[CaseHit]) -> tuple[CaseHit, ...]:
    return tuple(sorted(hits, key=lambda hit: (-hit.evidence, hit.trajectory.id)))
