"""Typed access to parsed JSON: a field of the wrong type is a ValueError that names it."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Row: TypeAlias = Mapping[str, Any]


def text(row: Row, name: str) -> str:
    """The text at *name*; empty where it is absent or null."""
    value = row.get(name)
    return value if isinstance(value, str) else text_or_none(row, name) or ""


def text_or_none(row: Row, name: str) -> str | None:
    """The text at *name*; None where it is absent or null."""
    value = row.get(name)
    if value is None or isinstance(value, str):
        return value
    raise ValueError(_wrong(name, value, "text"))


def row_at(row: Row, name: str) -> Row:
    """The object at *name*; empty where it is absent or null."""
    value = row.get(name)
    if value is None:
        return {}
    return as_row(value, name)


def rows_at(row: Row, name: str) -> Sequence[Row]:
    """The list of objects at *name*; empty where it is absent or null."""
    value = row.get(name)
    if value is None:
        return ()
    if isinstance(value, list) and {dict}.issuperset(map(type, value)):
        return value
    raise ValueError(_wrong(name, value, "a list of objects"))


def as_row(value: object, name: str) -> Row:
    """*value* itself, known to be an object."""
    if isinstance(value, dict):
        return value
    raise ValueError(_wrong(name, value, "an object"))


def content_text(row: Row, name: str = "content") -> str:
    """A chat message's text, whether it is one text or a list of ``{"type", "text"}`` parts."""
    value = row.get(name)
    if isinstance(value, list):
        parts = (as_row(part, name) for part in value)
        return "\n".join(text(part, "text") for part in parts if "text" in part)
    return text(row, name)


def is_conversation(value: object) -> bool:
    """Whether *value* is a list of chat messages, as opposed to a list of runs."""
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(message, dict) and "role" in message for message in value)


def _wrong(name: str, value: object, wanted: str) -> str:
    return f"{name} is {kind(value)}, not {wanted}"


def kind(value: object) -> str:
    """What *value* is called in JSON, such as "an object"."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "text"
        case int() | float():
            return "a number"
        case dict():
            return "an object"
        case list():
            return "a list"
    return type(value).__name__
