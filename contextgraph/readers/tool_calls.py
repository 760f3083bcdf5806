"""Tool calls, in the shapes in which models and agents write them, as actions."""

import re
import shlex
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import NamedTuple

import orjson

from contextgraph.model import Action, Json
from contextgraph.readers.format import Row, row_at, text
from contextgraph.system.intake import loads
from contextgraph.text import clean, regex
from contextgraph.trace.actions import SHELL_TOOLS, command_in
from contextgraph.trace.steps import files_changed, files_created, files_deleted, lines_changed

# One name for an argument that agents name differently; edits are read by these names.
_ARGUMENT_NAMES = {
    "filePath": "file_path",
    "absolute_path": "file_path",
    "AbsolutePath": "file_path",
    "oldString": "old_string",
    "newString": "new_string",
    "contents": "content",
    "oldText": "old_text",
    "newText": "new_text",
    "replacement": "new_string",
    "new_source": "new_string",
}
_FIRST_ON_LINE = ("command", "path", "file_path", "notebook_path", "pattern", "query")
_XML_CALL = regex(
    r"<function=(?P<name>[\w.-]+)>(?P<body>.*?)(?:</function>|(?=<function=)|\Z)", re.DOTALL
)
_XML_ARGUMENT = regex(
    r"<parameter=(?P<name>[\w-]+)>\n?(?P<value>.*?)\n?(?:</parameter>|(?=<parameter=)|\Z)",
    re.DOTALL,
)
_PATCH_COMMAND = regex(r"\s*(?:cd \S+ && )?apply_patch\b")
_PATCH = regex(r"\*\*\* Begin Patch\n(.*?)(?:\*\*\* End Patch|\Z)", re.DOTALL)
_PATCHED_FILE = regex(r"\*\*\* (?:Update|Add|Delete) File: (.+)\n?")
_TAG = regex(r"<(?P<end>/?)(?P<name>\w+)>")
# The lines around what is replaced in an edit, by the letter of what comes after them.
_EDIT_MARK = regex(
    r"^(?:(?P<old>[-<]{3,} ?SEARCH>?[ \t\r]*\n)|(?P<new>={3,}[ \t\r]*\n)"
    r"|(?P<end>[+>]{3,} ?REPLACE))",
    re.MULTILINE,
)
_LINE_NUMBER = regex(r"\A(?::start_line:.*\n)?(?::end_line:.*\n)?(?:-{3,}\n)?")


# Of JavaScript in which a model calls tools.
_SCRIPT_CALL = regex(r"""\btools(?:\??\.(?P<name>\w+)|\[["'`](?P<key>\w+)["'`]\])\(\s*""")
_SCRIPT_NAME = regex(r"[A-Za-z_$][\w$]*")
_SCRIPT_TEXT = regex(r"""\"(?:[^"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`""", re.DOTALL)
_SCRIPT_END = regex(r"\s*[,}]")
_SCRIPT_COMMA = regex(r",(\s*[}\]])")
_SCRIPT_ESCAPE = regex(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


class ToolCall(NamedTuple):
    """A tool's name and the arguments it was called with."""

    name: str
    arguments: Mapping[str, Json]


def tool_call(call: Row) -> ToolCall:
    """Return a tool *call* in OpenAI's shape; arguments that are not a JSON object are left out."""
    function = row_at(call, "function")
    return ToolCall(text(function, "name"), json_arguments(function.get("arguments")))


def json_arguments(value: object) -> Mapping[str, Json]:
    """Return the arguments of a call, an object or its JSON text; empty for others."""
    if isinstance(value, str):
        try:
            value = loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def calls_in_script(script: str) -> list[ToolCall]:
    """Return the calls ``tools.NAME(…)`` of a script in JavaScript, with literal arguments.

    An argument may be an object, a text, or a name that was given one of them above; so may the
    values in an object.
    """
    calls = list[ToolCall]()
    for match in _SCRIPT_CALL.finditer(script):
        given = _literal(script, match.end()) or _named(script, match.end())
        if isinstance(given, str):
            given = {"input": given}
        name = match["name"] or match["key"]
        calls.append(ToolCall(name, given if isinstance(given, dict) else {}))
    return [call for call in calls if call.arguments]


def _named(script: str, at: int) -> Json:
    """The object or text of the name that stands in *script* at *at*; None for anything else."""
    name = _SCRIPT_NAME.match(script, at)
    set_ = name and re.search(rf"\b{re.escape(name[0])}\s*=\s*(?![=>\s])", script)
    return _literal(script, set_.end()) if set_ else None


def _literal(script: str, at: int) -> Json:
    """The object or text that stands in *script* from *at* on; None for anything else."""
    start = script[at : at + 1]
    if start in ('"', "'", "`"):
        if not (match := _SCRIPT_TEXT.match(script, at)):
            return None
        return _unescaped(match[0][1:-1])
    if start != "{":
        return None
    depth, end = 0, at
    parts = list[str]()
    while end < len(script):
        if match := _SCRIPT_TEXT.match(script, end):
            parts.append(orjson.dumps(_unescaped(match[0][1:-1])).decode())
            end = match.end()
        elif match := _SCRIPT_NAME.match(script, end):
            parts.append(_word(script, match, is_value=_ends_with_colon(parts)))
            end = match.end()
        else:
            depth += {"{": 1, "}": -1}.get(script[end], 0)
            parts.append(script[end])
            end += 1
            if depth == 0:
                break
    try:
        value: Json = loads(_SCRIPT_COMMA.sub(r"\1", "".join(parts)))
    except ValueError:
        return None
    return value


def _ends_with_colon(parts: Sequence[str]) -> bool:
    return next((part for part in reversed(parts) if not part.isspace()), "") == ":"


def _word(script: str, word: "re.Match[str]", *, is_value: bool) -> str:
    """A name in an object as JSON: a key, a value, or both in one; null for an unknown value."""
    if is_value:
        known = word[0] in ("true", "false", "null")
        return word[0] if known else orjson.dumps(_named_text(script, word)).decode()
    key = orjson.dumps(word[0]).decode()
    is_both = _SCRIPT_END.match(script, word.end())
    return f"{key}: {orjson.dumps(_named_text(script, word)).decode()}" if is_both else key


def _named_text(script: str, word: "re.Match[str]") -> str | None:
    value = _named(script, word.start())
    return value if isinstance(value, str) else None


def _unescaped(text: str) -> str:
    """*text* of a script without its escapes."""
    return _SCRIPT_ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), text)


def xml_calls(reply: str) -> tuple[str, list[ToolCall]]:
    """Return the text of *reply* before its ``<function=…>`` calls, and those calls."""
    start = reply.find("<function=")
    if start < 0:
        return reply, []
    calls = [
        ToolCall(
            match["name"],
            {
                argument["name"]: argument["value"]
                for argument in _XML_ARGUMENT.finditer(match["body"])
            },
        )
        for match in _XML_CALL.finditer(reply, start)
    ]
    return reply[:start], calls


def action_for(tool: str, arguments: Mapping[str, Json]) -> Action:
    """Return the action of a call of *tool*, its arguments under the names that edits are read by.

    The text of a shell command is the command; of any other tool a line of its name and
    arguments, with each text of several lines below it.
    """
    named = {_ARGUMENT_NAMES.get(name, name): value for name, value in arguments.items()}
    command = command_in(named) if tool.lower() in SHELL_TOOLS else None
    if command is not None and not _PATCH_COMMAND.match(command):
        return Action(tool, clean(command).strip(), named)
    if command is not None:
        tool, named = "apply_patch", {"input": command}
    named |= _edit_in(named)
    return Action(tool, clean(call_text(tool, named)), named)


def call_text(tool: str, arguments: Mapping[str, Json]) -> str:
    """One line with what fits there, then each text of several lines below its name."""
    line, below = [tool], list[str]()
    line += [str(arguments[name]) for name in _FIRST_ON_LINE if _fits(arguments.get(name))]
    for name, value in arguments.items():
        if name in _FIRST_ON_LINE and _fits(value):
            continue
        if isinstance(value, str):
            one_line = _fits(value) and name not in _EDIT_TEXTS
            if one_line:
                line.append(f"--{name} {value}")
            else:
                below.append(f"--{name}\n{value}")
        elif value is not None:
            line.append(f"--{name} {_plain(value)}")
    return "\n".join([" ".join(line), *below])


_EDIT_TEXTS = frozenset({"old_str", "new_str", "old_string", "new_string", "file_text", "content"})


def _fits(value: object) -> bool:
    return isinstance(value, str) and "\n" not in value and len(value) <= 200


def _plain(value: Json) -> str:
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        return " ".join(map(str, value))
    if not isinstance(value, list | dict):
        return str(value)
    import orjson

    return orjson.dumps(value).decode()


def _edit_in(arguments: Mapping[str, Json]) -> dict[str, Json]:
    """The file, old and new text of an edit that a patch, a diff or a list of edits describes."""
    edits = arguments.get("edits")
    if isinstance(edits, list) and "old_string" not in arguments:
        rows = [edit for edit in edits if isinstance(edit, dict)]
        named = [{_ARGUMENT_NAMES.get(name, name): row[name] for name in row} for row in rows]
        old = [str(row.get("old_string", row.get("old_text", ""))) for row in named]
        new = [str(row.get("new_string", row.get("new_text", ""))) for row in named]
        return {"old_string": "\n".join(old), "new_string": "\n".join(new)} if rows else {}
    for name in ("input", "patch", "diff", "patchText"):
        value = arguments.get(name)
        if not isinstance(value, str):
            continue
        if patch := _PATCH.search(value):
            return _patched(patch[1])
        if blocks := list(replacements(value)):
            replaced = "".join(_LINE_NUMBER.sub("", block.old) for block in blocks)
            return {"old_str": replaced, "new_str": "".join(block.new for block in blocks)}
    return {}


class Replacement(NamedTuple):
    """Return what an edit with SEARCH, === and REPLACE takes out and puts in, and its place."""

    old: str
    new: str
    start: int
    end: int


def replacements(words: str) -> Iterator[Replacement]:
    """Yield the edits in *words*, in linear time, whatever is unclosed."""
    marks: dict[str, re.Match[str]] = {}
    following = {"old": "new", "new": "end", "end": ""}
    awaited = "old"
    for mark in _EDIT_MARK.finditer(words):
        if mark.lastgroup != awaited:
            continue
        marks[awaited] = mark
        awaited = following[awaited]
        if not awaited:
            old = words[marks["old"].end() : marks["new"].start()]
            new = words[marks["new"].end() : mark.start()]
            yield Replacement(old, new, marks["old"].start(), mark.end())
            awaited = "old"


class Tagged(NamedTuple):
    """The *text* between the tags of *name*, and where both tags are."""

    name: str
    text: str
    start: int
    end: int


def tagged(words: str, names: Container[str] | None = None) -> Iterator[Tagged]:
    """Yield the texts between tags of *names* (empty: all); tags inside are text.

    In time that grows linearly with the length of *words*, whatever is not closed.
    """
    tags = [match for match in _TAG.finditer(words) if names is None or match["name"] in names]
    last_end = {match["name"]: match.start() for match in tags if match["end"]}
    opened: re.Match[str] | None = None
    for tag in tags:
        if opened is None:
            is_closed = not tag["end"] and last_end.get(tag["name"], -1) > tag.start()
            opened = tag if is_closed else None
        elif tag["end"] and tag["name"] == opened["name"]:
            text = words[opened.end() : tag.start()]
            yield Tagged(tag["name"], text, opened.start(), tag.end())
            opened = None


def without_line_ends(text: str) -> str:
    """Return *text* without the line end after its first tag and before its last one."""
    return text.removeprefix("\n").removesuffix("\n")


def _patched(patch: str) -> dict[str, Json]:
    """The first file of a patch in the style of ``apply_patch``, and its old and new lines."""
    _, *parts = _PATCHED_FILE.split(patch)
    if not parts:
        return {}
    lines = parts[1].splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[:1] in ("-", " "))
    new = "".join(line[1:] for line in lines if line[:1] in ("+", " "))
    return {"path": parts[0].strip(), "old_str": old, "new_str": new}


def edits_of(patch: str) -> Iterator[Action]:
    """Yield what makes the unified diff *patch*: an action for each file."""
    created, deleted = files_created(patch), files_deleted(patch)
    changed = defaultdict[str, tuple[list[str], list[str]]](lambda: ([], []))
    for file, _, line in lines_changed(patch):
        removed, added = changed[file]
        (added if line.startswith("+") else removed).append(line[1:])
    for file in files_changed(patch):
        removed, added = changed[file]
        if file in deleted:
            line = f"git rm -q {shlex.quote(file)}"
            yield Action("bash", line, {"command": line})
        elif file in created:
            yield action_for("Write", {"file_path": file, "content": "\n".join(added)})
        else:
            given = {"old_string": "\n".join(removed), "new_string": "\n".join(added)}
            yield action_for("Edit", {"file_path": file, **given})
