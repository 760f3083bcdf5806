"""A raw run as a JSON object and back; every field survives."""

from collections.abc import Mapping
from datetime import datetime
from typing import TypeVar

from contextgraph.errors import ReadError
from contextgraph.model.trajectory import Action, Json, Outcome, RawTrajectory, Step

_Scalar = TypeVar("_Scalar", bool, int, str)


def raw_to_record(raw: RawTrajectory) -> dict[str, Json]:
    """The JSON object of *raw*: its fields by name, those that are None left out."""
    record: dict[str, Json] = {
        "source_format": raw.source_format,
        "instance_id": raw.instance_id,
        "repo": raw.repo,
        "task": raw.task,
        "agent": raw.agent,
        "model": raw.model,
        "outcome": str(raw.outcome),
        "exit_status": raw.exit_status,
        "patch": raw.patch,
        "started_at": _time_text(raw.started_at),
        "source": raw.source,
        "system_prompt": raw.system_prompt,
        "steps": [_step_to_record(step) for step in raw.steps],
    }
    return {name: value for name, value in record.items() if value is not None}


def raw_from_record(record: Json) -> RawTrajectory:
    """The run that *record* describes; unknown keys are ignored.

    Raises `ReadError` (of no source: the caller knows it) for a wrong type or a missing field,
    with the step as its position.
    """
    fields = _object(record, "")
    return RawTrajectory(
        source_format=_text(fields, "source_format", ""),
        instance_id=_text(fields, "instance_id", ""),
        repo=_text(fields, "repo", ""),
        task=_text(fields, "task", ""),
        steps=_steps(fields),
        agent=_text(fields, "agent", ""),
        model=_text(fields, "model", ""),
        outcome=_outcome(fields),
        exit_status=_optional(fields, "exit_status", str, ""),
        patch=_optional(fields, "patch", str, ""),
        started_at=_time(fields, "started_at", ""),
        source=_text(fields, "source", ""),
        system_prompt=_text(fields, "system_prompt", ""),
    )


def _step_to_record(step: Step) -> dict[str, Json]:
    """None is left out, the empty string is not: an empty observation differs from none."""
    record: dict[str, Json] = {
        "index": step.index,
        "thought": step.thought,
        "action": {
            "tool": step.action.tool,
            "text": step.action.text,
            "arguments": dict(step.action.arguments),
        },
        "observation": step.observation,
        "exit_code": step.exit_code,
        "is_error": step.is_error,
        "cwd": step.cwd,
        "open_file": step.open_file,
        "timestamp": _time_text(step.timestamp),
    }
    return {name: value for name, value in record.items() if value is not None}


def _steps(fields: Mapping[str, Json]) -> tuple[Step, ...]:
    steps = fields.get("steps")
    if steps is None:
        return ()
    if not isinstance(steps, list):
        raise ReadError("", "", "steps is not a list")
    return tuple(_step(step, f"step {position}") for position, step in enumerate(steps))


def _step(record: Json, position: str) -> Step:
    fields = _object(record, position)
    index = _optional(fields, "index", int, position)
    if index is None:
        raise ReadError("", position, "index is missing")
    return Step(
        index=index,
        thought=_text(fields, "thought", position),
        action=_action(fields.get("action"), position),
        observation=_optional(fields, "observation", str, position),
        exit_code=_optional(fields, "exit_code", int, position),
        is_error=_optional(fields, "is_error", bool, position),
        cwd=_optional(fields, "cwd", str, position),
        open_file=_optional(fields, "open_file", str, position),
        timestamp=_time(fields, "timestamp", position),
    )


def _action(record: Json, position: str) -> Action:
    fields = _object(record, position, "action")
    return Action(
        tool=_text(fields, "tool", position),
        text=_text(fields, "text", position),
        arguments=_object(fields.get("arguments", {}), position, "arguments"),
    )


def _object(record: Json, position: str, name: str = "record") -> dict[str, Json]:
    if not isinstance(record, dict):
        raise ReadError("", position, f"{name} is not an object")
    return record


def _text(fields: Mapping[str, Json], name: str, position: str) -> str:
    return _optional(fields, name, str, position) or ""


def _optional(
    fields: Mapping[str, Json], name: str, kind: type[_Scalar], position: str
) -> _Scalar | None:
    """The value under *name* if it is exactly of *kind*: true is no number here."""
    value = fields.get(name)
    if value is None:
        return None
    if type(value) is not kind:
        raise ReadError("", position, f"{name} is not of type {kind.__name__}")
    return value


def _outcome(fields: Mapping[str, Json]) -> Outcome:
    text = _text(fields, "outcome", "") or Outcome.UNKNOWN
    try:
        return Outcome(text)
    except ValueError:
        raise ReadError("", "", f"outcome {text!r} is none of {', '.join(Outcome)}") from None


def _time_text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _time(fields: Mapping[str, Json], name: str, position: str) -> datetime | None:
    text = _optional(fields, name, str, position)
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ReadError("", position, f"{name} {text!r} is not an ISO 8601 time") from None
    if time.tzinfo is None:
        raise ReadError("", position, f"{name} {text!r} has no time zone")
    return time
