"""The steps of a run, read one by one."""

from collections.abc import Iterator
from dataclasses import dataclass

from contextgraph.model import ErrorSignature, Phase, RawTrajectory, Step
from contextgraph.trace.actions.reading import ActionReading, read_action
from contextgraph.trace.errors.signature import recognise
from contextgraph.trace.phase import PhaseTracker


@dataclass(frozen=True, slots=True)
class StepTrace:
    """What one step shows: what it did, in which phase, and its error."""

    step: Step
    reading: ActionReading
    phase: Phase
    error: ErrorSignature | None = None

    @property
    def index(self) -> int:
        """The place of the step in its run."""
        return self.step.index

    @property
    def succeeded(self) -> bool:
        """True where an answer came and shows no error."""
        return self.error is None and self.step.observation is not None


class StepReader:
    """Reads the steps of a growing run, each at constant cost, knowing only what came before."""

    def __init__(self) -> None:
        self._phases = PhaseTracker()
        self._cwd: str | None = None
        self._open_file: str | None = None

    def push(self, step: Step) -> StepTrace:
        """What the next step shows."""
        # Logs give directory and open file as they are after the action, which saw those before.
        reading = read_action(step.action, self._cwd or step.cwd, self._open_file)
        error = recognise(
            step.action,
            step.observation,
            exit_code=step.exit_code,
            is_error=step.is_error,
            reading=reading,
        )
        self._cwd, self._open_file = step.cwd or self._cwd, step.open_file
        return StepTrace(step, reading, self._phases.push(step, reading, error), error)


def read_steps(raw: RawTrajectory) -> Iterator[StepTrace]:
    """The steps of *raw* in order, each read knowing only what came before it."""
    return map(StepReader().push, raw.steps)
