"""Counting."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from contextgraph.model import ErrorTally, MemoryCounts


class StatisticsStore(Protocol):
    """Counts."""

    def counts(self) -> MemoryCounts:
        """Nodes, relations, outcomes and repositories."""

    def error_frequency(self) -> Mapping[str, int]:
        """Error type -> in how many fragments it occurred, most frequent first, then by name."""

    def error_transitions(self) -> Mapping[str, Mapping[str, int]]:
        """Error type -> the error type that came next in the same run -> how often.

        Errors of one step follow each other by the ids of their patterns. Most frequent first, then
        by name, in both mappings.
        """

    def errors_of_runs(self, trajectory_ids: Iterable[str], limit: int) -> Sequence[ErrorTally]:
        """Errors met in these runs, those of most of them first; unknown ids count for nothing."""
