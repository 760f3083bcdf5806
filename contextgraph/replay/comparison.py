"""Two reports, or two methods in one, side by side, moment by moment."""

from collections.abc import Sequence
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
    """How the second does against the first in one measure, on the moments of both.

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
    """The contrast of two reports in every measure of which both have moments."""
    return _contrasts(_Side(first, OURS), _Side(second, OURS), seed)


def against(moments: Sequence[Moment], baseline: str, seed: int = 0) -> tuple[Contrast, ...]:
    """The contrast of the memory (second) with a *baseline* (first) in one report."""
    return _contrasts(_Side(moments, baseline), _Side(moments, OURS), seed)


@dataclass(frozen=True, slots=True)
class _Side:
    """A method in a report."""

    moments: Sequence[Moment]
    method: str

    def of(self, kind: MomentKind) -> dict[str, Moment]:
        return {
            moment.key: moment
            for moment in self.moments
            if moment.kind is kind and moment.has_answer and self.method in moment.verdicts
        }

    def hit(self, moment: Moment, k: int) -> bool:
        rank = moment.verdicts[self.method].rank
        return rank is not None and rank <= k


def _contrasts(first: _Side, second: _Side, seed: int) -> tuple[Contrast, ...]:
    found = (_contrast(name, first, second, kind, k, seed) for name, (kind, k) in _COMPARED.items())
    return tuple(contrast for contrast in found if contrast)


def _contrast(
    name: str, first: _Side, second: _Side, kind: MomentKind, k: int, seed: int
) -> Contrast | None:
    one, two = first.of(kind), second.of(kind)
    keys = sorted(one.keys() & two.keys())
    if not keys:
        return None
    pairs = [(first.hit(one[key], k), second.hit(two[key], k)) for key in keys]
    before = shares((one[key] for key in keys), first.method, hit_share(k))
    after = shares((two[key] for key in keys), second.method, hit_share(k))
    return Contrast(
        measure=name,
        moments=len(keys),
        first=sum(hit for hit, _ in pairs) / len(pairs),
        second=sum(hit for _, hit in pairs) / len(pairs),
        only_first=sum(hit and not other for hit, other in pairs),
        only_second=sum(other and not hit for hit, other in pairs),
        difference=difference({run: (before[run], after[run]) for run in before}, seed),
        p=mcnemar(pairs),
    )
