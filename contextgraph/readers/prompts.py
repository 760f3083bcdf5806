"""What agents wrap around an issue, an action and an observation, and how to take it off."""

import re
from typing import NamedTuple

_TRAILER = re.compile(
    r"\n?\(Open file: (?P<open_file>[^\n]*)\)\n\(Current directory: (?P<cwd>[^\n]*)\)\nbash-\$\s*\Z"
)
_TRAILER_START = "(Open file: "
_FENCE = re.compile(r"^```(?P<language>\S*)[^\S\n]*$", re.MULTILINE)
_PR_DESCRIPTION = re.compile(r"<pr_description>(?P<task>.*)</pr_description>", re.DOTALL)
_PR_INTRODUCTION = re.compile(r"\s*Consider the following PR description:\n")
_MINI_TASK = re.compile(
    r"\A\s*(?:Please solve this issue|Your task): (?P<task>.*?)"
    r"(?:\n+You can execute bash commands|\. Please reply with a single shell command|\Z)",
    re.DOTALL,
)


class Prompt(NamedTuple):
    """An observation without the shell prompt of SWE-agent, and what that prompt said."""

    observation: str
    open_file: str | None
    cwd: str | None


def without_prompt(observation: str) -> Prompt:
    """Take off ``(Open file: ..)``, ``(Current directory: ..)``, ``bash-$``; keep both names.

    They describe the state after the action whose observation this is. "n/a" is None.
    """
    start = observation.rfind(_TRAILER_START)
    match = _TRAILER.match(observation, max(start - 1, 0)) if start >= 0 else None
    if match is None and start > 0:
        match = _TRAILER.match(observation, start)
    if match is None:
        return Prompt(observation, None, None)
    names = (known(match["open_file"]), known(match["cwd"]))
    return Prompt(observation[: match.start()], *names)


def known(name: str | None) -> str | None:
    """*name*, or None for what SWE-agent writes when there is none."""
    return None if name in (None, "", "n/a") else name


def thought_and_command(reply: str) -> tuple[str, str]:
    """The text before the last fenced block of *reply*, and the text in it.

    As SWE-agent reads it: a fence with a language opens a block within a block. Without a block
    all is thought; a block that the log cuts off reaches to the end.
    """
    block: tuple[int, int, int] | None = None
    opened: list[re.Match[str]] = []
    for fence in _FENCE.finditer(reply):
        if not opened or fence["language"]:
            opened.append(fence)
        else:
            start = opened.pop()
            block = (start.start(), start.end(), fence.start()) if not opened else block
    if block is None and opened:
        block = (opened[0].start(), opened[0].end(), len(reply))
    if block is None:
        return reply.strip(), ""
    return reply[: block[0]].strip(), reply[block[1] : block[2]].strip("\n").rstrip()


def first_word(command: str) -> str:
    """The command's first word, which names the tool in SWE-agent; empty for no command."""
    return command.split(None, 1)[0] if command.strip() else ""


def task_in(prompt: str) -> str | None:
    """The issue text in the first message of SWE-agent or mini-swe-agent; None if not marked."""
    if "ISSUE:\n" in prompt:
        issue = prompt.partition("ISSUE:\n")[2]
        end = issue.rfind("\n\nINSTRUCTIONS:")
        return issue if end < 0 else issue[:end]
    if marked := _PR_DESCRIPTION.search(prompt):
        return _PR_INTRODUCTION.sub("", marked["task"], count=1).strip()
    mini = _MINI_TASK.match(prompt)
    return mini["task"].strip() if mini else None
