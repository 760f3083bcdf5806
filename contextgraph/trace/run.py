"""The trace of a whole run: its steps, loops, recoveries and task type."""

from dataclasses import dataclass

from contextgraph.model import LoopInfo, RawTrajectory, TaskType
from contextgraph.trace.loops import loops_of
from contextgraph.trace.remedies.recovery import Recovery, recoveries_of
from contextgraph.trace.steps import StepTrace, read_steps
from contextgraph.trace.task import task_type_of


@dataclass(frozen=True, slots=True)
class Trace:
    """What reading a run shows, in the order it happened; ends are inclusive."""

    raw: RawTrajectory
    steps: tuple[StepTrace, ...]
    loops: tuple[LoopInfo, ...]
    recoveries: tuple[Recovery, ...]
    task_type: TaskType


def trace(raw: RawTrajectory) -> Trace:
    """The trace of *raw*."""
    steps = tuple(read_steps(raw))
    return Trace(
        raw, steps, loops_of(steps), recoveries_of(steps, raw.repo), task_type_of(raw.task)
    )
