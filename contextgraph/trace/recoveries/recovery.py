"""Errors of a run that were cleared later, and what cleared them."""

from collections.abc import Sequence
from dataclasses import dataclass

from contextgraph.model import ErrorSignature
from contextgraph.trace.recoveries.open_errors import Cleared, OpenErrors
from contextgraph.trace.recoveries.remedy import remedy_of
from contextgraph.trace.steps import StepTrace


@dataclass(frozen=True, slots=True)
class Recovery:
    """An error and how it was cleared.

    *error_step* is where it was first met, *cleared_step* the first later step at which the same
    goal is reached. *actions* (at most 6 of 200 characters) bear on it, *what* is a sentence for
    another agent. *verified*: the answer of *cleared_step* shows the error gone. *workaround*: it
    was avoided rather than solved.
    """

    error_step: int
    cleared_step: int
    error: ErrorSignature
    actions: tuple[str, ...]
    what: str
    verified: bool
    workaround: bool


def recoveries_of(steps: Sequence[StepTrace]) -> tuple[Recovery, ...]:
    """The recoveries of a run, in the order of their errors."""
    errors = OpenErrors()
    cleared = [end for step in steps for end in errors.push(step)]
    cleared += errors.finish()
    cleared.sort(key=lambda end: (end.opened.first.index, end.by.index))
    return tuple(_recovery(end, steps) for end in cleared)


def _recovery(end: Cleared, steps: Sequence[StepTrace]) -> Recovery:
    remedy = remedy_of(end, steps)
    return Recovery(
        error_step=end.opened.first.index,
        cleared_step=end.by.index,
        error=end.opened.error,
        actions=remedy.actions,
        what=remedy.what,
        verified=end.verified,
        workaround=remedy.workaround,
    )
