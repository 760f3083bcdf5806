"""What agents wrap around an issue, an action and an observation, and how to take it off."""

import re
from typing import NamedTuple, TypeAlias

_OPEN_FILE = "(Open file: "
_DIRECTORY = "(Current directory: "
_SHELL_PROMPT = "bash-$"
_FENCE = "\n```"
_PR_DESCRIPTION = re.compile(r"<pr_description>(?P<task>.*)</pr_description>", re.DOTALL)
_PR_INTRODUCTION = re.compile(r"\s*Consider the following PR description:\n")
_MINI_TASK = re.compile(
    r"\A\s*(?:Please solve this issue|Your task): (?P<task>.*?)"
    r"(?:\n+You can execute bash commands|\. Please reply with a single shell command|\Z)",
    re.DOTALL,
)


# Where a line that opens or closes a block starts and ends, and the language it names.
_Fence: TypeAlias = tuple[int, int, str]


class Prompt(NamedTuple):
    """An observation without the shell prompt of SWE-agent, and what that prompt said."""

    observation: str
    open_file: str | None
    cwd: str | None


def without_prompt(observation: str) -> Prompt:
    """Take off ``(Open file: ..)``, ``(Current directory: ..)``, ``bash-$``; keep both names.

    They describe the state after the action whose observation this is. "n/a" is None.
    """
    start = observation.rfind(_OPEN_FILE)
    match observation[start:].split("\n") if start >= 0 else ():
        case [file, folder, shell] if _is_prompt(file, folder, shell):
            names = known(file[len(_OPEN_FILE) : -1]), known(folder[len(_DIRECTORY) : -1])
            return Prompt(observation[:start].removesuffix("\n"), *names)
    return Prompt(observation, None, None)


def _is_prompt(file: str, folder: str, shell: str) -> bool:
    inside = file.endswith(")") and folder.startswith(_DIRECTORY) and folder.endswith(")")
    return inside and shell.rstrip() == _SHELL_PROMPT


def known(name: str | None) -> str | None:
    """*name*, or None for what SWE-agent writes when there is none."""
    return None if name in (None, "", "n/a") else name


def thought_and_command(reply: str) -> tuple[str, str]:
    """The text before the last fenced block of *reply*, and the text in it.

    As SWE-agent reads it: a fence with a language opens a block within a block. Without a block
    all is thought; a block that the log cuts off reaches to the end.
    """
    block: tuple[_Fence, _Fence] | None = None
    opened: list[_Fence] = []
    for fence in _fences(reply):
        if not opened or fence[2]:
            opened.append(fence)
        else:
            first = opened.pop()
            block = block if opened else (first, fence)
    if block is None and opened:
        block = opened[0], (len(reply), len(reply), "")
    if block is None:
        return reply.strip(), ""
    (start, inside, _), (end, _, _) = block
    return reply[:start].strip(), reply[inside:end].strip("\n").rstrip()


def _fences(reply: str) -> list[_Fence]:
    """The lines of three backticks and at most one word."""
    # Searching by hand is three times as fast as a pattern, and this is the readers' inner loop.
    fences = []
    at = 0 if reply.startswith("```") else reply.find(_FENCE) + 1
    while reply.startswith("```", at):
        end = reply.find("\n", at)
        end = len(reply) if end < 0 else end
        language = reply[at + 3 : end].strip()
        if not language or len(language.split()) == 1:
            fences.append((at, end, language))
        at = reply.find(_FENCE, end) + 1 or len(reply)
    return fences


def first_word(command: str) -> str:
    """The command's first word, which names the tool in SWE-agent; empty for no command."""
    return next(iter(command.split(None, 1)), "")


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
