"""Outcomes of runs: solve rates by how runs end, and over time."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import comb
from typing import NamedTuple

from contextgraph.model import Outcome, Trajectory
from contextgraph.ports import Store
from contextgraph.trace import SubmissionSign, read_steps, submission_signs

_SIGNIFICANT = 0.01


@dataclass(frozen=True, slots=True)
class SolveRates:
    """How many of the runs with a sign were solved, and how many of those without it."""

    shown: int
    solved_shown: int
    others: int
    solved_others: int

    @property
    def is_lower(self) -> bool:
        """True where runs with the sign were solved less often, and not by chance.

        By Fisher's exact test, one-sided, p < 0.01.
        """
        # Importing the test from scipy takes longer than an agent should wait for an answer.
        solved = self.solved_shown + self.solved_others
        failed = self.shown + self.others - solved
        ways = sum(
            comb(solved, count) * comb(failed, self.shown - count)
            for count in range(self.solved_shown + 1)
        )
        return ways / comb(solved + failed, self.shown) < _SIGNIFICANT


class Ending(NamedTuple):
    """The instance of a run, and the signs that it ended with."""

    instance_id: str
    signs: frozenset[SubmissionSign]


def ending_of(store: Store, trajectory_id: str) -> Ending | None:
    """How a run ended; None for one without steps."""
    raw = store.runs.raw(trajectory_id)
    if raw is None or not raw.steps:
        return None
    return Ending(raw.instance_id, submission_signs(read_steps(raw)))


def solve_rates(
    outcomes: Mapping[str, Outcome], endings: Mapping[str, Ending | None], exclude: frozenset[str]
) -> Mapping[SubmissionSign, SolveRates]:
    """The rates of each sign in runs that ended so; instances in *exclude* do not count."""
    counts: Counter[tuple[SubmissionSign, bool]] = Counter()
    judged: Counter[bool] = Counter()
    for run, outcome in outcomes.items():
        ending = endings[run]
        if ending is not None and ending.instance_id not in exclude:
            is_solved = outcome is Outcome.SOLVED
            judged[is_solved] += 1
            counts.update((sign, is_solved) for sign in ending.signs)
    return {
        sign: _rates(counts[sign, True], counts[sign, False], judged) for sign in SubmissionSign
    }


def _rates(solved: int, failed: int, outcomes: Counter[bool]) -> SolveRates:
    """*solved* and *failed* runs had a sign, of all runs in *outcomes*."""
    shown = solved + failed
    return SolveRates(shown, solved, outcomes.total() - shown, outcomes[True] - solved)


PERIODS = 24
RUNS_A_PERIOD = 3
# Runs that were learned in one batch have about the same time; then their order counts.
_LEAST_SPAN = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class OutcomePeriod:
    """From *start* to *end* (times of its first and last run), how many runs ended how."""

    start: datetime
    end: datetime
    outcomes: Mapping[str, int]


class _Run(NamedTuple):
    """What is needed of a run: of many, their texts would not fit into memory."""

    seen_at: datetime
    id: str
    outcome: Outcome


def outcomes_over_time(
    trajectories: Iterable[Trajectory], most: int = PERIODS
) -> tuple[OutcomePeriod, ...]:
    """At most *most* periods of equal length, those without runs left out, oldest first.

    Fewer where a period would have less than three runs on average.

    Where all runs lie within two days, periods of equally many runs.
    """
    runs = sorted(_Run(run.seen_at, run.id, run.outcome) for run in trajectories)
    if not runs:
        return ()
    periods = max(1, min(most, len(runs) // RUNS_A_PERIOD))
    groups: dict[int, list[_Run]] = {}
    for position, run in enumerate(runs):
        groups.setdefault(_period(runs, position, periods), []).append(run)
    return tuple(_counted(group) for group in groups.values())


def _period(runs: Sequence[_Run], position: int, periods: int) -> int:
    first, span = runs[0].seen_at, runs[-1].seen_at - runs[0].seen_at
    if span < _LEAST_SPAN:
        return position * periods // max(len(runs), periods)
    return min(periods - 1, int((runs[position].seen_at - first) / span * periods))


def _counted(runs: Sequence[_Run]) -> OutcomePeriod:
    counted = Counter(run.outcome for run in runs)
    outcomes = {outcome.value: counted[outcome] for outcome in Outcome}
    return OutcomePeriod(runs[0].seen_at, runs[-1].seen_at, outcomes)
