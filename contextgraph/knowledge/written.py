"""Finds what agents wrote down as decided: rules in files for agents, and decision records.

People read and keep these files, so that no model is needed: `CLAUDE.md`, `AGENTS.md`, rules,
an agent's own memory files, and lists of decisions. Each line that an edit puts in stands alone.
"""

from collections.abc import Iterator
from datetime import datetime

from contextgraph.knowledge.extraction import files_in
from contextgraph.knowledge.sentences import is_whole
from contextgraph.model import (
    About,
    LessonFacts,
    LessonKind,
    Origin,
    Quotation,
    RawTrajectory,
    Step,
)
from contextgraph.text import gives_instructions, regex
from contextgraph.trace.actions import new_text, read_action

# A file that agents read at their start, and one that lists decisions.
_RULES = regex(
    r"(?i:(?:^|/)(?:claude|agents?|gemini|memory|conventions)(?:\.local)?\.md$"
    r"|(?:^|/)(?:rules|memory)/[^/]+\.mdc?$)"
)
_DECISIONS = regex(r"(?i:(?:^|/)(?:[\w-]*decisions?[\w-]*\.md|(?:adrs?|decisions)/[^/]+\.md)$)")
_MENTIONED = regex(r"(?i:\.mdc?\b)")
# A point of a list or a sentence in a line of its own; "D9:" and "**D9**" name a decision.
_POINT = regex(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\[[ x]\]\s+)?(?P<text>\S.*)$")
_NUMBERED = regex(r"^[\s*_#|]*\[?[A-Z]{1,5}-?\d{1,4}[\s*_:.)\]|–—-]+(?P<text>\S.*)$")
_MARKS = regex(r"\*\*|__|^#+\s+")
_FEWEST_WORDS, _MOST_CHARACTERS = 5, 320


def written_in(run: RawTrajectory, run_id: str, now: datetime) -> Iterator[tuple[str, LessonFacts]]:
    """Yield the lessons that *run*, which has the id *run_id*, wrote into such files.

    *now* is the time of steps without one.
    """
    for step in run.steps:
        if _MENTIONED.search(f"{step.action.text} {step.action.arguments}") and not step.is_error:
            yield from _written_at(step, run.instance_id, run_id, step.timestamp or now)


def _written_at(
    step: Step, session: str, run_id: str, at: datetime
) -> Iterator[tuple[str, LessonFacts]]:
    reading = read_action(step.action, step.cwd, None)
    for path in reading.changed:
        if _RULES.search(path):
            kind = LessonKind.RULE
        elif _DECISIONS.search(path):
            kind = LessonKind.DECISION
        else:
            continue
        for line in new_text(step.action, reading):
            if text := _lesson_in(line):
                said = Quotation(line.strip(), run_id, session, step.index, at, path)
                about = About(paths=files_in(text))
                yield text, LessonFacts(kind, Origin.WRITTEN, about, (said,), is_active=True)


def _lesson_in(line: str) -> str:
    """Return the lesson that a *line* holds; empty for a heading, a fragment, an instruction."""
    point = _POINT.match(line)
    numbered = _NUMBERED.match(point["text"] if point else line)
    found = numbered or point
    text = _MARKS.sub("", found["text"]).strip() if found else ""
    is_long = len(text.split()) >= _FEWEST_WORDS and len(text) <= _MOST_CHARACTERS
    return text if is_long and is_whole(text) and not gives_instructions(text) else ""
