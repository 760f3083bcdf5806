"""OpenHands: events of V0 (event store, trajectory list, evaluation output) and of the V1 SDK."""

from collections.abc import Iterator, Sequence
from typing import Any

from contextgraph.errors import ReadError
from contextgraph.model import Json, RawTrajectory
from contextgraph.readers.conversation import (
    Call,
    Prompt,
    Result,
    Thought,
    Turn,
    UserMessage,
    conversation_of,
    each_row,
    time_in,
)
from contextgraph.readers.format import (
    Format,
    Place,
    Row,
    content_text,
    integer,
    loose_text,
    row_at,
    rows_at,
    text,
)
from contextgraph.readers.tool_calls import json_arguments, tool_call
from contextgraph.text import may_be_fenced

NAME = "openhands"
AGENT = "OpenHands"

_NOISE = frozenset(
    {"system", "recall", "change_agent_state", "agent_state_changed", "null", "condensation"}
)
_EVENT_KEYS = frozenset({"source", "args", "message", "extras", "content", "cause", "thought"})
# What events hold besides the arguments of a call.
_NO_ARGUMENTS = frozenset(
    {"thought", "image_urls", "blocking", "keep_prompt", "is_input", "hidden", "confirmation_state"}
    | {"kernel_init_code", "include_extra", "impl_source", "security_risk", "summary", "kind"}
    | {"action", "id", "timestamp", "source", "message", "background", "translated_ipython_code"}
)
_EDITOR_COMMANDS = ("view", "create", "str_replace", "insert", "undo_edit")
# Of kinds of V1 whose name does not end with "Event".
_V1_KINDS = ("Condensation", "CondensationRequest", "UserRejectObservation")


def is_event(value: object) -> bool:
    """Whether *value* is an event of V0 or V1."""
    if not isinstance(value, dict):
        return False
    kind = value.get("kind")
    if isinstance(kind, str) and (kind.endswith("Event") or kind in _V1_KINDS):
        return "source" in value or "timestamp" in value
    named = isinstance(value.get("action"), str) != isinstance(value.get("observation"), str)
    return named and not _EVENT_KEYS.isdisjoint(value) and "role" not in value


def recognises(value: object) -> bool:
    """Whether *value* is a list of events, of pairs of them, or an evaluation's row with one."""
    events = value.get("history") if isinstance(value, dict) else value
    if not isinstance(events, list) or not events:
        return False
    first = events[0][0] if isinstance(events[0], list) and events[0] else events[0]
    return is_event(first)


def runs(value: Any, place: Place) -> Iterator[RawTrajectory | ReadError]:
    """The run in *value*; an event of the wrong shape is an error, and the others are read."""
    row: Row = value if isinstance(value, dict) else {}
    events = _flat(row["history"] if row else value)
    turns, seen = list[Turn](), set[str]()

    def take(event: Row) -> None:
        turns.extend((*_event_turns(event, seen), *_prompts(event)))

    yield from each_row(events, take, f"{NAME} event", place)
    yield _run(row, events, turns, place)


def _flat(events: Sequence[Any]) -> list[Any]:
    """*events*, also where 2024's evaluations logged them as pairs of action and observation."""
    return [event for entry in events for event in (entry if isinstance(entry, list) else [entry])]


def _run(row: Row, events: Sequence[Any], turns: Sequence[Turn], place: Place) -> RawTrajectory:
    instance = row_at(row, "instance") or row_at(row, "swe_instance")
    metadata = row_at(row, "metadata")
    result = row_at(row, "test_result")
    rows = [event for event in events if isinstance(event, dict)]
    known = RawTrajectory(
        source_format=NAME,
        instance_id=loose_text(row, "instance_id"),
        repo=loose_text(instance, "repo"),
        task=loose_text(instance, "problem_statement") or loose_text(row_at(row, "issue"), "body"),
        agent=AGENT,
        model=loose_text(row_at(metadata, "llm_config"), "model")
        or loose_text(metadata, "model_name")
        or next(filter(None, map(_model, rows)), ""),
        exit_status=loose_text(row, "error").partition("\n")[0] or None,
        patch=loose_text(result, "git_patch") or loose_text(row, "git_patch") or None,
    )
    if not known.task and not any(isinstance(turn, UserMessage) for turn in turns):
        turns = [UserMessage(loose_text(row, "instruction")), *turns]
    return conversation_of(turns).run(known, place)


def _model(event: Row) -> str:
    return loose_text(row_at(row_at(event, "tool_call_metadata"), "model_response"), "model")


def _prompts(event: Row) -> Iterator[Prompt]:
    if event.get("action") == "system":
        yield Prompt(loose_text(row_at(event, "args"), "content"))
    if isinstance(prompt := event.get("system_prompt"), dict):
        yield Prompt(loose_text(prompt, "text"))
    if may_be_fenced(shown := content_text(event, "extended_content")):
        # What hooks showed: stripped before learning; its ids say what this run was shown.
        yield Prompt(shown)


def _event_turns(event: Row, seen: set[str]) -> Iterator[Turn]:
    if "kind" in event and "action" not in event and "observation" not in event:
        return _message_turns(event)
    if "kind" in event:
        return _sdk_turns(event, seen)
    if isinstance(event.get("action"), str):
        return _action_turns(event, seen)
    return _observation_turns(event)


def _action_turns(event: Row, seen: set[str]) -> Iterator[Turn]:
    name, args = text(event, "action"), row_at(event, "args") or event
    if name in _NOISE:
        return
    if name == "message":
        words = loose_text(args, "content") or loose_text(event, "message")
        is_agent = event.get("source", "agent") == "agent"
        yield (
            Thought(words, time_in(event)) if is_agent else UserMessage(words, time=time_in(event))
        )
        return
    metadata = row_at(event, "tool_call_metadata")
    reply = _reply(metadata)
    # Of several calls in one reply each event repeats its text.
    reply_id = loose_text(row_at(metadata, "model_response"), "id")
    if not reply_id or reply_id not in seen:
        yield Thought(loose_text(args, "thought") or content_text(reply), time_in(event))
    seen.add(reply_id)
    call_id = loose_text(metadata, "tool_call_id")
    calls = (call for call in rows_at(reply, "tool_calls") if call.get("id") == call_id)
    tool, arguments = next(map(tool_call, calls), ("", {}))
    if not arguments:
        arguments = {k: v for k, v in args.items() if k not in _NO_ARGUMENTS and v is not None}
    is_editor = arguments.get("command") in _EDITOR_COMMANDS and name in ("edit", "read", "write")
    tool = tool or ("str_replace_editor" if is_editor else name)
    yield Call(tool, arguments, str(event.get("id", "")), time_in(event))


def _reply(metadata: Row) -> Row:
    choices = rows_at(row_at(metadata, "model_response"), "choices")
    return row_at(choices[0], "message") if choices else {}


def _observation_turns(event: Row) -> Iterator[Turn]:
    name, extras = text(event, "observation"), row_at(event, "extras") or event
    if name in _NOISE:
        return
    metadata = row_at(extras, "metadata")
    code = integer(metadata if "exit_code" in metadata else extras, "exit_code")
    yield Result(
        content_text(event),
        str(event["cause"]) if event.get("cause") is not None else "",
        exit_code=None if code == -1 else code,
        is_error=True if name == "error" or event.get("success") is False else None,
        cwd=loose_text(metadata, "working_dir") or None,
        denied=name == "user_rejected",
    )


def _message_turns(event: Row) -> Iterator[Turn]:
    """The turns of a V1 event that is neither a call nor a result."""
    message = row_at(event, "llm_message")
    if event.get("kind") == "AgentErrorEvent":
        yield Result(loose_text(event, "error"), loose_text(event, "tool_call_id"), is_error=True)
    elif event.get("kind") == "UserRejectObservation":
        reason = loose_text(event, "rejection_reason")
        yield Result(reason, loose_text(event, "tool_call_id"), denied=True)
    elif message.get("role") == "assistant":
        yield Thought(content_text(message), time_in(event))
    elif message.get("role") == "user":
        yield UserMessage(content_text(message), time=time_in(event))


def _sdk_turns(event: Row, seen: set[str]) -> Iterator[Turn]:
    """The turns of a call or result of V1; calls of one reply share ``llm_response_id``."""
    if event.get("kind") == "ActionEvent":
        reply = loose_text(event, "llm_response_id")
        if not reply or reply not in seen:
            yield Thought(loose_text(event, "reasoning_content"), time_in(event))
            yield Thought(content_text(event, "thought"), time_in(event))
        seen.add(reply)
        arguments = json_arguments(row_at(event, "tool_call").get("arguments"))
        if not arguments and isinstance(event.get("action"), dict):
            arguments = row_at(event, "action")
        named: dict[str, Json] = {k: v for k, v in arguments.items() if k not in _NO_ARGUMENTS}
        tool = loose_text(event, "tool_name")
        yield Call(tool, named, loose_text(event, "tool_call_id"), time_in(event))
        return
    observation = row_at(event, "observation")
    metadata = row_at(observation, "metadata")
    code = integer(observation, "exit_code")
    yield Result(
        content_text(observation),
        loose_text(event, "tool_call_id"),
        exit_code=None if code == -1 else code,
        is_error=True if observation.get("is_error") is True else None,
        cwd=loose_text(metadata, "working_dir") or None,
        denied=event.get("kind") == "UserRejectObservation",
    )


FORMATS = (
    Format(
        NAME,
        "events with action or observation (V0: event store, trajectory list, output.jsonl with "
        "history, also as pairs) or with kind (V1 SDK: events folder or events.jsonl)",
        "task, thoughts, tool calls, results, exit codes, errors, times, directory, model, patch, "
        "outcome of an evaluated row, denied calls, user messages",
        recognises,
        runs,
        is_part=is_event,
    ),
)
