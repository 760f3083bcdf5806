"""A state as a JSON object, as programs write it."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from contextgraph.errors import InvalidStateError
from contextgraph.model import Json, Phase, State

KEYS = tuple(item.name for item in fields(State))


def state_from_record(record: Mapping[str, Json], place: str) -> State:
    """The state with the values of *record*; null counts as absent.

    Raises `InvalidStateError`, naming *place*, for an unknown key or a value of the wrong type.
    """
    for key in record:
        if key not in KEYS:
            known = ", ".join(KEYS)
            raise InvalidStateError(f"{place}: unknown key {key!r}; a state has: {known}")
    values: dict[str, Any] = {
        key: _value(key, value, place) for key, value in record.items() if value is not None
    }
    return State(**values)


def _value(key: str, value: Json, place: str) -> str | Phase | tuple[str, ...]:
    if key == "tools":
        return _tools(value, place)
    if not isinstance(value, str):
        raise InvalidStateError(f"{place}: {key} must be a string")
    return _phase(value, place) if key == "phase" else value


def _tools(value: Json, place: str) -> tuple[str, ...]:
    names = value if isinstance(value, list) else [None]
    tools = tuple(name for name in names if isinstance(name, str))
    if len(tools) != len(names):
        raise InvalidStateError(f"{place}: tools must be a list of strings")
    return tools


def _phase(value: str, place: str) -> Phase:
    try:
        return Phase(value)
    except ValueError:
        raise InvalidStateError(f"{place}: phase {value!r} is none of {', '.join(Phase)}") from None
