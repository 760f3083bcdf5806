"""Codex CLI: the rollouts it keeps, and what ``codex exec --json`` logs."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from contextgraph.model import Json
from contextgraph.readers.conversation import (
    Call,
    Prompt,
    Result,
    Thought,
    Turn,
    UserMessage,
    lines_run,
    time_in,
)
from contextgraph.readers.fields import (
    Row,
    content_text,
    row_at,
    rows_at,
    text,
)
from contextgraph.readers.format import Format, is_list_of
from contextgraph.readers.tool_calls import json_arguments
from contextgraph.text import may_be_fenced

NAME = "codex-cli"

_LINES = ("session_meta", "turn_context", "response_item", "event_msg", "compacted")
_STREAM = re.compile(r"(?:thread|turn|item)\.(?:started|updated|completed|failed)")
# What Codex itself puts into messages of the user.
_CONTEXT = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|permissions|skill|turn_aborted)|# AGENTS)"
)
_WORKING_FOLDER = re.compile(
    r"\s*<environment_context>\s*(?:<cwd>|Current working directory: )([^<\n]+)"
)
_REJECTED = re.compile(r"\A(?:exec command )?(?:was )?rejected by (?:the )?user", re.IGNORECASE)


def is_line(value: object) -> bool:
    """Whether *value* is a line of a rollout, new or old, or of the JSON stream."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    if isinstance(value.get("payload"), dict):
        return kind in _LINES
    if value.keys() >= {"id", "timestamp", "instructions"} or value.get("record_type") == "state":
        return True
    return isinstance(kind, str) and _STREAM.fullmatch(kind) is not None


def _facts(row: Row) -> dict[str, str]:
    item, kind = row_at(row, "payload") if "payload" in row else row, text(row, "type")
    if kind == "thread.started":
        return {"session": text(row, "thread_id")}
    if kind in ("session_meta", "turn_context") or "instructions" in row:
        source = item.get("source")
        is_subagent = isinstance(source, dict) and "subagent" in source
        return {
            "folder": text(item, "cwd"),
            "model": text(item, "model"),
            "session": text(item, "session_id") or text(item, "id"),
            "remote": text(row_at(item, "git"), "repository_url"),
            "agent": f"{NAME}/subagent" if is_subagent else "",
        }
    named = _WORKING_FOLDER.match(content_text(item)) if "role" in item else None
    return {"folder": named[1].strip()} if named else {}


def _turns(row: Row) -> Iterator[Turn]:
    kind = text(row, "type")
    if _STREAM.fullmatch(kind):
        yield from _streamed(row)
        return
    item, time = row_at(row, "payload") if "payload" in row else row, time_in(row)
    match text(item, "type") if kind in ("response_item", "event_msg") else kind:
        case "message":
            yield from _message(text(item, "role"), content_text(item), time)
        case "reasoning":
            for summary in rows_at(item, "summary"):
                yield Thought(text(summary, "text"), time)
        case "function_call_output" | "custom_tool_call_output":
            yield _result(item)
        case "turn_aborted":
            yield UserMessage("", interrupted=True)
        case "function_call" | "custom_tool_call" | "local_shell_call" as called:
            tool = text(item, "name") or "local_shell"
            yield Call(tool, _arguments(called, item), _id(item), time)


def _message(role: str, words: str, time: datetime | None) -> Iterator[Turn]:
    if role == "assistant":
        yield Thought(words, time)
    elif role == "user" and not _CONTEXT.match(words):
        yield UserMessage(words, time=time)
    elif role == "developer" and may_be_fenced(words):
        # What hooks showed: stripped before learning; its ids say what this run was shown.
        yield Prompt(words)


def _arguments(called: str, item: Row) -> Mapping[str, Json]:
    if called == "custom_tool_call":
        return {"input": text(item, "input")}
    if called == "local_shell_call":
        return {"command": row_at(item, "action").get("command")}
    return json_arguments(item.get("arguments"))


def _id(item: Row) -> str:
    return text(item, "call_id") or text(item, "id")


def _result(item: Row) -> Result:
    output: Any = item.get("output")
    success = None
    if isinstance(output, dict):
        success = output.get("success")
        output = output.get("content")
    shown = content_text({"content": output})
    return Result(
        shown,
        _id(item),
        is_error=True if success is False else None,
        denied=_REJECTED.match(shown) is not None,
    )


def _streamed(row: Row) -> Iterator[Turn]:
    """The turns in a line of ``codex exec --json``, of items that are complete."""
    item, kind = row_at(row, "item"), text(row, "type")
    if kind != "item.completed":
        return
    match text(item, "type") or text(item, "item_type"):
        case "agent_message" | "assistant_message" | "reasoning":
            yield Thought(text(item, "text"))
        case "command_execution":
            code = item.get("exit_code")
            yield Call("shell", {"command": text(item, "command")}, text(item, "id"))
            yield Result(
                text(item, "aggregated_output"),
                text(item, "id"),
                exit_code=code if type(code) is int else None,
            )
        case "file_change":
            for change in rows_at(item, "changes"):
                arguments: Mapping[str, Json] = {"path": text(change, "path")}
                yield Call("edit", arguments, text(item, "id"))
                yield Result(text(item, "status"), text(item, "id"))


FORMAT = Format(
    NAME,
    "lines with type and payload (rollouts), or thread, turn and item events (codex exec --json)",
    "thoughts, tool calls with results, exit codes, times, directory, git remote, model; user "
    "messages, interruptions, denied calls",
    partial(is_list_of, is_line),
    partial(lines_run, NAME, _turns, _facts),
    is_part=is_line,
)
