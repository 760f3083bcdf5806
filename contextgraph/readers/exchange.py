"""Formats to exchange runs in: the project's own JSONL, which keeps every field, and ATIF."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import IO, Any, cast

import orjson

from contextgraph.errors import ReadError
from contextgraph.model import Json, Outcome, RawTrajectory, Step, is_subagent
from contextgraph.model.codec import decoded, encoded
from contextgraph.model.values import replace
from contextgraph.readers.conversation import (
    Call,
    Result,
    Thought,
    Turn,
    UserMessage,
    call_in,
    conversation_of,
    each_row,
    shown,
    time_in,
)
from contextgraph.readers.format import (
    Format,
    Place,
    Row,
    content_text,
    integer,
    row_at,
    rows_at,
    text,
)
from contextgraph.system.intake import loads, without_surrogates
from contextgraph.text import regex

OWN = "contextgraph"
VERSION = 1

_MARK = "contextgraph"


def is_own(record: object) -> bool:
    """Return True if *record* carries the mark of this format."""
    return isinstance(record, dict) and _MARK in record


def own_runs(record: Row, _place: Place) -> Iterator[RawTrajectory]:
    """Yield the run of one record, with the source that it was written with."""
    yield from_record(record)


def write_jsonl(trajectories: Iterable[RawTrajectory], file: IO[bytes]) -> int:
    """Write one line per trajectory to a binary *file*; the number of lines written.

    Reading them gives equal trajectories. A lone surrogate, which UTF-8 cannot carry, becomes
    U+FFFD; an integer of more than 64 bits in the arguments of an action raises TypeError.
    """
    written = 0
    for trajectory in trajectories:
        record = to_record(trajectory)
        try:
            line = orjson.dumps(record)
        except orjson.JSONEncodeError:
            line = orjson.dumps(without_surrogates(record))
        file.write(line + b"\n")
        written += 1
    return written


def to_record(trajectory: RawTrajectory) -> dict[str, Json]:
    """Return *trajectory* as a JSON object; fields that have their default value are left out."""
    return {_MARK: VERSION, **cast(dict[str, Json], encoded(trajectory))}


def from_record(record: Row) -> RawTrajectory:
    """Return the trajectory of *record*, which `to_record` wrote; raises ValueError."""
    version = record[_MARK]
    if version != VERSION:
        raise ValueError(f"version {version!r} of the format is not known, only {VERSION}")
    fields = cast(Json, {name: value for name, value in record.items() if name != _MARK})
    try:
        return decoded(RawTrajectory, fields)
    except ReadError as error:
        raise ValueError(error.reason) from error


ATIF = "atif"

_SOURCES = ("system", "user", "agent")
_HEADER = "__header__"
_TERMINAL = regex(
    r"(?:Current terminal state:\s*)?(?:New Terminal Output|Current Terminal Screen):\s*"
)


def is_step(value: object) -> bool:
    """Return True if *value* is a step, or the header, of a trajectory written by lines."""
    if not isinstance(value, dict):
        return False
    return _HEADER in value or ("step_id" in value and value.get("source") in _SOURCES)


def is_atif(value: object) -> bool:
    """Return True if *value* is a trajectory, or the list of its steps."""
    if isinstance(value, list):
        return bool(value) and is_step(value[0])
    if not isinstance(value, dict) or not isinstance(value.get("steps"), list):
        return False
    version = value.get("schema_version")
    return (isinstance(version, str) and version.startswith("ATIF")) or any(
        map(is_step, value["steps"][:1])
    )


def runs(value: Any, place: Place) -> Iterator[RawTrajectory | ReadError]:
    """Yield the run of a trajectory, and those of the sub-agents that it holds."""
    root: Row = value if isinstance(value, dict) else _header_of(value)
    steps = value if isinstance(value, list) else value.get("steps") or ()
    turns = list[Turn]()
    yield from each_row(steps, lambda step: turns.extend(_turns(step)), f"{ATIF} step", place)
    yield _run(root, turns, place)
    for inner in rows_at(root, "subagent_trajectories"):
        for run in runs(inner, place):
            if isinstance(run, ReadError) or is_subagent(run.agent):
                yield run
            else:
                yield replace(run, agent=f"{run.agent}/subagent")


def _header_of(steps: Sequence[Any]) -> Row:
    first = steps[0]
    header = first.get(_HEADER) if isinstance(first, dict) else None
    return header if isinstance(header, dict) else {}


def _run(root: Row, turns: Sequence[Turn], place: Place) -> RawTrajectory:
    agent = row_at(root, "agent")
    facts = {k: v for k, v in row_at(root, "extra").items() if isinstance(v, str)}
    known = RawTrajectory(
        source_format=ATIF,
        instance_id=facts.get("instance_id") or facts.get("task", ""),
        repo=facts.get("repo", ""),
        task="",
        agent=text(agent, "name"),
        model=text(agent, "model_name"),
        exit_status=facts.get("exit_status"),
        patch=facts.get("patch"),
    )
    session = text(root, "trajectory_id") or text(root, "session_id")
    return conversation_of(turns).run(known, place, session=session)


def _turns(step: Row) -> Iterator[Turn]:
    if step.get("is_copied_context") or _HEADER in step:
        return
    has_message = isinstance(step.get("message"), str | list)
    message = content_text(step, "message") if has_message else ""
    results = rows_at(row_at(step, "observation"), "results")
    if step.get("source") == "agent":
        yield from _reply(step, message)
    elif step.get("source") == "user":
        # In terminus-2 the terminal answers as the user does.
        screen = _TERMINAL.match(message)
        if screen:
            yield Result(message[screen.end() :].strip())
        else:
            yield UserMessage(message, time=time_in(step))
    for result in results:
        yield _result(step, result)


def _reply(step: Row, message: str) -> Iterator[Turn]:
    time = time_in(step)
    reasoning = text(step, "reasoning_content")
    yield Thought("" if reasoning == "null" else reasoning, time)
    calls = rows_at(step, "tool_calls")
    keystrokes = None if calls else _terminus(message, time)
    if keystrokes is None:
        yield Thought(message, time)
    else:
        yield from keystrokes
    for call in calls:
        yield call_in(call, time)


def _terminus(message: str, time: datetime | None) -> list[Turn] | None:
    """The turns of a reply of terminus-2: JSON with analysis, plan and keystrokes."""
    start, end = message.find("{"), message.rfind("}")
    if not 0 <= start < end or '"commands"' not in message:
        return None
    try:
        reply = loads(message[start : end + 1])
    except ValueError:
        return None
    typed = [text(row, "keystrokes") for row in rows_at(reply, "commands")]
    thought = "\n\n".join(filter(None, (text(reply, "analysis"), text(reply, "plan"))))
    command = "".join(typed).strip()
    call = Call("terminal", {"command": command}, time=time)
    if not command and reply.get("task_complete") is True:
        call = Call("finish", {"task_complete": True}, time=time)
    return [Thought(thought), call]


def _result(step: Row, result: Row) -> Result:
    content = result.get("content")
    extra = {**row_at(step, "extra"), **row_at(result, "extra")}
    is_error = extra.get("tool_result_is_error", extra.get("is_error"))
    if isinstance(content, dict):
        return _structured_result(content)
    return Result(
        content_text(result),
        text(result, "source_call_id"),
        exit_code=integer(extra, "exit_code"),
        is_error=is_error if isinstance(is_error, bool) else None,
        cwd=text(extra, "cwd") or None,
        denied=extra.get("denied") is True,
        interrupted=extra.get("interrupted") is True,
    )


def _structured_result(content: dict[str, Json]) -> Result:
    """A result that some agents give as an object: ``{command, passed, output}`` or the like."""
    passed = content.get("passed", content.get("success"))
    output = content.get("output") or content.get("error") or content
    return Result(shown(output), is_error=not passed if isinstance(passed, bool) else None)


def to_atif(run: RawTrajectory) -> dict[str, Json]:
    """Return *run* as a trajectory of ATIF 1.8; `read` gives its steps again, up to tool names.

    A command that has no arguments in *run*, as those of SWE-agent, is a call of ``command``.
    """
    steps = enumerate(_atif_steps(run), 1)
    resolved = None if run.outcome is Outcome.UNKNOWN else run.outcome is Outcome.SOLVED
    facts: dict[str, Json] = {
        "instance_id": run.instance_id,
        "repo": run.repo,
        "resolved": resolved,
        "exit_status": run.exit_status,
        "patch": run.patch,
    }
    agent: dict[str, Json] = {"name": run.agent or "unknown", "version": "unknown"}
    return {
        "schema_version": "ATIF-v1.8",
        "session_id": run.instance_id,
        "agent": agent | ({"model_name": run.model} if run.model else {}),
        "steps": [{"step_id": number, **step} for number, step in steps],
        "extra": {name: value for name, value in facts.items() if value not in (None, "")},
    }


def _atif_steps(run: RawTrajectory) -> Iterator[dict[str, Json]]:
    if run.system_prompt:
        yield {"source": "system", "message": run.system_prompt}
    yield {"source": "user", "message": run.task}
    for step in run.steps:
        yield _atif_step(step)
        if step.user_message is not None:
            yield {"source": "user", "message": step.user_message}


def _atif_step(step: Step) -> dict[str, Json]:
    action, id_ = step.action, f"call_{step.index}"
    record: dict[str, Json] = {"source": "agent", "message": step.thought}
    if step.timestamp:
        record["timestamp"] = step.timestamp.isoformat()
    if action.text or action.tool:
        arguments = dict(action.arguments) or {"command": action.text}
        name = action.tool if action.arguments else "command"
        call: dict[str, Json] = {"tool_call_id": id_, "function_name": name, "arguments": arguments}
        record["tool_calls"] = [call]
    if step.observation is not None:
        result: dict[str, Json] = {"content": step.observation}
        if "tool_calls" in record:
            result["source_call_id"] = id_
        record["observation"] = {"results": [result]}
    facts: dict[str, Json] = {
        "exit_code": step.exit_code,
        "tool_result_is_error": step.is_error,
        "cwd": step.cwd,
        "denied": step.denied or None,
        "interrupted": step.interrupted or None,
    }
    extra: dict[str, Json] = {k: value for k, value in facts.items() if value is not None}
    if extra:
        record["extra"] = extra
    return record


FORMATS = (
    Format(
        OWN,
        'object with the key "contextgraph"',
        "every field of a run; docs/trajectory.schema.json describes it",
        is_own,
        own_runs,
        omits="nothing",
    ),
    Format(
        ATIF,
        "object with schema_version ATIF-v1.x and steps, a list of such, or JSONL of steps, with "
        "or without a header line",
        "task, reasoning, tool calls, results, error flags of converters, times, agent, model; "
        "sub-agents as runs of their own",
        is_atif,
        runs,
        is_part=is_step,
        omits="metrics, final metrics, images",
    ),
)
