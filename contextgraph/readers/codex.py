"""Codex CLI: the rollouts it keeps, and what ``codex exec --json`` logs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from contextgraph.errors import ReadError
from contextgraph.model import Json, RawTrajectory
from contextgraph.readers.conversation import (
    Call,
    Result,
    Thought,
    Turn,
    UserMessage,
    conversation_of,
    time_in,
)
from contextgraph.readers.fields import Row, as_row, content_text, row_at, rows_at, text
from contextgraph.readers.format import Format, Place
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


def recognises(value: object) -> bool:
    """Whether *value* is the list of the lines of a rollout."""
    return isinstance(value, list) and any(map(is_line, value[:3]))


def runs(lines: Sequence[Any], place: Place) -> Iterator[RawTrajectory | ReadError]:
    """The run of one rollout; a line of the wrong shape is an error, and the others are read."""
    turns: list[Turn] = []
    meta: dict[str, Any] = {}
    shown: list[str] = []
    for index, line in enumerate(lines):
        try:
            row = as_row(line, "line")
            item = row_at(row, "payload") if "payload" in row else row
            kind = text(row, "type")
            content = content_text(item) if "role" in item else ""
            if match := _WORKING_FOLDER.match(content):
                meta.setdefault("cwd", match[1].strip())
            if item.get("role") == "developer" and may_be_fenced(content):
                shown.append(content)
            if kind in ("session_meta", "turn_context") or "instructions" in row:
                meta |= {name: value for name, value in item.items() if name not in meta}
            elif kind == "thread.started":
                meta["id"] = row.get("thread_id")
            turns += _streamed(row) if _STREAM.fullmatch(kind) else _turns(kind, item, row)
        except ValueError as error:
            yield ReadError(place.file, place.part(index), f"malformed {NAME} line", str(error))
    yield _run(turns, meta, shown, place)


def _run(turns: Sequence[Turn], meta: Row, shown: Sequence[str], place: Place) -> RawTrajectory:
    is_subagent = isinstance(meta.get("source"), dict) and "subagent" in meta["source"]
    known = RawTrajectory(
        source_format=NAME,
        instance_id="",
        repo="",
        task="",
        agent=f"{NAME}/subagent" if is_subagent else NAME,
        model=text(meta, "model"),
        # What hooks showed: stripped before learning; its ids say what this run was shown.
        system_prompt="\n".join(shown),
    )
    return conversation_of(turns).run(
        known,
        place,
        folder=text(meta, "cwd") or None,
        remote=text(row_at(meta, "git"), "repository_url"),
        session=text(meta, "session_id") or text(meta, "id"),
    )


def _turns(kind: str, item: Row, row: Row) -> Iterator[Turn]:
    time = time_in(row)
    match text(item, "type") if kind in ("response_item", "event_msg") else kind:
        case "message" if item.get("role") == "assistant":
            yield Thought(content_text(item), time)
        case "message" if item.get("role") == "user" and not _CONTEXT.match(content_text(item)):
            yield UserMessage(content_text(item))
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
    recognises,
    runs,
    is_part=is_line,
)
