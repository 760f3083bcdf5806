"""Requests to a language model for the lessons that a change breaks, and the check of its answers.

An answer is never trusted: a lesson is broken where it was sent, and where the line that is said to
break it is one that the change adds.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Struct

from contextgraph.config import REQUEST_MARK
from contextgraph.knowledge.distil import list_in
from contextgraph.model import Note
from contextgraph.text import clip_tokens, digest, mask_secrets, neutral, stems

PROMPT = "check.v1"
MAX_LESSONS = 10
_CHANGE_TOKENS = 6_000


class Judge(NamedTuple):
    """A language model: its *name*, its *instructions*, and what it answers to a text."""

    name: str
    instructions: str
    ask: Callable[[str], str]


class Judged(NamedTuple):
    """A lesson that a change breaks, as a model says, by a *line* that it adds to a *file*."""

    lesson: Note
    file: str
    line: str


class _Row(Struct, frozen=True):
    lesson: Annotated[int, msgspec.Meta(ge=1)]
    line: str


def judged(
    judge: Judge, patch: str, added: Sequence[tuple[str, str]], lessons: Sequence[Note]
) -> Iterator[Judged]:
    """Yield the *lessons* that *judge* says the unified diff *patch* breaks, each once.

    *added* are its files and the lines that it adds. Raises `UnusableError` for an answer without a
    list.
    """
    change = clip_tokens(mask_secrets(patch), _CHANGE_TOKENS, at="end")
    sent = {*change.splitlines()}
    lines = {_spaced(line): (file, line) for file, line in added if f"+{line}" in sent}
    left = dict(enumerate(lessons[:MAX_LESSONS], start=1))
    for value in list_in(judge.ask(_request(judge.instructions, change, left.items()))):
        try:
            row = msgspec.convert(value, _Row)
        except msgspec.ValidationError:
            continue
        place = lines.get(_spaced(row.line)) or lines.get(_spaced(row.line.removeprefix("+")))
        if place and row.lesson in left and stems(row.line):
            yield Judged(left.pop(row.lesson), *place)


def request_name(text: str) -> str:
    """Return the name of the file of a request: it is another one where anything changed."""
    return f"check-{digest(text)}"


def _request(instructions: str, change: str, lessons: Iterable[tuple[int, Note]]) -> str:
    numbered = (f"{at}. {neutral(' '.join(one.content.split()))}" for at, one in lessons)
    listed = mask_secrets("\n".join(numbered))
    parts = (REQUEST_MARK, instructions.strip(), f"--- lessons\n{listed}", f"--- change\n{change}")
    return "\n\n".join(parts)


def _spaced(line: str) -> str:
    return " ".join(line.split())
