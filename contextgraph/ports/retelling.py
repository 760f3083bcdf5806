"""Keeping what a language model made of runs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from contextgraph.model import Retelling


class RetellingStore(Protocol):
    """Keeps runs as a language model told them again, beside what they tell themselves.

    That is no change of the memory: questions are answered by what runs tell themselves.
    """

    def retellings_of(self, trajectory_ids: Iterable[str]) -> Mapping[str, Retelling]:
        """Run id -> how it was told again, by id; only those that were, and are still there."""

    def put_retellings(self, given: Mapping[str, Retelling]) -> None:
        """Keep these by the id of their run in the place of what there was, in one transaction.

        Runs that are gone are passed over, and fragments that the run does not have.
        """

    def runs_to_retell(self, made_by: str) -> Sequence[str]:
        """The ids of runs that *made_by* has not told, the newest (`Trajectory.seen_at`) first."""
