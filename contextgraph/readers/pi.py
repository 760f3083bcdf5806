"""pi, and Oh My Pi: trees of messages in lines, one file for each session."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from contextgraph.errors import ReadError
from contextgraph.model import RawTrajectory, Spent
from contextgraph.model.values import replace
from contextgraph.readers.conversation import (
    Bill,
    Call,
    Result,
    Turn,
    UserMessage,
    block_turns,
    lines_run,
    shown,
    time_in,
)
from contextgraph.readers.format import (
    Kept,
    Place,
    Row,
    content_text,
    count,
    dollars,
    integer,
    is_list_of,
    loose_text,
    row_at,
    rows_at,
    text,
)
from contextgraph.readers.histories import history
from contextgraph.text import regex

PI = "pi"
# Writes the same files in a folder of its own.
OMP = "oh-my-pi"
_OMP_FOLDER = ".omp"

_EXITED = regex(r"\n*Command exited with code (?P<code>\d{1,5})\s*\Z")


def is_pi_line(value: object) -> bool:
    """Return True if *value* is the first line of a session."""
    if not isinstance(value, dict) or value.get("type") != "session":
        return False
    return isinstance(value.get("id"), str) and isinstance(value.get("cwd"), str)


def pi_runs(lines: Sequence[Any], place: Place) -> Iterator[RawTrajectory | ReadError]:
    """Yield the run of one session, without the requests of branches that were left."""
    agent = OMP if _OMP_FOLDER in PurePath(place.file).parts else PI
    above = dict[str, str]()  # what is no message -> the message that it follows

    def facts_of(row: Row) -> Mapping[str, str]:
        facts = {"agent": agent, "model": loose_text(_message(row), "model")}
        if row.get("type") == "session":
            facts |= {"session": text(row, "id"), "folder": text(row, "cwd")}
        return facts

    def ids_of(row: Row) -> tuple[str, str]:
        id_, parent = text(row, "id"), text(row, "parentId")
        parent = above.get(parent, parent)
        if not _message(row):
            above[id_] = parent or id_
        return id_, parent

    # A fork copies messages with their times, and begins later.
    first = lines[0] if lines and is_pi_line(lines[0]) else {}
    for run in lines_run(PI, _turns, facts_of, lines, place, ids_of=ids_of):
        if isinstance(run, RawTrajectory):
            yield replace(run, started_at=time_in(first) or run.started_at)
        else:
            yield run


def _message(row: Row) -> Row:
    return row_at(row, "message") if row.get("type") == "message" else {}


def _turns(row: Row) -> Iterator[Turn]:
    message = _message(row)
    time = time_in(row) or time_in(message)
    match message.get("role"):
        case "user":
            yield UserMessage(content_text(message), time=time)
        case "assistant":
            yield from block_turns(rows_at(message, "content"), is_agent=True, time=time)
            yield from _bill(message)
            if message.get("stopReason") == "aborted":
                yield UserMessage("", interrupted=True)
        case "toolResult":
            yield _result(message)
        case "bashExecution":  # a person ran it
            id_ = text(row, "id")
            yield Call("bash", {"command": text(message, "command")}, id_, time)
            yield Result(text(message, "output"), id_, integer(message, "exitCode"))


def _bill(reply: Row) -> Iterator[Bill]:
    if isinstance(usage := reply.get("usage"), dict):
        given, answered = count(usage, "input"), count(usage, "output")
        cached, written = count(usage, "cacheRead"), count(usage, "cacheWrite")
        cost = dollars(row_at(usage, "cost"), "total")
        yield Bill(Spent(given, cached, written, answered, cost))


def _result(message: Row) -> Result:
    output, failed = shown(message.get("content")), message.get("isError") is True
    exited = _EXITED.search(output) if message.get("toolName") == "bash" else None
    details = message.get("details")
    code = integer(details, "exitCode") if isinstance(details, dict) else None
    if code is None and exited:
        code = int(exited["code"])
    return Result(
        output[: exited.start()] if exited else output,
        text(message, "toolCallId"),
        exit_code=code,
        is_error=True if failed else None,
    )


FORMATS = (
    history(
        PI,
        "first line with type session, id and cwd (pi and Oh My Pi)",
        recognises=lambda value: is_list_of(is_pi_line, value),
        runs=pi_runs,
        is_part=is_pi_line,
        omits="images, summaries of branches and of compaction, what extensions add",
        kept=(
            Kept(".pi/agent", ("sessions/**/*.jsonl",), "PI_CODING_AGENT_DIR"),
            Kept(f"{_OMP_FOLDER}/agent", ("sessions/**/*.jsonl",), agent=OMP),
        ),
    ),
)
