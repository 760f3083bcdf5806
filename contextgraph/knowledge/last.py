"""Where a person was: the last session of a repository, in a few lines."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import chain

from msgspec import Struct

from contextgraph.knowledge.sentences import stands_alone
from contextgraph.model import (
    ActionKind,
    Lesson,
    LessonStatus,
    Origin,
    Outcome,
    RawTrajectory,
    Session,
    SessionFilter,
    Trajectory,
)
from contextgraph.readers import resume_command
from contextgraph.store.memory_store import RunStore
from contextgraph.text import clean, clip, regex
from contextgraph.trace import read_steps
from contextgraph.trace.run import OpenErrors
from contextgraph.trace.steps import StepTrace, is_edit

_MAX_TEXT, _NEWEST = 300, 20
_FILES = 8
# Of lessons that nobody has accepted yet, what is more likely one than not.
_LIKELY = 0.5
_PARAGRAPH = regex(r"\n\s*\n")
_IN_A_LIST = regex(r"[-*#|>`]|\d+[.)] ")


class LastTests(Struct, frozen=True):
    """The last *command* that ran tests, whether it *passed*, and whether edits came after it."""

    command: str
    passed: bool
    edited_since: bool


class LastSession(Struct, frozen=True):
    """A session: its *task*, what was *changed*, how tests ended, and what is *open*.

    It took so many *seconds*, None where the log has no times. *steps* are its own, *all_steps*
    those of its sub-agents, too.

    *open* is the message of the error that still stood in the way, else why the *outcome* is not
    solved; *words* are those with which it ended, of the *speaker* ("user" or "agent"). *decided*
    are the statements in it that probably are lessons, most probable first. *resume* is the command
    that goes on with it in its client, empty where none on this machine keeps it.
    """

    id: str
    repo: str
    agent: str
    time: datetime
    steps: int
    seconds: float | None
    task: str
    changed: tuple[str, ...]
    tests: LastTests | None
    open: str
    words: str
    speaker: str
    decided: tuple[str, ...]
    resume: str
    outcome: Outcome
    reason: str
    is_guess: bool
    all_steps: int
    contributor: str = ""


def last_session(
    runs: RunStore, lessons: Sequence[Lesson], repo: str | None = None
) -> LastSession | None:
    """Return the newest session of *repo* (None: any), no sub-agent's; None without one.

    One of a named source only where none is the owner's.
    """
    wanted = (SessionFilter(repo, contributor=""), SessionFilter(repo))
    for session in chain.from_iterable(runs.sessions(one, _NEWEST) for one in wanted):
        run, raw = runs.trajectories([session.id]).get(session.id), runs.raw(session.id)
        if run and raw:
            return summary_of(session, run, raw, lessons)
    return None


def summary_of(
    session: Session, run: Trajectory, raw: RawTrajectory, lessons: Sequence[Lesson]
) -> LastSession:
    """Return what was done in *run* of a *session*, what is open, and which *lessons* it has."""
    steps = [*read_steps(raw)]
    errors = OpenErrors()
    for step in steps:
        errors.push(step)
    tested = [step for step in steps if step.reading.kind is ActionKind.TEST]
    still_open = errors.latest
    if still_open and tested and tested[-1].succeeded:
        # What passing tests followed does not stand in the way.
        still_open = still_open if still_open.last.index > tested[-1].index else None
    times = [step.timestamp for step in raw.steps if step.timestamp]
    words, speaker = _last_words(raw)
    decided = [
        lesson
        for lesson in lessons
        if is_decided(lesson)
        and lesson.origin is not Origin.COUNTED
        and run.id in {quote.run for quote in lesson.evidence}
        and not run.title.startswith(line_of(lesson.text))  # the task is said above
    ]
    decided.sort(
        key=lambda lesson: (
            lesson.status is not LessonStatus.ACTIVE, -lesson.probability, lesson.id,
        )
    )  # fmt: skip
    is_unsolved = run.ending.outcome is Outcome.FAILED
    reason = run.ending.reason if is_unsolved else ""
    return LastSession(
        id=run.id,
        repo=run.repo,
        agent=run.agent,
        time=run.seen_at,
        steps=len(raw.steps),
        seconds=(max(times) - min(times)).total_seconds() if len(times) > 1 else None,
        task=run.title,
        changed=_changed(run, steps),
        tests=_tests(tested, steps),
        open=line_of(still_open.error.message) if still_open else reason,
        words=words,
        speaker=speaker,
        decided=tuple(lesson.text for lesson in decided),
        resume=resume_command(run),
        outcome=run.ending.outcome,
        reason=run.ending.reason,
        is_guess=run.ending.is_guess,
        all_steps=session.all_steps,
        contributor=run.contributor,
    )


def _changed(run: Trajectory, steps: Sequence[StepTrace]) -> tuple[str, ...]:
    edited = (file for step in steps if is_edit(step) and step.succeeded for file in _edited(step))
    named = dict.fromkeys((*run.files, *edited))
    # Plans and notes of an agent lie elsewhere.
    inside = [file for file in named if not file.startswith(("/", "~", ".."))]
    return tuple(inside or named)[:_FILES]


def _edited(step: StepTrace) -> Sequence[str]:
    return tuple(step.reading.changed or step.reading.targets)


def _tests(tested: Sequence[StepTrace], steps: Sequence[StepTrace]) -> LastTests | None:
    if not tested:
        return None
    last = tested[-1]
    edited_since = any(step.succeeded and is_edit(step) for step in steps[last.index + 1 :])
    return LastTests(line_of(last.step.action.text), last.succeeded, edited_since)


def _last_words(raw: RawTrajectory) -> tuple[str, str]:
    """The end of what was written last, and who wrote it."""
    for step in reversed(raw.steps):
        if step.user_message:
            return line_of(step.user_message), "user"
        if step.thought.strip():
            parts = [part.strip() for part in _PARAGRAPH.split(step.thought) if part.strip()]
            said = [part for part in parts if not _IN_A_LIST.match(part)] or parts
            # A summary begins with what matters, and a question or what comes next is at the end.
            last = parts.index(said[-1] if said[-1] == parts[-1] else said[0])
            # What is announced stands after the colon.
            named = parts[last : last + 1 + parts[last].endswith(":")]
            return line_of(" ".join(named)), "agent"
    return "", ""


def is_decided(lesson: Lesson) -> bool:
    """Return whether a *lesson* is in force, or is proposed and probable."""
    is_likely = lesson.status is LessonStatus.PROPOSED and lesson.probability >= _LIKELY
    return lesson.status is LessonStatus.ACTIVE or is_likely


def to_review(lessons: Iterable[Lesson]) -> list[Lesson]:
    """Return those *lessons* that wait for a person: all proposed ones, the likeliest first.

    What cannot be understood without what was said before it comes last.
    """
    waiting = [one for one in lessons if one.status is LessonStatus.PROPOSED]
    return sorted(
        waiting,
        key=lambda one: (-one.sessions, not stands_alone(one.text), -one.probability, one.id),
    )


def line_of(text: str) -> str:
    """Return *text* on one line, without marks of agents' frames, cut at its end."""
    return clip(" ".join(clean(text).split()), _MAX_TEXT, at="end")
