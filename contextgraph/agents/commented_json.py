"""JSON with comments, as editors and agents allow it in settings; what is not changed stays."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from contextgraph.text import regex

_COMMENT = r"//[^\n]*|/\*(?:(?!\*/).)*\*/"
_OUTSIDE = regex(
    rf'(?P<text>"(?:[^"\\]|\\.)*")|{_COMMENT}|,(?=(?:\s|{_COMMENT})*[}}\]])', re.DOTALL
)
_TOKEN = regex(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]')
_INDENT = regex(r'\n([ \t]+)"')


def plain(content: str) -> str:
    """Return *content* with blanks for comments and for commas that nothing follows.

    Everything else is at its place.
    """

    def blank(found: re.Match[str]) -> str:
        return found[0] if found["text"] else re.sub(r"[^\n]", " ", found[0])

    return _OUTSIDE.sub(blank, content)


def edited(content: str, wanted: Mapping[str, Any]) -> str:
    """Return *content*, an object, with the members of *wanted* in the place of its own."""
    now = json.loads(plain(content))
    for name in [name for name in now if name not in wanted]:
        content = _without(content, name)
    indent = _INDENT.search(content)
    step = indent[1] if indent else "  "
    for name, value in wanted.items():
        if name in now and now[name] == value:
            continue
        text = json.dumps(value, indent=step, ensure_ascii=False).replace("\n", f"\n{step}")
        members = dict(_members(content))
        if name in members:
            _, start, end = members[name]
            content = content[:start] + text + content[end:]
        else:
            start = content.index("{", plain(content).index("{")) + 1
            comma = "," if members else "\n"
            content = f"{content[:start]}\n{step}{json.dumps(name)}: {text}{comma}{content[start:]}"
    return content


def _without(content: str, name: str) -> str:
    start, _, end = dict(_members(content))[name]
    text = plain(content)
    after = len(text) - len(text[end:].lstrip())
    if text[after] == ",":
        return _cut(content, start, after + 1)
    content = _cut(content, start, end)
    before = text[:start].rstrip()
    at = len(before) - 1  # of the comma that nothing follows any more
    return content[:at] + content[at + 1 :] if before[-1:] == "," else content


def _cut(content: str, start: int, end: int) -> str:
    """Return *content* without a part, and without the line that this leaves empty."""
    before, rest = content[:start].rstrip(" \t"), content[end:]
    if rest.lstrip(" \t").startswith("\n"):
        before = before.removesuffix("\n")
    return before + rest


def _members(content: str) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Yield each member of the object: its name, where it and its value begin, and its end."""
    depth, name, key, start = 0, "", 0, -1
    text = plain(content)
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in "}]":
            depth -= 1
        if depth == 1 and mark[0] == '"' and start < 0:
            name, key = json.loads(mark), token.start()
        elif depth == 1 and mark == ":":
            start = token.end()
        if (depth == 1 and mark == ",") or (depth == 0 and mark == "}"):
            if start >= 0:
                value = text[start : token.start()]
                left = len(value) - len(value.lstrip())
                yield name, (key, start + left, start + len(value.rstrip()))
            start = -1
        if mark in "{[":
            depth += 1
