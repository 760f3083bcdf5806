"""Marking what this product puts into prompts, so that it never learns from itself."""

import re

_NAME = "contextgraph-memory"
_OPEN, _CLOSE = f'<{_NAME} id="%s">\n', f"\n</{_NAME}>"
_ANY_NAME = re.compile(r"contextgraph-memory", re.IGNORECASE)
_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
# A log may hold a fence as JSON or HTML escaped it.
_LESS, _MORE = r"(?:<|&lt;|\\{1,8}u003[cC])", r"(?:>|&gt;|\\{1,8}u003[eE])"
_FENCE = re.compile(
    rf"{_LESS}(?:(?P<close>\\{{0,8}}/){_NAME}\s{{0,8}}"
    rf"|{_NAME}(?P<attributes>(?!{_MORE})[^\n<>\w-](?:(?!{_MORE})[^\n<>]){{0,300}}+)?+){_MORE}"
)
_QUOTE = r"""(?:\\*["']|\\+u0022|&(?:quot|\#34);)?"""
_ATTRIBUTE_ID = re.compile(rf"\bid\s{{0,4}}=\s{{0,4}}{_QUOTE}({_ID.pattern})")


def fence(text: str, context_id: str) -> str:
    """Return *text* between markers that carry *context_id*.

    Markers within *text* lose their hyphen: it is data, and cannot end its own fence. Raises
    ValueError for an id with characters other than letters, digits and `_.:-`.
    """
    if not _ID.fullmatch(context_id):
        raise ValueError(f"context id {context_id!r}: only letters, digits and _.:- are allowed")
    return _OPEN % context_id + _ANY_NAME.sub("contextgraph memory", text) + _CLOSE


def may_be_fenced(text: str) -> bool:
    """False for a text that no marker is in."""
    return _NAME in text


def strip_fenced(text: str) -> tuple[str, tuple[str, ...]]:
    """Return *text* without its fenced blocks, and the context ids found, first seen first.

    Fences may be escaped as JSON or HTML and nested. A fence that nobody closed (its end was cut
    off) reaches to the end of the text; an end without a beginning is dropped alone.
    """
    if not may_be_fenced(text):
        return text, ()
    kept: list[str] = []
    ids: dict[str, None] = {}
    depth = end = 0
    for marker in _FENCE.finditer(text):
        if depth == 0:
            kept.append(text[end : marker.start()])
        if marker["close"]:
            depth = max(0, depth - 1)
        else:
            depth += 1
            ids.update(dict.fromkeys(_ATTRIBUTE_ID.findall(marker["attributes"] or "")[:1]))
        end = marker.end()
    if depth == 0:
        kept.append(text[end:])
    return "".join(kept), tuple(ids)
