"""Runs of mini-swe-agent: a bare list of messages (early v1), v1, and v1.1."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from contextgraph.model import RawTrajectory
from contextgraph.readers.conversation import (
    Call,
    Result,
    Thought,
    Turn,
    conversation_of,
    time_in,
)
from contextgraph.readers.envelopes import task_in
from contextgraph.readers.fields import (
    Row,
    content_text,
    is_conversation,
    loose_text,
    row_at,
    rows_at,
    text,
    text_or_none,
)
from contextgraph.readers.format import EmptyRunError, Place
from contextgraph.readers.tool_calls import tool_call
from contextgraph.text import clean

NAME = "mini-swe-agent"

_SHELL = "bash"
_BLOCK = re.compile(r"```(?:bash|mswea_bash_command)\s*\n(?P<command>.*?)\n?```", re.DOTALL)
_THOUGHT = re.compile(r"\A\s*THOUGHT:\s*")
_RETURN_CODE = re.compile(r"\s*<returncode>(-?\d{1,10})</returncode>\s*")
_OUTPUT = re.compile(
    r"\A(\s*<returncode>-?\d{1,10}</returncode>\s*|)<output>\n?(.*?)\n?</output>\s*\Z", re.DOTALL
)
_TASK_VARIABLE = re.compile(r"\{\{\s*task\s*\}\}")
_DIFF = re.compile(r"^(?:diff --git |--- )", re.MULTILINE)


def recognises(record: object) -> bool:
    """Whether *record* is a run with messages and info, or a bare list of such messages."""
    if isinstance(record, list):
        return is_conversation(record) and _is_text_mode(record)
    if not isinstance(record, dict) or not isinstance(record.get("messages"), list):
        return False
    if any(isinstance(message, dict) and "parts" in message for message in record["messages"][:1]):
        return False  # a session of OpenCode
    written_by = record.get("trajectory_format")
    return (isinstance(written_by, str) and written_by.startswith(NAME)) or "info" in record


def parse(record: Row | list[Row], place: Place) -> RawTrajectory:
    """The run of one file; several commands in one message are several steps.

    Raises EmptyRunError for a run that ended before the model's first command.
    """
    run: Row = {"messages": record} if isinstance(record, list) else record
    info = row_at(run, "info")
    messages = rows_at(run, "messages")
    exit_status = text_or_none(info, "exit_status") or _last_extra(messages, "exit_status")
    if not any(_is_reply(message) for message in messages):
        raise EmptyRunError(place.file, place.position, _no_answer(exit_status, info))
    config = row_at(info, "config")
    known = RawTrajectory(
        source_format=NAME,
        instance_id=text(run, "instance_id") or place.instance_id(),
        repo="",
        task=_task(messages, text(row_at(config, "agent"), "instance_template")),
        agent=NAME,
        model=text(row_at(config, "model"), "model_name"),
        exit_status=exit_status,
        patch=_patch(text(info, "submission")) or _patch_at_end(messages),
        system_prompt=next((content_text(m) for m in messages if m.get("role") == "system"), ""),
    )
    return conversation_of(_turns(messages)).run(known, place)


def _is_text_mode(messages: Sequence[Row]) -> bool:
    """Whether *messages* hold return codes, or bash blocks and no calls of another notation."""
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


def _last_extra(messages: Sequence[Row], name: str) -> str | None:
    return text_or_none(row_at(messages[-1], "extra"), name) if messages else None


def _patch_at_end(messages: Sequence[Row]) -> str | None:
    """A bare list ends with what the last command handed in, without the usual tags."""
    content = "" if _is_reply(messages[-1]) else content_text(messages[-1])
    return _patch(content) if _DIFF.match(content.lstrip()) else None


def _patch(submission: str) -> str | None:
    return submission if _DIFF.search(submission) else None


def _task(messages: Sequence[Row], template: str) -> str:
    prompt = next((content_text(m) for m in messages if m.get("role") == "user"), "")
    return clean(_between(prompt, template) or task_in(prompt) or prompt)


def _between(prompt: str, template: str) -> str | None:
    """What stands in *prompt* where *template* has ``{{task}}``; None if that is unclear."""
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
    in_order = iter([answer for answer in answers if not _answered_id(answer)])
    for number, (id_, command) in enumerate(_commands(message)):
        answer = by_id.get(id_) or next(in_order, None)
        extra = row_at(answer, "extra") if answer else {}
        if command:
            arguments = {"command": clean(command)}
            yield Call(_SHELL, arguments, f"{name}:{number}", time or time_in(extra))
        if answer:
            yield _result(answer, extra, f"{name}:{number}")


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
    code, stopped = extra.get("returncode"), text(extra, "exception_info")
    output = text_or_none(extra, "raw_output")
    if output is None:
        output = _OUTPUT.sub(r"\1\2", content_text(answer) or text(answer, "output"))
    elif stopped:  # such as a time-out
        output = f"{output.rstrip()}\n{stopped}".lstrip()
    exit_code = code if type(code) is int else None
    return Result(output, id_, exit_code=exit_code, is_error=True if stopped else None)
