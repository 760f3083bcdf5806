"""SWE-agent: ``.traj`` files, 0.x and 1.x, and rows of nebius/SWE-agent-trajectories."""

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from contextgraph.model import (
    Action,
    Json,
    RawTrajectory,
    Step,
)
from contextgraph.readers.envelopes import (
    first_word,
    known,
    task_in,
    thought_and_command,
    without_prompt,
)
from contextgraph.readers.fields import (
    Row,
    as_row,
    content_text,
    loads,
    row_at,
    rows_at,
    text,
    text_or_none,
)
from contextgraph.readers.format import Place, repo_named
from contextgraph.readers.tool_calls import (
    ToolCall,
    call_text,
    tool_call,
)
from contextgraph.text import clean

_EDITOR = "str_replace_editor"
_SHELL = "bash"

NAME = "sweagent"
ROWS = "nebius"

# SWE-agent clones into a folder named after the repository: /owner__repo
_CLONE = re.compile(r"/(?P<owner>[A-Za-z0-9-]+)__(?P<repo>[\w.-]+?)/?")


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
        return Action(_EDITOR, clean(call_text(_EDITOR, call.arguments)), call.arguments)
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


class _State(NamedTuple):
    open_file: str | None
    cwd: str | None


def recognises(record: object) -> bool:
    """Whether *record* has a history, or a trajectory of actions and observations."""
    if not isinstance(record, dict):
        return False
    history, steps = record.get("history"), record.get("trajectory")
    return _has_first(history, {"role"}) or _has_first(steps, {"action", "observation"})


def parse(record: Row, place: Place) -> RawTrajectory:
    """The run of one file; demonstrations and the copies of the conversation are left out.

    *cwd* and *open_file* of a step are the state after its action.
    """
    history = [entry for entry in rows_at(record, "history") if not _is_demonstration(entry)]
    replay = _json_at(record, "replay_config")
    info = row_at(record, "info")
    logged = rows_at(record, "trajectory")
    steps = tuple(_logged_steps(logged, history) if logged else _history_steps(history))
    instance_id = _instance_id(record, replay, place)
    return RawTrajectory(
        source_format=NAME,
        instance_id=instance_id,
        repo=repo_named(instance_id) or _cloned_repo(steps),
        task=_task(history, row_at(replay, "problem_statement")),
        steps=steps,
        agent="SWE-agent",
        model=text(row_at(row_at(replay, "agent"), "model"), "name"),
        exit_status=text_or_none(info, "exit_status"),
        patch=text(info, "submission"),
        source=place.source,
        system_prompt="\n".join(content_text(e) for e in history if e.get("role") == "system"),
    )


def _has_first(value: object, names: set[str]) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return isinstance(value[0], dict) and names <= value[0].keys()


def _is_demonstration(entry: Row) -> bool:
    return bool(entry.get("is_demo")) or entry.get("message_type") == "demonstration"


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


def _task(history: Sequence[Row], problem: Row) -> str:
    prompt = next((content_text(entry) for entry in history if entry.get("role") == "user"), "")
    return clean(task_in(prompt) or text(problem, "text") or prompt)


def _logged_steps(logged: Sequence[Row], history: Sequence[Row]) -> Iterator[Step]:
    calls = _calls_in_order([text(step, "action") for step in logged], history)
    states = _states(logged)
    for index, (step, call, state) in enumerate(zip(logged, calls, states, strict=True)):
        yield Step(
            index,
            clean(text(step, "thought")).strip(),
            action_of(text(step, "action"), call),
            _observation(step),
            cwd=state.cwd,
            open_file=state.open_file,
        )


def _observation(step: Row) -> str | None:
    observation = text_or_none(step, "observation")
    return None if observation is None else clean(observation)


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
    observation, open_file, cwd = without_prompt(clean(shown))
    return Step(index, thought, action, observation, cwd=cwd, open_file=open_file)


def is_row(record: object) -> bool:
    """Whether *record* has an instance id and a trajectory of turns with role and text."""
    if not isinstance(record, dict) or "instance_id" not in record:
        return False
    match record.get("trajectory"):
        case [dict() as turn, *_]:
            return {"role", "text"} <= turn.keys()
        case []:
            return "target" in record
    return False


def row_run(record: Row, place: Place) -> RawTrajectory:
    """The run of one row. Its evaluation log is left behind: the agent did not see it.

    *cwd* and *open_file* of a step are the state after its action.
    """
    turns = rows_at(record, "trajectory")
    prompt = next((text(turn, "text") for turn in turns if turn.get("role") == "user"), "")
    instance_id = text(record, "instance_id") or place.instance_id()
    return RawTrajectory(
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
