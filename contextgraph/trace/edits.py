"""Reads edits: the text that they insert, its place, and the text that they replace."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from contextgraph.trace.actions.kinds import ActionKind
from contextgraph.trace.actions.reading import NEW_TEXT, new_text
from contextgraph.trace.steps import StepTrace

_OLD_TEXT = ("old_str", "old_string", "old_text")
_VIEWS_BACK = 12
_DISTINCTIVE_CHARS = 6
_FILE_COMMANDS = frozenset({"mkdir", "touch", "cp", "mv", "ln", "install"})

Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Change:
    """Lines that an edit of *file* takes away and adds, in order, without those it keeps.

    Blank lines do not count.
    """

    file: str
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


def is_edit(step: StepTrace) -> bool:
    """True for a step that writes text into a file."""
    if step.reading.kind is ActionKind.CREATE:
        return step.reading.verb not in _FILE_COMMANDS
    return step.reading.kind is ActionKind.EDIT


def is_tool_edit(step: StepTrace) -> bool:
    """True for an edit by an editing tool, whose text is known, rather than by a shell line."""
    named = any(name in step.step.action.arguments for name in NEW_TEXT)
    return is_edit(step) and (named or step.reading.span is not None)


def edited_file(step: StepTrace) -> str:
    """The file that an edit writes into; empty where the log does not show it."""
    paths = step.reading.changed or step.reading.targets
    return paths[0] if paths else ""


def new_lines(step: StepTrace) -> tuple[str, ...]:
    """The text that an edit puts in, without line ends; empty for `sed` and its like."""
    return new_text(step.step.action, step.reading)


def change_of(steps: Sequence[StepTrace], at: int) -> Change:
    """What the edit at *steps[at]* changes, as far as the run shows it."""
    step = steps[at]
    new, old = new_lines(step), _old_lines(steps, at)
    common = {line.strip() for line in old} & {line.strip() for line in new} | {""}
    return Change(
        edited_file(step),
        tuple(line for line in old if line.strip() not in common),
        tuple(line for line in new if line.strip() not in common),
    )


def net_changes(changes: Sequence[Change]) -> list[Change]:
    """What several changes come to, one for each file: what is put in and taken out cancels."""
    files: dict[str, tuple[Counter[str], Counter[str]]] = {}
    for change in changes:
        removed, added = files.setdefault(change.file, (Counter(), Counter()))
        _move(change.removed, added, removed)
        _move(change.added, removed, added)
    net = (
        Change(file, tuple(removed.elements()), tuple(added.elements()))
        for file, (removed, added) in files.items()
    )
    return [change for change in net if change.removed or change.added]


def _move(lines: Sequence[str], source: Counter[str], target: Counter[str]) -> None:
    """Take *lines* out of *source*, and put those that it has not into *target*."""
    for line in lines:
        place = source if source[line] > 0 else target
        place[line] += 1 if place is target else -1


def similarity(text: Sequence[str], other: Sequence[str]) -> float:
    """The share of lines of the shorter of two texts that the longer has, from 0 to 1."""
    first, second = ({line.strip() for line in lines} - {""} for lines in (text, other))
    # Brackets, quotes and `else:` are found in any text.
    long, other_long = (
        {line for line in lines if len(line) >= _DISTINCTIVE_CHARS} for lines in (first, second)
    )
    if long and other_long:
        first, second = long, other_long
    smaller = min(len(first), len(second))
    return len(first & second) / smaller if smaller else 0.0


def _old_lines(steps: Sequence[StepTrace], at: int) -> tuple[str, ...]:
    step = steps[at]
    for name in _OLD_TEXT:
        if isinstance(value := step.step.action.arguments.get(name), str):
            return tuple(value.splitlines())
    if step.reading.span is None:
        return ()
    file = edited_file(step)
    for before in reversed(steps[max(0, at - _VIEWS_BACK) : at]):
        shown = before.step.observation or ""
        # A refused edit shows the file as it would have been.
        if before.error is None and file and _shows(shown, file):
            first, last = step.reading.span
            lines = numbered_lines(shown, shown.find(f"\n{first}:"), first, last)
            return lines if len(lines) == last - first + 1 else ()
    return ()


def _shows(observation: str, file: str) -> bool:
    start = observation.find("[File: ")
    if start < 0:
        return False
    header = observation[start : observation.find("\n", start)]
    return f"/{file} (" in header or f" {file} (" in header


def numbered_lines(view: str, at: int, first: int, last: int) -> tuple[str, ...]:
    """Lines *first* to *last* of a numbered *view* after the line end *at* (-1: none of them).

    Up to the first one that it does not show.
    """
    lines = []
    rest = view[at + 1 :] if at >= 0 else ""
    for number, line in enumerate(rest.split("\n", max(0, last - first + 1)), start=first):
        if number > last or not line.startswith(f"{number}:"):
            break
        lines.append(line.removeprefix(f"{number}:"))
    return tuple(lines)
