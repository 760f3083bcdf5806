"""Two reports side by side, moment by moment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contextgraph.replay.judging import OURS
from contextgraph.replay.measures import hit_share, shares
from contextgraph.replay.moments import Moment, MomentKind
from contextgraph.replay.resampling import Difference, difference, mcnemar

_COMPARED = {
    **{f"clearance@{k}": (MomentKind.ERROR, k) for k in (1, 3, 5)},
    **{f"localisation@{k}": (MomentKind.START, k) for k in (1, 5)},
    **{f"related@{k}": (MomentKind.RELATED, k) for k in (1, 5, 10)},
}


@dataclass(frozen=True, slots=True)
class Contrast:
    """How the second report does against the first in one measure, on the moments of both.

    *difference* is second minus first, *p* the exact McNemar test of the moments that only one of
    them got.
    """

    measure: str
    moments: int
    first: float
    second: float
    only_first: int
    only_second: int
    difference: Difference
    p: float


def compare(
    first: Sequence[Moment], second: Sequence[Moment], seed: int = 0
) -> tuple[Contrast, ...]:
    """The contrast in every measure of which both have moments."""
    found = (
        _contrast(name, _judged(first, kind), _judged(second, kind), k, seed)
        for name, (kind, k) in _COMPARED.items()
    )
    return tuple(contrast for contrast in found if contrast)


def _judged(moments: Sequence[Moment], kind: MomentKind) -> dict[str, Moment]:
    return {moment.key: moment for moment in moments if moment.kind is kind and moment.has_answer}


def _contrast(
    name: str, first: Mapping[str, Moment], second: Mapping[str, Moment], k: int, seed: int
) -> Contrast | None:
    keys = sorted(first.keys() & second.keys())
    if not keys:
        return None
    pairs = [(_hit(first[key], k), _hit(second[key], k)) for key in keys]
    before = shares((first[key] for key in keys), OURS, hit_share(k))
    after = shares((second[key] for key in keys), OURS, hit_share(k))
    gap = difference({run: (before[run], after[run]) for run in before}, seed)
    return Contrast(
        measure=name,
        moments=len(keys),
        first=sum(one for one, _ in pairs) / len(pairs),
        second=sum(two for _, two in pairs) / len(pairs),
        only_first=sum(one and not two for one, two in pairs),
        only_second=sum(two and not one for one, two in pairs),
        difference=gap,
        p=mcnemar(pairs),
    )


def _hit(moment: Moment, k: int) -> bool:
    rank = moment.verdicts[OURS].rank
    return rank is not None and rank <= k
