"""What steps did and what came of it, in clauses."""

import re
from collections.abc import Sequence
from itertools import groupby

from contextgraph.trace import (
    ActionKind,
    StepTrace,
    Trace,
    change_of,
    change_said,
    is_edit,
    net_changes,
)

ACTION_CHARS = 160
NAMED = 3
_COMMAND_CHARS = 80
_SHOWN_CHARS = 100
_MESSAGE_CHARS = 120
_FOUND = re.compile(r"Found (\d+) matches")
_NOTHING = ("No matches found", "Your command ran successfully and did not produce any output.")
_RULE = re.compile(r"^[=_ -]+|[=_ -]+$")

_LOOKING = frozenset({ActionKind.VIEW, ActionKind.SEARCH, ActionKind.LIST})
_WRITING = frozenset({ActionKind.EDIT, ActionKind.CREATE})


def action_line(step: StepTrace) -> str:
    """The action of *step* in one line of at most 160 characters."""
    lines = step.step.action.text.strip().splitlines() or [""]
    more = " …" if len(lines) > 1 else ""
    return cut(" ".join(lines[0].split()), ACTION_CHARS - len(more)) + more


def cut(text: str, limit: int) -> str:
    """*text* in at most *limit* characters, the end left out where it is longer."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def deeds(read: Trace, start: int, end: int) -> list[str]:
    """What the steps *start* to *end* (inclusive) of a run did, in order."""
    clauses: list[str] = []
    for manner, group in groupby(read.steps[start : end + 1], key=_manner):
        steps = list(group)
        if manner == "look":
            clauses += _looks(steps)
        elif manner == "write":
            clauses += changes(read, steps)
        else:
            clauses += [_ran(step) for step in steps]
    return list(dict.fromkeys(clause for clause in clauses if clause))


def changes(read: Trace, steps: Sequence[StepTrace]) -> list[str]:
    """What the edits among *steps* come to, and the last refusal."""
    first = read.steps[0].index if read.steps else 0
    accepted = [step for step in steps if step.succeeded]
    made = [change_of(read.steps, step.index - first) for step in accepted if is_edit(step)]
    told = [change_said(change) for change in net_changes(made)]
    if not told and accepted:
        told = [_touched(accepted)]
    if refused := [step for step in steps if step.error]:
        told.append(f"{_of(refused[-1])} was refused: {failure(refused[-1])}")
    return told or [f"{_of(step)} {outcome(step)}" for step in steps[-1:]]


def _touched(steps: Sequence[StepTrace]) -> str:
    """What edits that do not show their text were done to."""
    if not (paths := _paths(steps)):
        return action_line(steps[-1])
    made = all(step.reading.kind is ActionKind.CREATE for step in steps)
    return f"{'created' if made else 'edited'} {some(paths)}"


def failure(step: StepTrace) -> str:
    """The error of *step* with its message; empty where there is none."""
    if step.error is None:
        return ""
    message = cut(step.error.message, _MESSAGE_CHARS)
    return f"{step.error.error_type}: {message}" if message else step.error.error_type


def outcome(step: StepTrace) -> str:
    """What came of a command."""
    if step.error is not None:
        return f"failed with {failure(step)}"
    if step.step.observation is None:
        return "was not answered"
    shown = step.step.observation.strip()
    if not shown or shown.startswith(_NOTHING):
        return "ran without a word"
    last = shown.splitlines()[-1]
    return f"ended with `{cut(_RULE.sub('', last) or last, _SHOWN_CHARS)}`"


def some(names: Sequence[str]) -> str:
    """The first three of *names*, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _manner(step: StepTrace) -> str:
    if step.reading.kind in _LOOKING:
        return "look"
    return "write" if step.reading.kind in _WRITING else "run"


def _looks(steps: Sequence[StepTrace]) -> list[str]:
    failed = [f"{_of(step)} {outcome(step)}" for step in steps if step.error]
    seen = [step for step in steps if not step.error]
    searches = [step for step in seen if step.reading.kind is ActionKind.SEARCH]
    told = list(dict.fromkeys(f"{_of(step)} ({_found(step)})" for step in searches))
    clauses = [f"searched with {some(told)}"] if told else []
    if files := _paths([step for step in seen if step.reading.kind is ActionKind.VIEW]):
        clauses.append(f"read {some(files)}")
    elif seen and not told:
        clauses.append(f"looked around with {_of(seen[0])}")
    return failed[:NAMED] + clauses


def _found(step: StepTrace) -> str:
    shown = (step.step.observation or "").strip()
    if not shown or shown.startswith(_NOTHING):
        return "nothing"
    match = _FOUND.match(shown)
    count = int(match[1]) if match else len(shown.splitlines())
    return "1 hit" if count == 1 else f"{count} hits"


def _ran(step: StepTrace) -> str:
    if step.reading.kind is ActionKind.SUBMIT:
        return "submitted"
    if step.reading.kind is ActionKind.DELETE and step.succeeded and (paths := _paths([step])):
        return f"deleted {some(paths)}"
    if step.reading.kind is ActionKind.THINK:
        return ""
    if step.reading.kind is ActionKind.VCS and step.succeeded:
        return f"used {_of(step)}"
    return f"{_of(step)} {outcome(step)}"


def _of(step: StepTrace) -> str:
    if is_edit(step) and (paths := _paths([step])):
        return f"an edit of {paths[0]}"
    typed = action_line(step) if step.reading.kind in _LOOKING else step.reading.command
    return f"`{cut(' '.join((typed or action_line(step)).split()), _COMMAND_CHARS)}`"


def _paths(steps: Sequence[StepTrace]) -> list[str]:
    return list(dict.fromkeys(path for step in steps for path in step.reading.targets))
