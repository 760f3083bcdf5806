"""Errors of a run that are not cleared yet, followed step by step."""

import re
from dataclasses import dataclass

from contextgraph.model import (
    EXCEPTIONS,
    ErrorSignature,
    Family,
)
from contextgraph.trace.actions.kinds import ActionKind
from contextgraph.trace.predicament import steady
from contextgraph.trace.remedies.goals import (
    is_installing,
    is_typed_again,
    ran_no_test,
    runs_by_hand,
    same_goal,
    same_run,
)
from contextgraph.trace.steps import StepTrace, is_version_query

# Older errors than the newest 12 open ones are dropped: what clears them later is chance.
_FOLLOWED = 12

# After another error took its place, so many steps may pass until the goal is reached in full.
PATIENCE = 8

# What is reached so long after the last failure is reached for other reasons.
_PATIENCE_WITH_RUNS = 80
_PATIENCE_WITH_SLIPS = 20

# A mistyped command that was not repeated for so many steps no longer concerns the agent.
_SLIP_STEPS = 8
_SLIPS = frozenset({Family.EDIT_REJECTED, Family.SHELL, Family.TOOL_USAGE, Family.NOT_FOUND})

_RUNS = frozenset({*EXCEPTIONS, Family.BUILD})

# What an installation clears, and within how many steps after it.
MISSING_PROGRAM = ("python -m: No module named", "bash: command not found")
_MISSING = ("ModuleNotFoundError", *MISSING_PROGRAM)
_STEPS_AFTER_INSTALLING = 4
# Agents write another program rather than run the same one again, within so many steps.
_STEPS_TO_REPLACE = 12
_OF_PROJECT = re.compile(
    r"(?:install|develop|sync)\b.* -(?:e|r)\b|setup\.py|\bsync\b| \.(?:\[|\s|$)"
)

_INTERPRETER = re.compile(r"(?:^|[;&|]\s*|/|\s)(python[\d.]*)\s")

_ELSEWHERE = frozenset({Family.TIMEOUT, Family.ENVIRONMENT})

_NEAR_LINES = 20

_NOT_STARTED = -1
_EARLY = {
    "SyntaxError": 0,
    "IndentationError": 0,
    "TabError": 0,
    "ModuleNotFoundError": 1,
    "ImportError": 1,
}
_LATE = 2


@dataclass(slots=True)
class OpenError:
    """An error from its *first* to its *last* showing; *gone* is where another took its place.

    *installed* is where what it misses was installed. *changed*: files were changed after its last
    showing; *replaced* is where another program then ended well.
    """

    error: ErrorSignature
    first: StepTrace
    last: StepTrace
    gone: StepTrace | None = None
    installed: StepTrace | None = None
    changed: bool = False
    replaced: StepTrace | None = None


@dataclass(frozen=True, slots=True)
class Cleared:
    """An open error that ended: the goal was reached at *by*, or (*moved*) failed further on."""

    opened: OpenError
    by: StepTrace
    moved: bool = False

    @property
    def verified(self) -> bool:
        """True where the answer at *by* shows the error gone, rather than perhaps hidden."""
        return not self.moved or (
            self.by.error is not None and _is_later(self.opened.error, self.by.error)
        )


class OpenErrors:
    """The errors that are open after the steps pushed so far."""

    def __init__(self) -> None:
        self._open: list[OpenError] = []
        self._now = -1

    def push(self, step: StepTrace) -> tuple[Cleared, ...]:
        """Take *step* in; the errors that it clears, oldest first."""
        self._now = step.index
        cleared = self._settle(step)
        if step.error is not None:
            self._meet(step, step.error)
        elif step.reading.kind is ActionKind.INSTALL:
            for opened in self._open:
                if installs_missing(step.reading.command, opened.error):
                    opened.installed = step
        return cleared

    def finish(self) -> tuple[Cleared, ...]:
        """What the end of the run settles: errors that gave way to others."""
        return tuple(end for opened in self._open if (end := _given_up(opened)) is not None)

    @property
    def latest(self) -> OpenError | None:
        """The error met last that still stands in the way."""
        standing = (opened for opened in self._open if self._stands(opened))
        return max(standing, key=lambda opened: opened.last.index, default=None)

    def _settle(self, step: StepTrace) -> tuple[Cleared, ...]:
        if not self._open:
            return ()
        for opened in self._open:
            _follow(opened, step)
        ends = [(opened, _ended(opened, step)) for opened in self._open]
        self._open = [opened for opened, end in ends if end is None and not _is_stale(opened, step)]
        return tuple(end for _, end in ends if end is not None)

    def _meet(self, step: StepTrace, error: ErrorSignature) -> None:
        for number, opened in enumerate(self._open):
            if _same_error(opened.error, error) and same_goal(opened.last, step):
                self._open[number] = OpenError(opened.error, opened.first, step)
                return
        for opened in self._open:
            if same_run(opened.last.reading, step.reading) and _further(opened.error, error):
                opened.gone = opened.gone or step
        self._open = [*self._open, OpenError(error, step, step)][-_FOLLOWED:]

    def _stands(self, opened: OpenError) -> bool:
        slipped = opened.error.family in _SLIPS and self._now - opened.last.index > _SLIP_STEPS
        return opened.gone is None and not slipped


def _ended(opened: OpenError, step: StepTrace) -> Cleared | None:
    if step.succeeded and _reaches(opened, step):
        return Cleared(opened, step)
    if _has_started(opened, step):
        return Cleared(opened, step, moved=True)
    if opened.installed is not None and _uses(opened, opened.installed, step):
        return Cleared(opened, step, moved=True)
    if opened.gone is not None and step.index - opened.gone.index > PATIENCE:
        return Cleared(opened, opened.gone, moved=True)
    return _given_up(opened) if _is_stale(opened, step) else None


def _reaches(opened: OpenError, step: StepTrace) -> bool:
    """True for the goal of the last attempt, or of the first program that showed the error."""
    if same_goal(opened.last, step):
        return True
    return opened.first.reading.kind.runs and same_goal(opened.first, step)


def _given_up(opened: OpenError) -> Cleared | None:
    """Where an error, whose goal was not reached as long as it was followed, was left behind."""
    by = opened.gone or opened.replaced
    return Cleared(opened, by, moved=True) if by is not None else None


def _follow(opened: OpenError, step: StepTrace) -> None:
    """Note in *opened* that *step* changes files, or does with another program what failed."""
    reading = step.reading
    opened.changed = (
        opened.changed
        or bool(reading.changed or reading.scripted)
        or (reading.kind is ActionKind.INSTALL and is_installing(reading.command))
    )
    if opened.replaced is None and _replaces(opened, step):
        opened.replaced = step


def _replaces(opened: OpenError, step: StepTrace) -> bool:
    """True for another program of the run's own that ends well where the first one did not."""
    failed, reading = opened.last, step.reading
    if not step.succeeded or reading.kind is not ActionKind.RUN:
        return False
    if reading.scripted or is_version_query(reading):
        return False
    if failed.reading.kind is ActionKind.TEST:
        return runs_by_hand(failed, step)
    if opened.error.family not in _RUNS or opened.error.error_type in _MISSING:
        return False
    if failed.reading.kind is not ActionKind.RUN:
        return False
    soon = step.index - failed.index <= _STEPS_TO_REPLACE
    return soon and (opened.changed or is_typed_again(failed, step))


def _has_started(opened: OpenError, step: StepTrace) -> bool:
    """True where what could not be started, or not by that interpreter, fails in its own code."""
    failed, error = opened.last, step.error
    if error is None or error.family not in _RUNS or opened.error.family in _ELSEWHERE:
        return False
    if error.error_type in _MISSING or ran_no_test(step):
        return False
    if not same_run(failed.reading, step.reading):
        return False
    if opened.error.family in _SLIPS or ran_no_test(failed):
        return True
    return _interpreter(failed) != _interpreter(step) and not _same_error(opened.error, error)


def _interpreter(step: StepTrace) -> str:
    match = _INTERPRETER.search(step.step.action.text)
    return match[1] if match else ""


def installs_missing(command: str, error: ErrorSignature) -> bool:
    """True where *command* installs what *error* misses, or the project with all that it needs."""
    if error.error_type not in _MISSING:
        return False
    return (
        any(word in command for word in error.keywords) or _OF_PROJECT.search(command) is not None
    )


def _uses(opened: OpenError, installed: StepTrace, step: StepTrace) -> bool:
    """True where *step* runs something after the installation, and nothing is missing there."""
    if step.index - installed.index > _STEPS_AFTER_INSTALLING:
        return False
    if step.error and (step.error.family not in _RUNS or step.error.error_type in _MISSING):
        return False
    named = any(word in step.step.action.text for word in opened.error.keywords)
    if named or opened.last.reading.kind is not ActionKind.TEST:
        return step.reading.kind.runs or (named and step.reading.kind is ActionKind.OTHER)
    return step.reading.verb == opened.last.reading.verb


def _is_stale(opened: OpenError, step: StepTrace) -> bool:
    patience = _PATIENCE_WITH_RUNS if opened.error.family in _RUNS else _PATIENCE_WITH_SLIPS
    return step.index - opened.last.index > patience


def _same_error(error: ErrorSignature, other: ErrorSignature) -> bool:
    """True for one message; a template is shared by errors that are cleared one by one."""
    kinds = (error.family, error.error_type) == (other.family, other.error_type)
    if kinds and error.family is Family.SYNTAX_ERROR and not _is_near(error, other):
        return False
    if not kinds or error.message == other.message:
        return kinds
    return steady(error.message) == steady(other.message)


def _is_near(error: ErrorSignature, other: ErrorSignature) -> bool:
    """True for places within some lines, which an edit may move, or that are not known."""
    place, again = _place(error), _place(other)
    if place is None or again is None:
        return True
    return place[0] == again[0] and abs(place[1] - again[1]) <= _NEAR_LINES


def _further(before: ErrorSignature, now: ErrorSignature) -> bool:
    """True where *now* may show that the run got past *before*."""
    if before.family in _ELSEWHERE or now.family not in _RUNS or _rank(now) < _rank(before):
        return False
    if before.error_type == now.error_type and before.location == now.location:
        # The same kind of failure at the same line: another wrong value, most likely.
        return before.location is None and before.template != now.template
    old, new = _place(before), _place(now)
    return old is None or new is None or old[0] != new[0] or new[1] >= old[1]


def _is_later(before: ErrorSignature, now: ErrorSignature) -> bool:
    """True where *now* comes up at a point that *before* kept the run from reaching."""
    if _rank(now) != _rank(before):
        return _rank(now) > _rank(before)
    old, new = _place(before), _place(now)
    return old is not None and new is not None and old[0] == new[0] and new[1] >= old[1]


def _place(error: ErrorSignature) -> tuple[str, int] | None:
    file, _, line = (error.location or "").rpartition(":")
    return (file, int(line)) if file and line.isdecimal() else None


def _rank(error: ErrorSignature) -> int:
    if error.family not in _RUNS:
        return _NOT_STARTED
    return _EARLY.get(error.error_type, _LATE)
