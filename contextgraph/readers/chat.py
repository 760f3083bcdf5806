"""Chat messages as OpenAI's API has them: whole runs, logged calls, and data sets of messages.

Tools are called by ``tool_calls``, or in the text as ``<function=…>`` (OpenHands, SWE-smith,
SWE-Gym, R2E-Gym), answered by ``tool`` or ``user`` messages.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from contextgraph.errors import ReadError
from contextgraph.model import Outcome, RawTrajectory
from contextgraph.model.values import replace
from contextgraph.readers.conversation import (
    Call,
    Conversation,
    Prompt,
    Result,
    Thought,
    Turn,
    UserMessage,
    block_turns,
    conversation_of,
    has_blocks,
    time_in,
)
from contextgraph.readers.envelopes import thought_and_command
from contextgraph.readers.format import (
    Format,
    Place,
    Row,
    as_row,
    content_text,
    is_conversation,
    loose_text,
    row_at,
    rows_at,
    text,
)
from contextgraph.readers.tool_calls import json_arguments, tool_call, xml_calls
from contextgraph.text import regex

NAME = "chat"
CALLS = "chat-calls"

_LISTS = ("messages", "trajectory", "conversations", "conversation")
_ROLES = {"gpt": "assistant", "human": "user"}
_ANSWER = regex(r"\A(?:EXECUTION RESULT of \[|OBSERVATION:|Execution output of \[)")


def recognises(value: object) -> bool:
    """Return True if *value* is a list of messages with replies, or an object that holds one."""
    if not isinstance(value, dict):
        return _has_reply(value)
    return any(_has_reply(value.get(name)) for name in _LISTS) or _is_r2e(value)


def is_calls(value: object) -> bool:
    """Return True if *value* logs a call of a model, or is the list of the lines of such a log."""
    if isinstance(value, list):
        return bool(value) and is_call_line(value[0])
    if not isinstance(value, dict) or not is_conversation(value.get("messages")):
        return False
    return bool(answers_in(value))


def is_call_line(value: object) -> bool:
    """Return True if *value* is a line of a log of requests and responses."""
    if not isinstance(value, dict) or value.get("type") not in ("request", "response"):
        return False
    return isinstance(value.get("request_params"), dict) or isinstance(value.get("response"), dict)


def runs(value: Any, place: Place) -> Iterator[RawTrajectory | ReadError]:
    """Yield the run of a list of messages."""
    if isinstance(value, list):
        yield _run({}, _with_roles(value), place)
    elif _is_r2e(value):
        yield _r2e_run(value, place)
    else:
        name = next(name for name in _LISTS if _has_reply(value.get(name)))
        yield _run(value, _with_roles(rows_at(value, name)), place)


def call_runs(value: Any, place: Place) -> Iterator[RawTrajectory | ReadError]:
    """Yield the run up to the one call that *value* logs, or the runs that a log of calls shows."""
    if isinstance(value, list):
        yield from logged_runs(value, place)
    else:
        messages = [*rows_at(value, "messages"), *answers_in(value)]
        yield replace(_run(value, messages, place), source_format=CALLS)


def is_continued_by(earlier: RawTrajectory, later: RawTrajectory) -> bool:
    """Return True if both log calls of one conversation, and *later* holds all of it."""
    if earlier.source_format != CALLS or later.source_format != CALLS:
        return False
    if (earlier.task, earlier.system_prompt) != (later.task, later.system_prompt):
        return False
    first = [step.action.text for step in earlier.steps]
    return first == [step.action.text for step in later.steps[: len(first)]]


def _has_reply(value: object) -> bool:
    if not isinstance(value, list) or not value:
        return False
    messages = [message for message in value if isinstance(message, dict)]
    roles = [message.get("role", message.get("from")) for message in messages]
    return (
        len(roles) == len(value) and None not in roles and ("assistant" in roles or "gpt" in roles)
    )


def _with_roles(messages: Sequence[Row]) -> Sequence[Row]:
    """*messages* with role and content; data sets for training have ``from`` and ``value``."""
    if not any("from" in message for message in messages):
        return messages
    return [
        {"role": _ROLES.get(text(row, "from"), text(row, "from")), "content": row.get("value")}
        for row in messages
    ]


def answers_in(row: Row) -> list[Row]:
    """The message with which the model answered the call that *row* logs; none elsewhere."""
    response = row.get("response")
    choices = response.get("choices") if isinstance(response, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return []
    message = choices[0].get("message")
    return [message] if isinstance(message, dict) else []


def _run(row: Row, messages: Sequence[Row], place: Place) -> RawTrajectory:
    conversation = conversation_of(turns_of(messages))
    known = RawTrajectory(
        source_format=NAME,
        instance_id=loose_text(row, "instance_id"),
        repo="",
        task="",
        agent=loose_text(row, "agent"),
        model=_model(row),
        started_at=time_in(row),
    )
    return conversation.run(known, place)


def _model(row: Row) -> str:
    for source in (row.get("response"), row, row.get("request_params")):
        if isinstance(source, dict) and isinstance(source.get("model"), str):
            return str(source["model"])
    return ""


def turns_of(messages: Iterable[Row]) -> Iterator[Turn]:
    """Yield turns of chat *messages*; a user message after calls in the text is a result."""
    unanswered, rest = 0, [*messages, {}]
    for message, following in pairwise(rest):
        role = message.get("role")
        if has_blocks(message.get("content")):
            is_agent = role == "assistant"
            yield from block_turns(rows_at(message, "content"), is_agent=is_agent)
        elif role == "assistant":
            turns = list(_reply(message))
            if not any(isinstance(turn, Call) for turn in turns) and _is_answer(following):
                turns = [*_reply_in_text(message)]
            unanswered = sum(isinstance(turn, Call) and not turn.id for turn in turns)
            yield from turns
        elif role in ("tool", "function"):
            yield Result(content_text(message), _answered_call(message))
        elif role == "system":
            yield Prompt(content_text(message))
        elif role in ("user", "human"):
            words = content_text(message)
            if unanswered or _ANSWER.match(words):
                unanswered = max(0, unanswered - 1)
                yield Result(words)
            else:
                yield UserMessage(words)


def _is_answer(message: Row) -> bool:
    return message.get("role") == "user" and bool(_ANSWER.match(content_text(message)))


def _reply_in_text(message: Row) -> Iterator[Turn]:
    """The command in the last block of a reply that was answered, as SWE-agent asks for it."""
    thought, command = thought_and_command(content_text(message))
    yield Thought(thought)
    if command:
        yield Call("bash", {"command": command})


def _answered_call(message: Row) -> str:
    """The id of the call that a *message* of a tool answers; SWE-smith names it in a list."""
    named = message.get("tool_call_ids")
    first = named[0] if isinstance(named, list) and named else ""
    return text(message, "tool_call_id") or (first if isinstance(first, str) else "")


def _reply(message: Row) -> Iterator[Turn]:
    yield Thought(text(message, "reasoning_content"))
    calls = rows_at(message, "tool_calls")
    words, in_text = xml_calls(content_text(message))
    yield Thought(words)
    for call in calls:
        yield _call(call)
    if function_call := message.get("function_call"):
        yield _call({"function": function_call})
    for function in in_text if not calls else ():
        yield Call(function.name, function.arguments)


def _call(call: Row) -> Call:
    """The *call*; of arguments that are not JSON, the text as it is."""
    function = tool_call(call)
    written = row_at(call, "function").get("arguments")
    is_broken = isinstance(written, str) and bool(written.strip()) and not function.arguments
    arguments = {"arguments": written} if is_broken and written != "{}" else function.arguments
    return Call(function.name, arguments, text(call, "id"))


def logged_runs(lines: Sequence[Any], place: Place) -> Iterator[RawTrajectory | ReadError]:
    """Yield runs of a log of calls: the longest request of each conversation, and its answer."""
    pending: tuple[Row, list[Row]] | None = None
    for index, line in enumerate(lines):
        try:
            request = row_at(as_row(line, "line"), "request_params")
            if request:
                messages = list(rows_at(request, "messages"))
                if pending and not _continues(pending[1], messages):
                    yield replace(_run(pending[0], pending[1], place), source_format=CALLS)
                pending = (line, messages)
            elif pending:
                pending[1].extend(answers_in(line))
        except ValueError as error:
            yield ReadError(place.file, place.part(index), f"malformed {NAME} line", str(error))
    if pending:
        yield replace(_run(pending[0], pending[1], place), source_format=CALLS)


def _continues(earlier: Sequence[Row], later: Sequence[Row]) -> bool:
    """Return True if *later* begins as *earlier* did, and is not shorter but for the last reply."""
    first, second = ([content_text(m) for m in messages[:2]] for messages in (earlier, later))
    return first == second and len(later) >= len(earlier) - 1


def _is_r2e(value: Row) -> bool:
    steps = value.get("trajectory_steps")
    return (
        isinstance(steps, list)
        and bool(steps)
        and isinstance(steps[0], dict)
        and "observation" in steps[0]
    )


def _r2e_run(row: Row, place: Place) -> RawTrajectory:
    conversation = conversation_of(_r2e_turns(rows_at(row, "trajectory_steps")))
    reward = row.get("reward")
    known = RawTrajectory(
        source_format=NAME,
        instance_id=text(row_at(row, "ds"), "instance_id"),
        repo=text(row_at(row, "ds"), "repo"),
        task=text(row, "problem_statement"),
        agent="R2E-Gym",
        outcome=_rewarded(reward),
        exit_status=text(row, "exit_reason") or None,
        patch=text(row, "output_patch") or None,
    )
    return Conversation(known.task, conversation.steps).run(known, place)


def _rewarded(reward: object) -> Outcome:
    if not isinstance(reward, int | float):
        return Outcome.UNKNOWN
    return Outcome.SOLVED if reward == 1 else Outcome.FAILED


def _r2e_turns(steps: Sequence[Row]) -> Iterator[Turn]:
    for step in steps:
        yield Thought(text(step, "thought"))
        _, calls = xml_calls(text(step, "action"))
        for call in calls:
            yield Call(call.name, json_arguments(dict(call.arguments)))
        if not calls:
            yield Call("", {"command": text(step, "action")})
        yield Result(text(step, "observation"))


_KEEPS = "task, thoughts, tool calls of the API or in the text, results, exit codes, model"

FORMATS = (
    Format(
        CALLS,
        "object with messages and response, or lines of type request and response",
        f"{_KEEPS}; of calls that repeat one conversation only the longest",
        is_calls,
        call_runs,
        is_part=is_call_line,
        omits="images, token counts, what was streamed in pieces",
    ),
    Format(
        NAME,
        "list of messages with role and content (or from and value), an object that holds one "
        "(messages, trajectory, conversations), or trajectory_steps (R2E-Gym)",
        _KEEPS,
        recognises,
        runs,
        omits="images, token counts, fields of rows that no run has",
    ),
)
