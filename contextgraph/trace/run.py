"""A whole run, read: its steps, its loops, its recoveries, its task."""

from dataclasses import dataclass

from contextgraph.model import LoopInfo, RawTrajectory, TaskType
from contextgraph.trace.loops import loops_of
from contextgraph.trace.recoveries.recovery import Recovery, recoveries_of
from contextgraph.trace.steps import StepTrace, read_steps
from contextgraph.trace.task import task_type_of


@dataclass(frozen=True, slots=True)
class Trace:
    """All that reading a run brings out, ends inclusive, in the order it happened."""

    raw: RawTrajectory
    steps: tuple[StepTrace, ...]
    loops: tuple[LoopInfo, ...]
    recoveries: tuple[Recovery, ...]
    task_type: TaskType


def trace(raw: RawTrajectory) -> Trace:
    """What happened in *raw*."""
    steps = tuple(read_steps(raw))
    return Trace(raw, steps, loops_of(steps), recoveries_of(steps), task_type_of(raw.task))
