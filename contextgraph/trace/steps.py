"""The steps of a run, read one by one."""

from collections.abc import Iterator
from dataclasses import dataclass

from contextgraph.model import ErrorSignature, Phase, RawTrajectory, Step
from contextgraph.trace.actions.reading import ActionReading, read_action
from contextgraph.trace.errors.signature import recognise
from contextgraph.trace.phase import PhaseTracker


@dataclass(frozen=True, slots=True)
class StepTrace:
    """What one step shows: what it did, in which phase, and the error it met."""

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


def read_steps(raw: RawTrajectory) -> Iterator[StepTrace]:
    """The steps of *raw* in order, each read knowing only what came before it."""
    phases = PhaseTracker()
    cwd, open_file = None, None
    for step in raw.steps:
        # Logs tell directory and open file as they are after the action: it saw those before.
        reading = read_action(step.action, cwd or step.cwd, open_file)
        error = recognise(
            step.action,
            step.observation,
            exit_code=step.exit_code,
            is_error=step.is_error,
            reading=reading,
        )
        yield StepTrace(step, reading, phases.push(step, reading, error), error)
        cwd, open_file = step.cwd or cwd, step.open_file
