"""JSON as it occurs in logs, where Python's writer is more lenient than most readers."""

import json
import math
import re
from typing import Any

import orjson

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_INTEGER_RANGE = range(-(2**63), 2**64)


def loads(text: bytes) -> Any:
    """The value of a JSON *text*. Raises ValueError with reason and place.

    Lone surrogates become U+FFFD; NaN and infinities, which JSON does not have, null; integers
    of more than 64 bits are rounded.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if b"\\ud" not in text.lower() and b"NaN" not in text and b"Infinity" not in text:
            raise
        return _lenient(text, error)


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
