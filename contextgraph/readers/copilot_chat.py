"""Chats of GitHub Copilot in VS Code, which keeps each in a file of its workspace."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from contextgraph.errors import ReadError
from contextgraph.model import Json, RawTrajectory
from contextgraph.model.values import replace
from contextgraph.readers.conversation import (
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
    VS_CODE,
    Format,
    Kept,
    Place,
    Row,
    as_row,
    integer,
    loose_text,
    row_at,
    rows_at,
    text,
)
from contextgraph.readers.tool_calls import json_arguments
from contextgraph.system.intake import loads

COPILOT_CHAT = "copilot-chat"

_LONGEST_MANIFEST = 1 << 20
_WORKSPACE = "workspace.json"
_OF_SEVERAL = ".code-workspace"  # names several folders, mostly beside it
_CHATS = tuple(
    f"{place}/*.{ending}"
    for place in ("workspaceStorage/*/chatSessions", "globalStorage/emptyWindowChatSessions")
    for ending in ("json", "jsonl")
)
_SET, _PUSH, _DELETE = 1, 2, 3


def is_chat(value: Any) -> bool:
    """Return True if *value* is a chat: one object, or the lines that build it up."""
    if isinstance(value, list):
        return bool(value) and is_chat_line(value[0]) and "requests" in (value[0].get("v") or ())
    if not isinstance(value, dict) or not isinstance(value.get("requests"), list):
        return False
    return value.keys() >= {"sessionId", "version"} or "responderUsername" in value  # exported


def is_chat_line(value: object) -> bool:
    """Return True if *value* is a line of a chat: its first state, or a change of it."""
    if not isinstance(value, dict) or value.get("kind") not in (0, _SET, _PUSH, _DELETE):
        return False
    if value["kind"] == 0:
        return isinstance(value.get("v"), dict) and "requests" in value["v"]
    return isinstance(value.get("k"), list)


def chat_runs(value: Any, place: Place) -> Iterator[RawTrajectory | ReadError]:
    """Yield the run of one chat."""
    chat = as_row(_built(value) if isinstance(value, list) else value, "chat")
    requests = rows_at(chat, "requests")
    models = (loose_text(request, "modelId") for request in requests)
    facts = {
        "session": text(chat, "sessionId"),
        "folder": _folder(place),
        "model": next(filter(None, models), ""),
    }
    turns = [
        turn
        for request in requests
        for turn in of_message(_turns(request), loose_text(request, "requestId"))
    ]
    yield finished_run(COPILOT_CHAT, turns, facts, place)


def _built(lines: Sequence[Row]) -> Json:
    """The chat after all changes: 0 is the whole, 1 sets a path, 2 adds to a list, 3 deletes."""
    state: Any = {}
    for line in lines:
        path = line.get("k") or []
        if not path:
            state = line.get("v")
            continue
        with suppress(LookupError, TypeError):  # of a place that is not there, as after a lost line
            _change(state, path, line)
    built: Json = state
    return built


def _change(state: Any, path: Sequence[Any], line: Row) -> None:
    inner, value = state, line.get("v")
    for key in path[:-1]:
        inner = inner.setdefault(key, {}) if isinstance(inner, dict) else inner[key]
    last = path[-1]
    if line["kind"] == _PUSH:
        kept = inner[last] if isinstance(inner, list) else inner.get(last) or []
        if "i" in line:  # from there on the list is replaced
            kept = kept[: line["i"]]
        inner[last] = [*kept, *(value or [])]
    elif line["kind"] == _DELETE:
        del inner[last]
    else:
        inner[last] = value


def _folder(place: Place) -> str:
    """The folder of the workspace, which a file beside the chats names; empty if there is none."""
    try:
        with place.beside(Path(place.file).parent.parent / _WORKSPACE) as file:
            workspace = loads(file.read(_LONGEST_MANIFEST))
    except (OSError, ValueError):
        return ""
    row = workspace if isinstance(workspace, dict) else {}
    if folder := _path_of(loose_text(row, "folder")):
        return folder
    several = PurePosixPath(_path_of(loose_text(row, "workspace")))
    return str(several.parent) if several.suffix == _OF_SEVERAL else ""


def _path_of(address: str) -> str:
    """Return the path in the address of a file, of this machine or of a remote host."""
    try:
        url = urlsplit(address)
    except ValueError:
        return ""
    return unquote(url.path) if url.scheme in ("file", "vscode-remote") else ""


def _turns(request: Row) -> Iterator[Turn]:
    time = time_in(request)
    message = request.get("message")
    words = message if isinstance(message, str) else text(row_at(request, "message"), "text")
    yield UserMessage(words, time=time)
    metadata = row_at(row_at(request, "result"), "metadata")
    parts = rows_at(request, "response")
    ran = {text(part, "toolCallId"): part for part in parts if "toolCallId" in part}
    rounds = rows_at(metadata, "toolCallRounds")
    results = row_at(metadata, "toolCallResults")
    for round_ in rounds:
        yield Thought(text(round_, "response"), time)
        for call in rows_at(round_, "toolCalls"):
            id_, arguments = text(call, "id"), json_arguments(call.get("arguments"))
            yield Call(text(call, "name"), arguments, id_, time)
            result = _result(ran.get(id_, {}), id_)
            if isinstance(answer := results.get(id_), dict):
                result = replace(result, text=_answer(answer) or result.text)
            yield result
    known = {text(call, "id") for round_ in rounds for call in rows_at(round_, "toolCalls")}
    for part in parts:
        id_ = text(part, "toolCallId")
        if "toolCallId" in part and id_ not in known:
            yield Call(text(part, "toolId"), _arguments(part), id_, time)
            yield _result(part, id_)
        elif "kind" not in part and not rounds:
            yield Thought(loose_text(part, "value"), time)
    if row_at(request, "result").get("errorDetails") and request.get("isCanceled"):
        yield UserMessage("", interrupted=True)


def _arguments(part: Row) -> Mapping[str, Json]:
    command = row_at(row_at(part, "toolSpecificData"), "commandLine")
    line = loose_text(command, "toolEdited") or loose_text(command, "original")
    return {"command": line} if line else {}


def _result(part: Row, id_: str) -> Result:
    """Return the result of a call: of a command in the terminal with its exit code."""
    data = row_at(part, "toolSpecificData")
    output = loose_text(row_at(data, "terminalCommandOutput"), "text")
    code = integer(row_at(data, "terminalCommandState"), "exitCode")
    return Result(output, id_, exit_code=code, denied=part.get("isConfirmed") is False)


def _answer(result: Row) -> str:
    values = (item.get("value") for item in rows_at(result, "content"))
    return "\n".join(shown(value) for value in values)


FORMATS = (
    Format(
        COPILOT_CHAT,
        "object with version, sessionId and requests, or lines with kind, k and v "
        "(chatSessions of VS Code)",
        "requests, replies, tool calls with results, exit codes, times, directory, model",
        is_chat,
        chat_runs,
        is_part=is_chat_line,
        experimental=True,
        omits="images, variables, progress, thinking; edits that are shown in the editor only",
        kept=tuple(
            Kept(folder, tuple(f"{user}/{chats}" for chats in _CHATS)) for folder, user in VS_CODE
        ),
    ),
)
