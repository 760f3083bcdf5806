"""Histories with calls marked in text: by tags (Cline, Roo Code) or Markdown (aider, SpecStory).

SpecStory writes one form for Claude Code, Codex, Cursor, Copilot, Gemini and others. It has
commands and outputs, and for most edits only the file. The others are experimental.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any

from msgspec import Struct, field

from contextgraph.errors import ReadError
from contextgraph.model import Json, RawTrajectory
from contextgraph.model.values import replace
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
from contextgraph.readers.envelopes import (
    DENIED,
    INTERRUPTED,
    is_command,
    said_at_denial,
    tool_error,
)
from contextgraph.readers.format import (
    VS_CODE,
    EmptyRunError,
    Format,
    Kept,
    Place,
    Row,
    file_stem,
    loose_text,
    rows_at,
    text,
)
from contextgraph.readers.histories import history
from contextgraph.readers.sources import SPECSTORY_FOLDER, TASK_FILE
from contextgraph.readers.tool_calls import ToolCall, replacements, tagged, without_line_ends
from contextgraph.system.intake import loads, opened
from contextgraph.text import regex
from contextgraph.trace.actions import SHELL_TOOLS

CLINE = "cline"
AIDER = "aider"

# The SDK of Cline keeps a session in ``ID.messages.json``, with its manifest in ``ID.json``.
_LONGEST_MANIFEST = 1 << 20
_MESSAGES = ".messages.json"
_HISTORY_ITEM = "history_item.json"
# Others keep tasks as Cline does, each in the folder of its own extension of VS Code.
_EXTENSIONS = {
    "saoudrizwan.claude-dev": CLINE,
    "rooveterinaryinc.roo-cline": "roo-code",
    "kilocode.kilo-code": "kilo-code",
}
AIDER_START = "# aider chat started at "

_CLINE_RESULT = regex(r"\A\[(?P<tool>\w+)(?: for '.*?')?\] Result:\s*", re.DOTALL)
_CLINE_NOISE = regex(r"<environment_details>.*?(?:</environment_details>|\Z)", re.DOTALL)
_CLINE_FOLDER = regex(r"# Current (?:Workspace|Working) Directory \(([^)\n]+)\)")
# Before the output of a command, as Roo Code writes it.
_CLINE_RAN = regex(
    r"\ACommand executed in terminal(?: +within working directory '(?P<cwd>[^'\n]*)')?\.? +"
    r"(?:Command execution was not successful[^\n]*\n)?"
    r"Exit code: (?P<code>\d{1,5})[^\n]*\n(?:Output:\n)?"
)
# The same as Cline writes it.
_CLINE_DONE = regex(r"\ACommand executed(?: with exit code (?P<code>\d{1,5}))?\.\n(?:Output:\n)?")
_CLINE_DENIED = "The user denied this operation"
_CLINE_FAILED = "The tool execution failed with the following error:"
# Messages in the user's turn that Cline writes itself.
_CLINE_AUTOMATED = ("[ERROR] ", "[TASK RESUMPTION] ")
_CLINE_TOOLS = frozenset(
    "execute_command read_file write_to_file replace_in_file apply_diff insert_content "
    "search_and_replace search_files list_files list_code_definition_names browser_action "
    "use_mcp_tool ask_followup_question attempt_completion new_task switch_mode "
    "update_todo_list".split()
)
# What stands before an edit: the file, and the line that opens a block.
_AIDER_FILE = regex(r"(?:\A|\n)(?P<path>[^\s`#>*][^\n]*)\n```[^\n]*\n\Z")


def is_cline(value: object) -> bool:
    """Return True if *value* is a task's conversation of Cline or Roo Code."""
    messages = value.get("messages") if isinstance(value, dict) else value
    if not isinstance(messages, list) or not messages or not isinstance(messages[0], dict):
        return False
    content = messages[0].get("content")
    if messages[0].get("role") != "user" or not isinstance(content, str | list):
        return False
    blocks = content if isinstance(content, list) else [{"text": content}]
    texts = (block.get("text") for block in blocks if isinstance(block, dict))
    opening = "\n".join(words for words in texts if isinstance(words, str))
    is_marked = opening.lstrip().startswith(("<task>", "<user_input", "<user_message>"))
    return is_marked or "<environment_details>" in opening


def cline_runs(value: Any, place: Place) -> Iterator[RawTrajectory | ReadError]:
    """Yield the run of one task; the folder of the extension says whose it is."""
    messages = rows_at(value, "messages") if isinstance(value, dict) else value
    facts, parts = _cline_facts(place), PurePath(place.file).parts
    agent = next((_EXTENSIONS[part] for part in parts if part in _EXTENSIONS), CLINE)

    def facts_of(message: Row) -> dict[str, str]:
        named = _CLINE_FOLDER.search(shown(message.get("content")))
        return {**({"folder": named[1]} if named else {}), **facts}

    for run in lines_run(CLINE, _cline_turns, facts_of, messages, place):
        yield replace(run, agent=agent) if isinstance(run, RawTrajectory) else run


def _cline_facts(place: Place) -> dict[str, str]:
    """The id of a task, and what the file beside it says: the manifest, or Roo's history item."""
    facts, file = {"session": _task_id(place)}, Path(place.file)
    if file.name.endswith(_MESSAGES):
        name = f"{file.name.removesuffix(_MESSAGES)}.json"
    else:
        name = _HISTORY_ITEM
    try:
        with place.beside(file.with_name(name)) as beside:
            manifest = loads(beside.read(_LONGEST_MANIFEST))
    except (OSError, ValueError):
        return facts
    row = manifest if isinstance(manifest, dict) else {}
    names = ("cwd", "workspace_root", "workspace")
    folder = next(filter(None, (loose_text(row, name) for name in names)), "")
    return {**facts, "folder": folder, "model": loose_text(row, "model")}


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
    feedback = next(tagged(words, {"feedback", "user_message"}), None)
    named = _CLINE_RESULT.match(words)
    if named or isinstance(turn, Result):
        output = words[named.end() :] if named else words
        id_ = turn.id if isinstance(turn, Result) else ""
        failed = True if output.startswith(_CLINE_FAILED) else None
        ran, denied = _CLINE_RAN.match(output), output.startswith(_CLINE_DENIED)
        done = ran or _CLINE_DONE.match(output)
        if printed := _printed(output):
            output, failed = printed
        code = int(done["code"]) if done and done["code"] else None
        output = output[done.end() :] if done else output
        cwd = ran["cwd"] if ran else None
        yield Result(output, id_, code, is_error=failed, cwd=cwd, denied=denied)
    elif words and not feedback and not words.startswith(_CLINE_AUTOMATED):
        yield UserMessage(words)
    if feedback:
        yield UserMessage(feedback.text.strip())


def _printed(output: str) -> tuple[str, bool] | None:
    """The outputs in ``[{"query", "result", "success"}]``, of commands, and whether one failed."""
    if not output.startswith('[{"query"'):
        return None
    try:
        rows = rows_at({"ran": loads(output)}, "ran")
    except ValueError:
        return None
    failed = any(row.get("success") is False for row in rows)
    return "\n".join(shown(row.get("result") or row.get("error")) for row in rows), failed


def is_aider(value: object) -> bool:
    """Return True if *value* is the text of a chat history of aider."""
    return isinstance(value, str) and value.lstrip().startswith(AIDER_START)


def aider_runs(history: str, place: Place) -> Iterator[RawTrajectory | ReadError]:
    """Yield the run of each launch; launches in which nothing was done are passed over."""
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
        # Its own lines and those of people end with a line break of Markdown, two spaces.
        own = line.removeprefix("#### ").removeprefix("> ").removesuffix("  ")
        lines.append(line if now == "reply" else own)
    yield kind, lines


def _aider_request(words: str) -> Iterator[Turn]:
    command, _, rest = words.partition(" ")
    if command in ("/run", "/test") and rest:
        yield Call("bash", {"command": rest})
    elif words.startswith("!"):
        yield Call("bash", {"command": words[1:].strip()})
    elif not words.startswith("/") and words != "<blank>":
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


# SpecStory

SPECSTORY = "specstory"
SPECSTORY_START = "<!-- Generated by SpecStory"

_AGENTS = {"cursor-ide": "cursor", "copilot": "copilot-cli", "github-copilot": "copilot-cli"}
_SESSION = regex(r"<!-- (?P<agent>[\w .-]+?) Session (?P<id>\S+)(?: \((?P<time>[^)]*)\))? -->")
_SPEAKER = regex(
    r"_\*\*(?P<speaker>User|Agent|Assistant)(?P<side> - sidechain)?(?: \((?P<facts>.*)\))?\*\*_"
)
_TIME = regex(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d\S*(?: ?[+-]\d\d:?\d\d)?\Z")
_TOOL = regex(r'<tool-use data-tool-type="(?P<type>[^"]*)" data-tool-name="(?P<name>[^"]*)">')
# Of the extension for Cursor a thought begins and ends within a line.
_THOUGHT, _THOUGHT_END = "<think><details>", regex(r"</details></think>\s*\Z")
_TOOL_END = regex(r"\A(?:</details>)?</tool-use>\Z")
_SUMMARY = regex(r"<summary>(.*?)</summary>", re.DOTALL)
_FENCE = regex(r"^```(?P<language>[\w+-]*)$", re.MULTILINE)
_NAMED = regex(r"(?:(?P<name>\w+):? )?`(?P<value>[^`\n]+)`")
_FILE_IN_TITLE = regex(r"\u2022 \w+ file: (?P<path>.+)")
_PATCHED = regex(r"\*\*(?P<change>Add|Update|Delete): `(?P<path>[^`\n]+)`\*\*")
_WRITTEN = regex(
    r"\AThe file (?P<at>\S[^\n]*?) has been |(?:\A|: )File created successfully at: (?P<new>[^\n]+)"
)
_WENT = regex(r"cd (?P<folder>/[^\s;&|'\"]+) *&& ")
_ANSWER = regex(r"^\*\*Answer:\*\* (?P<words>.+)", re.MULTILINE | re.DOTALL)
# A question that a tool asks the person, and an option with what it means.
_QUESTION = regex(
    r"^\*\*(?!Answer:)(?P<text>[^\n]+)\*\*\n+Options:\n(?P<options>(?:- [^\n]*(?:\n|\Z))+)",
    re.MULTILINE,
)
_OPTION = regex(r"^- \*\*(?P<label>.+?)\*\*(?: - (?P<description>.+))?$", re.MULTILINE)
_NOT_RUN = ("Exit code", "Error", DENIED, INTERRUPTED)
# The name of the argument that tools of a type are called with, where the page does not name it.
_ARGUMENTS = {"read": "file_path", "write": "file_path", "search": "pattern", "shell": "command"}
_HEAD = 1000  # how far into a page its session is looked for
_PROGRAM = "<synthetic>"  # in the place of a model: what the agent's program wrote


class _Turn(Struct):
    """A turn as it stands on the page."""

    speaker: str
    model: str
    time: datetime | None
    is_side: bool
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        words = "\n".join(self.lines).strip()
        return words.removesuffix("\n---").rstrip() if words != "---" else ""


def is_specstory(value: object) -> bool:
    """Return True if *value* is the text of a page of SpecStory."""
    return isinstance(value, str) and value.lstrip().startswith(SPECSTORY_START)


def specstory_runs(page: str, place: Place) -> Iterator[RawTrajectory | ReadError]:
    """Yield the run of each session of a page, and one of each batch of its sub-agents."""
    runs = list[RawTrajectory | ReadError]()
    for facts, turns in _sessions(page, place):
        main = [turn for turn in turns if not turn.is_side]
        for number, some in enumerate([main, *_asides(turns)]):
            agent = f"{facts['agent']}/subagent" if number else facts["agent"]
            model = next((turn.model for turn in some if turn.model), "")
            known = {**facts, "agent": agent, "model": model}
            try:
                spoken = list(_turns(some, facts["agent"]))
                folder = _working_folder(spoken)
                known["folder"] = known["folder"] or folder
                runs.append(finished_run(SPECSTORY, _located(spoken, folder), known, place))
            except EmptyRunError as error:
                runs += [] if number else [error]
    found = [run for run in runs if isinstance(run, RawTrajectory)]
    yield from found or runs[:1] or [EmptyRunError(place.file, "", "no turns, nothing to learn")]


def _sessions(page: str, place: Place) -> Iterator[tuple[dict[str, str], list[_Turn]]]:
    """Each session of a page: what is known of it, and its turns."""
    facts = {"agent": SPECSTORY, "session": PurePath(place.file).stem, "folder": _folder(place)}
    turns, lines = list[_Turn](), page.splitlines()
    quoted = _quoted_lines(lines)
    for number, line in enumerate(lines):
        if number in quoted:
            pass
        elif session := _SESSION.fullmatch(line):
            if turns:
                yield facts, turns
            name = re.sub(r"\W+", "-", session["agent"].casefold())
            facts = {**facts, "agent": _AGENTS.get(name, name), "session": session["id"]}
            turns = []
            continue
        elif spoken := _SPEAKER.fullmatch(line):
            turns.append(_turn(spoken))
            continue
        if turns:
            turns[-1].lines.append(line)
    yield facts, turns


def _quoted_lines(lines: Sequence[str]) -> set[int]:
    """Return the numbers of the *lines* of thoughts and tools, which open no turn.

    A tool may print a page, or an end of its own: SpecStory writes no end that has no beginning,
    so the tool before such an end, below a blank line, reaches to it.
    """
    inside, depth, begun, in_thought = set[int](), 0, len(lines), False
    for number, line in enumerate(lines):
        if in_thought or (depth == 0 and line.startswith(_THOUGHT)):
            inside.add(number)
            in_thought = not _THOUGHT_END.search(line)
        elif _TOOL.match(line):
            begun = begun if depth else number
            depth += 1
        elif _TOOL_END.match(line) and (depth or not lines[number - 1]):
            depth = max(0, depth - 1)
            if depth == 0:
                inside.update(range(begun, number + 1))
    return inside | {*range(begun, len(lines))} if depth else inside


def session_shown(file: Path) -> str:
    """Return the id of the first session that a page shows; empty where it names none."""
    try:
        with opened(file) as page:
            session = _SESSION.search(page.read(_HEAD).decode("utf-8", "replace"))
    except OSError:
        return ""
    return session["id"] if session else ""


def _folder(place: Place) -> str:
    """The project that the page was kept in."""
    parts = PurePath(place.file).parts
    at = parts.index(SPECSTORY_FOLDER) if SPECSTORY_FOLDER in parts else 0
    return str(PurePath(*parts[:at])) if at else ""


def _working_folder(turns: Sequence[Turn]) -> str:
    """The folder that the paths of most calls are relative to; empty where that is unknown.

    Reads name their files from there, edits in full.
    """
    calls = [turn for turn in turns if isinstance(turn, Call)]
    # A file that is not there says nothing of where it would be.
    there = [
        call
        for call, answer in pairwise([*turns, None])
        if isinstance(call, Call) and not (isinstance(answer, Result) and answer.is_error)
    ]
    named = [path for call in there if isinstance(path := call.arguments.get("file_path"), str)]
    # In their order: of folders named equally often, the first counts.
    relative = dict.fromkeys(path.removeprefix("./") for path in named if path.startswith("./"))
    folders = Counter(
        path.removesuffix(f"/{end}")
        for path in named
        if path.startswith("/")
        for end in relative
        if path.endswith(f"/{end}")
    )
    if not folders:
        commands = (call.arguments.get("command") for call in calls)
        went = (_WENT.match(command) for command in commands if isinstance(command, str))
        folders = Counter(match["folder"] for match in went if match)
    return max(folders, key=lambda folder: folders[folder], default="")


def _located(turns: Iterable[Turn], folder: str) -> Iterator[Turn]:
    for turn in turns:
        yield replace(turn, cwd=folder or None) if isinstance(turn, Result) else turn


def _turn(spoken: re.Match[str]) -> _Turn:
    facts = spoken["facts"] or ""
    time = _TIME.search(facts)
    model = facts[: time.start()].strip() if time else facts
    moment = time_in({"timestamp": time[0].replace(" -", "-").replace(" +", "+")}) if time else None
    return _Turn(spoken["speaker"], model, moment, spoken["side"] is not None)


def _asides(turns: list[_Turn]) -> Iterator[list[_Turn]]:
    """The turns of sub-agents that ran at one time; each begins with a prompt, without a model.

    The main agent may speak while they work.
    """
    batch, is_begun = list[_Turn](), False
    for turn in turns:
        if not turn.is_side:
            continue
        if is_begun and not turn.model:
            yield batch
            batch, is_begun = [], False
        is_begun = is_begun or bool(turn.model)
        batch.append(turn if turn.model else replace(turn, speaker="User"))
    if batch:
        yield batch


def _turns(turns: list[_Turn], agent: str) -> Iterator[Turn]:
    command: _Turn | None = None
    for turn in turns:
        if turn.speaker != "User":
            yield from _reply(turn, agent) if turn.model != _PROGRAM else ()
        elif turn.text.startswith(INTERRUPTED):
            yield UserMessage("", interrupted=True)
        # What a slash command expands to stands at the same moment as the command.
        elif command is None or command.time is None or command.time != turn.time:
            yield UserMessage(turn.text, time=turn.time)
        command = turn if turn.speaker == "User" and is_command(turn.text) else None


def _reply(turn: _Turn, agent: str) -> Iterator[Turn]:
    """The thoughts and calls of a turn, in order."""
    lines, words = iter(turn.lines), list[str]()
    for line in lines:
        if called := _TOOL.match(line):
            yield Thought(_words(words), turn.time)
            yield from _call(called, line[called.end() :], lines, turn.time, agent)
        elif line.startswith(_THOUGHT):
            yield Thought(_words(words), turn.time)
            inner = [_SUMMARY.sub("", line.removeprefix(_THOUGHT))]
            while not _THOUGHT_END.search(inner[-1]) and (more := next(lines, None)) is not None:
                inner.append(more)
            yield Thought(_THOUGHT_END.sub("", "\n".join(inner)).strip(), turn.time)
        else:
            words.append(line)
    yield Thought(_words(words), turn.time)


def _words(lines: list[str]) -> str:
    """The text of *lines*, which are taken, without the rule after the last turn of a speaker."""
    words = "\n".join(lines).strip()
    lines.clear()
    return words.removesuffix("---").rstrip()


def _call(
    called: re.Match[str],
    rest: str,
    lines: Iterator[str],
    time: datetime | None,
    agent: str,
) -> Iterator[Turn]:
    body = [rest]
    for line in lines:
        if _TOOL_END.search(line):
            break
        body.append(line)
    text = "\n".join(body).replace("<details>", "", 1)
    summary = _SUMMARY.search(text)
    title = summary[1] if summary else ""
    text = _SUMMARY.sub("", text, count=1).removesuffix("</details>")
    text = text.strip().removesuffix("</details>").rstrip()
    head, output = _parted(text, called["type"])
    output = _written_result(head) if output is None else output
    arguments = _arguments(called["type"], title, head, output or "")
    tool = called["name"]
    if "command" in arguments and tool.lower() not in SHELL_TOOLS:
        tool = "bash"
    yield Call(tool, arguments, "", time)
    is_shell = agent == "claude-code" and tool == "Bash"
    yield _result(output, exit_code=0 if is_shell else None, is_shell=is_shell)
    if answered := _ANSWER.search(head):
        yield UserMessage(answered["words"].strip(), time=time)
    elif output and (words := said_at_denial(output)):
        yield UserMessage(words, time=time)


def _result(output: str | None, exit_code: int | None, *, is_shell: bool) -> Result:
    """The result of a call; *exit_code* is that of a command which does not say that it failed."""
    if output is None:
        return Result("", exit_code=exit_code)
    if wrong := tool_error(output, is_shell=is_shell):
        return Result(wrong.text, is_error=True, cancelled=wrong.cancelled)
    return Result(
        output,
        exit_code=None if output.startswith(_NOT_RUN) else exit_code,
        denied=output.startswith(DENIED),
    )


def _parted(text: str, kind: str) -> tuple[str, str | None]:
    """Return the arguments of a call, and its result: the last fenced text that is no argument.

    An output may hold fences itself, and reaches to the last one.
    """
    fences = list(_FENCE.finditer(text))
    if not fences or text[fences[-1].end() :].strip() or fences[-1]["language"]:
        return text, None
    plain = [fence for fence in fences[:-1] if fence["language"] in ("", "text")]
    if kind in ("write", "shell") and fences[0]["language"] not in ("", "text"):
        # The first block is an argument, in the language of the file or of the shell.
        plain = [fence for fence in plain if text[: fence.start()].rstrip().endswith("```")]
        plain = plain[-1:] or [fence for fence in fences[:-1] if _is_after_result(text, fence)]
    if not plain:
        return text, None
    start = plain[0]
    return text[: start.start()].rstrip(), text[start.end() : fences[-1].start()].strip("\n")


def _is_after_result(text: str, fence: re.Match[str]) -> bool:
    return text[: fence.start()].rstrip().endswith(("Result:", "Output:"))


def _written_result(head: str) -> str | None:
    _, found, result = head.rpartition("\nResult: ")
    return result if found else None


def _arguments(kind: str, title: str, head: str, output: str) -> Mapping[str, Json]:
    if kind == "shell" and (command := _command(title, head)):
        return {"command": command}
    if questions := list[Json](_questions(head)):
        return {"questions": questions}
    if patched := _PATCHED.search(head):
        diff = _block(head) or ""
        change = f"*** {patched['change']} File: {patched['path']}\n{diff}"
        return {"input": f"*** Begin Patch\n{change}\n*** End Patch"}
    arguments: dict[str, Json] = {}
    opened = _FENCE.search(head)
    plain = head[: opened.start()] if opened else head
    for named in _NAMED.finditer(plain if len(plain) < 2000 else ""):
        name = (named["name"] or _ARGUMENTS.get(kind, "query")).lower()
        arguments.setdefault(name, named["value"])
    if file := _FILE_IN_TITLE.search(title):
        arguments["file_path"] = file["path"].strip()
    if kind == "write" and (written := _WRITTEN.search(output)):
        arguments.setdefault("file_path", written["at"] or written["new"].strip())
    if kind == "write" and (content := _block(head)) is not None:
        arguments["content"] = content
    if not arguments and plain.strip():
        arguments["description"] = plain.strip()
    return arguments


def _questions(head: str) -> Iterator[dict[str, Json]]:
    for asked in _QUESTION.finditer(head):
        options: list[Json] = [
            dict[str, Json](one.groupdict("")) for one in _OPTION.finditer(asked["options"])
        ]
        yield {"question": asked["text"], "options": options}


def _command(title: str, head: str) -> str:
    """The command of a call: in a block, in backticks on a line of its own, or in the title."""
    if block := _block(head):
        return block
    lines = [line for line in head.splitlines() if line.startswith("`") and line.endswith("`")]
    if lines:
        return lines[-1][1:-1]
    named = re.search(r"`(.+)`", title, re.DOTALL)
    return named[1] if named else ""


def _block(head: str) -> str | None:
    """The text in the first block of *head*, which reaches to the last fence."""
    fences = list(_FENCE.finditer(head))
    if len(fences) < 2:
        return None
    return head[fences[0].end() : fences[-1].start()].strip("\n")


FORMATS = (
    history(
        CLINE,
        "messages, the first with <task> or <environment_details> (Cline, Roo Code, Kilo Code)",
        recognises=is_cline,
        runs=cline_runs,
        omits="images, ui_messages.json, checkpoints, details of the environment",
        kept=(
            Kept(
                ".cline",
                ("data/sessions/*/*.messages.json", f"data/tasks/*/{TASK_FILE}"),
                "CLINE_DIR",
            ),
            *(
                Kept(
                    folder,
                    (f"{user}/globalStorage/{extension}/tasks/*/{TASK_FILE}",),
                    agent=agent,
                )
                for extension, agent in _EXTENSIONS.items()
                for folder, user in VS_CODE
            ),
        ),
    ),
    history(
        AIDER,
        "text that starts with '# aider chat started at'",
        recognises=is_aider,
        runs=aider_runs,
        omits="token counts, warnings of aider",
        kept=(Kept("", (".aider.chat.history.md",)),),
    ),
    Format(
        SPECSTORY,
        f"text that starts with '{SPECSTORY_START}' (.specstory/history/*.md)",
        "requests, replies, thoughts, tool calls with results, times, agent, model; of most edits "
        "only the file; sub-agents as runs of their own",
        is_specstory,
        specstory_runs,
        omits="the content of most edits, images",
        # In each project, which lies a few folders deep.
        kept=(
            Kept(
                "",
                tuple(f"{'*/' * depth}{SPECSTORY_FOLDER}/history/*.md" for depth in range(5)),
                session_shown=session_shown,
            ),
        ),
    ),
)
