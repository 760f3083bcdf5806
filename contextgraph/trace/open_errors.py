"""Errors of a run that are not cleared yet, followed step by step."""

from dataclasses import dataclass

from contextgraph.model import ErrorSignature, Family
from contextgraph.trace.goals import same_goal, same_run
from contextgraph.trace.steps import StepTrace

# Older errors than the newest 12 open ones are given up: what clears them later is chance.
_FOLLOWED = 12

# After another error took its place, so many steps may pass until the goal is reached in full.
PATIENCE = 8

# A slip of the hand that was not repeated for so many steps does not trouble the agent any more.
_SLIP_STEPS = 8
_SLIPS = frozenset({Family.EDIT_REJECTED, Family.SHELL, Family.TOOL_USAGE, Family.NOT_FOUND})

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
    """An error from its *first* to its *last* showing; *gone* is where another took its place."""

    error: ErrorSignature
    first: StepTrace
    last: StepTrace
    gone: StepTrace | None = None


@dataclass(frozen=True, slots=True)
class Cleared:
    """An open error that ended: the goal was reached at *by*, or (*moved*) failed further on."""

    opened: OpenError
    by: StepTrace
    moved: bool = False


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
        return cleared

    def finish(self) -> tuple[Cleared, ...]:
        """What the end of the run settles: errors that gave way to others."""
        return tuple(
            Cleared(opened, opened.gone, moved=True) for opened in self._open if opened.gone
        )

    @property
    def latest(self) -> OpenError | None:
        """The error met last that still stands in the way."""
        standing = (opened for opened in self._open if self._stands(opened))
        return max(standing, key=lambda opened: opened.last.index, default=None)

    def _settle(self, step: StepTrace) -> tuple[Cleared, ...]:
        if not self._open:
            return ()
        ends = [(opened, _ended(opened, step)) for opened in self._open]
        self._open = [opened for opened, end in ends if end is None]
        return tuple(end for _, end in ends if end is not None)

    def _meet(self, step: StepTrace, error: ErrorSignature) -> None:
        for opened in self._open:
            if _same_error(opened.error, error) and same_goal(opened.last, step):
                opened.last, opened.gone = step, None
                return
        for opened in self._open:
            if same_run(opened.last.reading, step.reading) and _further(opened.error, error):
                opened.gone = opened.gone or step
        self._open = [*self._open, OpenError(error, step, step)][-_FOLLOWED:]

    def _stands(self, opened: OpenError) -> bool:
        slipped = opened.error.family in _SLIPS and self._now - opened.last.index > _SLIP_STEPS
        return opened.gone is None and not slipped


def _ended(opened: OpenError, step: StepTrace) -> Cleared | None:
    if step.succeeded and same_goal(opened.last, step):
        return Cleared(opened, step)
    if opened.gone is not None and step.index - opened.gone.index > PATIENCE:
        return Cleared(opened, opened.gone, moved=True)
    return None


def _same_error(one: ErrorSignature, other: ErrorSignature) -> bool:
    """True for one message; a template is shared by errors that are cleared one by one."""
    return (one.family, one.error_type, one.message) == (
        other.family,
        other.error_type,
        other.message,
    )


def _further(before: ErrorSignature, now: ErrorSignature) -> bool:
    """True where *now* shows that the run got past *before*."""
    reached, earlier = _rank(now), _rank(before)
    if reached != earlier:
        return reached > earlier
    old_file, _, old_line = (before.location or "").rpartition(":")
    file, _, line = (now.location or "").rpartition(":")
    if file != old_file or not (line.isdecimal() and old_line.isdecimal()):
        return True
    return int(line) >= int(old_line)


def _rank(error: ErrorSignature) -> int:
    return _EARLY.get(error.error_type, _LATE)
