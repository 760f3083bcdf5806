"""SWE-agent (``.traj`` of 0.x and 1.x, rows of nebius) and mini-swe-agent."""

import re
import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from contextgraph.model import Action, Json, RawTrajectory, Spent, Step
from contextgraph.readers.conversation import (
    Call,
    Result,
    Thought,
    Turn,
    UserMessage,
    conversation_of,
    time_in,
)
from contextgraph.readers.envelopes import (
    first_word,
    known,
    task_in,
    thought_and_command,
    without_prompt,
)
from contextgraph.readers.format import (
    EmptyRunError,
    Format,
    Kept,
    Place,
    Row,
    as_row,
    content_text,
    count,
    dollars,
    integer,
    is_conversation,
    loose_text,
    repo_named,
    row_at,
    rows_at,
    text,
    text_or_none,
)
from contextgraph.readers.tool_calls import ToolCall, call_text, tool_call
from contextgraph.system.intake import loads
from contextgraph.text import clean, regex

_EDITOR = "str_replace_editor"
_BASH = "bash"

SWE_AGENT = "sweagent"
ROWS = "nebius"

# SWE-agent clones into a folder named after the repository: /owner__repo
_CLONE = regex(r"/(?P<owner>[A-Za-z0-9-]+)__(?P<repo>[\w.-]+?)/?")


def tool_call_in(entry: Row) -> ToolCall | None:
    """Return the tool call of a history *entry*; None where the model wrote its command as text."""
    calls = rows_at(entry, "tool_calls")
    return tool_call(calls[0]) if calls else None


def action_of(command: str, call: ToolCall | None) -> Action:
    """Return the action of *command*, which SWE-agent typed for the agent's tool *call*.

    Without a call the tool is the command's first word.
    """
    command = clean(command).strip()
    if call is None and first_word(command) == _EDITOR:
        call = _editor_call(command)
    if call is None:
        return Action(first_word(command), command)
    if call.name == _EDITOR and call.arguments:
        return Action(_EDITOR, clean(call_text(_EDITOR, call.arguments)), call.arguments)
    if call.name == _BASH and isinstance(typed := call.arguments.get("command"), str):
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


class _State(NamedTuple):
    open_file: str | None
    cwd: str | None


def is_traj(record: object) -> bool:
    """Return True if *record* has a history, or a trajectory of actions and observations."""
    if not isinstance(record, dict):
        return False
    history, steps = record.get("history"), record.get("trajectory")
    return _has_first(history, {"role"}) or _has_first(steps, {"action", "observation"})


def traj_runs(record: Row, place: Place) -> Iterator[RawTrajectory]:
    """Yield the run of one file; demonstrations and the copies of the conversation are left out.

    *cwd* and *open_file* of a step are the state after its action.
    """
    history = [
        entry
        for entry in rows_at(record, "history")
        if not (entry.get("is_demo") or entry.get("message_type") == "demonstration")
    ]
    replay = _json_at(record, "replay_config")
    info = row_at(record, "info")
    logged = rows_at(record, "trajectory")
    steps = tuple(_logged_steps(logged, history) if logged else _history_steps(history))
    instance_id = _instance_id(record, replay, place)
    problem = row_at(replay, "problem_statement")
    prompt = next((content_text(entry) for entry in history if entry.get("role") == "user"), "")
    yield RawTrajectory(
        source_format=SWE_AGENT,
        instance_id=instance_id,
        repo=repo_named(instance_id) or _cloned_repo(steps),
        task=clean(task_in(prompt) or text(problem, "text") or prompt),
        steps=steps,
        agent="SWE-agent",
        model=text(row_at(row_at(replay, "agent"), "model"), "name"),
        exit_status=text_or_none(info, "exit_status"),
        patch=text(info, "submission"),
        source=place.source,
        system_prompt="\n".join(content_text(e) for e in history if e.get("role") == "system"),
        spent=_spent(info),
    )


def _spent(info: Row) -> Spent:
    """Tokens and cost of the model, as both agents count them."""
    stats = row_at(info, "model_stats")
    sent, answered = count(stats, "tokens_sent"), count(stats, "tokens_received")
    return Spent(sent, 0, 0, answered, dollars(stats, "instance_cost"))


def _has_first(value: object, names: set[str]) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return isinstance(value[0], dict) and names <= value[0].keys()


def _json_at(record: Row, name: str) -> Row:
    """The object at *name*, which SWE-agent writes as such or as JSON text."""
    value = record.get(name)
    if isinstance(value, str):
        value = loads(value) if value.strip() else None
    return {} if value is None else as_row(value, name)


def _instance_id(record: Row, replay: Row, place: Place) -> str:
    """From the problem statement or environment if they name a repository, else the file name."""
    problem = text(row_at(replay, "problem_statement"), "id")
    for name in (problem, place.instance_id(), text(record, "environment")):
        if repo_named(name):
            return name
    return problem if "__" in problem else place.instance_id()


def _cloned_repo(steps: Sequence[Step]) -> str:
    for step in steps:
        if clone := _CLONE.fullmatch(step.cwd or ""):
            return f"{clone['owner']}/{clone['repo']}"
    return ""


def _logged_steps(logged: Sequence[Row], history: Sequence[Row]) -> Iterator[Step]:
    calls = _calls_in_order([text(step, "action") for step in logged], history)
    states = _states(logged)
    for index, (step, call, state) in enumerate(zip(logged, calls, states, strict=True)):
        observation = text_or_none(step, "observation")
        yield Step(
            index,
            clean(text(step, "thought")).strip(),
            action_of(text(step, "action"), call),
            None if observation is None else clean(observation),
            cwd=state.cwd,
            open_file=state.open_file,
        )


def _calls_in_order(actions: Sequence[str], history: Sequence[Row]) -> Iterator[ToolCall | None]:
    """The tool call of each of *actions*; a turn that was retried is not in the history."""
    entries = [entry for entry in history if entry.get("role") == "assistant"]
    position = 0
    for action in actions:
        entry = entries[position] if position < len(entries) else {}
        if entry.get("action") == action:
            position += 1
            yield tool_call_in(entry)
        else:
            yield None


def _states(logged: Sequence[Row]) -> list[_State]:
    """The state after each step: 0.x (JSON text) logs the one before it, 1.x the one after it."""
    rows = [_json_at(step, "state") for step in logged]
    states = [_State(known(text(s, "open_file")), known(text(s, "working_dir"))) for s in rows]
    if any(isinstance(step.get("state"), str) for step in logged):
        return [*states[1:], _State(None, None)]
    return states


def _history_steps(history: Sequence[Row]) -> Iterator[Step]:
    for index, (entry, answer) in enumerate(_exchanges(history, "assistant", ("user", "tool"))):
        thought, command = thought_and_command(clean(content_text(entry)))
        action = action_of(text(entry, "action") or command, tool_call_in(entry))
        thought = clean(text(entry, "thought") or thought).strip()
        yield _answered(index, thought, action, None if answer is None else content_text(answer))


def _exchanges(
    turns: Sequence[Row], agent: str, others: Sequence[str]
) -> Iterator[tuple[Row, Row | None]]:
    """Each turn of the role *agent*, with the next one where that is of one of *others*."""
    following = (*turns[1:], None)
    for turn, answer in zip(turns, following, strict=False):
        if turn.get("role") == agent:
            yield turn, answer if answer and answer.get("role") in others else None


def _answered(index: int, thought: str, action: Action, shown: str | None) -> Step:
    if shown is None:
        return Step(index, thought, action, None)
    rest = without_prompt(clean(shown))
    return Step(index, thought, action, rest.observation, cwd=rest.cwd, open_file=rest.open_file)


def is_row(record: object) -> bool:
    """Return True if *record* has an instance id and a trajectory of turns with role and text."""
    if not isinstance(record, dict) or "instance_id" not in record:
        return False
    match record.get("trajectory"):
        case [dict() as turn, *_]:
            return {"role", "text"} <= turn.keys()
        case []:
            return "target" in record
    return False


def row_runs(record: Row, place: Place) -> Iterator[RawTrajectory]:
    """Yield the run of one row. Its evaluation log is left behind: the agent did not see it.

    *cwd* and *open_file* of a step are the state after its action.
    """
    turns = rows_at(record, "trajectory")
    prompt = next((text(turn, "text") for turn in turns if turn.get("role") == "user"), "")
    instance_id = text(record, "instance_id") or place.instance_id()
    yield RawTrajectory(
        source_format=ROWS,
        instance_id=instance_id,
        repo=repo_named(instance_id),
        task=clean(task_in(prompt) or prompt),
        steps=tuple(_row_steps(turns)),
        agent="SWE-agent",
        model=text(record, "model_name"),
        exit_status=text_or_none(record, "exit_status"),
        patch=text(record, "generated_patch"),
        source=place.source,
        system_prompt="\n".join(
            text(t, "system_prompt") for t in turns if t.get("role") == "system"
        ),
    )


def _row_steps(turns: Sequence[Row]) -> Iterator[Step]:
    for index, (turn, answer) in enumerate(_exchanges(turns, "ai", ("user",))):
        thought, command = thought_and_command(clean(text(turn, "text")))
        shown = None if answer is None else text_or_none(answer, "text")
        yield _answered(index, thought, Action(first_word(command), command), shown)


MINI_SWE_AGENT = "mini-swe-agent"


_BLOCK = regex(r"```(?:bash|mswea_bash_command)\s*\n(?P<command>.*?)\n?```", re.DOTALL)
_THOUGHT = regex(r"\A\s*THOUGHT:\s*")
_RETURN_CODE = regex(r"\s*<returncode>(-?\d{1,10})</returncode>\s*")
_OUTPUT = regex(
    r"\A(\s*<returncode>-?\d{1,10}</returncode>\s*|)<output>\n?(.*?)\n?</output>\s*\Z", re.DOTALL
)
# Names what a person in the loop did: interrupted, rejected commands or added a task.
_INTERRUPT = "interrupt_type"
_NOTHING_TYPED = "Temporary interruption caught."
_TASK_VARIABLE = regex(r"\{\{\s*task\s*\}\}")
_DIFF = regex(r"^(?:diff --git |--- )", re.MULTILINE)


def is_mini(record: object) -> bool:
    """Return True if *record* is a run with messages and info, or a bare list of such messages."""
    if isinstance(record, list):
        return is_conversation(record) and _is_text_mode(record)
    if not isinstance(record, dict) or not isinstance(record.get("messages"), list):
        return False
    if any(isinstance(message, dict) and "parts" in message for message in record["messages"][:1]):
        return False  # a session of OpenCode
    written_by, info = record.get("trajectory_format"), record.get("info")
    if isinstance(info, dict) and "directory" in info:
        return False  # one of OpenCode 2
    return (
        isinstance(written_by, str) and written_by.startswith(MINI_SWE_AGENT)
    ) or "info" in record


def mini_runs(record: Row | list[Row], place: Place) -> Iterator[RawTrajectory]:
    """Yield the run of one file; several commands in one message are several steps.

    Raises EmptyRunError for a run that ended before the model's first command.
    """
    run: Row = {"messages": record} if isinstance(record, list) else record
    info = row_at(run, "info")
    messages = rows_at(run, "messages")
    last = row_at(messages[-1], "extra") if messages else {}
    exit_status = text_or_none(info, "exit_status") or text_or_none(last, "exit_status")
    if not any(_is_reply(message) for message in messages):
        raise EmptyRunError(place.file, place.position, _no_answer(exit_status, info))
    config = row_at(info, "config")
    template = text(row_at(config, "agent"), "instance_template")
    prompt = next((content_text(m) for m in messages if m.get("role") == "user"), "")
    known = RawTrajectory(
        source_format=MINI_SWE_AGENT,
        instance_id=text(run, "instance_id") or place.instance_id(),
        repo="",
        task=clean(_between(prompt, template) or task_in(prompt) or prompt),
        agent=MINI_SWE_AGENT,
        model=text(row_at(config, "model"), "model_name"),
        exit_status=exit_status,
        patch=_patch(text(info, "submission")) or _patch_at_end(messages),
        system_prompt=next((content_text(m) for m in messages if m.get("role") == "system"), ""),
        spent=_spent(info),
    )
    yield conversation_of(_turns(messages)).run(known, place)


def _is_text_mode(messages: Sequence[Row]) -> bool:
    """Return True if *messages* hold return codes, or bash blocks without other calls."""
    texts = [text for m in messages if isinstance(text := m.get("content"), str)]
    if any(_RETURN_CODE.match(text) for text in texts):
        return True
    called = any("tool_calls" in m for m in messages) or any("<function=" in t for t in texts)
    return not called and any(_BLOCK.search(text) for text in texts)


def _is_reply(message: Row) -> bool:
    return message.get("role") == "assistant" or message.get("object") == "response"


def _no_answer(exit_status: str | None, info: Row) -> str:
    reason = text(info, "exception_str").partition("\n")[0]
    what = (
        ": ".join(part for part in (exit_status, reason.rstrip(".")) if part)
        or "no reply of the model"
    )
    return f"infrastructure failure: {what}, nothing to learn"


def _patch_at_end(messages: Sequence[Row]) -> str | None:
    """A bare list ends with what the last command handed in, without the usual tags."""
    content = "" if _is_reply(messages[-1]) else content_text(messages[-1])
    return _patch(content) if _DIFF.match(content.lstrip()) else None


def _patch(submission: str) -> str | None:
    return submission if _DIFF.search(submission) else None


def _between(prompt: str, template: str) -> str | None:
    """Return the part of *prompt* where *template* has ``{{task}}``; None if unclear."""
    around = _TASK_VARIABLE.split(template, maxsplit=1)
    if len(around) != 2:
        return None
    before = re.split(r"[}%]\}", around[0])[-1].lstrip()
    after = re.split(r"\{[{%]", around[1])[0].rstrip()
    start = prompt.find(before)
    end = prompt.rfind(after) if after else len(prompt)
    if start < 0 or end < start + len(before):
        return None
    return prompt[start + len(before) : end].strip() or None


def _turns(messages: Sequence[Row]) -> Iterator[Turn]:
    for position, message in enumerate(messages):
        if _is_reply(message):
            yield from _reply(message, _answers(messages, position + 1), f"reply {position}")


def _answers(messages: Sequence[Row], start: int) -> list[Row]:
    """The messages up to the model's next reply; how the run ended is not an answer."""
    answers = []
    for message in messages[start:]:
        if _is_reply(message):
            break
        if message.get("role") != "exit" and "exit_status" not in row_at(message, "extra"):
            answers.append(message)
    return answers


def _reply(message: Row, answers: Sequence[Row], name: str) -> Iterator[Turn]:
    """Its thoughts, and each of its commands with its answer, by id or else in order."""
    time = time_in(row_at(message, "extra"))
    yield from _thoughts(message, time)
    by_id = {_answered_id(answer): answer for answer in answers if _answered_id(answer)}
    typed = [answer for answer in answers if loose_text(row_at(answer, "extra"), _INTERRUPT)]
    in_order = iter([one for one in answers if not _answered_id(one) and one not in typed])
    for number, (id_, command) in enumerate(_commands(message)):
        answer = by_id.get(id_) or next(in_order, None)
        extra = row_at(answer, "extra") if answer else {}
        if command:
            arguments = {"command": clean(command)}
            yield Call(_BASH, arguments, f"{name}:{number}", time or time_in(extra))
        if answer:
            yield _result(answer, extra, f"{name}:{number}")
    for answer in typed:
        # Where nothing was typed, the program says that it was interrupted.
        words = content_text(answer).partition(": ")[2].removesuffix(_NOTHING_TYPED)
        extra = row_at(answer, "extra")
        yield UserMessage(words, extra[_INTERRUPT] == "UserInterruption", time_in(extra))


def _answered_id(answer: Row) -> str:
    return text(answer, "tool_call_id") or text(answer, "call_id")


def _commands(message: Row) -> list[tuple[str, str]]:
    """The commands of a reply, with the ids of their answers; an empty one where it has none."""
    if parsed := rows_at(row_at(message, "extra"), "actions"):
        return [(text(action, "tool_call_id"), text(action, "command")) for action in parsed]
    if calls := rows_at(message, "tool_calls"):
        return [
            (text(call, "id"), loose_text(tool_call(call).arguments, "command")) for call in calls
        ]
    blocks = [match["command"].strip() for match in _BLOCK.finditer(content_text(message))]
    # mini-swe-agent runs a reply's block only if it is the only one
    return [("", blocks[0] if len(blocks) == 1 else "")]


def _thoughts(message: Row, time: datetime | None) -> Iterator[Thought]:
    content = content_text(message)
    block = _BLOCK.search(content)
    yield Thought(text(message, "reasoning_content"), time)
    yield Thought(_THOUGHT.sub("", content[: block.start()] if block else content), time)


def _result(answer: Row, extra: Row, id_: str) -> Result:
    stopped = text(extra, "exception_info")
    output = text_or_none(extra, "raw_output")
    if output is None:
        output = _OUTPUT.sub(r"\1\2", content_text(answer) or text(answer, "output"))
    elif stopped:  # such as a time-out
        output = f"{output.rstrip()}\n{stopped}".lstrip()
    exit_code = integer(extra, "returncode")
    return Result(output, id_, exit_code=exit_code, is_error=True if stopped else None)


FORMATS = (
    Format(
        ROWS,
        "row with instance_id and a trajectory of turns with role and text",
        "task, actions, open file and directory after each step, patch, outcome",
        is_row,
        row_runs,
        omits="the system prompt's demonstrations, evaluation logs beyond the outcome",
    ),
    Format(
        SWE_AGENT,
        "object with history and usually trajectory, info (.traj of SWE-agent 0.x and 1.x)",
        "task, tool calls, open file and directory after each step, patch, exit status",
        is_traj,
        traj_runs,
        omits="demonstrations, token counts, the environment of replays",
    ),
    Format(
        MINI_SWE_AGENT,
        "object with messages and info, or a list of messages with bash blocks",
        "task, commands, exit codes, times, model, patch, exit status, words of a person",
        is_mini,
        mini_runs,
        omits="costs, the configuration",
        kept=(Kept(".config", ("mini-swe-agent/*.traj.json",)),),
    ),
)
