"""Traces a whole run, and the signs that it would be submitted too early."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

from contextgraph.model import (
    LoopInfo,
    LoopSeverity,
    RawTrajectory,
    TaskType,
)
from contextgraph.trace.actions.kinds import ActionKind
from contextgraph.trace.edits import is_edit
from contextgraph.trace.loops import LoopTracker, loops_of
from contextgraph.trace.remedies.recovery import Recovery, recoveries_of
from contextgraph.trace.steps import StepTrace, read_steps
from contextgraph.trace.task import task_type_of


class SubmissionSign(StrEnum):
    """What may be missing at the end of a run."""

    NO_EDIT = "no_edit"
    NOT_RUN = "not_run"
    NOT_TESTED = "not_tested"
    STUCK = "stuck"


class SubmissionTracker:
    """The signs that a growing run shows, at constant cost per step."""

    def __init__(self) -> None:
        self._created: set[str] = set()
        self._edited: set[str] = set()
        self._tests: list[StepTrace] = []
        self._has_edit = False
        self._is_unrun = False
        self._is_stuck = False

    def push(self, step: StepTrace, loop: LoopInfo | None) -> None:
        """Add the next step, and the loop that it continues; a submission itself shows nothing."""
        if step.reading.kind is ActionKind.SUBMIT:
            return
        self._is_stuck = loop is not None and loop.severity is LoopSeverity.STUCK
        if step.reading.kind.runs:
            self._is_unrun = False
        if step.reading.kind is ActionKind.TEST:
            self._tests.append(step)
        if step.succeeded and (is_edit(step) or step.reading.scripted):
            self._add_edit(step)

    def _add_edit(self, step: StepTrace) -> None:
        files = step.reading.scripted or step.reading.changed or step.reading.targets
        self._is_unrun = True
        if step.reading.kind is ActionKind.CREATE:
            self._created.update(files)
        elif not files or not self._created.issuperset(files):
            self._has_edit = True
            self._edited.update(PurePosixPath(file).stem for file in files)

    def _is_tested(self) -> bool:
        """Whether a test command chose no tests, or some that name a module that was edited."""
        return any(
            not step.reading.targets
            or any(module in step.step.action.text for module in self._edited)
            for step in self._tests
        )

    @property
    def signs(self) -> frozenset[SubmissionSign]:
        """The signs after the steps pushed so far.

        No edit: no file was changed that the run did not create itself. Not run: no program ran
        since the last edit. Not tested: no test of the files that were edited ran. Stuck: the last
        step continues a loop that rarely ends by itself.
        """
        shown = {
            SubmissionSign.NO_EDIT: not self._has_edit,
            SubmissionSign.NOT_RUN: self._is_unrun,
            SubmissionSign.NOT_TESTED: self._has_edit and not self._is_tested(),
            SubmissionSign.STUCK: self._is_stuck,
        }
        return frozenset(sign for sign, is_shown in shown.items() if is_shown)


def submission_signs(steps: Iterable[StepTrace]) -> frozenset[SubmissionSign]:
    """The signs at the end of a run."""
    tracker, loops = SubmissionTracker(), LoopTracker()
    for step in steps:
        tracker.push(step, loops.push(step))
    return tracker.signs


@dataclass(frozen=True, slots=True)
class Trace:
    """What reading a run shows, in the order it happened; ends are inclusive.

    *left_behind* are errors of programs that were not run again: another one ended well.
    """

    raw: RawTrajectory
    steps: tuple[StepTrace, ...]
    loops: tuple[LoopInfo, ...]
    recoveries: tuple[Recovery, ...]
    task_type: TaskType
    left_behind: tuple[Recovery, ...] = ()


def trace(raw: RawTrajectory) -> Trace:
    """The trace of *raw*."""
    steps = tuple(read_steps(raw))
    if raw.is_talk:
        return Trace(raw, steps, (), (), task_type_of(raw.task))
    ends = recoveries_of(steps, raw.repo)
    return Trace(
        raw,
        steps,
        loops_of(steps),
        recoveries=tuple(end for end in ends if end.actions),
        task_type=task_type_of(raw.task),
        left_behind=tuple(end for end in ends if not end.actions),
    )
