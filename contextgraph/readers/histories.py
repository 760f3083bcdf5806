"""Histories that coding agents keep on the machine they run on, besides Claude Code and Codex.

Their formats are described by others, not by their makers, and were not checked against real
files: all are experimental.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from contextgraph.errors import ReadError
from contextgraph.model import RawTrajectory
from contextgraph.readers.conversation import (
    Call,
    Result,
    Thought,
    Turn,
    UserMessage,
    block_turns,
    finished_run,
    lines_run,
    shown,
    time_in,
)
from contextgraph.readers.fields import (
    Row,
    content_text,
    loose_text,
    row_at,
    rows_at,
    text,
)
from contextgraph.readers.format import (
    Format,
    Place,
    is_list_of,
)
from contextgraph.readers.tool_calls import json_arguments

GEMINI = "gemini-cli"
QWEN = "qwen-code"
COPILOT = "copilot-cli"
CURSOR = "cursor"
GOOSE = "goose"
OPENCODE = "opencode"

_COPILOT_TYPES = ("session.", "user.", "assistant.", "tool.")
_CURSOR_TIME = re.compile(r"\A\s*<timestamp>[^<]*</timestamp>\s*")


# Gemini CLI and Qwen Code


def is_gemini_part(value: object) -> bool:
    """Whether *value* is the first line of a chat of Gemini CLI."""
    return isinstance(value, dict) and value.keys() >= {"sessionId", "startTime", "lastUpdated"}


def gemini_runs(value: Any, place: Place) -> Iterator[RawTrajectory | ReadError]:
    """The run of one chat, without the messages that the user rewound."""
    if isinstance(value, dict):
        lines: list[Any] = [value, *rows_at(value, "messages")]
    else:
        lines = _rewound(value)
    yield from lines_run(GEMINI, _gemini_turns, _gemini_facts, lines, place)


def _rewound(lines: Sequence[Any]) -> list[Any]:
    left = list[Any]()
    for line in lines:
        target = line.get("$rewindTo") if isinstance(line, dict) else None
        if target is None:
            left.append(line)
            continue
        ids = [earlier.get("id") if isinstance(earlier, dict) else None for earlier in left]
        left = left[: ids.index(target)] if target in ids else left
    return left


def _gemini_facts(row: Row) -> dict[str, str]:
    return {"session": text(row, "sessionId"), "model": text(row, "model")}


def _gemini_turns(row: Row) -> Iterator[Turn]:
    time, kind = time_in(row), row.get("type")
    if kind == "user":
        yield UserMessage(content_text(row), time=time)
    elif kind in ("gemini", "model"):
        for thought in rows_at(row, "thoughts"):
            yield Thought(text(thought, "description"), time_in(thought))
        yield Thought(content_text(row), time)
        for call in rows_at(row, "toolCalls"):
            arguments = json_arguments(call.get("args"))
            yield Call(text(call, "name"), arguments, text(call, "id"), time_in(call) or time)
            yield _gemini_result(call)


def _gemini_result(call: Row) -> Result:
    result, status = call.get("result"), call.get("status")
    rows = result if isinstance(result, list) else []
    blocks = [block for block in rows if isinstance(block, dict)]
    answers = (t for t in block_turns(blocks, is_agent=False) if isinstance(t, Result))
    answer = next(answers, None)
    return Result(
        answer.text if answer else shown(result or call.get("resultDisplay")),
        text(call, "id"),
        is_error=True if status == "error" else None,
        denied=status == "cancelled",
    )


def is_qwen_line(value: object) -> bool:
    """Whether *value* is a line of a chat of Qwen Code."""
    if not isinstance(value, dict) or "sessionId" not in value:
        return False
    message = value.get("message")
    return isinstance(message, dict) and isinstance(message.get("parts"), list)


def _qwen_turns(row: Row) -> Iterator[Turn]:
    if "message" not in row:
        return
    message = row_at(row, "message")
    role = text(message, "role") or text(row, "type")
    is_agent = role in ("model", "assistant")
    yield from block_turns(rows_at(message, "parts"), is_agent=is_agent, time=time_in(row))


def _session_facts(row: Row) -> dict[str, str]:
    facts = {"session": text(row, "sessionId"), "folder": text(row, "cwd")}
    return facts | {"model": loose_text(row, "model")}


# Copilot CLI


def is_copilot_line(value: object) -> bool:
    """Whether *value* is an event of Copilot CLI."""
    if not isinstance(value, dict) or not isinstance(value.get("data"), dict):
        return False
    return isinstance(value.get("type"), str) and value["type"].startswith(_COPILOT_TYPES)


def _copilot_facts(row: Row) -> dict[str, str]:
    data = row_at(row, "data")
    return {
        "session": text(data, "sessionId") if row.get("type") == "session.start" else "",
        "folder": text(row_at(data, "context"), "cwd"),
        "model": loose_text(data, "selectedModel") or loose_text(data, "model"),
    }


def _copilot_turns(row: Row) -> Iterator[Turn]:
    data, time = row_at(row, "data"), time_in(row)
    id_ = text(data, "toolCallId")
    match row.get("type"):
        case "user.message":
            yield UserMessage(text(data, "content"), time=time)
        case "assistant.message" | "assistant.reasoning":
            yield Thought(text(data, "content"), time)
        case "tool.execution_start":
            yield Call(text(data, "toolName"), json_arguments(data.get("arguments")), id_, time)
        case "tool.execution_complete":
            failed = data.get("success") is False
            output = shown(row_at(data, "result").get("content") or data.get("error"))
            yield Result(output, id_, is_error=True if failed else None)


# Cursor


def is_cursor_line(value: object) -> bool:
    """Whether *value* is a line of a transcript of Cursor's command line."""
    if not isinstance(value, dict) or value.get("role") not in ("user", "assistant"):
        return False
    message = value.get("message")
    return isinstance(message, dict) and "content" in message and "type" not in value


def is_cursor(value: object) -> bool:
    """Whether *value* is a chat of Cursor: its lines, or what its database has of it."""
    if isinstance(value, list):
        return any(map(is_cursor_line, value[:1]))
    return isinstance(value, dict) and value.keys() >= {"composerId", "bubbles"}


def cursor_runs(value: Any, place: Place) -> Iterator[RawTrajectory | ReadError]:
    """The run of one chat."""
    if isinstance(value, list):
        yield from lines_run(CURSOR, _cursor_turns, lambda _: {}, value, place)
        return
    bubbles = rows_at(value, "bubbles")
    yield from lines_run(CURSOR, _bubble_turns, _bubble_facts, [value, *bubbles], place)


def _cursor_turns(row: Row) -> Iterator[Turn]:
    if "message" not in row:
        return
    message, is_agent = row_at(row, "message"), row.get("role") == "assistant"
    content = message.get("content")
    blocks = [{"text": content}] if isinstance(content, str) else rows_at(message, "content")
    for turn in block_turns(blocks, is_agent=is_agent):
        if isinstance(turn, UserMessage):
            yield UserMessage(_CURSOR_TIME.sub("", turn.text))
        else:
            yield turn


def _bubble_facts(row: Row) -> dict[str, str]:
    return {"session": text(row, "composerId"), "folder": text(row, "workspaceProjectDir")}


def _bubble_turns(row: Row) -> Iterator[Turn]:
    if "bubbles" in row:
        return
    words, tool = text(row, "text") or text(row, "rawText"), row.get("toolFormerData")
    yield UserMessage(words) if row.get("type") == 1 else Thought(words, time_in(row))
    if isinstance(tool, dict) and tool.get("name"):
        arguments = json_arguments(tool.get("rawArgs")) or json_arguments(tool.get("params"))
        yield Call(text(tool, "name"), arguments, text(tool, "toolCallId"), time_in(row))
        if tool.get("result") is not None:
            status = tool.get("status")
            yield Result(
                shown(tool["result"]),
                text(tool, "toolCallId"),
                is_error=True if status == "error" else None,
                denied=status in ("rejected", "cancelled"),
            )


# Goose


def is_goose_part(value: object) -> bool:
    """Whether *value* is the first line of a session of Goose."""
    return isinstance(value, dict) and value.keys() >= {"working_dir", "description"}


def goose_runs(value: Any, place: Place) -> Iterator[RawTrajectory | ReadError]:
    """The run of one session."""
    lines = value if isinstance(value, list) else [value, *rows_at(value, "messages")]
    yield from lines_run(GOOSE, _goose_turns, _goose_facts, lines, place)


def _goose_facts(row: Row) -> dict[str, str]:
    if "working_dir" not in row:
        return {}
    return {"folder": text(row, "working_dir"), "session": str(row.get("id") or "")}


def _goose_turns(row: Row) -> Iterator[Turn]:
    if "role" in row:
        is_agent = row["role"] == "assistant"
        time = time_in(row, "created")
        yield from block_turns(rows_at(row, "content"), is_agent=is_agent, time=time)


# OpenCode


def is_opencode(value: object) -> bool:
    """Whether *value* is an exported session of OpenCode, or what its database has of one."""
    if not isinstance(value, dict) or not isinstance(value.get("info"), dict):
        return False
    messages = value.get("messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    return isinstance(first, dict) and isinstance(first.get("parts"), list)


def opencode_runs(value: Row, place: Place) -> Iterator[RawTrajectory]:
    """The run of one session."""
    info, messages = row_at(value, "info"), rows_at(value, "messages")
    turns = [turn for message in messages for turn in _opencode_turns(message)]
    models = (text(row_at(message, "info"), "modelID") for message in messages)
    facts = {
        "folder": text(info, "directory"),
        "session": text(info, "id"),
        "model": next(filter(None, models), ""),
    }
    yield finished_run(OPENCODE, turns, facts, place)


def _opencode_turns(message: Row) -> Iterator[Turn]:
    info = row_at(message, "info")
    is_agent = info.get("role") == "assistant"
    time = time_in(row_at(info, "time"), "created")
    for part in rows_at(message, "parts"):
        match part.get("type"):
            case "text" if part.get("synthetic") is not True:
                words = text(part, "text")
                yield Thought(words, time) if is_agent else UserMessage(words, time=time)
            case "reasoning":
                yield Thought(text(part, "text"), time)
            case "tool":
                yield from _opencode_call(part, time)


def _opencode_call(part: Row, time: datetime | None) -> Iterator[Turn]:
    state, id_ = row_at(part, "state"), text(part, "callID")
    time = time_in(row_at(state, "time"), "start") or time
    yield Call(text(part, "tool"), json_arguments(state.get("input")), id_, time)
    if state.get("status") in ("completed", "error"):
        code = row_at(state, "metadata").get("exit")
        error = text(state, "error")
        yield Result(
            error or shown(state.get("output")),
            id_,
            exit_code=code if type(code) is int else None,
            is_error=True if state["status"] == "error" else None,
            denied="rejected permission" in error,
        )


def _begins_with(is_first: Callable[[object], bool], value: object) -> bool:
    """Whether *value* is a history whose first line says what it is: its lines, or one object."""
    return is_first(value[0] if isinstance(value, list) and value else value)


_KEEPS = "requests, thoughts, tool calls, results, errors, times, directory, model where logged"
history = partial(Format, keeps=_KEEPS, experimental=True)

FORMATS = (
    history(
        GEMINI,
        "object or first line with sessionId, startTime, lastUpdated",
        recognises=partial(_begins_with, is_gemini_part),
        runs=gemini_runs,
        is_part=is_gemini_part,
    ),
    history(
        QWEN,
        "lines with sessionId and message.parts",
        recognises=partial(is_list_of, is_qwen_line),
        runs=partial(lines_run, QWEN, _qwen_turns, _session_facts),
        is_part=is_qwen_line,
    ),
    history(
        COPILOT,
        "lines with data and type session.*, user.*, assistant.*, tool.*",
        recognises=partial(is_list_of, is_copilot_line),
        runs=partial(lines_run, COPILOT, _copilot_turns, _copilot_facts),
        is_part=is_copilot_line,
    ),
    history(
        CURSOR,
        "lines with role and message.content, or the database state.vscdb",
        recognises=is_cursor,
        runs=cursor_runs,
        is_part=is_cursor_line,
    ),
    history(
        GOOSE,
        "first line with working_dir and description, or the database sessions.db",
        recognises=partial(_begins_with, is_goose_part),
        runs=goose_runs,
        is_part=is_goose_part,
    ),
    history(
        OPENCODE,
        "object with info and messages with parts (export), or the database opencode.db",
        recognises=is_opencode,
        runs=opencode_runs,
    ),
)
