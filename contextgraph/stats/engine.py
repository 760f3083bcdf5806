"""Counting over the whole memory."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from contextgraph.model import (
    ErrorTally,
    FailurePattern,
    MemoryCounts,
    MistakePattern,
    Phase,
    Scope,
)
from contextgraph.ports import RetrievalStore, StatisticsStore

COMMON = 10
_RUNS_FOR_PATTERN = 3


class CountingStore(StatisticsStore, RetrievalStore, Protocol):
    """What statistics need of a store."""


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """What the memory holds, and how runs fail.

    *transitions* gives, after an error type, the probability of each next one in the same run.
    *common_mistakes* is a function of a situation, see `StatisticsEngine.get_common_mistakes`.
    """

    counts: MemoryCounts
    error_frequency: Mapping[str, int]
    transitions: Mapping[str, Mapping[str, float]]
    common_mistakes: Callable[[str], tuple[MistakePattern, ...]]
    failure_patterns: tuple[FailurePattern, ...]


class StatisticsEngine:
    """Error frequencies, transitions, common mistakes and failure patterns."""

    def __init__(self, store: CountingStore) -> None:
        self._store = store

    def get_stats(self) -> MemoryStats:
        """All of it."""
        return MemoryStats(
            counts=self._store.counts(),
            error_frequency=self.get_error_frequency(),
            transitions=self.get_error_transitions(),
            common_mistakes=self.get_common_mistakes,
            failure_patterns=self.get_failure_patterns(),
        )

    def get_error_frequency(self) -> Mapping[str, int]:
        """Error type -> number of fragments that met it, most frequent first."""
        return self._store.error_frequency()

    def get_error_transitions(self) -> Mapping[str, Mapping[str, float]]:
        """Error type -> next error type in the same run -> probability; each row sums to 1."""
        return {
            error: {following: count / sum(counts.values()) for following, count in counts.items()}
            for error, counts in self._store.error_transitions().items()
        }

    def get_common_mistakes(self, situation: str) -> tuple[MistakePattern, ...]:
        """The errors that most runs met in *situation*: a repository, a phase, or "" for any."""
        phase = Phase(situation) if situation in {p.value for p in Phase} else None
        repo = situation if situation and phase is None else None
        tallies = self._store.common_errors(phase, Scope(repo), COMMON)
        return tuple(
            MistakePattern(_description(tally), tally.runs, tally.cleared_runs) for tally in tallies
        )

    def get_failure_patterns(self) -> tuple[FailurePattern, ...]:
        """Per phase, the errors of at least three runs that most of these never cleared."""
        return tuple(
            FailurePattern(
                condition=f"while {phase}",
                what=_description(tally),
                count=tally.runs,
                prevented=f"cleared in {tally.cleared_runs} of {tally.runs} runs",
            )
            for phase in Phase
            for tally in self._store.common_errors(phase, Scope(), COMMON)
            if tally.runs >= _RUNS_FOR_PATTERN and 2 * tally.cleared_runs < tally.runs
        )


def _description(tally: ErrorTally) -> str:
    return f"{tally.error.error_type}: {tally.error.template}"
