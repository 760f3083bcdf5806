"""Rules that a turn of an agent broke: checks that it did not run, commands that are ruled out."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from contextgraph.model import Lesson
from contextgraph.text import gives_instructions
from contextgraph.trace.checks import orders_in, shell_line, unchecked
from contextgraph.trace.ordered import forbids, restricts
from contextgraph.trace.steps import StepTrace

_FILES = 3


class Broken(NamedTuple):
    """A *lesson* that a turn broke: the *command* that it rules out, or *files* not checked."""

    lesson: Lesson
    command: str = ""
    files: tuple[str, ...] = ()

    def __str__(self) -> str:
        said = f'"{" ".join(self.lesson.text.split())}" ({self.lesson.time:%Y-%m-%d})'
        if self.command:
            return f"this turn ran `{self.command}`, although {said}"
        more = f" and {len(self.files) - _FILES} more" if len(self.files) > _FILES else ""
        return f"not run since {', '.join(self.files[:_FILES])}{more} changed: {said}"


def may_be_broken(lesson: Lesson) -> bool:
    """Return False for a lesson that `broken_by` never yields."""
    can_be = restricts(lesson.text) or any(orders_in(lesson.text))
    return can_be and not gives_instructions(lesson.text)


def broken_by(turn: Sequence[StepTrace], lessons: Iterable[Lesson]) -> Iterator[Broken]:
    """Yield the *lessons*, of which each `may_be_broken`, that the steps of *turn* broke."""
    lines = [*filter(None, map(shell_line, turn))]
    for lesson in lessons:
        ruled_out = (line for line in lines if forbids(lesson.text, line, lesson.repo))
        if line := next(ruled_out, ""):
            yield Broken(lesson, command=" ".join(line.split())[:80])
            continue
        files = (unchecked(turn, order) for order in orders_in(lesson.text))
        if missing := next(filter(None, files), ()):
            yield Broken(lesson, files=missing)
