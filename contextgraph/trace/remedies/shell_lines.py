"""A shell line in parts: what it changes before it runs what it is for."""

import re
from dataclasses import dataclass

from contextgraph.trace.actions.commands import read_command_line
from contextgraph.trace.actions.kinds import ActionKind
from contextgraph.trace.steps import StepTrace

_PART = re.compile(
    r"""((?:[^;&|'"\n\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*"|&(?!&)|\|(?!\|))+)|&&|\|\||.""", re.DOTALL
)
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)")
_CHANGING = frozenset({ActionKind.EDIT, ActionKind.CREATE, ActionKind.DELETE, ActionKind.INSTALL})
_RESTORING = re.compile(r"git\s+(?:checkout|restore|apply|stash|revert|reset)\b|export\s")
# What changes the state in which a command runs again: services, builds, checkouts, and scripts of
# the project; not tests, looking around, nor a script that the agent wrote to find out something.
_STATEFUL = re.compile(
    r"""(?:sudo\s+)?(?:
        (?:docker|podman)(?:[\s-]compose)?\s(?:[^\n]*\s)?(?:up|start|restart|run|build)\b
        | (?:make|ninja|cmake|meson)\b(?![^\n]*(?:test|check|lint|help|-n\b))
        | (?:npm|pnpm|yarn)\s(?:run\s)?(?:build|generate|compile|codegen|prepare|setup)\b
        | (?:cargo|go)\s(?:build|generate|mod\s+(?:tidy|download|vendor))\b
        | (?:mvn|\./mvnw|gradle|\./gradlew)\s[^\n]*\b(?:package|compile|install|assemble|build)\b
        | service\s+\S+\s+(?:re)?start\b | systemctl\s+(?:re)?start\b
        | git\s+(?:switch|pull|merge|cherry-pick|submodule\s+update|lfs\s+pull)\b
        | python[\d.]*\s+(?:\S*/)?manage\.py\s+(?:migrate|makemigrations|loaddata|collectstatic)\b
        | python[\d.]*\s+(?:\S*/)?setup\.py\s+build
        | alembic\s+upgrade\b | (?:gunzip|unzip|tar\s+-?\w*x|p?kill(?:all)?)\b
        | (?:(?:ba|z)?sh\s+|\./)(?!\S*test)[\w./-]+\.sh\b
        | python[\d.]*\s+(?!/)(?!\S*(?:test|repro|debug|check))(?:[\w.-]+/)+[\w-]+\.py\b
    )""",
    re.VERBOSE,
)
_SEVERAL = re.compile(r"[;&\n]")
_LONGEST = 4_000


@dataclass(frozen=True, slots=True)
class ShellLine:
    """The *changes* a line makes to files or the environment, and what it *runs* last."""

    changes: tuple[str, ...]
    runs: str


def line_of(step: StepTrace) -> ShellLine:
    """What the shell line of *step* changes and runs."""
    text = step.step.action.text.strip()
    # The text of a window edit is no shell line, even where the edit is malformed.
    if _SEVERAL.search(text) and step.reading.verb != "edit":
        return shell_line(text)
    is_change = step.reading.kind in _CHANGING or step.reading.changed or _RESTORING.match(text)
    return ShellLine((text,), "") if is_change else ShellLine((), text)


def stateful_part(step: StepTrace) -> str:
    """The last command of the line of *step* that changes what later commands meet, or ""."""
    parts = _parts(step.step.action.text.strip()[:_LONGEST])
    return next((part for part in reversed(parts) if _STATEFUL.match(part)), "")


def run_of(step: StepTrace) -> str:
    """What the line of *step* runs, without what it changes first."""
    return line_of(step).runs or step.step.action.text


def shell_line(text: str) -> ShellLine:
    """What the line *text* changes and runs, as typed."""
    parts = _parts(text[:_LONGEST])
    changes = tuple(part for part in parts if _is_change(part))
    others = [part for part in parts if part not in changes and not part.startswith("cd ")]
    return ShellLine(changes, others[-1] if others else "")


def _is_change(part: str) -> bool:
    if _RESTORING.match(part):
        return True
    reading = read_command_line(part)
    return reading.kind in _CHANGING or bool(reading.changed)


def _parts(text: str) -> list[str]:
    """The commands of a line, each heredoc with its command."""
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
