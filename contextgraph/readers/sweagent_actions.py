"""What a SWE-agent action did, as a person would read it."""

import shlex
from collections.abc import Mapping

from contextgraph.model import Action, Json
from contextgraph.readers.fields import Row, rows_at
from contextgraph.readers.prompts import first_word
from contextgraph.readers.tool_calls import ToolCall, tool_call
from contextgraph.text import clean

_EDITOR = "str_replace_editor"
_SHELL = "bash"


def tool_call_in(entry: Row) -> ToolCall | None:
    """The tool call of a history *entry*; None where the model wrote its command as text."""
    calls = rows_at(entry, "tool_calls")
    return tool_call(calls[0]) if calls else None


def action_of(command: str, call: ToolCall | None) -> Action:
    """The action of *command*, which SWE-agent typed for the agent's tool *call*.

    Without a call the tool is the command's first word.
    """
    command = clean(command).strip()
    if call is None and first_word(command) == _EDITOR:
        call = _editor_call(command)
    if call is None:
        return Action(first_word(command), command)
    if call.name == _EDITOR and call.arguments:
        return Action(_EDITOR, clean(_editor_text(call.arguments)), call.arguments)
    if call.name == _SHELL and isinstance(typed := call.arguments.get("command"), str):
        command = clean(typed).strip()
    return Action(call.name or first_word(command), command, call.arguments)


def _editor_call(command: str) -> ToolCall | None:
    """The arguments in ``str_replace_editor view FILE --view_range 1 9``; None if misquoted."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    arguments: dict[str, Json] = dict(zip(("command", "path"), words[1:3], strict=False))
    flag, values = "", list[str]()
    for word in [*words[3:], "--"]:
        if not word.startswith("--"):
            values.append(word)
            continue
        if flag:
            arguments[flag] = list(values) if flag == "view_range" else " ".join(values)
        flag, values = word[2:], []
    return ToolCall(_EDITOR, arguments)


def _editor_text(arguments: Mapping[str, Json]) -> str:
    """One line with what fits there, then each text of several lines below its name."""
    line, below = [_EDITOR], list[str]()
    for name, value in arguments.items():
        if name in ("command", "path"):
            line.append(str(value))
        elif isinstance(value, str):
            below.append(f"--{name}\n{value}")
        elif value is not None:
            line.append(f"--{name} {_plain(value)}")
    return "\n".join([" ".join(line), *below])


def _plain(value: Json) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
