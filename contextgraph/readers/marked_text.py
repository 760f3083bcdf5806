"""Histories in which calls are marked in text: Cline and Roo Code (tags), aider (Markdown).

Experimental, as `histories`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath
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
    time_in,
)
from contextgraph.readers.fields import (
    Row,
    rows_at,
    text,
)
from contextgraph.readers.format import Place, file_stem
from contextgraph.readers.histories import history
from contextgraph.readers.tool_calls import (
    ToolCall,
    replacements,
    tagged,
    without_line_ends,
)

CLINE = "cline"
ROO = "roo-code"
AIDER = "aider"

# Roo Code keeps tasks as Cline does, in a folder of its own extension of VS Code.
ROO_EXTENSION = "rooveterinaryinc.roo-cline"
TASK_FILE = "api_conversation_history.json"
AIDER_START = "# aider chat started at "

_CLINE_RESULT = re.compile(r"\A\[(?P<tool>\w+)(?: for '.*?')?\] Result:\s*", re.DOTALL)
_CLINE_NOISE = re.compile(r"<environment_details>.*?(?:</environment_details>|\Z)", re.DOTALL)
_CLINE_DENIED = "The user denied this operation"
_CLINE_TOOLS = frozenset(
    "execute_command read_file write_to_file replace_in_file apply_diff insert_content "
    "search_and_replace search_files list_files list_code_definition_names browser_action "
    "use_mcp_tool ask_followup_question attempt_completion new_task switch_mode "
    "update_todo_list".split()
)
# What stands before an edit: the file, and the line that opens a block.
_AIDER_FILE = re.compile(r"(?:\A|\n)(?P<path>[^\s`#>*][^\n]*)\n```[^\n]*\n\Z")


def is_cline(value: object) -> bool:
    """Whether *value* is a task's conversation of Cline or Roo Code."""
    messages = value.get("messages") if isinstance(value, dict) else value
    if not isinstance(messages, list) or not messages or not isinstance(messages[0], dict):
        return False
    content = messages[0].get("content")
    if messages[0].get("role") != "user" or not isinstance(content, str | list):
        return False
    blocks = content if isinstance(content, list) else [{"text": content}]
    texts = (block.get("text") for block in blocks if isinstance(block, dict))
    opening = "\n".join(words for words in texts if isinstance(words, str))
    return "<environment_details>" in opening or opening.lstrip().startswith("<task>")


def cline_runs(value: Any, place: Place) -> Iterator[RawTrajectory | ReadError]:
    """The run of one task; the folder of the extension says whose it is."""
    messages = rows_at(value, "messages") if isinstance(value, dict) else value
    facts, is_roo = {"session": _task_id(place)}, ROO_EXTENSION in PurePath(place.file).parts
    for run in lines_run(CLINE, _cline_turns, lambda _: facts, messages, place):
        if is_roo and isinstance(run, RawTrajectory):
            yield replace(run, agent=ROO)
        else:
            yield run


def _task_id(place: Place) -> str:
    """The id that the folder of a task has, or its file (``ID.messages.json``)."""
    path = PurePath(place.file)
    named_by_folder = path.name == TASK_FILE
    return path.parent.name if named_by_folder else file_stem(path.name).removesuffix(".messages")


def _cline_turns(message: Row) -> Iterator[Turn]:
    is_agent, time = message.get("role") == "assistant", time_in(message, "ts")
    content = message.get("content")
    blocks = [{"text": content}] if isinstance(content, str) else rows_at(message, "content")
    if not is_agent:  # the name of the tool and what it returned may stand in blocks of their own
        words = "\n".join(text(block, "text") for block in blocks if block.get("type") == "text")
        others = [block for block in blocks if block.get("type") != "text"]
        blocks = [*others, {"text": words}]
    for turn in block_turns(blocks, is_agent=is_agent, time=time):
        match turn:
            case Thought(words):
                before, calls = _cline_calls(words)
                yield Thought(before, time)
                for call in calls:
                    yield Call(call.name, call.arguments, "", time)
            case UserMessage(words) | Result(words):
                yield from _cline_answer(_CLINE_NOISE.sub("", words).strip(), turn)
            case _:
                yield turn


def _cline_calls(reply: str) -> tuple[str, list[ToolCall]]:
    """The text of *reply* before its first call in tags, and the calls."""
    tags = list(tagged(reply, _CLINE_TOOLS))
    calls = [
        ToolCall(tag.name, {part.name: without_line_ends(part.text) for part in tagged(tag.text)})
        for tag in tags
    ]
    return reply[: tags[0].start] if tags else reply, calls


def _cline_answer(words: str, turn: UserMessage | Result) -> Iterator[Turn]:
    feedback = next(tagged(words, {"feedback"}), None)
    named = _CLINE_RESULT.match(words)
    if named or isinstance(turn, Result):
        output = words[named.end() :] if named else words
        id_ = turn.id if isinstance(turn, Result) else ""
        yield Result(output, id_, denied=output.startswith(_CLINE_DENIED))
    elif words and not feedback:
        yield UserMessage(words)
    if feedback:
        yield UserMessage(feedback.text.strip())


def is_aider(value: object) -> bool:
    """Whether *value* is the text of a chat history of aider."""
    return isinstance(value, str) and value.lstrip().startswith(AIDER_START)


def aider_runs(history: str, place: Place) -> Iterator[RawTrajectory | ReadError]:
    """The run of each launch; launches in which nothing was done are passed over."""
    _, *launches = re.split(rf"^{AIDER_START}", history, flags=re.MULTILINE)
    runs = list[RawTrajectory | ReadError]()
    for launch in launches:
        started, _, body = launch.partition("\n")
        facts = {"session": f"aider-{re.sub(r'[^0-9]', '', started)}"}
        try:
            run = finished_run(AIDER, list(_aider_turns(body)), facts, place)
            runs.append(replace(run, started_at=time_in({"timestamp": started.strip()})))
        except ReadError as error:
            runs.append(error)
    done = [run for run in runs if isinstance(run, RawTrajectory)]
    yield from done or runs[:1]


def _aider_turns(body: str) -> Iterator[Turn]:
    """Requests start with ``####``, output of tools with ``>``; all else is the model's reply."""
    for kind, lines in _aider_blocks(body):
        words = "\n".join(lines).strip()
        if kind == "user":
            yield from _aider_request(words)
        elif kind == "tool":
            yield from _aider_output(lines)
        else:
            yield from _aider_reply(words)


def _aider_blocks(body: str) -> Iterator[tuple[str, list[str]]]:
    kind, lines, fenced = "reply", list[str](), False
    for line in body.splitlines():
        marked = line.startswith(("#### ", "> "))
        fenced ^= line.startswith("```") and not marked
        now = "reply" if fenced or not marked else "user" if line[0] == "#" else "tool"
        if now != kind:
            yield kind, lines
            kind, lines = now, []
        lines.append(line.removeprefix("#### ").removeprefix("> ") if now != "reply" else line)
    yield kind, lines


def _aider_request(words: str) -> Iterator[Turn]:
    command, _, rest = words.partition(" ")
    if command in ("/run", "/test") and rest:
        yield Call("bash", {"command": rest})
    elif words.startswith("!"):
        yield Call("bash", {"command": words[1:].strip()})
    elif not words.startswith("/"):
        yield UserMessage(words)


def _aider_reply(words: str) -> Iterator[Turn]:
    edits, before = list[Call](), words
    at = 0
    for edit in replacements(words):
        file = _AIDER_FILE.search(words, at, edit.start)
        at = edit.end
        if file:
            before = before if edits else words[: file.start("path")]
            arguments = {"path": file["path"], "old_str": edit.old, "new_str": edit.new}
            edits.append(Call("edit", {**arguments}, file["path"]))
    yield Thought(before)
    yield from edits


def _aider_output(lines: Sequence[str]) -> Iterator[Turn]:
    for line in lines:
        if line.startswith("Applied edit to "):
            yield Result(line, line.removeprefix("Applied edit to ").strip())
        elif line.startswith("Running "):
            yield Call("bash", {"command": line.removeprefix("Running ").strip()})


FORMATS = (
    history(
        CLINE,
        "messages, the first with <task> or <environment_details> (Cline, Roo Code)",
        recognises=is_cline,
        runs=cline_runs,
    ),
    history(
        AIDER,
        "text that starts with '# aider chat started at'",
        recognises=is_aider,
        runs=aider_runs,
    ),
)
