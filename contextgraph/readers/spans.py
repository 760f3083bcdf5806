"""Traces in the conventions of OpenInference, which Phoenix and others export.

Spans come as lines, lists or tables, or as OTLP in JSON; attributes as names with dots or nested.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from contextgraph.errors import ReadError
from contextgraph.model import RawTrajectory
from contextgraph.model.values import replace
from contextgraph.readers.chat import answers_in, logged_runs
from contextgraph.readers.conversation import time_in
from contextgraph.readers.format import Format, Place, Row, row_at, rows_at
from contextgraph.readers.tool_calls import json_arguments

NAME = "openinference"
_KIND = "openinference.span.kind"
_LISTS = ("data", "spans")
_EXPORT = "resourceSpans"  # of OTLP in JSON
_MODEL_CALL = "LLM"
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)


def recognises(value: object) -> bool:
    """Return True if *value* holds spans."""
    return any(_kind_of(span) for span in _spans(value)[:20])


def is_span(value: object) -> bool:
    """Return True if *value* is one span, as the row of a table too, or one export of OTLP."""
    if not isinstance(value, dict):
        return False
    return any(map(_kind_of, _spans(value))) if _EXPORT in value else bool(_kind_of(value))


def runs(value: Any, place: Place) -> Iterator[RawTrajectory | ReadError]:
    """Yield runs in the spans of *value*: the longest request of each conversation."""
    traces: dict[str, list[Row]] = {}
    for span in _spans(value):
        traces.setdefault(_trace_of(span), []).append(span)
    calls = {trace: _calls(spans) for trace, spans in traces.items()}
    with_calls = {trace: lines for trace, lines in calls.items() if lines}
    for trace, lines in with_calls.items():
        named = {"instance_id": trace} if len(with_calls) > 1 else {}
        for run in logged_runs([{**named, **line} for line in lines], place):
            is_run = isinstance(run, RawTrajectory)
            yield replace(run, source_format=NAME, session=trace) if is_run else run
    if not with_calls:
        yield ReadError(place.file, place.position, "no span of a model with its messages")


def _spans(value: Any) -> Sequence[Row]:
    if isinstance(value, list):
        return [span for one in value if isinstance(one, dict) for span in _exported(one)]
    if not isinstance(value, dict):
        return ()
    if _EXPORT in value:
        return _exported(value)
    for name in _LISTS:
        if isinstance(value.get(name), list):
            return _spans(value[name])
    return [value]


def _exported(value: Row) -> Sequence[Row]:
    """The spans of an export of OTLP; *value* itself where it is none."""
    if not isinstance(value.get(_EXPORT), list):
        return [value]
    return [
        span
        for resource in rows_at(value, _EXPORT)
        for scope in rows_at(resource, "scopeSpans")
        for span in rows_at(scope, "spans")
    ]


def _kind_of(span: Row) -> str:
    kind = _at(_attributes(span), _KIND)
    return kind if isinstance(kind, str) else ""


def _trace_of(span: Row) -> str:
    context = span.get("context")
    inside = context.get("trace_id") if isinstance(context, dict) else None
    found = inside or span.get("traceId") or span.get("context.trace_id") or ""
    return found if isinstance(found, str) else ""


def _attributes(span: Row) -> Mapping[str, Any]:
    """The attributes of *span*, nested: those of OTLP are pairs, those of tables columns."""
    given = span.get("attributes")
    if isinstance(given, list):
        rows = [row for row in given if isinstance(row, dict)]
        pairs = {str(row.get("key")): _plain(row.get("value")) for row in rows}
    elif isinstance(given, dict):
        pairs = given
    else:
        prefix = "attributes."
        pairs = {
            name.removeprefix(prefix): value
            for name, value in span.items()
            if name.startswith(prefix) and value is not None
        }
    return _nested(pairs)


def _plain(value: Any) -> Any:
    """The value of an attribute of OTLP."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    ((name, content),) = value.items()
    if name == "arrayValue" and isinstance(content, dict):
        return [_plain(item) for item in content.get("values", ())]
    return content


def _nested(pairs: Mapping[str, Any]) -> dict[str, Any]:
    """*pairs* with an object for each part of a name with dots."""
    found: dict[str, Any] = {}
    for name, value in pairs.items():
        inside = found
        *parents, last = str(name).split(".")
        for parent in parents:
            inside = inside.setdefault(parent, {})
            if not isinstance(inside, dict):
                break
        else:
            inside[last] = _nested(value) if isinstance(value, dict) else value
    return found


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _listed(value: Any) -> list[Row]:
    """The objects of a list, which may be an object whose names are places."""
    if isinstance(value, dict):
        places = sorted((int(name), item) for name, item in value.items() if name.isdecimal())
        value = [item for _, item in places]
    return [_nested(item) for item in value or () if isinstance(item, dict)]


def _started(span: Row) -> datetime:
    nanoseconds = span.get("startTimeUnixNano")
    if isinstance(nanoseconds, int | str) and str(nanoseconds).isdecimal():
        return datetime.fromtimestamp(int(nanoseconds) / 1e9, UTC)
    return time_in(span, "start_time") or _FIRST


def _calls(spans: Sequence[Row]) -> list[Row]:
    """Each call of a model in *spans*, in order of time, as the lines of its request and answer."""
    lines: list[Row] = []
    for span in sorted(spans, key=_started):
        attributes = _attributes(span)
        if _kind_of(span) != _MODEL_CALL:
            continue
        model = row_at(attributes, "llm") if isinstance(attributes.get("llm"), dict) else {}
        sent, answered = (
            [_message(row) for row in _listed(model.get(name))]
            for name in ("input_messages", "output_messages")
        )
        sent = sent or _logged(attributes, "input")
        answered = answered or _logged(attributes, "output")
        if sent and answered:
            parameters = {"messages": sent, "model": model.get("model_name") or ""}
            lines.append({"type": "request", "request_params": parameters})
            lines.append({"type": "response", "response": {"choices": [{"message": answered[0]}]}})
    return lines


def _logged(attributes: Row, side: str) -> list[Row]:
    """The messages in the JSON of what a model was sent, or answered, where none is listed."""
    body = json_arguments(_at(attributes, f"{side}.value"))
    messages = body.get("messages")
    if isinstance(messages, list):
        return [message for message in messages if isinstance(message, dict)]
    return answers_in({"response": body})


def _message(row: Row) -> Row:
    """A message of a span as one of the API of chats."""
    message = row.get("message")
    inside: Row = message if isinstance(message, dict) else row
    parts = [_at(part, "message_content.text") for part in _listed(inside.get("contents"))]
    content = inside.get("content") or "\n".join(part for part in parts if isinstance(part, str))
    calls = []
    for item in _listed(inside.get("tool_calls")):
        call = item.get("tool_call")
        if isinstance(call, dict):
            calls.append({"id": str(call.get("id") or ""), "function": call.get("function") or {}})
    return {
        "role": inside.get("role") or "",
        "content": content,
        **({"tool_calls": calls} if calls else {}),
        **({"tool_call_id": inside["tool_call_id"]} if inside.get("tool_call_id") else {}),
    }


FORMATS = (
    Format(
        NAME,
        "spans with openinference.span.kind (Phoenix, OTLP in JSON), as lines, a list or a table",
        "task, thoughts, tool calls, results that a later call was sent, model; of each trace the "
        "longest request of each conversation",
        recognises,
        runs,
        is_part=is_span,
        omits="spans of tools, retrievers and chains, token counts",
        experimental=True,
    ),
)
