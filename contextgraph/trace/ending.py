"""The ending of a session, guessed by its last steps and by the last words of the person."""

from collections.abc import Sequence

from contextgraph.model import ActionKind, Basis, Ending, Outcome, RawTrajectory
from contextgraph.text import regex
from contextgraph.trace.run import OpenErrors
from contextgraph.trace.signature import signature_of
from contextgraph.trace.steps import StepTrace, is_edit

_MERGES = regex(r"\b(?:gh pr|glab mr) merge\b")
_COMMITS = regex(r"\bgit\b[^|;&]*? (?:commit|push)\b")


def ending_of(raw: RawTrajectory, steps: Sequence[StepTrace]) -> Ending:
    """Return the ending that the steps of *raw* suggest, by the strongest sign among them.

    A sign before the last edit says nothing of what was edited then.
    """
    if not steps:
        return Ending()
    edited = max((step.index for step in steps if _edits(step)), default=-1)
    since = [step for step in steps if step.index > edited]
    for guess in (_merged(since), _stopped(steps[-1]), _said(steps, edited), _tested(since)):
        if guess:
            return guess
    return _committed(since) or _standing(steps) or _ran(since, edited) or _answered(steps[-1])


def _edits(step: StepTrace) -> bool:
    return step.succeeded and is_edit(step)


def _merged(since: Sequence[StepTrace]) -> Ending | None:
    if any(step.succeeded and _MERGES.search(step.step.action.text) for step in since):
        return Ending(Outcome.SOLVED, Basis.MERGED, "its pull request was merged")
    return None


def _stopped(last: StepTrace) -> Ending | None:
    """The person stopped the last step or refused it, and no answer follows."""
    step = last.step
    if not step.action.text or not (step.interrupted or step.denied):
        return None
    return Ending(Outcome.FAILED, Basis.STOPPED, "the person stopped the last step")


def _said(steps: Sequence[StepTrace], edited: int) -> Ending | None:
    """The person's last message shows an error, and nothing was edited since."""
    said = next((one for one in reversed(steps) if one.step.user_message), None)
    if said is None or said.index < edited or not signature_of(said.step.user_message or ""):
        return None
    return Ending(Outcome.FAILED, Basis.WORDS, "the person's last message shows an error")


def _tested(since: Sequence[StepTrace]) -> Ending | None:
    last = next((one for one in reversed(since) if one.reading.kind is ActionKind.TEST), None)
    if last is None:
        return None
    if last.succeeded:
        return Ending(Outcome.SOLVED, Basis.TESTS, "tests passed after the last edit")
    return Ending(Outcome.FAILED, Basis.TESTS, "the last test failed")


def _committed(since: Sequence[StepTrace]) -> Ending | None:
    if any(step.succeeded and _COMMITS.search(step.step.action.text) for step in since):
        return Ending(Outcome.SOLVED, Basis.COMMIT, "its change was committed")
    return None


def _standing(steps: Sequence[StepTrace]) -> Ending | None:
    errors = OpenErrors()
    for step in steps:
        errors.push(step)
    if errors.latest is None:
        return None
    return Ending(Outcome.FAILED, Basis.ERROR, "an error still stood at the end")


def _ran(since: Sequence[StepTrace], edited: int) -> Ending | None:
    last = next((one for one in reversed(since) if one.reading.kind is ActionKind.RUN), None)
    if edited < 0 or last is None or not last.succeeded:
        return None
    return Ending(Outcome.SOLVED, Basis.RAN, "what was run after the last edit worked")


def _answered(last: StepTrace) -> Ending:
    """The agent had the last word."""
    step = last.step
    if step.action.text or not step.thought.strip() or step.user_message:
        return Ending()
    return Ending(Outcome.SOLVED, Basis.ANSWERED, "the agent finished, and nobody objected")
