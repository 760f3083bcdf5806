"""All that one trajectory teaches, written in one transaction."""

from dataclasses import dataclass

from contextgraph.model.embedding import RunTexts, RunVectors, run_texts
from contextgraph.model.error import ErrorPattern
from contextgraph.model.fragment import CausedError, Fragment, Recovered
from contextgraph.model.retelling import Retelling
from contextgraph.model.trajectory import RawTrajectory, Trajectory
from contextgraph.model.usage import NO_USAGE, Usage


@dataclass(frozen=True, slots=True)
class Bundle:
    """A trajectory with its fragments (in order, covering every step once), errors and recoveries.

    *raw* is the masked run, kept so that a better reading of logs can learn from it again.
    *exposures* are ids of contexts whose playbooks were found in the run. *vectors* is None
    where they have yet to be made, *retelling* where no language model told the run again.
    """

    trajectory: Trajectory
    fragments: tuple[Fragment, ...]
    errors: tuple[ErrorPattern, ...]
    caused: tuple[CausedError, ...]
    recovered: tuple[Recovered, ...]
    raw: RawTrajectory
    exposures: tuple[str, ...] = ()
    vectors: RunVectors | None = None
    retelling: Retelling | None = None

    @property
    def texts(self) -> RunTexts:
        """The texts by which its nodes are embedded."""
        messages = {error.id: error.context for error in self.errors}
        met: dict[str, list[str]] = {}
        for caused in sorted(self.caused, key=lambda caused: caused.error_id):
            met.setdefault(caused.fragment_id, []).append(messages[caused.error_id])
        return run_texts(self.trajectory, self.fragments, met)


@dataclass(frozen=True, slots=True)
class EmbeddedBundle:
    """A bundle with its vectors, what they took, and the *failure* where there are none for one."""

    bundle: Bundle
    usage: Usage = NO_USAGE
    failure: str = ""
