"""The ending of a session, guessed by its last steps and by the last words of the person."""

from collections.abc import Sequence

from contextgraph.model import ActionKind, Basis, Ending, Outcome, RawTrajectory
from contextgraph.text import regex
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
    signs = (
        _merged(since),
        _stopped(steps[-1]),
        _reported(steps, edited),
        _tested(since, edited),
        _committed(since),
        _broken_off(steps),
        _ran(since, edited),
        _answered(steps[-1], edited),
    )
    return next(filter(None, signs), Ending())


def _edits(step: StepTrace) -> bool:
    return step.succeeded and is_edit(step)


def _merged(since: Sequence[StepTrace]) -> Ending | None:
    if any(step.succeeded and _MERGES.search(step.step.action.text) for step in since):
        return Ending(Outcome.SOLVED, Basis.MERGED, "its pull request was merged")
    return None


def _stopped(last: StepTrace) -> Ending | None:
    """The person stopped the last step or refused it, and no answer follows.

    A refused step that only says what is planned had put it before them; without a word
    of theirs they carried it out in another session, as clients offer.
    """
    step = last.step
    if not step.action.text or not (step.interrupted or step.denied):
        return None
    if step.denied and last.reading.kind is ActionKind.THINK and not step.user_message:
        return Ending(Outcome.SOLVED, Basis.PLAN, "it ended with a plan for the person")
    return Ending(Outcome.FAILED, Basis.STOPPED, "the person stopped the last step")


def _reported(steps: Sequence[StepTrace], edited: int) -> Ending | None:
    """The person's last message shows an error, and nothing was edited since."""
    said = next((one for one in reversed(steps) if one.step.user_message), None)
    if said is None or said.index < edited or not signature_of(said.step.user_message or ""):
        return None
    return Ending(Outcome.FAILED, Basis.WORDS, "the person's last message shows an error")


def _tested(since: Sequence[StepTrace], edited: int) -> Ending | None:
    last = next((one for one in reversed(since) if one.reading.kind is ActionKind.TEST), None)
    if last is None:
        return None
    if not last.succeeded:
        return Ending(Outcome.FAILED, Basis.TESTS, "the last test failed")
    if edited < 0:  # of what was there before
        return None
    return Ending(Outcome.SOLVED, Basis.TESTS, "tests passed after the last edit")


def _committed(since: Sequence[StepTrace]) -> Ending | None:
    if any(step.succeeded and _COMMITS.search(step.step.action.text) for step in since):
        return Ending(Outcome.SOLVED, Basis.COMMIT, "its change was committed")
    return None


def _broken_off(steps: Sequence[StepTrace]) -> Ending | None:
    """The last call met an error, whether or not a reply follows."""
    last = next((one for one in reversed(steps) if one.step.action.text), None)
    if last is None or last.error is None or last.reading.kind.is_passive:
        return None
    return Ending(Outcome.FAILED, Basis.ERROR, "the last call met an error")


def _ran(since: Sequence[StepTrace], edited: int) -> Ending | None:
    last = next((one for one in reversed(since) if one.reading.kind is ActionKind.RUN), None)
    if edited < 0 or last is None or not last.succeeded:
        return None
    return Ending(Outcome.SOLVED, Basis.RAN, "what was run after the last edit worked")


def _answered(last: StepTrace, edited: int) -> Ending | None:
    """The agent had the last word on its edits, or the person had, without a question.

    A talk in which nothing was edited shows no task that could be solved.
    """
    step = last.step
    if edited < 0 or step.action.text or not step.thought.strip():
        return None
    if not step.user_message:
        return Ending(Outcome.SOLVED, Basis.ANSWERED, "the agent finished, and nobody objected")
    if "?" in step.user_message:
        return None
    return Ending(Outcome.SOLVED, Basis.WORDS, "the person had the last word, and no question")
