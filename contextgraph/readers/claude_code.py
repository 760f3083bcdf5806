"""Sessions of Claude Code: the JSONL files it keeps, and what ``--output-format stream-json`` logs.

A session is a file of lines. One message of the model is spread over several lines, one block
each; lines of sub-agents carry ``isSidechain`` and are runs of their own.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from contextgraph.errors import ReadError
from contextgraph.model import RawTrajectory
from contextgraph.readers.conversation import (
    Call,
    Prompt,
    Result,
    Thought,
    Turn,
    UserMessage,
    each_row,
    finished_run,
    time_in,
)
from contextgraph.readers.envelopes import DENIED, INTERRUPTED, said_at_denial
from contextgraph.readers.fields import Row, content_text, row_at, rows_at, text
from contextgraph.readers.format import EmptyRunError, Format, Place, is_list_of
from contextgraph.text import may_be_fenced

NAME = "claude-code"

_MESSAGES = ("user", "assistant")
_OTHER_LINES = frozenset(
    {
        "summary",
        "file-history-snapshot",
        "queue-operation",
        "system",
        "result",
        "progress",
        "attachment",
    }
)
_LEARNED = (*_MESSAGES, "system", "result", "attachment")
_MARKS = ("sessionId", "session_id", "leafUuid", "messageId", "parentUuid")
# Claude Code's own words to the model at the end of what a tool returned.
_REMINDER, _REMINDER_END = "<system-reminder>", "</system-reminder>"


def is_line(value: object) -> bool:
    """Whether *value* is a line of a session."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    message = value.get("message")
    if kind in _MESSAGES and isinstance(message, dict):
        return any(mark in value for mark in _MARKS) and "parts" not in message
    if not isinstance(kind, str) or kind not in _OTHER_LINES:
        return False
    return any(mark in value for mark in _MARKS) and "payload" not in value


@dataclass(slots=True)
class _Session:
    """What the lines of one agent have in common; *agent* is empty for the main one."""

    id: str
    agent: str = ""
    turns: list[Turn] = field(default_factory=list)
    model: str = ""
    folder: str = ""
    ending: str = ""

    def add(self, row: Row, turns: Sequence[Turn]) -> None:
        """Take in a line and its *turns*."""
        self.turns += turns
        model = text(row_at(row, "message"), "model")
        self.model = self.model or ("" if model == "<synthetic>" else model)
        self.folder = self.folder or text(row, "cwd")
        if row.get("type") == "result":
            self.ending = text(row, "subtype")


def runs(lines: Sequence[Any], place: Place) -> Iterator[RawTrajectory | ReadError]:
    """The run of each session, and of each of its sub-agents, in the order in which they begin.

    Lines of one message, and results, may come in any order; a repeated line counts once. A line
    of another shape is an error, and the others are read.
    """
    sessions: dict[tuple[str, str], _Session] = {}
    roots: dict[str, str] = {}
    seen: set[str] = set()

    def take(row: Row) -> None:
        if row.get("type") in _LEARNED and not _is_repeated(row, seen):
            turns = list(_turns(row))
            key = (text(row, "sessionId") or text(row, "session_id"), _agent(row, roots))
            sessions.setdefault(key, _Session(*key)).add(row, turns)

    yield from each_row(lines, take, f"{NAME} line", place)
    begun = [session for session in sessions.values() if session.turns]
    if not begun:
        yield EmptyRunError(place.file, "", "a session without messages, nothing to learn")
    yield from _with_parents(begun, place)


def _is_repeated(row: Row, seen: set[str]) -> bool:
    id_ = text(row, "uuid")
    repeated = id_ in seen
    if id_:
        seen.add(id_)
    return repeated


def _agent(row: Row, roots: dict[str, str]) -> str:
    """The sub-agent that wrote *row*; where it has no name, the first line of its chain."""
    if parent_call := row.get("parent_tool_use_id"):
        return str(parent_call)
    if not row.get("isSidechain"):
        return ""
    id_, parent = text(row, "uuid"), text(row, "parentUuid")
    roots[id_] = roots.get(parent, id_)
    return text(row, "agentId") or roots[id_]


def _with_parents(sessions: Iterable[_Session], place: Place) -> list[RawTrajectory | ReadError]:
    """The runs of *sessions*; sub-agents work on the instance and repository of their session."""
    results, main = list[RawTrajectory | ReadError](), dict[str, RawTrajectory]()
    for session in sessions:
        run = _run(session, place)
        if isinstance(run, RawTrajectory):
            parent = main.setdefault(session.id, run)
            run = replace(run, instance_id=parent.instance_id, repo=parent.repo)
        results.append(run)
    return results


def _run(session: _Session, place: Place) -> RawTrajectory | ReadError:
    facts = {
        "agent": f"{NAME}/subagent" if session.agent else NAME,
        "model": session.model,
        "folder": session.folder,
        "session": session.id,
        "exit_status": session.ending,
    }
    try:
        return finished_run(NAME, session.turns, facts, place)
    except ReadError as error:
        return error


def _turns(row: Row) -> Iterator[Turn]:
    if row.get("isMeta") or row.get("isCompactSummary") or row.get("isApiErrorMessage"):
        return
    message = row_at(row, "message")
    if row.get("type") == "assistant":
        yield from _reply(row, message)
    elif row.get("type") == "user":
        content = message.get("content")
        if isinstance(content, list):
            for block in rows_at(message, "content"):
                yield from _answer(row, block)
        else:
            yield from _user_turns(text(message, "content"), time_in(row))
    elif row.get("type") == "attachment":
        yield from _hook_context(row_at(row, "attachment"))


def _hook_context(attachment: Row) -> Iterator[Prompt]:
    """What a hook added: stripped before learning; its ids say what the run was shown."""
    content = attachment.get("content")
    if attachment.get("type") == "hook_additional_context" and isinstance(content, list):
        parts = (part for part in content if isinstance(part, str))
        yield from map(Prompt, filter(may_be_fenced, parts))


def _reply(row: Row, message: Row) -> Iterator[Turn]:
    time = time_in(row)
    if isinstance(message.get("content"), str):
        yield Thought(text(message, "content"), time)
        return
    for block in rows_at(message, "content"):
        match block.get("type"):
            case "thinking" | "text":
                yield Thought(text(block, "thinking") or text(block, "text"), time)
            case "tool_use":
                yield Call(text(block, "name"), row_at(block, "input"), text(block, "id"), time)


def _answer(row: Row, block: Row) -> Iterator[Turn]:
    if block.get("type") == "text":
        yield from _user_turns(text(block, "text"), time_in(row))
    elif block.get("type") == "tool_result":
        yield from _result(row, block)


def _user_turns(words: str, time: datetime | None) -> Iterator[Turn]:
    if words.startswith(INTERRUPTED):
        yield UserMessage("", interrupted=True)
    else:
        yield UserMessage(words, time=time)


def _without_reminders(shown: str) -> str:
    """*shown* up to the reminders that it ends with."""
    *parts, rest = shown.split(_REMINDER_END)
    if not parts or rest.strip() or _REMINDER not in parts[-1]:
        return shown
    while parts and _REMINDER in parts[-1]:
        before, _, _ = parts.pop().partition(_REMINDER)
        if before.strip():
            return _REMINDER_END.join((*parts, before)).rstrip()
    return _REMINDER_END.join((*parts, "")).rstrip()


def _result(row: Row, block: Row) -> Iterator[Turn]:
    shown = _without_reminders(content_text(block))
    details = row.get("toolUseResult")
    facts = details if isinstance(details, dict) else {}
    is_error = block.get("is_error")
    denied = is_error is True and shown.startswith(DENIED)
    yield Result(
        shown.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>"),
        text(block, "tool_use_id"),
        exit_code=_exit_code(facts, is_error),
        is_error=is_error if isinstance(is_error, bool) else None,
        cwd=text(row, "cwd") or None,
        denied=denied,
        interrupted=facts.get("interrupted") is True,
    )
    if denied and (words := said_at_denial(shown)):
        yield UserMessage(words, time=time_in(row))


def _exit_code(facts: Row, is_error: object) -> int | None:
    """0 for a shell command without error, as Claude Code marks all others as errors."""
    code = facts.get("exitCode")
    if isinstance(code, int) and not isinstance(code, bool):
        return code
    is_shell = "stdout" in facts and "returnCodeInterpretation" not in facts
    ended = not facts.get("interrupted") and "backgroundTaskId" not in facts
    return 0 if is_shell and ended and is_error is False else None


FORMAT = Format(
    NAME,
    "lines with sessionId and type user, assistant or summary, or of --output-format stream-json",
    "thoughts, tool calls with results, error flags, exit codes, times, directory, model; user "
    "messages, interruptions and denied calls; sub-agents as runs of their own",
    partial(is_list_of, is_line),
    runs,
    is_part=is_line,
)
