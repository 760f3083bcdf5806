"""Validates entries: content, source, and the rules for both."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import Literal

import orjson

from contextgraph.errors import InvalidEntryError
from contextgraph.model import Json
from contextgraph.text import mask_after, mask_secrets

MAX_CONTENT = 64 * 1024
UNTRUSTED = "/untrusted"
_KNOWLEDGE = "/kb/"
_KINDS = ("user", "tool", "web", "file", "system", "agent")
_EXTERNAL = frozenset({"tool", "web", "file"})
_LOCATOR = "locator (URL, path, query, event id or content hash)"


@dataclass(frozen=True, slots=True)
class Envelope:
    """One call of `set_memory`; *content* is None where it removed the key.

    *seq* counts the calls of a memory from 1 and decides which is the latest; *ts* is for people.
    """

    key: str
    seq: int
    ts: datetime
    valid: bool
    source: Json
    content: Json


def time_of(value: object) -> datetime | None:
    """The time that *value* says in ISO 8601, in UTC without a zone; None where it says none."""
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return time.replace(tzinfo=UTC) if time and time.tzinfo is None else time


def is_expired(content: Json, now: datetime) -> bool:
    """Whether the *expired_at* of *content* is before *now*; no other field expires an entry."""
    if not isinstance(content, dict) or "expired_at" not in content:
        return False
    expires = time_of(content["expired_at"])
    return expires is not None and expires < now


def checked_content(content: object) -> Json:
    """*content* with secrets masked; `InvalidEntryError` where it is not JSON or too long."""
    try:
        masked = _masked(content)
        size = len(orjson.dumps(masked))
    except (TypeError, UnicodeEncodeError, RecursionError) as error:
        raise InvalidEntryError(f"content is not JSON: {error}") from error
    if size > MAX_CONTENT:
        raise InvalidEntryError(f"content has {size:,} bytes; at most {MAX_CONTENT:,} are stored")
    return masked


def checked_source(
    key: str, source: object, untrusted: Literal["refuse", "isolate"]
) -> tuple[str, Json]:
    """The key to write to and the *source* with secrets masked.

    What comes from the web, a tool or a file, or goes below ``/kb/``, needs its provenance. Without
    it, it is refused, or else isolated below ``/untrusted``, which no brief shows. Raises
    `InvalidEntryError`.
    """
    if not isinstance(source, str | Mapping) or not source:
        raise InvalidEntryError("source must be a name, such as user, or an object with its kind")
    fields = source if isinstance(source, Mapping) else {"kind": source.strip().lower()}
    kind = fields.get("kind")
    if isinstance(source, Mapping) and kind not in _KINDS:
        raise InvalidEntryError(f"source.kind is {kind!r}; it must be one of {', '.join(_KINDS)}")
    masked = checked_content(source)
    needs_provenance = kind in _EXTERNAL or key.startswith(_KNOWLEDGE)
    missing = _missing_provenance(fields) if needs_provenance else ""
    if not missing or key.startswith(f"{UNTRUSTED}/"):
        return key, masked
    if untrusted == "isolate":
        return UNTRUSTED + key, masked
    raise InvalidEntryError(f"source of {key} needs {missing}")


def _missing_provenance(source: Mapping[str, object]) -> str:
    """The first field that *source* lacks to be traced back; empty where it has all."""
    if source.get("kind") not in _KINDS:
        return f"kind ({', '.join(_KINDS)})"
    if not source.get("name"):
        return "name (of the tool, site, file or conversation)"
    if time_of(source.get("retrieved_at")) is None:
        return "retrieved_at (ISO 8601)"
    return "" if source.get("locator") else _LOCATOR


def _masked(value: object, name: str = "") -> Json:
    """*value* with secrets masked, also those that only the *name* of the field shows."""
    if isinstance(value, str):
        return mask_after(f'"{name}": "', value) if name else mask_secrets(value)
    if isinstance(value, Mapping):
        return {_field_name(key): _masked(field, _field_name(key)) for key, field in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(member, name) for member in value]
    if isinstance(value, float) and not isfinite(value):
        raise TypeError(f"{value} is not a number of JSON")
    if value is None or isinstance(value, bool | int | float):
        return value
    raise TypeError(f"a {type(value).__name__} has no JSON form")


def _field_name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of a field must be a string, not {name!r}")
    return mask_secrets(name)
