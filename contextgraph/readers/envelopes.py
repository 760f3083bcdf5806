"""Envelopes that agents and their tools put around issues, actions and observations."""

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from contextgraph.readers.format import integer
from contextgraph.system.intake import loads
from contextgraph.text import clean, regex

if TYPE_CHECKING:
    from typing import TypeAlias, TypeVar

    _T = TypeVar("_T")

_OPEN_FILE = "(Open file: "
_DIRECTORY = ")\n(Current directory: "
_SHELL = ")\nbash-$"
_FENCE = "\n```"
_PR_INTRODUCTION = "Consider the following PR description:\n"
_ISSUE_TAGS = ("issue", "issue_description", "github_issue", "task")
# No pattern looks across line ends for what may not come: a task of line ends alone is read, too.
_STATEMENT = regex(
    r"(?:^[ \t]*problem_statement:|^# Problem Statement\n|^<problem_statement>)"
    r"(?P<task>.+?)(?:</problem_statement>|\Z)",
    re.DOTALL | re.MULTILINE,
)
_TERMINUS = regex(
    r"^Task Description:\n(?P<task>.+?)(?:\n[ \t]*Current terminal state:|\Z)",
    re.DOTALL | re.MULTILINE,
)
_MINI_TASK = regex(
    r"\A\s*(?:Please solve this issue|Your task): (?P<task>.*?)"
    r"(?:\nYou can execute bash commands|\. Please reply with a single shell command|\Z)",
    re.DOTALL,
)
# What programs put into the turn of a person: the terminal, editors, hooks, other agents.
_PROGRAM_TAGS = (
    "system-reminder|system_reminder|command-name|command-message|command-contents|"
    "local-command-[a-z]+|bash-input|bash-stdout|bash-stderr|task-notification|teammate-message|"
    "channel|agent-message|cross-session-message|[a-z-]+-hook|hook_context|session_context|"
    "ide_selection|ide_opened_file|ide_diagnostics|environment_details|environment_context|user_instructions|turn_aborted|"
    "persisted-output|attached_files|additional_data|open_and_recently_viewed_files|user_info|"
    "system_notification|manually_attached_skills|git_status|project_layout|"
    "subagent_notification|agent_message_board_notification|user_shell_command|user_action|"
    "recommended_plugins|context_window_reminder|current_time_reminder"
)
_PROGRAM_TAG = regex(rf"<(?P<end>/?)(?P<name>{_PROGRAM_TAGS})(?:\s[^<>]*)?>")
# A person's words stand in these.
_WORDS_TAG = regex(r"</?(?:command-args|user_query|user_message|user_input|feedback)(?:\s[^<>]*)?>")
_PROGRAM_STARTS = (
    "Caveat: The messages ",
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem and produced a summary",
    "Base directory for this skill:",
    "System: Please continue",
)
# As in "PostToolUse:Edit hook feedback:".
_HOOK_START = regex(r"[A-Z][A-Za-z]+(?::\S+)? hook (?:feedback|error|context|blocking error)\b")
# A file that a person named with @, as Claude Code reads it for them.
_CALLED = regex(
    r"^(?:Called the \w+ tool with the following input:|Result of calling the \w+ tool:)",
    re.MULTILINE,
)
# Files that a person named with @, as Gemini CLI and Qwen Code send them, and their contexts.
_REFERENCED = regex(r"^--- (?:Content from referenced files|Context from: .*) ---$", re.MULTILINE)
_REFERENCES_END = regex(r"^--- End of (?:content|Context from: .*) ---$", re.MULTILINE)
INTERRUPTED = "[Request interrupted by user"
DENIED = "The user doesn't want to "
_TOOL_ERROR, _TOOL_ERROR_END = "<tool_use_error>", "</tool_use_error>"
# What Claude Code writes for a call that it did not make, as another beside it failed.
_CANCELLED = ("Sibling tool call errored", "Cancelled: ")
_DENIAL_MESSAGE = "the user said:"

# Where a line that opens or closes a block starts and ends, and the language it names.
_Fence: "TypeAlias" = tuple[int, int, str]


def said(message: str) -> str:
    """Return what a person wrote of *message*, which stands in the place of a person's turn.

    Programs add reminders, the output of commands and the context of editors, in tags. Of a slash
    command with arguments these stay with its name, and the name of one that stands for a prompt:
    Claude Code writes the message of such a command first.
    """
    if message.startswith(_PROGRAM_STARTS) or _HOOK_START.match(message):
        return ""
    if called := _CALLED.search(message):
        message = message[: called.start()].rstrip()
    if begun := _REFERENCED.search(message):
        ends = [end.end() for end in _REFERENCES_END.finditer(message)]
        message = (message[: begun.start()] + message[ends[-1] if ends else len(message) :]).strip()
    if "<" not in message:
        return message
    name, arguments = _tag("command-name", message), _tag("command-args", message)
    if name is not None and (arguments or is_command(message)):
        # What follows is its expansion.
        return f"{name} {arguments}" if arguments else name if _is_prompt(message) else ""
    return _WORDS_TAG.sub("", _without_tags(message)).strip()


def _tag(name: str, message: str) -> str | None:
    start, end = message.find(f"<{name}>"), message.find(f"</{name}>")
    return message[start + len(name) + 2 : end].strip() if 0 <= start < end else None


def _without_tags(message: str) -> str:
    """*message* without what stands in tags of programs; one that opens it may be cut off."""
    tags = list(_PROGRAM_TAG.finditer(message))
    last_end = {tag["name"]: tag.start() for tag in tags if tag["end"]}
    kept, at, opened = list[str](), 0, ""
    for tag in tags:
        if opened:
            if tag["end"] and tag["name"] == opened:
                at, opened = tag.end(), ""
        elif not tag["end"]:
            is_closed = last_end.get(tag["name"], -1) > tag.start()
            if is_closed or not message[: tag.start()].strip():
                kept.append(message[at : tag.start()])
                opened = tag["name"]
    return "".join([*kept, "" if opened else message[at:]])


def _is_prompt(message: str) -> bool:
    return message.startswith("<command-message>")


def is_command(message: str) -> bool:
    """Return True if *message* is a slash command, which its program expands."""
    return message.startswith("<command-name>") or _is_prompt(message)


def said_at_denial(result: str) -> str:
    """Return what a person said when they denied a call, from its *result*; else empty."""
    _, _, words = result.partition(_DENIAL_MESSAGE)
    return words.strip() if result.startswith(DENIED) else ""


class ToolError(Struct, frozen=True):
    """The *text* of a result that Claude Code wrote itself; *cancelled* for no call at all."""

    text: str
    cancelled: bool


def tool_error(result: str, *, is_shell: bool) -> ToolError | None:
    """Return what Claude Code says in *result* in place of a tool; None where the tool spoke.

    A shell command has its output where it ran; other tools say in the same way what they found.
    """
    if not result.startswith(_TOOL_ERROR):
        return None
    text = result.removeprefix(_TOOL_ERROR).removesuffix(_TOOL_ERROR_END)
    return ToolError(text, is_shell or text.startswith(_CANCELLED))


class ShellPrompt(Struct, frozen=True):
    """An observation without the shell prompt of SWE-agent, and what that prompt showed."""

    observation: str
    open_file: str | None
    cwd: str | None


def without_prompt(observation: str) -> ShellPrompt:
    """Take off ``(Open file: ..)``, ``(Current directory: ..)``, ``bash-$``; keep both names.

    They describe the state after the action whose observation this is. "n/a" is None.
    """
    whole = observation.rstrip()
    start = observation.rfind(_OPEN_FILE)
    middle = observation.find(_DIRECTORY, start)
    if start < 0 or middle < 0 or not whole.endswith(_SHELL):
        return ShellPrompt(observation, None, None)
    open_file = observation[start + len(_OPEN_FILE) : middle]
    cwd = whole[middle + len(_DIRECTORY) : -len(_SHELL)]
    return ShellPrompt(observation[:start].removesuffix("\n"), known(open_file), known(cwd))


def known(name: str | None) -> str | None:
    """Return *name*, or None for what SWE-agent writes when there is none."""
    return None if name in (None, "", "n/a") else name


def thought_and_command(reply: str) -> tuple[str, str]:
    """Return the text before the last fenced block of *reply*, and the text in it.

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
    """Return the command's first word, which names the tool in SWE-agent; empty for no command."""
    return next(iter(command.split(None, 1)), "")


def task_in(prompt: str) -> str | None:
    """Return the issue text in an agent's first message; None where it is not marked as such."""
    if "ISSUE:\n" in prompt:
        issue = prompt.partition("ISSUE:\n")[2]
        end = issue.rfind("\n\nINSTRUCTIONS:")
        return issue if end < 0 else issue[:end]
    if described := _within(prompt, "pr_description"):
        return described[1].replace(_PR_INTRODUCTION, "", 1).strip()
    if match := _MINI_TASK.search(prompt):
        return match["task"].strip()
    if issues := [*filter(None, (_within(prompt, tag) for tag in _ISSUE_TAGS))]:
        return min(issues)[1].strip()
    for pattern in (_STATEMENT, _TERMINUS):
        if match := pattern.search(prompt):
            return match["task"].strip()
    return None


def _within(prompt: str, tag: str) -> tuple[int, str] | None:
    """Where the first *tag* is, and the text up to the last one that closes it."""
    start, end = prompt.find(f"<{tag}>"), prompt.rfind(f"</{tag}>")
    return (start, prompt[start + len(tag) + 2 : end]) if 0 <= start < end else None


class Output(Struct, frozen=True):
    """The output of a command, and what the agent's tool wrote around it."""

    text: str
    exit_code: int | None = None
    cwd: str | None = None


_CODE = r"(?P<code>-?\d{1,10})"
# What tools write before and after the output of a command.
_HEADERS = (
    regex(r"\A(?:EXECUTION RESULT of \[[\w.-]+\]|OBSERVATION):\n"),
    regex(rf"\A(?:Error: )?Exit code:? {_CODE}(?:\n(?:Wall time: .*\n)?(?:Output:\n)?|\Z)"),
    regex(
        r"\A(?:Chunk ID: .*\n)?(?:Wall time: .*\n)?Process exited with code "
        rf"{_CODE}(?:\n|\Z)(?:Original token count: .*\n)?(?:Output:(?:\n|\Z))?"
    ),
    regex(
        r"\A(?:Chunk ID: .*\n)?(?:Wall time: .*\n)?Process running with session ID \d+\n"
        r"(?:Original token count: .*\n)?(?:Output:(?:\n|\Z))?"
    ),
    regex(rf"\A\s*<returncode>{_CODE}</returncode>\s*"),
    regex(rf"\ACommand (?:failed|exited) with (?:exit )?code:? {_CODE}\.?\n?"),
)
# Written by Codex before what a script printed, which may be the JSON of a command's result.
_SCRIPT = regex(r"\AScript [a-z]+(?: with cell ID \d+)?\n(?:Wall time.*\n)?Output:(?:\n+|\Z)")
_TRAILERS = (
    regex(
        r"\n?\[(?:The command completed|Command(?: -?\d+)? finished) with exit code "
        rf"{_CODE}\.?[^\]\n]{{0,80}}\]\s*\Z"
    ),
    regex(r"\n?\[(?:Jupyter )?[Cc]urrent working directory: (?P<cwd>[^\]\n]*)\]\s*\Z"),
    regex(
        r"\n?\[(?:Jupyter )?Python [Ii]nterpreter: [^\]\n]*\]"
        r"(?:\n\S{1,80}@[\w.-]{1,80}:(?P<cwd>[^\n#$]{1,300}?) ?[#$])?\s*\Z"
    ),
    regex(rf"\n?<(?:command )?(?:exited|completed) with exit code {_CODE}>\s*\Z"),
    regex(rf"\n?Exit Code: {_CODE}(?:\n(?:Signal|Background PIDs|Process Group PGID): .*)*\Z"),
)
_TRAILER_CHARS = 800
_TRAILER_ENDS = frozenset("]>#$0123456789")


def output_in(text: str) -> Output:
    """Return the output in a tool's answer, without its notes on exit code and folder."""
    text, cwd = clean(text), None
    if match := _SCRIPT.match(text):
        text = text[match.end() :]
    text, exit_code = _unwrapped(text)
    for header in _HEADERS:
        if match := header.match(text):
            exit_code = coalesce(exit_code, _code(match))
            text = text[match.end() :]
    trimmed = True
    while trimmed and text.rstrip()[-1:] in _TRAILER_ENDS:
        start = max(0, len(text) - _TRAILER_CHARS)
        trimmed = False
        for trailer in _TRAILERS:
            if match := trailer.search(text, start):
                exit_code, cwd = coalesce(exit_code, _code(match)), cwd or _group(match, "cwd")
                text, trimmed = text[: match.start()], True
    return Output(text, exit_code, cwd)


def _unwrapped(text: str) -> tuple[str, int | None]:
    """The text and exit code in ``{"output": …, "exit_code": …}``, as Codex logs it.

    Older versions have the exit code in ``metadata``.
    """
    if not text.startswith("{") or '"output"' not in text:
        return text, None
    try:
        value = loads(text)
    except ValueError:
        return text, None
    output, metadata = value.get("output"), value.get("metadata", value)
    code = integer(metadata, "exit_code") if isinstance(metadata, dict) else None
    if not isinstance(output, str) or (code is None and not text.startswith('{"output"')):
        return text, None
    return clean(output), code


def _code(match: re.Match[str]) -> int | None:
    code = _group(match, "code")
    return int(code) if code else None


def _group(match: re.Match[str], name: str) -> str | None:
    return match.groupdict().get(name)


def coalesce(value: "_T | None", other: "_T | None") -> "_T | None":
    """Return *value*, or *other* where that is None."""
    return other if value is None else value
