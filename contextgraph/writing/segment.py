"""Cutting a run into fragments."""

from collections.abc import Sequence

from contextgraph.model import FragmentOutcome, FragmentType, LoopInfo, Phase
from contextgraph.trace import ActionKind, Recovery, StepTrace, Trace

_CHANGES = frozenset({ActionKind.EDIT, ActionKind.CREATE, ActionKind.DELETE})

# A recovery within this many steps is one story, whatever phases it passes through; a longer one
# is told by several fragments.
STORY_STEPS = 8


def cut(trace: Trace) -> tuple[tuple[int, int], ...]:
    """Ranges (start, end inclusive) that cover every step of *trace* once, in order.

    A range starts at an error, at a change of phase and at a loop; it ends at a recovery and at
    the end of a loop. Short recoveries stay whole across phases.
    """
    count = len(trace.steps)
    starts = sorted({0} | {start for start in _starts(trace) if 0 < start < count})
    ranges = zip(starts, [start - 1 for start in starts[1:]] + [count - 1], strict=True)
    return tuple(ranges) if count else ()


def _starts(trace: Trace) -> set[int]:
    inside = _inside(trace.loops, trace.recoveries)
    starts = {loop.start for loop in trace.loops} | {loop.end + 1 for loop in trace.loops}
    looping = {i for loop in trace.loops for i in range(loop.start + 1, loop.end + 1)}
    starts |= {recovery.cleared_step + 1 for recovery in trace.recoveries} - looping
    for before, now in zip(trace.steps, trace.steps[1:], strict=False):
        i = now.step.index
        if i not in inside and (_new_error(before, now) or before.phase is not now.phase):
            starts.add(i)
    return starts


def _inside(loops: Sequence[LoopInfo], recoveries: Sequence[Recovery]) -> set[int]:
    """Steps at which nothing new starts, as they continue a loop or a short recovery."""
    stories = [(loop.start, loop.end) for loop in loops]
    stories += [
        (recovery.error_step, recovery.cleared_step)
        for recovery in recoveries
        if recovery.cleared_step - recovery.error_step <= STORY_STEPS
    ]
    return {i for start, end in stories for i in range(start + 1, end + 1)}


def _new_error(before: StepTrace, now: StepTrace) -> bool:
    if now.error is None:
        return False
    return before.error is None or before.error.template != now.error.template


def classify(
    steps: Sequence[StepTrace], recoveries: Sequence[Recovery], loops: Sequence[LoopInfo]
) -> tuple[FragmentType, FragmentOutcome]:
    """What the fragment of *steps* is an example of, and how it ended.

    *recoveries* are those that end in it, *loops* those that lie in it.
    """
    if loops:
        return FragmentType.LOOP, _loop_outcome(steps)
    if recoveries:
        return FragmentType.ERROR_RECOVERY, FragmentOutcome.RECOVERED
    if any(step.error for step in steps):
        return FragmentType.FAILED_ATTEMPT, FragmentOutcome.FAILED
    if any(step.phase is Phase.FIXING and step.reading.kind in _CHANGES for step in steps):
        return FragmentType.SUCCESSFUL_FIX, FragmentOutcome.COMPLETED
    return FragmentType.EXPLORATION, FragmentOutcome.COMPLETED


def _loop_outcome(steps: Sequence[StepTrace]) -> FragmentOutcome:
    return FragmentOutcome.FAILED if steps[-1].error else FragmentOutcome.COMPLETED
