"""OpenCode: its database, exports, and the tree of files that it kept before 1.2.

OpenCode 2 keeps a row for each message, whose content is a list of texts and calls; before, a
message had parts of its own.
"""

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import takewhile

from contextgraph.model import RawTrajectory, Spent
from contextgraph.model.values import replace
from contextgraph.readers.conversation import (
    Bill,
    Call,
    Result,
    Thought,
    Turn,
    UserMessage,
    finished_run,
    of_message,
    shown,
    time_in,
)
from contextgraph.readers.format import (
    Kept,
    Place,
    Row,
    as_row,
    count,
    dollars,
    integer,
    loose_text,
    row_at,
    rows_at,
    text,
)
from contextgraph.readers.histories import history
from contextgraph.readers.tool_calls import json_arguments
from contextgraph.system.intake import loads

OPENCODE = "opencode"

# Messages of OpenCode 2.
_TYPES = ("user", "assistant", "shell", "synthetic", "system", "compaction")
_REJECTED = "rejected permission"


def is_opencode(value: object) -> bool:
    """Return True if *value* is a session of OpenCode: exported, of its database or tree."""
    if is_opencode_tree(value):
        return True
    if not isinstance(value, dict) or not isinstance(value.get("info"), dict):
        return False
    messages = value.get("messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    if not isinstance(first, dict):
        return False
    return isinstance(first.get("parts"), list) or first.get("type") in _TYPES


def is_opencode_tree(value: object) -> bool:
    """Return True if *value* has, by name, files of a session that OpenCode kept in a tree."""
    if not isinstance(value, dict) or "messages" in value:
        return False
    return any(map(_is_tree_session, value.values()))


def _is_tree_session(row: object) -> bool:
    if not isinstance(row, dict):
        return False
    is_first = row.keys() >= {"id", "version", "time"} and str(row["id"]).startswith("ses_")
    return is_first or row.keys() >= {"id", "projectID", "directory"}


def _of_tree(value: Row) -> Row:
    """The session as it is exported, of its files."""
    rows = [as_row(row, name) for name, row in value.items()]
    info = next(filter(_is_tree_session, rows))
    messages = [
        {"info": row, "parts": [p for p in rows if p.get("messageID") == row.get("id")]}
        for row in rows
        if "role" in row
    ]
    return {"info": info, "messages": messages}


def opencode_runs(value: Row, place: Place) -> Iterator[RawTrajectory]:
    """Yield the run of one session, without the messages that a person took back."""
    if is_opencode_tree(value):
        value = _of_tree(value)
    info, messages = row_at(value, "info"), _kept(value)
    turns = [turn for one in messages for turn in of_message(_turns(one), _id(one))]
    # The export and the database name the session that started this one differently.
    is_subagent = info.get("parentID") or info.get("parent_id")
    facts = {
        "agent": f"{OPENCODE}/subagent" if is_subagent else OPENCODE,
        "folder": _folder(info) or next(filter(None, map(_folder_of, messages)), ""),
        "session": text(info, "id"),
        "model": next(filter(None, map(_model, messages)), ""),
    }
    run = finished_run(OPENCODE, turns, facts, place)
    # A fork copies messages with their times, and begins later.
    created = time_in(info, "time_created") or time_in(row_at(info, "time"), "created")
    yield replace(run, started_at=created or run.started_at)


def _kept(value: Row) -> Sequence[Row]:
    """The messages up to the one, or the part of it, to which a person has gone back."""
    messages, revert = rows_at(value, "messages"), row_at(value, "info").get("revert")
    if isinstance(revert, str):  # of the database
        try:
            revert = loads(revert)
        except ValueError:
            revert = None
    left = revert if isinstance(revert, dict) else {}
    target, part_left = loose_text(left, "messageID"), loose_text(left, "partID")
    ids = [_id(message) for message in messages]
    if not target or target not in ids:
        return messages
    at = ids.index(target)
    parts = rows_at(messages[at], "parts")
    kept = list(takewhile(lambda part: part.get("id") != part_left, parts)) if part_left else []
    return [*messages[:at], *([{**messages[at], "parts": kept}] if kept else [])]


def _id(message: Row) -> str:
    return loose_text(row_at(message, "info"), "id") or loose_text(message, "id")


def _folder(info: Row) -> str:
    """The folder of the session; that of its project where OpenCode made a working tree of it."""
    folder, project = text(info, "directory"), loose_text(info, "worktree")
    is_made = "/opencode/worktree/" in folder and not os.path.isdir(folder)
    return project if is_made and project.strip("/") else folder


def _folder_of(reply: Row) -> str:
    """The folder in which a reply was made; in the first tree of files the session names none."""
    return loose_text(row_at(row_at(reply, "info"), "path"), "cwd")


def _model(message: Row) -> str:
    named = message.get("model")
    if isinstance(named, dict):
        return loose_text(named, "id") or loose_text(named, "modelID")
    return loose_text(row_at(message, "info"), "modelID")


def _turns(message: Row) -> Iterator[Turn]:
    if "parts" in message:
        yield from _turns_of_parts(message)
        return
    time = time_in(row_at(message, "time"), "created") or time_in(message, "time_created")
    match message.get("type"):
        case "user":
            yield UserMessage(text(message, "text"), time=time)
        case "shell":  # a person ran it
            id_ = text(message, "callID") or text(message, "id")
            yield Call("bash", {"command": text(message, "command")}, id_, time)
            yield Result(loose_text(message, "output"), id_, integer(message, "exit"))
        case "assistant":
            for part in rows_at(message, "content"):
                match part.get("type"):
                    case "text" | "reasoning":
                        yield Thought(text(part, "text"), time)
                    case "tool":
                        yield from _call(part, time)
            yield from _bill(message)
            if "abort" in shown(message.get("error")).casefold():
                yield UserMessage("", interrupted=True)


def _turns_of_parts(message: Row) -> Iterator[Turn]:
    info = row_at(message, "info")
    is_agent = info.get("role") == "assistant"
    time = time_in(row_at(info, "time"), "created")
    for part in rows_at(message, "parts"):
        match part.get("type"):
            case "text" if part.get("synthetic") is not True and part.get("ignored") is not True:
                words = text(part, "text")
                yield Thought(words, time) if is_agent else UserMessage(words, time=time)
            case "reasoning":
                yield Thought(text(part, "text"), time)
            case "tool":
                yield from _call(part, time)
    yield from _bill(info)
    if row_at(info, "error").get("name") == "MessageAbortedError":
        yield UserMessage("", interrupted=True)


def _bill(reply: Row) -> Iterator[Bill]:
    if isinstance(tokens := reply.get("tokens"), dict):
        cache = row_at(tokens, "cache")
        answered = count(tokens, "output") + count(tokens, "reasoning")
        cached, written = count(cache, "read"), count(cache, "write")
        cost = dollars(reply, "cost")
        yield Bill(Spent(count(tokens, "input"), cached, written, answered, cost))


def _call(part: Row, time: datetime | None) -> Iterator[Turn]:
    state = row_at(part, "state")
    id_ = text(part, "callID") or text(part, "id")
    times = row_at(state, "time") or row_at(part, "time")
    time = time_in(times, "start") or time_in(times, "created") or time
    tool = text(part, "tool") or text(part, "name")
    yield Call(tool, json_arguments(state.get("input")), id_, time)
    if state.get("status") in ("completed", "error"):
        error = shown(state.get("error"))
        facts = row_at(state, "metadata") or row_at(state, "structured")
        yield Result(
            error or shown(state.get("output") or state.get("content")),
            id_,
            exit_code=integer(facts, "exit"),
            is_error=True if state["status"] == "error" else None,
            denied=_REJECTED in error,
        )


FORMATS = (
    history(
        OPENCODE,
        "object with info and messages (export), the database opencode.db, of OpenCode 2 too, or "
        "the tree storage/session, message, part",
        recognises=is_opencode,
        runs=opencode_runs,
        kept=(
            Kept(
                ".local/share",
                (
                    "opencode/opencode*.db",
                    "opencode/storage/session/*/ses_*.json",
                    "opencode/project/*/storage/session/info/ses_*.json",
                ),
                "XDG_DATA_HOME",
            ),
        ),
    ),
)
