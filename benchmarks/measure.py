"""Measuring: times, percentiles, and a row of the table."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from time import perf_counter


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: *value* in *unit*, with the *baseline* it is compared with and the budget.

    *ratio* is the cost as a multiple of the baseline; None without one.
    """

    what: str
    value: float
    unit: str
    baseline: str = ""
    ratio: float | None = None
    budget: str = ""

    def record(self) -> dict[str, object]:
        """The row as JSON."""
        return asdict(self)


def seconds(work: Callable[[], object], repeat: int = 3) -> float:
    """The median time of *work* in seconds, over *repeat* runs."""
    return median(_once(work) for _ in range(repeat))


def latencies(calls: Sequence[Callable[[], object]]) -> list[float]:
    """The time of each call in seconds, ascending."""
    return sorted(_once(call) for call in calls)


def percentile(ascending: Sequence[float], share: float) -> float:
    """The value below which *share* (0 to 1) of *ascending* lies, nearest rank."""
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))]


def _once(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started
