"""One ranking of what several channels found."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from contextgraph.model import ChannelRank, Trajectory

HALF_LIFE = timedelta(days=90)
WEIGHTS: Mapping[str, float] = {
    "task": 0.6,
    "state": 0.5,
    "lexical": 0.8,
    "semantic": 1.0,
}

# How much of the final score is decided by what: agreement of channels, then evidence, then age.
_EVIDENCE_LIFT, _RECENCY_LIFT = 0.4, 0.05

Key = TypeVar("Key", bound=Hashable)


def ranks_in(
    rankings: Mapping[str, Sequence[tuple[Key, float]]],
) -> dict[Key, tuple[ChannelRank, ...]]:
    """Key -> its rank in each channel of *rankings* ((key, evidence), best first) that found it."""
    ranks: dict[Key, tuple[ChannelRank, ...]] = {}
    for name, ranking in rankings.items():
        for rank, (key, evidence) in enumerate(ranking, start=1):
            ranks[key] = (*ranks.get(key, ()), ChannelRank(name, rank, evidence))
    return ranks


def blend(
    said: Mapping[Key, Mapping[str, float]], weights: Mapping[str, float]
) -> dict[Key, float]:
    """Key -> the weighted mean, 0 to 1, of what is *said* of it by channel.

    The channels are those of *weights*. What one says is taken over the most that it says of any
    key; one that says 0 of all is left out. 1 means that each says the most of this key, or that
    none says anything.

    A convex combination (Bruch, Gai & Ingber 2023): unlike ranks it keeps by how much one is better
    than the next.
    """
    most = {name: max((one[name] for one in said.values()), default=0.0) for name in weights}
    shares = {name: weight / most[name] for name, weight in weights.items() if most[name] > 0}
    if not shares:
        return dict.fromkeys(said, 1.0)
    total = sum(weights[name] for name in shares)
    return {
        key: sum(share * one[name] for name, share in shares.items()) / total
        for key, one in said.items()
    }


def final_score(fused: float, evidence: float, seen_at: datetime, newest: datetime | None) -> float:
    """The score an item is shown with, 0 to 1: *fused* ranks, lifted by *evidence* and recency.

    Recency halves every 90 days before the *newest* item found, not before now: the same memory
    gives the same answer tomorrow.
    """
    age = (newest - seen_at) if newest else timedelta()
    recency = float(0.5 ** (max(age, timedelta()) / HALF_LIFE))
    base = 1 - _EVIDENCE_LIFT - _RECENCY_LIFT
    return fused * (base + _EVIDENCE_LIFT * evidence + _RECENCY_LIFT * recency)


def newest_first(trajectories: Iterable[Trajectory]) -> tuple[str, ...]:
    """The ids of *trajectories*, each once, the newest first, ties by id."""
    seen = {trajectory.id: trajectory.seen_at for trajectory in trajectories}
    return tuple(sorted(seen, key=lambda id_: (-seen[id_].timestamp(), id_)))
