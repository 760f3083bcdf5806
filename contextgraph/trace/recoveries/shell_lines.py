"""A shell line as several deeds: what it changes before it runs what it is for."""

import re
from dataclasses import dataclass

from contextgraph.trace.actions.commands import read_command_line
from contextgraph.trace.actions.kinds import ActionKind
from contextgraph.trace.steps import StepTrace

_PART = re.compile(
    r"""((?:[^;&|'"\n\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*"|&(?!&)|\|(?!\|))+)|&&|\|\||.""", re.DOTALL
)
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)")
_DEEDS = frozenset({ActionKind.EDIT, ActionKind.CREATE, ActionKind.DELETE, ActionKind.INSTALL})
_RESTORING = re.compile(r"git\s+(?:checkout|restore|apply|stash|revert|reset)\b|export\s")
_SEVERAL = re.compile(r"[;&\n]")
_LONGEST = 4_000


@dataclass(frozen=True, slots=True)
class ShellLine:
    """The *deeds* of a line, which change files or the environment, and what it *runs* last."""

    deeds: tuple[str, ...]
    runs: str


def line_of(step: StepTrace) -> ShellLine:
    """What the shell line of *step* changes and runs."""
    text = step.step.action.text.strip()
    # The text of a window edit is no shell line, even where the edit is malformed.
    if _SEVERAL.search(text) and step.reading.verb != "edit":
        return shell_line(text)
    changes = step.reading.kind in _DEEDS or step.reading.changed or _RESTORING.match(text)
    return ShellLine((text,), "") if changes else ShellLine((), text)


def shell_line(text: str) -> ShellLine:
    """What the line *text* changes and runs, as typed."""
    parts = _parts(text[:_LONGEST])
    deeds = tuple(part for part in parts if _is_deed(part))
    others = [part for part in parts if part not in deeds and not part.startswith("cd ")]
    return ShellLine(deeds, others[-1] if others else "")


def _is_deed(part: str) -> bool:
    if _RESTORING.match(part):
        return True
    reading = read_command_line(part)
    return reading.kind in _DEEDS or bool(reading.changed)


def _parts(text: str) -> list[str]:
    """The commands of a line, heredocs kept whole with the command they feed."""
    parts: list[str] = []
    position, waiting = 0, ""
    while match := _PART.match(text, position):
        position = match.end()
        if match[1] and (part := match[1].strip()):
            parts.append(part)
            opening = _HEREDOC.search(part)
            waiting = opening[1] if opening else waiting
        elif waiting and match.group() == "\n":
            end = text.find(f"\n{waiting}", position - 1)
            end = len(text) if end < 0 else end + 1 + len(waiting)
            fed = max(at for at, part in enumerate(parts) if "<<" in part)
            parts[fed] = f"{parts[fed]}\n{text[position:end]}"
            position, waiting = end, ""
    return parts
