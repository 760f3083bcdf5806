"""Keeping what was learned."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from contextgraph.model import Bundle, Fragment, Learned, LearnStatus, RawTrajectory, Trajectory


class TrajectoryStore(Protocol):
    """Keeps what was learned.

    What it holds does not depend on the order of learning: an error that several runs met is told
    (keywords, context) in the words of the run of least id among those that are there.
    """

    def add_bundles(self, bundles: Sequence[Bundle]) -> Sequence[LearnStatus]:
        """Keep all *bundles* whole and durably, in one transaction; what was done with each.

        Where one cannot be kept it raises, and none of them is.

        A trajectory that is known by its id is left as it is (unchanged), unless its outcome was
        unknown and is now given: then outcome and exit status are taken over (updated).
        """

    def replace_bundle(self, bundle: Bundle) -> None:
        """Put *bundle* in the place of the trajectory of its id, in one transaction.

        When it was learned, its outcome, and counts of shown advice stay as they were. Raises
        `StoreError` where it is unknown: a run that was forgotten meanwhile does not come back.
        """

    def learned(self, trajectory_ids: Sequence[str]) -> Mapping[str, Learned]:
        """Run id -> what is held of it, by id; those alone that were learned: cheap to ask."""

    def trajectory(self, trajectory_id: str) -> Trajectory | None:
        """The trajectory of this id, None where there is none."""

    def trajectory_ids(self) -> Sequence[str]:
        """All ids, ascending."""

    def raw_trajectory(self, trajectory_id: str) -> RawTrajectory | None:
        """The masked run as it was learned, with the outcome known by now."""

    def fragments_of(self, trajectory_ids: Iterable[str]) -> Mapping[str, Sequence[Fragment]]:
        """Run id -> its fragments, in order; none for unknown ones."""

    def forget(self, trajectory_ids: Iterable[str]) -> int:
        """Remove these runs with all that only they support; how many were known.

        The credit of their fragments goes too, and no text of theirs is left behind. Of many runs
        some may be gone where it is interrupted, each of them whole; the same call does the rest.
        """

    def close(self) -> None:
        """Release files and connections; closing twice is harmless."""
