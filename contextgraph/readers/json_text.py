"""JSON as it occurs in logs, where Python's writer is more lenient than most readers."""

import json
import math
import re
from typing import Any

import orjson

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_INTEGER_RANGE = range(-(2**63), 2**64)
# What is derived from a run is walked by recursion; runs nest some ten levels.
_MAX_DEPTH = 100
# An empty list takes twenty times its text, and a small object more.
_MAX_VALUES = 20_000_000


def loads(text: bytes | str) -> Any:
    """The value of a JSON *text*. Raises ValueError with reason and place.

    Lone surrogates become U+FFFD; NaN and infinities, which JSON does not have, null; integers
    of more than 64 bits are rounded. More than 100 levels of nesting and more than some 20 million
    values are refused.
    """
    content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(content) > _MAX_VALUES and sum(map(content.count, (b",", b"[", b"{"))) > _MAX_VALUES:
        raise ValueError(f"more than {_MAX_VALUES:,} values")
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        odd = (b"\\ud", b"\\uD", b"NaN", b"Infinity")
        if not any(one in content for one in odd):
            raise
        value = _lenient(content, error)
    if _is_deeper(value, _MAX_DEPTH):
        raise ValueError(f"nested more than {_MAX_DEPTH} levels deep")
    return value


def _is_deeper(value: Any, depth: int) -> bool:
    """Whether lists and objects are nested more than *depth* levels deep in *value*."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(depth):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def without_surrogates(value: Any) -> Any:
    """*value* with U+FFFD for each lone surrogate in its texts."""
    match value:
        case str():
            return _LONE_SURROGATE.sub("\ufffd", value)
        case list():
            return [without_surrogates(item) for item in value]
        case dict():
            return {without_surrogates(k): without_surrogates(v) for k, v in value.items()}
    return value


def _lenient(text: bytes, reason: orjson.JSONDecodeError) -> Any:
    try:
        value = json.loads(
            text, parse_constant=lambda _: None, parse_int=_integer, parse_float=_float
        )
        return without_surrogates(value)
    except (ValueError, RecursionError):
        raise reason from None


def _integer(digits: str) -> int | float | None:
    number = int(digits)
    return number if number in _INTEGER_RANGE else _float(digits)


def _float(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None
