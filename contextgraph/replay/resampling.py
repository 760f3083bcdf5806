"""How sure a figure is: bootstrap by run, exact McNemar."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RESAMPLES = 1_000
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95 % interval; *count* moments of *runs* runs are behind it."""

    value: float
    low: float
    high: float
    count: int
    runs: int


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure minus another, with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Share:
    """What one run adds to a figure: *amount* in *of*."""

    amount: float
    of: float


def estimate(by_run: Mapping[str, Share], seed: int) -> Estimate | None:
    """The sum of amounts over the sum of bases; None where nothing is behind it.

    Whole runs are drawn again, as the moments of one run are not independent.
    """
    import numpy as np

    shares = [by_run[run] for run in sorted(by_run)]
    amounts = np.array([share.amount for share in shares])
    bases = np.array([share.of for share in shares])
    if not bases.sum():
        return None
    drawn = _drawn(len(shares), seed)
    below = drawn @ bases
    ratios = (drawn @ amounts)[below > 0] / below[below > 0]
    low, high = np.quantile(ratios, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    value = float(amounts.sum() / bases.sum())
    runs = int((bases > 0).sum())
    return Estimate(value, float(low), float(high), round(float(bases.sum())), runs)


def difference(by_run: Mapping[str, tuple[Share, Share]], seed: int) -> Difference:
    """The second figure minus the first; the same runs are drawn for both. Needs one run."""
    import numpy as np

    pairs = [by_run[run] for run in sorted(by_run)]
    columns = np.array([[a.amount, a.of, b.amount, b.of] for a, b in pairs])
    sums = _drawn(len(pairs), seed) @ columns
    sums = sums[(sums[:, 1] > 0) & (sums[:, 3] > 0)]
    low, high = np.quantile(
        sums[:, 2] / sums[:, 3] - sums[:, 0] / sums[:, 1],
        [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2],
    )
    total = columns.sum(axis=0)
    return Difference(float(total[2] / total[3] - total[0] / total[1]), float(low), float(high))


def mcnemar(pairs: Sequence[tuple[bool, bool]]) -> float:
    """The exact two-sided p-value of pairs (first hit, second hit): 1 where none differ."""
    only_first = sum(first and not second for first, second in pairs)
    only_second = sum(second and not first for first, second in pairs)
    differing = only_first + only_second
    fewer = min(only_first, only_second)
    tail = sum(comb(differing, k) for k in range(fewer + 1))
    return min(1.0, float(2 * tail / 2**differing))


def _drawn(runs: int, seed: int) -> "NDArray[np.int64]":
    """How often each run is drawn, in each resample."""
    import numpy as np

    chance = np.random.default_rng(seed)
    return chance.multinomial(runs, np.full(runs, 1 / runs), size=RESAMPLES)
