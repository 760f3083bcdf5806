"""The weights of channels, and the score with which an item is shown."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from contextgraph.governance import age_weight
from contextgraph.model import RecoveryCandidate

HALF_LIFE = timedelta(days=90)
WEIGHTS: Mapping[str, float] = {
    "task": 0.6,
    "state": 0.5,
    "lexical": 0.8,
    "semantic": 1.0,
}

# How much of the final score is decided by what: agreement of channels, then evidence, then age.
_EVIDENCE_LIFT, _RECENCY_LIFT = 0.4, 0.05


def final_score(fused: float, evidence: float, seen_at: datetime, newest: datetime | None) -> float:
    """The score an item is shown with, 0 to 1: *fused* ranks, lifted by *evidence* and recency.

    Recency halves every 90 days before the *newest* item found, not before now: the same memory
    gives the same answer tomorrow.
    """
    age = (newest - seen_at) if newest else timedelta()
    recency = age_weight(age, HALF_LIFE)
    base = 1 - _EVIDENCE_LIFT - _RECENCY_LIFT
    return fused * (base + _EVIDENCE_LIFT * evidence + _RECENCY_LIFT * recency)


def newest_first(candidates: Iterable[RecoveryCandidate]) -> tuple[str, ...]:
    """The ids of the runs of *candidates*, each once, the newest first, ties by id."""
    seen = {candidate.trajectory_id: candidate.seen_at for candidate in candidates}
    return tuple(sorted(seen, key=lambda id_: (-seen[id_].timestamp(), id_)))
