"""Tool calls in the shape of OpenAI's API."""

from collections.abc import Mapping
from typing import NamedTuple

import orjson

from contextgraph.model import Json
from contextgraph.readers.fields import Row, row_at, text


class ToolCall(NamedTuple):
    """A tool's name and the arguments it was called with."""

    name: str
    arguments: Mapping[str, Json]


def tool_call(call: Row) -> ToolCall:
    """A tool *call* in OpenAI's shape; arguments that are no JSON object are left out."""
    function = row_at(call, "function")
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = orjson.loads(arguments)
        except orjson.JSONDecodeError:
            arguments = None
    return ToolCall(text(function, "name"), arguments if isinstance(arguments, dict) else {})
