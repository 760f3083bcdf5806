"""The blocks of a message as turns, as Anthropic, Google, Goose and the AI SDK write them."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import orjson

from contextgraph.readers.conversation import Call, Result, Thought, Turn, UserMessage
from contextgraph.readers.fields import Row, content_text, row_at, text
from contextgraph.readers.tool_calls import json_arguments

_CALLS = ("tool_use", "tool-call", "toolRequest", "tool_call")
_RESULTS = ("tool_result", "tool-result", "toolResponse")
_BLOCKS = (*_CALLS, *_RESULTS, "thinking", "reasoning")
_GOOGLE = frozenset({"functionCall", "functionResponse"})


def has_blocks(content: object) -> bool:
    """Whether *content* is a list with calls, results or reasoning among its blocks."""
    if not isinstance(content, list):
        return False
    return any(
        isinstance(block, dict) and (block.get("type") in _BLOCKS or not _GOOGLE.isdisjoint(block))
        for block in content
    )


def block_turns(
    blocks: Sequence[Row], *, is_agent: bool, time: datetime | None = None
) -> Iterator[Turn]:
    """The turns of the *blocks* of one message."""
    for block in blocks:
        kind = block.get("type")
        if kind in _CALLS or "functionCall" in block:
            yield _call(block, time)
        elif kind in _RESULTS or "functionResponse" in block:
            yield _result(block)
        elif kind in ("thinking", "reasoning") or block.get("thought") is True:
            yield Thought(text(block, "thinking") or text(block, "text"), time)
        elif isinstance(words := block.get("text"), str) and words.strip():
            yield Thought(words, time) if is_agent else UserMessage(words)


def _call(block: Row, time: datetime | None) -> Call:
    if "functionCall" in block:
        call = row_at(block, "functionCall")
    elif "toolCall" in block:  # Goose, where a call may be an error of the model
        call = row_at(row_at(block, "toolCall"), "value")
    else:
        call = block
    arguments = next(
        (call[name] for name in ("input", "args", "arguments") if name in call),
        None,
    )
    name = text(call, "name") or text(call, "toolName")
    id_ = text(block, "id") or text(block, "toolCallId") or text(call, "id")
    return Call(name, json_arguments(arguments), id_, time)


def _result(block: Row) -> Result:
    id_ = text(block, "tool_use_id") or text(block, "toolCallId") or text(block, "id")
    is_error = block.get("is_error")
    content: Any = block.get("content", block.get("result", block.get("output")))
    if "functionResponse" in block:
        answer = row_at(block, "functionResponse")
        id_ = id_ or text(answer, "id")
        response = row_at(answer, "response")
        is_error = True if "error" in response else None
        content = response.get("output", response.get("error", response))
    elif "toolResult" in block:
        outcome = row_at(block, "toolResult")
        is_error = True if outcome.get("status") == "error" else None
        content = outcome.get("value", outcome.get("error"))
        if isinstance(content, dict):
            content = content.get("content", content)
    return Result(shown(content), id_, is_error=is_error if isinstance(is_error, bool) else None)


def shown(content: object) -> str:
    """The text of a result: as it is, of its parts, or the JSON of anything else."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    if any(isinstance(part, dict) and "text" in part for part in parts):
        return content_text({"content": parts})
    if isinstance(content, dict):
        for name in ("value", "message"):
            if isinstance(content.get(name), str):
                return str(content[name])
    return orjson.dumps(content).decode()
