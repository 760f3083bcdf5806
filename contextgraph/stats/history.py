"""How runs ended, over time."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from contextgraph.model import Outcome, Trajectory

PERIODS = 24
RUNS_A_PERIOD = 3
# Runs that were learned in one go all have about the same time; then their order is told.
_LEAST_SPAN = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class OutcomePeriod:
    """From *start* to *end* (times of its first and last run), how many runs ended how."""

    start: datetime
    end: datetime
    outcomes: Mapping[str, int]


def outcomes_over_time(
    trajectories: Iterable[Trajectory], most: int = PERIODS
) -> tuple[OutcomePeriod, ...]:
    """At most *most* periods of equal length, those without runs left out, oldest first.

    Fewer where a period would have less than three runs on average.

    Where all runs lie within two days, periods of equally many runs.
    """
    runs = sorted(trajectories, key=lambda run: (run.seen_at, run.id))
    if not runs:
        return ()
    periods = max(1, min(most, len(runs) // RUNS_A_PERIOD))
    groups: dict[int, list[Trajectory]] = {}
    for position, run in enumerate(runs):
        groups.setdefault(_period(runs, position, periods), []).append(run)
    return tuple(_told(group) for group in groups.values())


def _period(runs: Sequence[Trajectory], position: int, periods: int) -> int:
    first, span = runs[0].seen_at, runs[-1].seen_at - runs[0].seen_at
    if span < _LEAST_SPAN:
        return position * periods // max(len(runs), periods)
    return min(periods - 1, int((runs[position].seen_at - first) / span * periods))


def _told(runs: Sequence[Trajectory]) -> OutcomePeriod:
    counted = Counter(run.outcome for run in runs)
    outcomes = {outcome.value: counted[outcome] for outcome in Outcome}
    return OutcomePeriod(runs[0].seen_at, runs[-1].seen_at, outcomes)
