"""What channels found, and how it is ranked within one: by evidence."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from contextgraph.model import (
    ErrorSignature,
    Fragment,
    Methodology,
    RecoveryCandidate,
    ScopeLevel,
    SignatureLevel,
    Trajectory,
)
from contextgraph.ports import RetrievalStore
from contextgraph.retrieval.query import Query
from contextgraph.retrieval.score import about_another, on_topic, recovery_evidence, scope_level

# Candidates taken from the store per question; scores decide among them.
OVERFETCH = 48
_SAME_REPO, _SAME_TYPE = 0.15, 0.05


@dataclass(frozen=True, slots=True)
class RecoveryHit:
    """A recovery that a channel found, with its evidence (0 to 1).

    *on_topic*: what was done names what the error is about, so that it may help elsewhere too.
    *about_another*: the error that was cleared is about other names.
    """

    candidate: RecoveryCandidate
    evidence: float
    level: SignatureLevel
    on_topic: bool
    about_another: bool


@dataclass(frozen=True, slots=True)
class CaseHit:
    """A past run that a channel found, with its evidence (0 to 1) and the likeness of its task.

    *similarity* is the cosine of the vectors, where vectors were compared.
    """

    trajectory: Trajectory
    evidence: float
    task_overlap: float
    fragments: tuple[Fragment, ...] = ()
    similarity: float = 0.0


@dataclass(frozen=True, slots=True)
class MethodologyHit:
    """A methodology that a channel found, with its evidence (0 to 1)."""

    methodology: Methodology
    evidence: float


@dataclass(frozen=True, slots=True)
class Findings:
    """What one channel found, best first; *degraded* says what it could not do, and why."""

    recoveries: tuple[RecoveryHit, ...] = ()
    cases: tuple[CaseHit, ...] = ()
    methodologies: tuple[MethodologyHit, ...] = ()
    degraded: str = ""


Channel = Callable[[Query, RetrievalStore], Findings]


def ranked_recoveries(query: Query, found: Iterable[RecoveryCandidate]) -> tuple[RecoveryHit, ...]:
    """*found*, each once, by how well it answers the error of *query*; none without an error."""
    unique = {_identity(candidate): candidate for candidate in found}
    hits = [
        recovery_hit(query.signature, query.state.repo, candidate)
        for candidate in unique.values()
        if query.signature
    ]
    return tuple(sorted(hits, key=lambda hit: (-hit.evidence, *_identity(hit.candidate))))


def recovery_hit(asked: ErrorSignature, repo: str, candidate: RecoveryCandidate) -> RecoveryHit:
    """The evidence of *candidate* for the error *asked* about in *repo*."""
    evidence, level = recovery_evidence(asked, candidate, repo)
    recovered = candidate.recovered
    return RecoveryHit(
        candidate, evidence, level, on_topic(asked, recovered), about_another(asked, recovered)
    )


def _identity(candidate: RecoveryCandidate) -> tuple[str, str, int]:
    recovered = candidate.recovered
    return recovered.fragment_id, recovered.error_id, recovered.error_step


def ranked_cases(query: Query, found: Iterable[Trajectory]) -> tuple[CaseHit, ...]:
    """*found*, each once, by how well it fits *query*."""
    unique = {trajectory.id: trajectory for trajectory in found}
    return best_first([case_hit(query, trajectory) for trajectory in unique.values()])


def case_hit(query: Query, trajectory: Trajectory, similarity: float = 0.0) -> CaseHit:
    """How well *trajectory* fits *query*: how much alike the tasks are, then repository and type.

    *similarity* is the cosine of the vectors, where a channel compares them.
    """
    shared = query.overlap(trajectory.task)
    near = scope_level(trajectory.repo, query.state.repo) is ScopeLevel.REPO
    evidence = (1 - _SAME_REPO - _SAME_TYPE) * max(shared, similarity) + _SAME_REPO * near
    evidence += _SAME_TYPE * (trajectory.task_type is query.task_type)
    return CaseHit(trajectory, evidence, shared, similarity=similarity)


def best_first(hits: Sequence[CaseHit]) -> tuple[CaseHit, ...]:
    """*hits* by evidence, ties by id."""
    return tuple(sorted(hits, key=lambda hit: (-hit.evidence, hit.trajectory.id)))
