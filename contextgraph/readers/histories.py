"""Histories that coding agents keep on the machine they run on."""

import glob
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import islice, takewhile
from pathlib import Path, PurePath
from typing import Any, TypeAlias

from msgspec import Struct, field

from contextgraph.errors import ReadError
from contextgraph.model import Json, RawTrajectory, Spent
from contextgraph.model.values import replace
from contextgraph.readers.conversation import (
    Bill,
    Call,
    Prompt,
    Result,
    Thought,
    Tree,
    Turn,
    Undone,
    UserMessage,
    block_turns,
    call_in,
    each_row,
    finished_run,
    inherited_of,
    lines_run,
    not_understood,
    of_message,
    shown,
    time_in,
    without,
)
from contextgraph.readers.envelopes import (
    DENIED,
    INTERRUPTED,
    coalesce,
    is_command,
    output_in,
    said_at_denial,
    tool_error,
)
from contextgraph.readers.format import (
    EmptyRunError,
    Format,
    Kept,
    Place,
    Row,
    content_text,
    count,
    file_stem,
    integer,
    is_list_of,
    loose_text,
    row_at,
    rows_at,
    text,
)
from contextgraph.readers.tool_calls import ToolCall, calls_in_script, json_arguments
from contextgraph.system.intake import MAX_RUN_SIZE, loads, pieces, whole
from contextgraph.text import may_be_fenced, regex
from contextgraph.trace.actions import SHELL_TOOLS, command_in

# Claude Code: the sessions it keeps, and what `--output-format stream-json` logs. One message of
# the model is spread over several lines, one block each.

CLAUDE_CODE = "claude-code"
# Writes the lines of Claude Code, with the answers of tools in an object of its own.
IFLOW = "iflow"

_CLAUDE_MESSAGES = ("user", "assistant")
_CLAUDE_OTHER = frozenset(
    {
        "summary",
        "file-history-snapshot",
        "queue-operation",
        "system",
        "result",
        "progress",
        "attachment",
    }
)
# Newer kinds, of settings, titles and the state of the program.
_CLAUDE_SILENT = frozenset(
    {"agent-color", "agent-name", "ai-title", "attribution-snapshot", "content-replacement"}
    | {"cost-state", "custom-title", "fork-context-ref", "last-prompt", "mode", "permission-mode"}
    | {"pr-link", "speculation-accept", "started", "tag", "worktree-state"}
    | {"api-request", "api-request-blob", "api-request-shape", "atis-latch", "tools-used"}
)
_CLAUDE_LEARNED = (*_CLAUDE_MESSAGES, "system", "result", "attachment", "queue-operation")
_CLAUDE_ITSELF = "<synthetic>"  # in the place of a model: the program wrote this
# Agents that begin with all of a session and say one thing to the program.
_CLAUDE_ASIDE = ("acompact-", "aprompt_suggestion-")
_CLAUDE_KIND = regex(r"[a-z]+(?:-[a-z]+)*")
_CLAUDE_MARKS = ("sessionId", "session_id", "leafUuid", "messageId", "parentUuid")
# Claude Code's own words to the model at the end of what a tool returned.
_REMINDER, _REMINDER_END = "<system-reminder>", "</system-reminder>"
# What stands in the place of an output of more than 50,000 characters.
_PERSISTED_TAG = "<persisted-output>"
_PERSISTED = regex(
    _PERSISTED_TAG + r"\n.*?saved to: (?P<path>[^\n]+)\n"
    r"(?:\s*Preview [^\n]*\n)?(?P<preview>.*?)(?:\n\.\.\.)?\n?</persisted-output>",
    re.DOTALL,
)
# Bytes of an output in a file of its own that are read: half from its beginning, half of its end.
_MAX_OUTPUT = 1 << 19


def is_claude_line(value: object) -> bool:
    """Return True if *value* is a line of a session."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    message = value.get("message")
    if kind in _CLAUDE_MESSAGES and isinstance(message, dict):
        return any(mark in value for mark in _CLAUDE_MARKS) and "parts" not in message
    if not isinstance(kind, str) or "payload" in value:
        return False
    if kind in _CLAUDE_OTHER:
        return any(mark in value for mark in _CLAUDE_MARKS)
    # A session may begin with any of the kinds that each version adds.
    return isinstance(value.get("sessionId"), str) and bool(_CLAUDE_KIND.fullmatch(kind))


def is_iflow(value: object) -> bool:
    """Return True where *value* is the lines of a session of iFlow CLI.

    Its sessions have another kind of id than those of Claude Code.
    """
    if not isinstance(value, list) or not is_list_of(is_claude_line, value):
        return False
    if any(loose_text(line, "sessionId").startswith("session-") for line in value[:1]):
        return True
    results = (result for line in value for result in _results_in(line))
    first = next(results, None)  # all have one form
    return isinstance(first, dict) and "responseParts" in first


def _results_in(line: object) -> Iterator[object]:
    message = line.get("message") if isinstance(line, dict) else None
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "tool_result":
            yield block.get("content")


# Of denied calls.
_BY_PERSON = "user-rejected"
# A person needs longer to type a prompt after a slash command than its program to expand that.
_EXPANDED = timedelta(seconds=1)
_TOOLS_OF_OTHERS = ("mcp__", "Web")


class _ClaudeSession(Struct):
    """Common fields of the lines of one agent; *agent* is empty for the main one.

    *queued* are prompts that were typed while the agent worked, and of which no line says yet how
    they reached it. *usages* are the tokens of each reply. *origin* is the session that it forks.
    *command* is a slash command in the line before.
    *below* counts the lines of other folders in a repository, as its branch says.
    *tools* are the names of the called tools by the ids of their calls. *opened_at* is when the log
    says that it was opened, before its messages: a fork begins with copies, and their times.
    """

    id: str
    agent: str = ""
    turns: list[Turn] = field(default_factory=list)
    queued: list[UserMessage] = field(default_factory=list)
    usages: dict[str, Row] = field(default_factory=dict)
    tools: dict[str, str] = field(default_factory=dict)
    model: str = ""
    folder: str = ""
    below: Counter[str] = field(default_factory=Counter)
    ending: str = ""
    opened_at: datetime | None = None
    origin: "_ClaudeSession | None" = None
    is_in_repository: bool = False
    command: UserMessage | None = None

    def add(self, kind: str, row: Row, message: Row, turns: Sequence[Turn]) -> None:
        """Take in a line of a *kind*, its *message* and its *turns*."""
        if kind == "queue-operation":
            self._queue(row)
        if self.queued:
            for turn in turns:
                if isinstance(turn, UserMessage):
                    self._unqueue(turn.text)
        self.turns += turns
        by_model = text(message, "model") != _CLAUDE_ITSELF
        if kind == "assistant":
            self.tools |= {turn.id: turn.tool for turn in turns if isinstance(turn, Call)}
        if by_model and kind == "assistant" and isinstance(usage := message.get("usage"), dict):
            # Each line of a reply repeats it.
            self.usages[loose_text(message, "id") or f"{len(self.usages)}"] = usage
        if by_model and not self.model:
            self.model = text(message, "model")
        if not self.is_in_repository:
            self._place(text(row, "cwd"), bool(row.get("gitBranch")))
        if kind == "result":
            self.ending = text(row, "subtype")

    def without_expansion(self, turns: list[Turn]) -> list[Turn]:
        """Return the *turns* of a line without what its program made of a slash command before."""
        if self.command and turns and isinstance(turns[0], UserMessage):
            times = (self.command.time, turns[0].time)
            since = times[1] - times[0] if times[0] and times[1] else _EXPANDED
            turns = turns if since >= _EXPANDED else []
        self.command = None
        for number, turn in enumerate(turns):
            if isinstance(turn, UserMessage) and is_command(turn.text):
                self.command = turn
                return turns[: number + 1]
        return turns

    def _place(self, folder: str, has_branch: bool) -> None:
        """Take in the folder of a line."""
        self.folder = self.folder or folder
        if has_branch and folder == self.folder:
            self.is_in_repository = True
        elif has_branch:
            self.below[folder] += 1

    def worked_in(self) -> str:
        """Return where it began; where that is in no repository, the one that most lines are of."""
        if self.is_in_repository or not self.below:
            return self.folder
        most = PurePath(max(self.below, key=lambda folder: self.below[folder]))
        return str([above for above in (most, *most.parents) if str(above) in self.below][-1])

    def forget_repeated_request(self) -> None:
        """Remove a request at the end that was made before: what follows it is a copy."""
        while self.turns and isinstance(last := self.turns[-1], UserMessage):
            earlier = self.turns[:-1]
            if not any(isinstance(t, UserMessage) and t.text == last.text for t in earlier):
                return
            self.turns.pop()

    def _queue(self, row: Row) -> None:
        """Take in what a person typed, unless they took it back into the input line."""
        content = row.get("content")
        if not self.turns and self.opened_at is None:
            self.opened_at = time_in(row)
        if row.get("operation") == "popAll":
            for message in list(self.queued):
                self._unqueue(message.text)
        elif row.get("operation") == "enqueue" and content:
            words = content if isinstance(content, str) else content_text(row)
            message = UserMessage(words, time=time_in(row))
            self.queued.append(message)
            self.turns.append(message)

    def _unqueue(self, words: str) -> None:
        """Remove the queued prompts in *words*: a later line has them at their place.

        Several that waited may be sent as one.
        """
        lines = set(words.splitlines())
        sent = [queued for queued in self.queued if lines.issuperset(queued.text.splitlines())]
        same = [queued for queued in sent if queued.text == words]
        for message in same[:1] or sent:
            self.queued.remove(message)
            self.turns = [turn for turn in self.turns if turn is not message]


def claude_runs(
    name: str, lines: Sequence[Any], place: Place
) -> Iterator[RawTrajectory | ReadError]:
    """Yield the run, in the format *name*, of each session and sub-agent, in the order they begin.

    Lines of one message, and results, may come in any order; a repeated line counts once. A line
    of another shape is an error, and the others are read.
    """
    sessions: dict[tuple[str, str], _ClaudeSession] = {}
    roots: dict[str, str] = {}
    seen: set[str] = set()
    trees = {"": Tree()}
    unknown, versions = Counter[str](), dict[str, None]()

    def take(row: Row) -> None:
        if (kind := text(row, "type")) not in _CLAUDE_LEARNED:
            if kind == "last-prompt":
                trees[""].goes_on_at(loose_text(row, "leafUuid"))
            if kind not in _CLAUDE_OTHER | _CLAUDE_SILENT:
                unknown[kind] += 1
                versions.update({text(row, "version"): None})
            return
        session = _claude_session(sessions, row, _claude_agent(row, roots))
        id_ = text(row, "uuid")
        message = _new_in(row_at(row, "message"), id_, seen)
        if message is None:
            session.forget_repeated_request()
            return
        # The id of a reply outlasts those of its lines.
        reply = loose_text(message, "id") or id_
        turns = list(of_message(_claude_turns(kind, row, message, session.tools, place), reply))
        turns = session.without_expansion(turns)
        session.add(kind, row, message, turns)
        tree = trees.get(session.agent) or trees.setdefault(session.agent, Tree())
        # What was compacted hangs together by a parent of its own.
        parent = text(row, "parentUuid") or loose_text(row, "logicalParentUuid")
        tree.add(id_, parent, turns)

    yield from each_row(lines, take, f"{name} line", place)
    for session in sessions.values():
        if (tree := trees.get(session.agent)) and (rewound := tree.rewound()):
            session.turns = without(rewound, session.turns)
    own = (one for one in sessions.values() if not one.agent.startswith(_CLAUDE_ASIDE))
    begun = [session for session in own if session.turns]
    if not begun and unknown:
        version = next(filter(None, versions), "")
        yield not_understood(name, unknown, place, version)
    elif not begun:
        yield EmptyRunError(place.file, "", "a session without messages, nothing to learn")
    yield from _with_parents(name, begun, place)


def _claude_session(
    sessions: dict[tuple[str, str], _ClaudeSession], row: Row, agent: str
) -> _ClaudeSession:
    """Return that of *sessions* which *row* is of, of its *agent*; a new one for its first line.

    A fork begins with copies of the lines of another session, which they are still of.
    """
    key = (text(row, "sessionId") or text(row, "session_id"), agent)
    copied = text(row_at(row, "forkedFrom"), "sessionId") if "forkedFrom" in row else ""
    if not copied:
        return sessions.get(key) or sessions.setdefault(key, _ClaudeSession(*key))
    origin = sessions.setdefault((copied, agent), _ClaudeSession(copied, agent))
    sessions.setdefault(key, _ClaudeSession(*key)).origin = origin
    return origin


def _new_in(message: Row, id_: str, seen: set[str]) -> Row | None:
    """Return the *message* of the line *id_* without what was *seen*; None where all of it was.

    A reply may be logged as it grows, with all of its blocks each time. Clients that append a
    history again give it new ids.
    """
    if id_ in seen:
        return None
    if id_:
        seen.add(id_)
    blocks = message.get("content")
    if not isinstance(blocks, list):
        return message
    reply = text(message, "id")
    ids = [_block_id(block, reply) for block in blocks]
    if seen.isdisjoint(ids):
        seen.update(filter(None, ids))
        return message
    new = [block for block, id_ in zip(blocks, ids, strict=True) if id_ not in seen]
    seen.update(filter(None, ids))
    return {**message, "content": new} if new else None


def _block_id(block: object, reply: str) -> str:
    """Return an id of a block: of a result its call, else the reply that it is in."""
    if not isinstance(block, dict):
        return ""
    if call := loose_text(block, "tool_use_id"):
        return call
    if not reply:
        return ""
    return f"{reply} {loose_text(block, 'id') or loose_text(block, 'text') or shown([block])}"


def _claude_agent(row: Row, roots: dict[str, str]) -> str:
    """The sub-agent that wrote *row*; where it has no name, the first line of its chain."""
    if parent_call := row.get("parent_tool_use_id"):
        return str(parent_call)
    if not row.get("isSidechain"):
        return ""
    id_, parent = text(row, "uuid"), text(row, "parentUuid")
    roots[id_] = roots.get(parent, id_)
    return text(row, "agentId") or roots[id_]


def _with_parents(
    name: str, sessions: Iterable[_ClaudeSession], place: Place
) -> list[RawTrajectory | ReadError]:
    """The runs of *sessions*; sub-agents work on the instance and repository of their session."""
    results, main = list[RawTrajectory | ReadError](), dict[str, RawTrajectory]()
    for session in sessions:
        run = _claude_run(name, session, place)
        if isinstance(run, RawTrajectory):
            parent = main.setdefault(session.id, run)
            run = replace(run, instance_id=parent.instance_id, repo=parent.repo)
        results.append(run)
    return results


def _claude_run(name: str, session: _ClaudeSession, place: Place) -> RawTrajectory | ReadError:
    facts = {
        "agent": f"{name}/subagent" if session.agent else name,
        "model": session.model,
        "folder": session.worked_in(),
        "session": session.id,
        "exit_status": session.ending,
    }
    bill = Bill(_claude_spent(session.usages.values()))
    try:
        run = finished_run(name, [*session.turns, bill], facts, place)
    except ReadError as error:
        return error
    if session.opened_at:
        run = replace(run, started_at=session.opened_at)
    return replace(run, inherited=inherited_of(session.origin.turns)) if session.origin else run


def _claude_turns(
    kind: str, row: Row, message: Row, tools: Mapping[str, str], place: Place
) -> Iterable[Turn]:
    if row.get("isMeta") or row.get("isCompactSummary") or row.get("isApiErrorMessage"):
        return ()
    if kind == "assistant":
        return _claude_reply(row, message)
    if kind == "user":
        if isinstance(message.get("content"), list):
            blocks = rows_at(message, "content")
            return (turn for block in blocks for turn in _claude_answer(row, block, tools, place))
        return _user_turns(text(message, "content"), time_in(row))
    if kind == "attachment":
        attachment = row_at(row, "attachment")
        if attachment.get("type") == "queued_command":
            return _queued_command(attachment, time_in(row))
        return _hook_context(attachment)
    return ()


def _queued_command(attachment: Row, time: datetime | None) -> Iterator[UserMessage]:
    """Yield a message typed while the agent worked; task notifications have another mode."""
    if attachment.get("commandMode", "prompt") == "prompt":
        yield UserMessage(content_text(attachment, "prompt"), time=time)


def _hook_context(attachment: Row) -> Iterator[Prompt]:
    """Yield what a hook added: stripped before learning; its ids say what was shown."""
    content = attachment.get("content")
    if attachment.get("type") == "hook_additional_context" and isinstance(content, list):
        parts = (part for part in content if isinstance(part, str))
        yield from map(Prompt, filter(may_be_fenced, parts))


def _claude_reply(row: Row, message: Row) -> Iterable[Turn]:
    if text(message, "model") == _CLAUDE_ITSELF:
        return ()
    time = time_in(row)
    if isinstance(message.get("content"), str):
        return (Thought(text(message, "content"), time),)
    return block_turns(rows_at(message, "content"), is_agent=True, time=time)


def _claude_spent(usages: Collection[Row]) -> Spent:
    return Spent(
        sum(count(usage, "input_tokens") for usage in usages),
        sum(count(usage, "cache_read_input_tokens") for usage in usages),
        sum(count(usage, "cache_creation_input_tokens") for usage in usages),
        sum(count(usage, "output_tokens") for usage in usages),
    )


def _claude_answer(row: Row, block: Row, tools: Mapping[str, str], place: Place) -> Iterator[Turn]:
    if block.get("type") == "text":
        yield from _user_turns(text(block, "text"), time_in(row))
    elif block.get("type") == "tool_result":
        yield from _claude_result(row, block, tools, place)


def _user_turns(words: str, time: datetime | None) -> Iterator[Turn]:
    if words.startswith(INTERRUPTED):
        yield UserMessage("", interrupted=True)
    else:
        yield UserMessage(words, time=time)


def _without_reminders(shown: str) -> str:
    """*shown* up to the reminders that it ends with."""
    if _REMINDER_END not in shown:
        return shown
    *parts, rest = shown.split(_REMINDER_END)
    if rest.strip() or _REMINDER not in parts[-1]:
        return shown
    while parts and _REMINDER in parts[-1]:
        before, _, _ = parts.pop().partition(_REMINDER)
        if before.strip():
            return _REMINDER_END.join((*parts, before)).rstrip()
    return _REMINDER_END.join((*parts, "")).rstrip()


def _claude_result(row: Row, block: Row, tools: Mapping[str, str], place: Place) -> Iterator[Turn]:
    shown = _without_reminders(_whole_output(_claude_output(block), place))
    details = row.get("toolUseResult")
    facts = details if isinstance(details, dict) else {}
    is_error = block.get("is_error")
    call = text(block, "tool_use_id")
    denied = is_error is True and shown.startswith(DENIED)
    denied = denied and _by_person(row, tools.get(call, ""))
    wrong = tool_error(shown, is_shell=tools.get(call, "").lower() in SHELL_TOOLS)
    yield Result(
        wrong.text if wrong else shown,
        call,
        exit_code=_claude_exit_code(facts, is_error),
        is_error=is_error if isinstance(is_error, bool) else None,
        cwd=text(row, "cwd") or None,
        denied=denied,
        interrupted=facts.get("interrupted") is True,
        cancelled=wrong is not None and wrong.cancelled,
    )
    if denied and (words := said_at_denial(shown)):
        yield UserMessage(words, time=time_in(row))


def _by_person(row: Row, tool: str) -> bool:
    """Return whether a person denied the call of *tool*, as the text of its result says.

    Lines name it since 2.1.205. Before, only the errors of the client's own tools are not worded by
    servers and pages, which could claim it.
    """
    kind = text(row, "toolDenialKind")
    return kind == _BY_PERSON if kind else not tool.startswith(_TOOLS_OF_OTHERS)


def _claude_output(block: Row) -> str:
    """The text of a result; iFlow has the answer of its tool below ``responseParts``."""
    if not isinstance(block.get("content"), dict):
        return content_text(block)
    answer = row_at(block, "content")
    parts = answer.get("responseParts")
    parts = rows_at(answer, "responseParts") if isinstance(parts, list) else [parts or {}]
    answered = (turn for turn in block_turns(parts, is_agent=False) if isinstance(turn, Result))
    return next((turn.text for turn in answered), "") or shown(answer.get("resultDisplay"))


def _whole_output(output: str, place: Place) -> str:
    """*output*; where the log has only its beginning, that of the file beside the session.

    The file is found by its name below the session's folder, wherever that was when it was
    written. Where it is gone the beginning is returned.
    """
    persisted = _PERSISTED.search(output) if _PERSISTED_TAG in output else None
    if not persisted:
        return output
    log = Path(place.file)
    folders = (log.with_suffix(""), *log.parents[:2])
    name = PurePath(persisted["path"].replace("\\", "/")).name
    for folder in folders:
        whole = _text_of(place, folder / "tool-results" / name)
        if whole:
            return output[: persisted.start()] + whole
    return output[: persisted.start()] + persisted["preview"]


def _text_of(place: Place, path: Path) -> str:
    """The beginning and the end of the file at *path*; empty where there is none."""
    try:
        with place.beside(path) as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(_MAX_OUTPUT // 2)
            rest = size - len(head)
            file.seek(max(len(head), size - _MAX_OUTPUT // 2))
            cut = b"\n[...]\n" if rest > _MAX_OUTPUT // 2 else b""
            return (head + cut + file.read(_MAX_OUTPUT // 2)).decode("utf-8", "replace")
    except OSError:
        return ""


def _claude_exit_code(facts: Row, is_error: object) -> int | None:
    """0 for a shell command without error, as Claude Code marks all others as errors."""
    if (code := integer(facts, "exitCode")) is not None:
        return code
    is_shell = "stdout" in facts and "returnCodeInterpretation" not in facts
    ended = not facts.get("interrupted") and "backgroundTaskId" not in facts
    return 0 if is_shell and ended and is_error is False else None


# Codex CLI: the rollouts it keeps, and what `codex exec --json` logs

CODEX = "codex-cli"

_CODEX_LINES = ("session_meta", "turn_context", "response_item", "event_msg", "compacted")
_CODEX_ITEMS = frozenset(
    {"message", "reasoning", "function_call", "function_call_output", "custom_tool_call"}
    | {"custom_tool_call_output", "local_shell_call", "web_search_call", "ghost_snapshot"}
    | {"compaction", "tool_search_call", "tool_search_output", "image_generation_call"}
)
_CODEX_STREAM = regex(r"(?:thread|turn|item)\.(?:started|updated|completed|failed)")
# What Codex itself puts into messages of the user.
_CODEX_CONTEXT = regex(
    r"\s*(?:<(?:environment_context|user_instructions|permissions|skill|turn_aborted)|# AGENTS)"
)
_CODEX_FOLDER = regex(r"\s*<environment_context>\s*(?:<cwd>|Current working directory: )([^<\n]+)")
_CODEX_RUNNING = regex(r"^(?:Process|Script) running with ((?:session|cell) ID \d+)", re.MULTILINE)
# The tools that ask for what runs in the background, with the argument that names it.
_CODEX_POLLS = {"write_stdin": "session", "wait": "cell"}
# The folder of a rollout: those of all days lie three above it.
_CODEX_DAY = regex(r"/\d{4}/\d\d/\d\d\Z")
# How long copying the history of another rollout takes at most, at the start of a fork.
_COPYING = timedelta(seconds=1)
_CODEX_REJECTED = regex(r"\A(?:exec command )?(?:was )?rejected by (?:the )?user", re.IGNORECASE)


def is_codex_line(value: object) -> bool:
    """Return True if *value* is a line of a rollout, new or old, or of the JSON stream."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    if isinstance(value.get("payload"), dict):
        return kind in _CODEX_LINES
    if value.keys() >= {"id", "timestamp", "instructions"} or value.get("record_type") == "state":
        return True
    return isinstance(kind, str) and _CODEX_STREAM.fullmatch(kind) is not None


def codex_runs(lines: Sequence[Any], place: Place) -> Iterator[RawTrajectory | ReadError]:
    """Yield the run of one rollout, without the history of another that a fork may begin with.

    Where a person went back, it begins with the rollouts of its thread before; of these the run of
    the newest is the only one.
    """
    thread, rollout = _thread_of_codex(lines, place), file_stem(place.file)
    if thread and max(thread) > rollout:
        newest = thread[max(thread)].name
        raise EmptyRunError(place.file, "", f"a session that goes on in {newest}")
    copied, own = _own_lines(lines)
    session = _CodexSession()
    before, begun = list[Turn](), list[Turn]()
    yield from each_row(copied, lambda row: before.extend(session.turns(row)), "line", place)
    for name in sorted(thread.keys() - {rollout}):
        for row in _rows_beside(place, thread[name]):
            begun += of_message(session.turns(row), _codex_message_id(row))
    runs = lines_run(
        CODEX, session.turns, _codex_facts, own, place, _codex_unknown, _codex_ids, begun
    )
    for run in runs:
        is_read = isinstance(run, RawTrajectory)
        is_fork = is_read and (bool(copied) or any(map(_is_fork_of_codex, own)))
        yield replace(run, inherited=inherited_of(before)) if is_fork else run


def _thread_of_codex(lines: Sequence[Any], place: Place) -> Mapping[str, Path]:
    """The rollouts of the thread of *lines*, by their names without suffix, which sort by time.

    Codex opens another one when a person goes back in a thread whose history has pages. They may
    lie in the folder of another day, and be packed.
    """
    first = lines[0] if lines and isinstance(lines[0], dict) else {}
    meta = first.get("payload")
    if place.is_sent or not isinstance(meta, dict) or meta.get("history_mode") != "paginated":
        return {}
    if not (id_ := loose_text(meta, "id")):
        return {}
    folder, name = Path(os.path.abspath(place.file)).parent, f"rollout-*-{glob.escape(id_)}*.jsonl*"
    is_of_day = _CODEX_DAY.search(str(folder))
    found = (
        folder.parents[2].glob(f"*/*/*/{name}") if is_of_day else folder.parent.glob(f"*/{name}")
    )
    rollouts = {file_stem(path.name): path for path in sorted(found, reverse=True)}
    return {
        name: path
        for name, path in rollouts.items()
        if name.endswith(f"-{id_}") or f"-{id_}_" in name
    }


def _rows_beside(place: Place, path: Path) -> Iterator[Row]:
    """Yield the rows of a file beside that of *place*, without what is damaged."""
    try:
        with place.beside(path, above=3) as file:
            content = pieces(str(path), file, lambda taken: None, MAX_RUN_SIZE)
            lines = whole(str(path), content, MAX_RUN_SIZE).splitlines()
    except (OSError, ReadError):
        return
    for line in lines:
        with suppress(ValueError):
            row = loads(line)
            if isinstance(row, dict):
                yield row


def _codex_message_id(row: Row) -> str:
    item = row.get("payload")
    return loose_text(item, "id") if isinstance(item, dict) else ""


def _codex_ids(row: Row) -> tuple[str, str]:
    return _codex_message_id(row), ""


def _is_fork_of_codex(line: object) -> bool:
    """Return True for the description of a rollout that goes on from another one."""
    if not isinstance(line, dict) or line.get("type") != "session_meta":
        return False
    payload = line.get("payload")
    return isinstance(payload, dict) and bool(payload.get("forked_from_id"))


def _codex_unknown(row: Row) -> str:
    """The kind of an item that may be words or a call, and is not read; empty for others."""
    item = row.get("payload")
    kind = loose_text(item, "type") if isinstance(item, dict) else ""
    is_item = row.get("type") == "response_item" and kind not in _CODEX_ITEMS
    return kind if is_item else ""


def _own_lines(lines: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """The lines that a fork or a sub-agent took over from the rollout it began in, and its own.

    They follow the description of that rollout, and are stamped with their own time or with the
    one at which they were copied, at the start. Its own begin at the latest with the turn that is
    the first to name its thread.
    """
    metas = [
        (number, line)
        for number, line in enumerate(lines)
        if isinstance(line, dict) and line.get("type") == "session_meta"
    ]
    if len(metas) < 2:
        return (), lines
    (first, begun), (second, copied) = metas[:2]
    started, id_ = time_in(begun), _codex_payload(begun).get("id")
    if started is None or _codex_payload(copied).get("id") == id_:
        return (), lines
    last, own = started + _COPYING, len(lines)
    turns: dict[object, int] = {}
    for number, line in enumerate(lines[second + 1 :], second + 1):
        if not isinstance(line, dict):
            continue
        payload = _codex_payload(line)
        begins = turns.setdefault(payload.get("turn_id") or number, number)
        if id_ and payload.get("thread_id") == id_:
            own = begins
            break
        if (time_in(line) or started) > last:
            own = number
            break
    return lines[second:own], [*lines[: first + 1], *lines[own:]]


def _codex_payload(row: Row) -> Row:
    payload = row.get("payload")
    return payload if isinstance(payload, dict) else {}


def _codex_facts(row: Row) -> dict[str, str]:
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
            "agent": f"{CODEX}/subagent" if is_subagent else "",
            "version": loose_text(item, "cli_version"),
        }
    named = _CODEX_FOLDER.match(content_text(item)) if "role" in item else None
    return {"folder": named[1].strip()} if named else {}


class _CodexSession(Struct):
    """Makes turns of the lines of a rollout.

    *scripts* are calls of the tool that runs JavaScript, by id, with the commands that it started.
    *running* are calls of what runs in the background, by what names it. *asked* are the
    numbers of the lines with requests, in a thread whose history has pages.
    """

    scripts: dict[str, list[Result]] = field(default_factory=dict)
    running: dict[str, str] = field(default_factory=dict)
    polls: dict[str, str] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)

    def turns(self, row: Row) -> Iterator[Turn]:
        """Yield the turns in a line."""
        kind = text(row, "type")
        if _CODEX_STREAM.fullmatch(kind):
            yield from _codex_streamed(row)
            return
        item, time = row_at(row, "payload") if "payload" in row else row, time_in(row)
        yield from _codex_bill(item)
        match text(item, "type") if kind in ("response_item", "event_msg") else kind:
            case "message":
                yield from self._message(row, item, time)
            case "reasoning":
                for summary in rows_at(item, "summary"):
                    yield Thought(text(summary, "text"), time)
            case "function_call_output" | "custom_tool_call_output":
                yield from self._answer(item)
            case "turn_aborted":
                yield UserMessage("", interrupted=True)
            case "thread_rolled_back" | "session_meta":
                yield from self._undone(item)
            case "item_completed" if self.scripts:
                self._executed(row_at(item, "item"))
            case "function_call" | "custom_tool_call" | "local_shell_call" as called:
                yield from self._call(called, item, time)

    def _message(self, row: Row, item: Row, time: datetime | None) -> Iterator[Turn]:
        for turn in _codex_message(text(item, "role"), _codex_words(item), time):
            if isinstance(turn, UserMessage) and turn.text.strip():
                self.asked.append(integer(row, "ordinal") or 0)
            yield turn

    def _undone(self, item: Row) -> Iterator[Undone]:
        """Requests that a person left: so many, or those from the line where a new file goes on."""
        requests = integer(item, "num_turns") or 0
        end = integer(row_at(item, "history_base"), "end_ordinal_exclusive")
        if end is not None:
            requests = sum(at >= end for at in self.asked)
        if requests:
            del self.asked[max(0, len(self.asked) - requests) :]
            yield Undone(requests)

    def _call(self, called: str, item: Row, time: datetime | None) -> Iterator[Turn]:
        tool, id_ = text(item, "name") or "local_shell", _codex_id(item)
        arguments = _codex_arguments(called, item)
        if (kind := _CODEX_POLLS.get(tool)) and not arguments.get("chars"):
            running = self.running.get(f"{kind} ID {arguments.get(f'{kind}_id')}")
            if running:
                self.polls[id_] = running
                return
        script = text(item, "input") if called == "custom_tool_call" and tool == "exec" else ""
        if not (calls := calls_in_script(script)):
            yield Call(tool, arguments, id_, time)
            return
        self.scripts[id_] = []
        if patches := [call for call in calls if call.name == "apply_patch"]:
            yield Call("apply_patch", patches[0].arguments, id_, time)
        elif commands := "\n".join(filter(None, map(_command_of, calls))):
            yield Call("exec_command", {"cmd": commands}, id_, time)
        else:
            yield Call(calls[0].name, calls[0].arguments, id_, time)

    def _executed(self, item: Row) -> None:
        """Take in a command that the newest script has run."""
        if item.get("type") == "CommandExecution":
            output, code = text(item, "aggregated_output"), integer(item, "exit_code")
            result = Result(output, exit_code=code, cwd=text(item, "cwd") or None)
            self.scripts[next(reversed(self.scripts))].append(result)

    def _answer(self, item: Row) -> Iterator[Turn]:
        result = _codex_result(item)
        if result.id in self.polls:
            result = replace(result, id=self.polls.pop(result.id), continues=True)
        if started := _CODEX_RUNNING.search(result.text):
            self.running[started[1]] = result.id
        elif executed := self.scripts.pop(result.id, []):
            last = next((one for one in executed if one.exit_code), executed[-1])
            words = result.text if output_in(result.text).text.strip() else last.text
            result = replace(result, text=words, exit_code=last.exit_code, cwd=last.cwd)
        yield result


def _codex_bill(item: Row) -> Iterator[Bill]:
    """The tokens of the whole session so far, in an event that counts them."""
    if total := row_at(row_at(item, "info"), "total_token_usage"):
        yield Bill(_codex_spent(total), "total")


def _codex_spent(usage: Row) -> Spent:
    """The tokens in *usage*, whose input includes what was cached."""
    given, cached = count(usage, "input_tokens"), count(usage, "cached_input_tokens")
    return Spent(max(0, given - cached), cached, 0, count(usage, "output_tokens"))


def _command_of(call: ToolCall) -> str:
    """The command line that *call* runs; empty for a call of a tool that runs none."""
    return command_in(call.arguments) or ""


def _codex_words(message: Row) -> str:
    """The words of a message; of a user's without what Codex puts into parts of it."""
    parts = message.get("content")
    if not isinstance(parts, list) or len(parts) < 2 or message.get("role") != "user":
        return content_text(message)
    kept = [part for part in parts if not _CODEX_CONTEXT.match(content_text({"content": [part]}))]
    return content_text({"content": kept or parts})


def _codex_message(role: str, words: str, time: datetime | None) -> Iterator[Turn]:
    if role == "assistant":
        yield Thought(words, time)
    elif role == "user" and not _CODEX_CONTEXT.match(words):
        yield UserMessage(words, time=time)
    elif role == "developer" and may_be_fenced(words):
        # What hooks showed: stripped before learning; its ids say what this run was shown.
        yield Prompt(words)


def _codex_arguments(called: str, item: Row) -> Mapping[str, Json]:
    if called == "custom_tool_call":
        return {"input": text(item, "input")}
    if called == "local_shell_call":
        return {"command": row_at(item, "action").get("command")}
    return json_arguments(item.get("arguments"))


def _codex_id(item: Row) -> str:
    return text(item, "call_id") or text(item, "id")


def _codex_result(item: Row) -> Result:
    output: Any = item.get("output")
    success = None
    if isinstance(output, dict):
        success = output.get("success")
        output = output.get("content")
    shown = content_text({"content": output})
    return Result(
        shown,
        _codex_id(item),
        is_error=True if success is False else None,
        denied=_CODEX_REJECTED.match(shown) is not None,
    )


def _codex_streamed(row: Row) -> Iterator[Turn]:
    """The turns in a line of ``codex exec --json``, of items that are complete."""
    item, kind = row_at(row, "item"), text(row, "type")
    if kind == "turn.completed":
        yield Bill(_codex_spent(row_at(row, "usage")))
    if kind != "item.completed":
        return
    match text(item, "type") or text(item, "item_type"):
        case "agent_message" | "assistant_message" | "reasoning":
            yield Thought(text(item, "text"))
        case "command_execution":
            yield Call("shell", {"command": text(item, "command")}, text(item, "id"))
            yield Result(
                text(item, "aggregated_output"),
                text(item, "id"),
                exit_code=integer(item, "exit_code"),
            )
        case "mcp_tool_call":
            tool = f"{text(item, 'server')}__{text(item, 'tool')}"
            yield Call(tool, json_arguments(item.get("arguments")), text(item, "id"))
            failed = item.get("error") is not None
            answer = item["error"] if failed else row_at(item, "result").get("content")
            yield Result(shown(answer), text(item, "id"), is_error=True if failed else None)
        case "file_change":
            for change in rows_at(item, "changes"):
                arguments: Mapping[str, Json] = {"path": text(change, "path")}
                yield Call("edit", arguments, text(item, "id"))
                yield Result(text(item, "status"), text(item, "id"))


# All others were checked against documentation, not against real files (docs/formats.md)

GEMINI = "gemini-cli"
QWEN = "qwen-code"
COPILOT = "copilot-cli"
CURSOR = "cursor"
GOOSE = "goose"

_COPILOT_TYPES = ("session.", "user.", "assistant.", "tool.")
_GEMINI_REPLIES = ("gemini", "model")
_GEMINI_FOLDER = regex(r"\*\*Workspace Directories:\*\*\n {2,4}- (/[^\n]+)")
# Around the output of a command; its exit code stands there unless it is 0.
_GEMINI_OUTPUT = regex(
    r"(?:<untrusted_context>\n)?Output: (?P<output>.*?)"
    r"(?P<end>(?:\n(?:Error|Exit Code|Signal|Background PIDs|Process Group PGID): [^\n]*)+)"
    r"(?:\n</untrusted_context>)?\s*\Z",
    re.DOTALL,
)
_GEMINI_FAILED = regex(r"^(?:Exit Code: (?P<code>-?\d{1,10})|Error|Signal)", re.MULTILINE)
# Beside the folder of chats: names the folder of the project.
_GEMINI_ROOT = ".project_root"
_CURSOR_TIME = regex(r"\A\s*<timestamp>[^<]*</timestamp>\s*")


# Gemini CLI and Qwen Code


def is_gemini_part(value: object) -> bool:
    """Return True if *value* is the first line of a chat of Gemini CLI."""
    return isinstance(value, dict) and value.keys() >= {"sessionId", "startTime", "lastUpdated"}


def gemini_runs(value: Any, place: Place) -> Iterator[RawTrajectory | ReadError]:
    """Yield the run of each conversation of a chat, with the last version of each message.

    A person who loads a checkpoint leaves one conversation for another.
    """
    if isinstance(value, dict):
        conversations = [[value, *rows_at(value, "messages")]]
    else:
        conversations = _gemini_conversations(value)
    root = _text_of(place, Path(place.file).parent.parent / _GEMINI_ROOT).strip()

    def facts_of(row: Row) -> dict[str, str]:
        return {**_gemini_facts(row), **({"folder": root} if root else {})}

    for lines in conversations:
        try:
            yield from lines_run(GEMINI, _gemini_turns, facts_of, lines, place)
        except ReadError as error:
            yield error


# The id of a message, or the number of a line without one, and the place in its snapshot.
_Key: TypeAlias = str | int | tuple[int, int]


def _gemini_conversations(lines: Sequence[Any]) -> list[list[Any]]:
    """The lines of each conversation in *lines*, without those rewound.

    A message that was appended again counts once.
    """
    left, compacted, conversations = dict[_Key, Any](), dict[_Key, Any](), list[list[Any]]()
    for number, line in enumerate(lines):
        row = line if isinstance(line, dict) else {}
        target, id_, changed = loose_text(row, "$rewindTo"), row.get("id"), row.get("$set")
        snapshot = changed.get("messages") if isinstance(changed, dict) else None
        if isinstance(snapshot, list) and any(map(_is_gemini_reply, snapshot)):
            snap = _GeminiSnapshot(left, [one for one in snapshot if isinstance(one, dict)], number)
            if snap.is_of_another_conversation:
                own = [row for id_, row in left.items() if id_ not in snap.messages]
                conversations.append([*compacted.values(), *own])
                compacted = {}
            else:
                compacted |= snap.compacted
            left = snap.now
        if not target:
            left[id_ if isinstance(id_, str) else number] = line
        elif target in compacted:
            compacted = dict(islice(compacted.items(), list(compacted).index(target)))
            left = {id_: other for id_, other in left.items() if not _is_gemini_message(other)}
        elif target in left:
            left = dict(islice(left.items(), list(left).index(target)))
    return [*conversations, [*compacted.values(), *left.values()]]


class _GeminiSnapshot:
    """The messages as the model is sent them from line *number* on, where *known* were logged.

    *now* are all lines afterwards, *messages* those of it. Those that a summary stands for
    are *compacted*.
    """

    def __init__(self, known: Mapping[_Key, Any], snapshot: Sequence[Row], number: int) -> None:
        before = [id_ for id_, row in known.items() if _is_gemini_message(row)]
        ids = {_gemini_said(known[id_]): id_ for id_ in before if known[id_].get("content")}
        self.messages = messages = dict[_Key, Any]()
        for place, row in enumerate(snapshot):
            given = row.get("id")
            id_: _Key = given if isinstance(given, str) else (number, place)
            id_ = id_ if id_ in known else ids.get(_gemini_said(row), id_)
            # A session that goes on is snapped as the model is sent it, without results.
            is_fuller = "toolCalls" in known.get(id_, {}) and "toolCalls" not in row
            is_summary = id_ in known and not _is_gemini_message(known[id_])
            messages[id_] = known[id_] if is_fuller or is_summary else row
        first = next((at for at, id_ in enumerate(before) if id_ in messages), len(before))
        kept = before[first:][:1]
        ahead = list(takewhile(lambda id_: id_ not in kept, messages))
        self.compacted = {id_: known[id_] for id_ in before[:first]}
        self.is_of_another_conversation = bool(self.compacted) and not ahead
        if self.compacted:
            messages |= {id_: {**messages[id_], "type": "info"} for id_ in ahead}
        others = {id_: row for id_, row in known.items() if not _is_gemini_message(row)}
        self.now = {**others, **messages}


def _gemini_said(row: Row) -> str:
    return shown([row.get("type"), row.get("content")])


def _is_gemini_message(row: object) -> bool:
    return isinstance(row, dict) and row.get("type") in ("user", *_GEMINI_REPLIES)


def _is_gemini_reply(row: object) -> bool:
    return isinstance(row, dict) and row.get("type") in _GEMINI_REPLIES


def _gemini_facts(row: Row) -> dict[str, str]:
    facts = {"session": text(row, "sessionId"), "model": text(row, "model")}
    if row.get("kind") == "subagent":
        facts["agent"] = f"{GEMINI}/subagent"
    # In the main session only the description of the environment for the model names the folder.
    contexts = map(content_text, rows_at(row_at(row, "$set"), "messages"))
    found = next(filter(None, map(_GEMINI_FOLDER.search, contexts)), None)
    return {**facts, "folder": found[1]} if found else facts


def _gemini_turns(row: Row) -> Iterator[Turn]:
    time, kind = time_in(row), row.get("type")
    content = row.get("content")
    blocks = rows_at(row, "content") if isinstance(content, list) else [{"text": content or ""}]
    if kind == "user":
        if all(text(block, "text") for block in blocks):  # of a file, parts are one text
            blocks = [{"text": content_text({"content": blocks})}]
        yield from block_turns(blocks, is_agent=False, time=time)
    elif kind in _GEMINI_REPLIES:
        for thought in rows_at(row, "thoughts"):
            yield Thought(text(thought, "description"), time_in(thought))
        said = block_turns(blocks, is_agent=True, time=time)
        # Calls stand beside what was said, in the form of the model where they do not.
        yield from (t for t in said if not (isinstance(t, Call) and row.get("toolCalls")))
        for call in rows_at(row, "toolCalls"):
            yield call_in(call, time_in(call) or time)
            yield _gemini_result(call)
        if isinstance(tokens := row.get("tokens"), dict):
            given, cached = count(tokens, "input"), count(tokens, "cached")
            answered = count(tokens, "output") + count(tokens, "thoughts")
            yield Bill(Spent(max(0, given - cached), cached, 0, answered), text(row, "id"))


def _gemini_result(call: Row) -> Result:
    result, status = call.get("result"), call.get("status")
    rows = result if isinstance(result, list) else []
    blocks = [block for block in rows if isinstance(block, dict)]
    answers = (t for t in block_turns(blocks, is_agent=False) if isinstance(t, Result))
    answer = next(answers, None)
    words, code = answer.text if answer else shown(result or call.get("resultDisplay")), None
    if ran := _GEMINI_OUTPUT.match(words):
        failed = _GEMINI_FAILED.search(ran["end"])
        code = 0 if not failed else int(failed["code"]) if failed["code"] else None
        words = ran["output"].removeprefix("(empty)")
    return Result(
        words,
        text(call, "id"),
        exit_code=code,
        is_error=True if status == "error" else None,
        denied=status == "cancelled",
    )


def is_qwen_line(value: object) -> bool:
    """Return True if *value* is a line of a chat of Qwen Code."""
    if not isinstance(value, dict) or "sessionId" not in value:
        return False
    message = value.get("message")
    return isinstance(message, dict) and isinstance(message.get("parts"), list)


def _qwen_turns(row: Row) -> Iterator[Turn]:
    if "message" not in row:
        return
    message, time = row_at(row, "message"), time_in(row)
    if row.get("type") == "user":
        # Notifications and scheduled prompts are of this type, too.
        if text(row, "subtype") in ("", "mid_turn_user_message"):
            typed = text(row_at(row, "systemPayload"), "displayText")
            yield UserMessage(typed or content_text(message, "parts"), time=time)
        return
    is_agent = message.get("role") in ("model", "assistant")
    denied = row_at(row, "toolCallResult").get("status") == "cancelled"
    for turn in block_turns(rows_at(message, "parts"), is_agent=is_agent, time=time):
        yield replace(turn, denied=True) if denied and isinstance(turn, Result) else turn


def _session_facts(row: Row) -> dict[str, str]:
    facts = {"session": text(row, "sessionId"), "folder": text(row, "cwd")}
    return facts | {"model": loose_text(row, "model")}


# Copilot CLI


def is_copilot_line(value: object) -> bool:
    """Return True if *value* is an event of Copilot CLI."""
    if not isinstance(value, dict) or not isinstance(value.get("data"), dict):
        return False
    return isinstance(value.get("type"), str) and value["type"].startswith(_COPILOT_TYPES)


def copilot_runs(lines: Sequence[Any], place: Place) -> Iterator[RawTrajectory | ReadError]:
    """Yield the run of one session, and of each of its sub-agents."""
    for agent in dict.fromkeys(["", *map(_copilot_agent, lines)]):
        own = [line if _copilot_agent(line) == agent else _session_part(line) for line in lines]
        try:
            yield from lines_run(COPILOT, _copilot_turns, _copilot_facts, own, place)
        except ReadError as error:
            yield error


def _copilot_agent(line: Any) -> str:
    """The id of the sub-agent whose event *line* is; empty for the main agent."""
    id_ = line.get("agentId") if isinstance(line, dict) else None
    return id_ if isinstance(id_, str) else ""


def _session_part(line: Any) -> Row:
    """*line* where it describes the session, for another agent than its own; else empty."""
    is_start = isinstance(line, dict) and line.get("type") == "session.start"
    return line if is_start else {}


def _copilot_facts(row: Row) -> dict[str, str]:
    data = row_at(row, "data")
    context = row_at(data, "context")
    repository = text(context, "repository")
    return {
        "agent": f"{COPILOT}/subagent" if _copilot_agent(row) else "",
        "session": text(data, "sessionId") if row.get("type") == "session.start" else "",
        "remote": f"github.com/{repository}" if repository else "",
        "folder": text(context, "cwd"),
        "model": loose_text(data, "selectedModel") or loose_text(data, "model"),
    }


def _copilot_turns(row: Row) -> Iterator[Turn]:
    data, time = row_at(row, "data"), time_in(row)
    id_ = text(data, "toolCallId")
    match row.get("type"):
        case "user.message" if text(data, "source") in ("", "user"):
            yield UserMessage(text(data, "content"), time=time)
        case "abort":
            yield UserMessage("", interrupted=True)
        case "assistant.message" | "assistant.reasoning":
            yield Thought(text(data, "content"), time)
        case "tool.execution_start":
            yield call_in(data, time)
        case "tool.execution_complete":
            failed = data.get("success") is False
            output = shown(row_at(data, "result").get("content") or data.get("error"))
            yield Result(output, id_, is_error=True if failed else None)


# Cursor


def is_cursor_line(value: object) -> bool:
    """Return True if *value* is a line of a transcript of Cursor's command line."""
    if not isinstance(value, dict):
        return False
    if value.get("type") == "turn_ended" and "status" in value:
        return True
    if value.get("role") not in ("user", "assistant"):
        return False
    message = value.get("message")
    return isinstance(message, dict) and "content" in message and "type" not in value


def is_cursor(value: object) -> bool:
    """Return True if *value* is a chat of Cursor: its lines, or what its database has of it."""
    if isinstance(value, list):
        return any(map(is_cursor_line, value[:1]))
    return isinstance(value, dict) and value.keys() >= {"composerId", "bubbles"}


def cursor_runs(value: Any, place: Place) -> Iterator[RawTrajectory | ReadError]:
    """Yield the run of one chat."""
    if isinstance(value, list):
        facts = _cursor_facts(place)
        yield from lines_run(CURSOR, _cursor_turns, lambda _: facts, value, place)
        return
    lines, created = [value, *rows_at(value, "bubbles")], time_in(value, "createdAt")
    for run in lines_run(CURSOR, _bubble_turns, _bubble_facts, lines, place):
        if isinstance(run, RawTrajectory) and created:
            run = replace(run, started_at=created)  # noqa: PLW2901
        yield run


def _cursor_facts(place: Place) -> dict[str, str]:
    """The session that a transcript is named after; sub-agents lie in its folder."""
    path = PurePath(place.file)
    if path.parent.name == "subagents":
        return {"agent": f"{CURSOR}/subagent", "session": path.parent.parent.name}
    return {"session": file_stem(path.name)} if "agent-transcripts" in path.parts else {}


def _cursor_turns(row: Row) -> Iterator[Turn]:
    if row.get("type") == "turn_ended" and row.get("status") == "aborted":
        yield UserMessage("", interrupted=True)
    if "message" not in row:
        return
    message, is_agent = row_at(row, "message"), row.get("role") == "assistant"
    content = message.get("content")
    blocks = [{"text": content}] if isinstance(content, str) else rows_at(message, "content")
    for turn in block_turns(blocks, is_agent=is_agent):
        if isinstance(turn, UserMessage):
            yield UserMessage(_CURSOR_TIME.sub("", turn.text))
        else:
            yield turn


def _bubble_facts(row: Row) -> dict[str, str]:
    return {"session": text(row, "composerId"), "folder": text(row, "workspaceProjectDir")}


def _bubble_turns(row: Row) -> Iterator[Turn]:
    if "bubbles" in row:
        return
    words, tool = text(row, "text") or text(row, "rawText"), row.get("toolFormerData")
    time = time_in(row, "createdAt")
    yield UserMessage(words, time=time) if row.get("type") == 1 else Thought(words, time)
    if isinstance(tool, dict) and tool.get("name"):
        yield call_in(tool, time)
        if tool.get("result") is not None:
            status, facts = tool.get("status"), json_arguments(tool["result"])
            yield Result(
                shown(tool["result"]),
                text(tool, "toolCallId"),
                exit_code=coalesce(integer(facts, "exitCodeV2"), integer(facts, "exitCode")),
                is_error=True if status == "error" else None,
                denied=status in ("rejected", "cancelled"),
            )


# Goose


def is_goose_part(value: object) -> bool:
    """Return True if *value* is the first line of a session of Goose."""
    return isinstance(value, dict) and value.keys() >= {"working_dir", "description"}


def goose_runs(value: Any, place: Place) -> Iterator[RawTrajectory | ReadError]:
    """Yield the run of one session."""
    lines = value if isinstance(value, list) else [value, *rows_at(value, "messages")]
    yield from lines_run(GOOSE, _goose_turns, _goose_facts, lines, place)


def _goose_facts(row: Row) -> dict[str, str]:
    if "working_dir" not in row:
        return {}
    return {
        "agent": f"{GOOSE}/subagent" if row.get("session_type") == "sub_agent" else "",
        "folder": text(row, "working_dir"),
        "model": text(row_at(row, "model_config"), "model_name"),
        "session": str(row.get("id") or ""),
    }


def _goose_turns(row: Row) -> Iterator[Turn]:
    # Summaries of what was compacted are for the model only.
    if "role" in row and row_at(row, "metadata").get("userVisible") is not False:
        is_agent = row["role"] == "assistant"
        time = time_in(row, "created")
        yield from block_turns(rows_at(row, "content"), is_agent=is_agent, time=time)


def _begins_with(is_first: Callable[[object], bool], value: object) -> bool:
    """Return True if the first line of *value*, a history or an object, names its format."""
    return is_first(value[0] if isinstance(value, list) and value else value)


_KEEPS = "requests, thoughts, tool calls, results, errors, times, directory, model where logged"
_OMITS = "images, token counts, titles"
_CURSOR_DATABASE = "Cursor/User/globalStorage/state.vscdb"
history = partial(Format, keeps=_KEEPS, omits=_OMITS, experimental=True)

FORMATS = (
    history(
        IFLOW,
        "lines as of Claude Code, whose results have responseParts",
        recognises=is_iflow,
        runs=partial(claude_runs, IFLOW),
        is_part=is_claude_line,
        kept=(Kept(".iflow", ("projects/*/session-*.jsonl",)),),
    ),
    Format(
        CLAUDE_CODE,
        "lines with sessionId and type user, assistant or summary, or of --output-format "
        "stream-json",
        "thoughts, tool calls with results, error flags, exit codes, times, directory, model; user "
        "messages, interruptions and denied calls; sub-agents as runs of their own",
        partial(is_list_of, is_claude_line),
        partial(claude_runs, CLAUDE_CODE),
        is_part=is_claude_line,
        omits="images, token counts, snapshots of files, titles, summaries; of an output in a file "
        "of its own what is beyond 512 KiB",
        kept=(Kept(".claude", ("projects/**/*.jsonl",), "CLAUDE_CONFIG_DIR"),),
    ),
    Format(
        CODEX,
        "lines with type and payload (rollouts), or thread, turn and item events (codex exec "
        "--json)",
        "thoughts, tool calls with results, exit codes, times, directory, git remote, model; user "
        "messages, interruptions, denied calls",
        partial(is_list_of, is_codex_line),
        codex_runs,
        is_part=is_codex_line,
        omits="encrypted reasoning, images, token counts, history.jsonl",
        kept=(
            Kept(
                ".codex",
                ("sessions/**/rollout-*.jsonl*", "archived_sessions/rollout-*.jsonl*"),
                "CODEX_HOME",
            ),
        ),
    ),
    history(
        GEMINI,
        "object or first line with sessionId, startTime, lastUpdated",
        recognises=partial(_begins_with, is_gemini_part),
        runs=gemini_runs,
        is_part=is_gemini_part,
        omits=f"{_OMITS}, checkpoints, logs.json",
        kept=(
            Kept(
                "",
                (".gemini/tmp/*/chats/**/*.json", ".gemini/tmp/*/chats/**/*.jsonl"),
                "GEMINI_CLI_HOME",
            ),
        ),
    ),
    history(
        QWEN,
        "lines with sessionId and message.parts",
        recognises=partial(is_list_of, is_qwen_line),
        runs=partial(
            lines_run,
            QWEN,
            _qwen_turns,
            _session_facts,
            ids_of=lambda row: (loose_text(row, "uuid"), loose_text(row, "parentUuid")),
        ),
        is_part=is_qwen_line,
        kept=(Kept(".qwen", ("projects/*/chats/*.jsonl",)),),
    ),
    history(
        COPILOT,
        "lines with data and type session.*, user.*, assistant.*, tool.*",
        recognises=partial(is_list_of, is_copilot_line),
        runs=copilot_runs,
        is_part=is_copilot_line,
        kept=(Kept(".copilot", ("session-state/*/events.jsonl",)),),
    ),
    history(
        CURSOR,
        "lines with role and message.content, or the database state.vscdb",
        recognises=is_cursor,
        runs=cursor_runs,
        is_part=is_cursor_line,
        omits=f"{_OMITS}; transcripts have no results of tools; keys agentKv of the database",
        kept=(
            Kept(".cursor", ("projects/*/agent-transcripts/**/*.jsonl",), "CURSOR_CONFIG_DIR"),
            Kept(".config", (_CURSOR_DATABASE,), "XDG_CONFIG_HOME"),
            Kept("Library/Application Support", (_CURSOR_DATABASE,)),
        ),
    ),
    history(
        GOOSE,
        "first line with working_dir and description, or the database sessions.db",
        recognises=partial(_begins_with, is_goose_part),
        runs=goose_runs,
        is_part=is_goose_part,
        omits=f"{_OMITS}; what is for the model only, such as summaries",
        kept=(
            Kept(
                ".local/share",
                ("goose/sessions/sessions.db", "goose/sessions/*.jsonl"),
                "XDG_DATA_HOME",
            ),
        ),
    ),
)
