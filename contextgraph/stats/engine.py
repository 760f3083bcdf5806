"""Counting over the whole memory."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from contextgraph.errors import StoreError
from contextgraph.model import (
    FailurePattern,
    MemoryCounts,
    MistakePattern,
    Scope,
    Trajectory,
    Usage,
)
from contextgraph.stats.counting import CountingStore, told
from contextgraph.stats.history import OutcomePeriod, outcomes_over_time
from contextgraph.stats.patterns import failure_patterns
from contextgraph.stats.situations import errors_in

COMMON = 10
_ALL = 1_000_000


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """What the memory holds, and how runs fail.

    *transitions* gives, after an error type, the probability of each next one in the same run.
    *common_mistakes* is a function of a situation, see `StatisticsEngine.get_common_mistakes`.
    *usage* is what models took for this memory, by space.
    """

    counts: MemoryCounts
    error_frequency: Mapping[str, int]
    transitions: Mapping[str, Mapping[str, float]]
    common_mistakes: Callable[[str], tuple[MistakePattern, ...]]
    failure_patterns: tuple[FailurePattern, ...]
    usage: Mapping[str, Usage]


class StatisticsEngine:
    """Error frequencies, transitions, common mistakes and failure patterns.

    All of it is counted when it is asked for: nothing is cached that could be out of date, in this
    process or in another one.
    """

    def __init__(
        self, store: CountingStore, usage: Callable[[], Mapping[str, Usage]] = dict
    ) -> None:
        self._store = store
        self._usage = usage

    def get_stats(self) -> MemoryStats:
        """All of it."""
        return MemoryStats(
            counts=self._store.counts(),
            error_frequency=self.get_error_frequency(),
            transitions=self.get_error_transitions(),
            common_mistakes=self.get_common_mistakes,
            failure_patterns=self.get_failure_patterns(),
            usage=self._usage(),
        )

    def update_from_batch(self, trajectories: Iterable[Trajectory]) -> MemoryStats:
        """The statistics with *trajectories* in them.

        Learning a run counts it, so nothing is added here. Raises `StoreError` naming a run that
        the memory does not hold: it was not learned, or is forgotten.
        """
        for trajectory in trajectories:
            if self._store.trajectory(trajectory.id) is None:
                raise StoreError(f"run {trajectory.id} is not in the memory; learn it first")
        return self.get_stats()

    def get_error_frequency(self) -> Mapping[str, int]:
        """Error type -> number of fragments that met it, most frequent first."""
        return self._store.error_frequency()

    def get_error_transitions(self) -> Mapping[str, Mapping[str, float]]:
        """Error type -> next error type in the same run -> probability; each row sums to 1."""
        return {
            error: {following: count / sum(counts.values()) for following, count in counts.items()}
            for error, counts in self._store.error_transitions().items()
        }

    def get_common_mistakes(
        self, situation: str = "", repo: str = ""
    ) -> tuple[MistakePattern, ...]:
        """The errors that most runs met in *situation*, within *repo* where one is given.

        A situation is a phase, a type of task, a repository, a file name, or else free text, which
        stands for the runs whose tasks are about its words; "" is any.
        """
        return tuple(
            MistakePattern(told(tally), tally.runs, tally.cleared_runs)
            for tally in errors_in(situation, repo, self._store, COMMON)
        )

    def get_failure_patterns(self, repo: str = "") -> tuple[FailurePattern, ...]:
        """Errors of three runs or more that a third of them never got over, worst first.

        Each with the phase in which most runs met it, and with what most of those did that did get
        over it.
        """
        return failure_patterns(self._store, Scope(repo or None))

    def get_outcomes_over_time(self) -> tuple[OutcomePeriod, ...]:
        """How runs ended, from the oldest to the newest."""
        return outcomes_over_time(self._store.trajectories_for_task(None, Scope(), _ALL))
