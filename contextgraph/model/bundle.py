"""All that one trajectory teaches, written in one transaction."""

from dataclasses import dataclass

from contextgraph.model.error import ErrorPattern
from contextgraph.model.fragment import CausedError, Fragment, Recovered
from contextgraph.model.trajectory import RawTrajectory, Trajectory


@dataclass(frozen=True, slots=True)
class Bundle:
    """A trajectory with its fragments (in order, covering every step once), errors and recoveries.

    *raw* is the masked run, kept so that a better reading of logs can learn from it again.
    *exposures* are ids of contexts whose playbooks were found in the run.
    """

    trajectory: Trajectory
    fragments: tuple[Fragment, ...]
    errors: tuple[ErrorPattern, ...]
    caused: tuple[CausedError, ...]
    recovered: tuple[Recovered, ...]
    raw: RawTrajectory
    exposures: tuple[str, ...] = ()
