"""How a run went: the conditions under which runs fail, at each step and at the end."""

import re
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from contextgraph.model import ActionKind, Condition, Course, LoopInfo, LoopSeverity, RawTrajectory
from contextgraph.text import regex
from contextgraph.trace.loops import is_alarming
from contextgraph.trace.run import OpenError, OpenErrors
from contextgraph.trace.steps import StepTrace, is_edit

# How harnesses name the end of a run that has used up its context, money, time or turns.
_EXHAUSTED = regex(r"context|cost|limit|budget|exceeded|max_|timeout|too_many", re.IGNORECASE)


class CourseTracker:
    """The course of a growing run, at constant cost per step."""

    def __init__(self) -> None:
        self._created: set[str] = set()
        self._edited: set[str] = set()
        self._tests: list[StepTrace] = []
        self._errors = OpenErrors()
        self._loops: dict[int, int] = {}
        self._steps = 0
        self._first_edit: int | None = None
        self._is_reproduced = False
        self._is_unrun = False
        self._is_stuck = False
        self._was_stuck = False

    def push(self, step: StepTrace, loop: LoopInfo | None) -> None:
        """Add the next step, and the loop that it continues; a submission itself shows nothing."""
        self._steps += 1
        self._errors.push(step)
        if step.reading.kind is ActionKind.SUBMIT:
            return
        self._is_stuck = loop is not None and loop.severity is LoopSeverity.STUCK
        self._was_stuck |= self._is_stuck
        if loop is not None and is_alarming(loop):
            # A loop that turns out to reach further takes the place of those that it overlaps.
            before = {start: end for start, end in self._loops.items() if end < loop.start}
            self._loops = before | {loop.start: loop.end}
        if step.reading.kind.runs:
            self._is_unrun = False
            self._is_reproduced |= self._first_edit is None
        if step.reading.kind is ActionKind.TEST:
            self._tests.append(step)
        if step.succeeded and (is_edit(step) or step.reading.scripted):
            files = step.reading.scripted or step.reading.changed or step.reading.targets
            self._is_unrun = True
            if step.reading.kind is ActionKind.CREATE:
                self._created.update(files)
            elif not files or not self._created.issuperset(files):
                self._first_edit = step.index if self._first_edit is None else self._first_edit
                self._edited.update(PurePosixPath(file).stem for file in files)

    def _is_tested(self) -> bool:
        """Return whether a test command chose no tests, or some that name an edited module."""
        return any(
            not step.reading.targets
            or any(module in step.step.action.text for module in self._edited)
            for step in self._tests
        )

    @property
    def _open_error(self) -> OpenError | None:
        """The error met last that still stands in the way: no passing test came after it."""
        latest = self._errors.latest
        passed = max((test.index for test in self._tests if test.succeeded), default=-1)
        return latest if latest and latest.last.index > passed else None

    @property
    def conditions(self) -> frozenset[Condition]:
        """The conditions after the steps pushed so far: see `Condition`."""
        has_edit = self._first_edit is not None
        shown = {
            Condition.NO_EDIT: not has_edit,
            Condition.NOT_REPRODUCED: has_edit and not self._is_reproduced,
            Condition.NOT_RUN: self._is_unrun,
            Condition.NOT_TESTED: has_edit and not self._is_tested(),
            Condition.TESTS_RED: bool(self._tests) and not self._tests[-1].succeeded,
            Condition.ERROR_OPEN: self._open_error is not None,
            Condition.LOOPED: self._was_stuck,
            Condition.STUCK: self._is_stuck,
        }
        return frozenset(condition for condition, is_shown in shown.items() if is_shown)

    def course(self, exit_status: str | None = None) -> Course:
        """Return the course after the steps pushed so far, of a run that ended so."""
        conditions = set(self.conditions)
        if exit_status and _EXHAUSTED.search(exit_status):
            conditions.add(Condition.EXHAUSTED)
        error = self._open_error
        return Course(
            self._steps,
            tuple(sorted(conditions)),
            self._first_edit,
            tuple(self._loops.items()),
            error.error.error_type if error else "",
        )


def course_of(raw: RawTrajectory, steps: Iterable[StepTrace], loops: Sequence[LoopInfo]) -> Course:
    """Return the course of a whole run, whose *loops* are in order."""
    tracker, waiting = CourseTracker(), deque(loops)
    for step in steps:
        while waiting and waiting[0].end < step.index:
            waiting.popleft()
        is_in = waiting and waiting[0].start <= step.index
        tracker.push(step, waiting[0] if is_in else None)
    return tracker.course(raw.exit_status)
