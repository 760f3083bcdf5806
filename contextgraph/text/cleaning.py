"""Cleaning text: control characters, escape sequences, and advice that was injected."""

import re
from unicodedata import normalize

from contextgraph.lazy import regex

# CSI and OSC sequences, then the escapes of two or three characters.
_ANSI = regex(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]?"
    r"|\x1b[\]PX^_][^\x07\x1b\n]{0,4096}+(?:\x07|\x1b\\)"
    r"|\x1b[ -/]{0,2}[0-~]"
)
_CONTROL = regex(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]+")
_UNWANTED = regex("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
# Bidi controls, characters without width, variation selectors, tags; line separators of Unicode.
_INVISIBLE = regex(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]+"
)
_PLAIN_ASCII = bytes((*b"\t\n", *range(32, 127)))
_CONTROL_ASCII = bytes(code for code in (*range(32), 127) if code not in b"\t\n\r")

# All control characters but tab and newline: logs of agents hold escape sequences, which would
# otherwise colour, retitle or clear the terminal.
_TERMINAL = regex(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str) -> str:
    r"""Return *text* without escape sequences and control characters, with `\n` as line end.

    A line that was redrawn after a carriage return keeps its last state; a surrogate without its
    partner becomes U+FFFD, so that the result always encodes. Cleaning twice changes nothing more.
    """
    if is_plain(text):
        return text
    if "\x1b" in text or "\x9b" in text:
        text = _ANSI.sub("", text)
    text = _without_controls(text)
    return _last_states(text) if "\r" in text else text


def visible(text: str) -> str:
    """*text* without characters that hide text or reverse it: bidi, zero width, tags and such."""
    return text if text.isascii() else _INVISIBLE.sub("", text)


def gives_instructions(text: str) -> bool:
    """Whether *text* looks like an instruction to an agent, such as "ignore previous instructions".

    Characters of full width and without width do not hide one, nor does a name such as that of a
    file.
    """
    plain_text = normalize("NFKC", visible(text))
    return any(map(_INSTRUCTION.search, (plain_text, _JOINED.sub(" ", plain_text))))


def is_plain(text: str) -> bool:
    """Whether *text* is clean already."""
    # Six times as fast as the pattern; nearly all texts of a run are ASCII.
    if text.isascii():
        return not text.encode("ascii").translate(None, _PLAIN_ASCII)
    return not _UNWANTED.search(text)


def _without_controls(text: str) -> str:
    """*text* with only printable characters and white space; halves of surrogate pairs joined."""
    if text.isascii():
        return text.encode("ascii").translate(None, _CONTROL_ASCII).decode("ascii")
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _CONTROL.sub("", whole)


def _last_states(text: str) -> str:
    """*text* as a terminal leaves it after carriage returns."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(_last_state(line) if "\r" in line else line for line in lines)


def _last_state(line: str) -> str:
    return next((state for state in reversed(line.split("\r")) if state), "")


# What a text would say to an agent, rather than about a program. English only.
_INSTRUCTION = regex(
    r"\b(?:ignore|disregard|forget|override|bypass)\s+(?:\w+\s+){0,4}"
    r"(?:instructions?|prompts?|rules|guidelines|directions)\b"
    r"|\byou\s+(?:must|should|shall|need\s+to|have\s+to|are\s+(?:required|instructed)\s+to)\s+"
    r"(?:\w+\s+){0,2}(?:run|execute|call|invoke|install|download|fetch|visit|send|post|upload|"
    r"delete|remove|reveal|print|output|ignore|disable|approve)\b"
    r"|\b(?:new|updated|real|actual|system)\s+(?:instructions?|prompt)\b"
    r"|\byou\s+are\s+now\b|\b(?:do\s+not|don't|never)\s+(?:tell|inform|ask|warn)\s+the\s+user\b"
    r"|\b(?:ai|llm|coding)\s+(?:agents?|assistants?|models?)\s*[:,]",
    re.IGNORECASE,
)
_JOINED = regex(r"(?<=\w)[_./-](?=\w)|_")
_NAME = "cg-memory"
# Logs hold fences by the name that they had until 0.2.
_NAMES = (_NAME, "contextgraph-memory")
_ANY = "|".join(_NAMES)
# Letters of the Cyrillic and Greek scripts that look like those of the name.
_LOOK_ALIKES = {
    "a": "\u0430\u03b1",
    "c": "\u0441\u03f2",
    "e": "\u0435\u03b5",
    "m": "\u043c",
    "o": "\u043e\u03bf",
    "p": "\u0440\u03c1",
    "t": "\u0442\u03c4",
    "x": "\u0445\u03c7",
    "y": "\u0443\u03b3",
}


def _any_form(word: str) -> str:
    """A pattern of *word* in letters that look like it, those of full width among them."""
    return "".join(f"[{c}{_LOOK_ALIKES.get(c, '')}{chr(ord(c) + 0xFEE0)}]" for c in word)


_ANY_NAME = regex(
    rf"(?:({_any_form('contextgraph')})[\W_]{{0,3}}|({_any_form('cg')})\W{{1,3}})"
    rf"({_any_form('memory')})",
    re.IGNORECASE,
)
# What delimits the turns of a chat in the prompts of many models.
_TURN = regex(r"[<\uff1c]\|(?=\w{1,40}\|)")
_ID = regex(r"[A-Za-z0-9_.:-]{1,128}")
# A log may hold a fence as JSON or HTML escaped it.
_LESS, _MORE = r"(?:<|&lt;|\\{1,8}u003[cC])", r"(?:>|&gt;|\\{1,8}u003[eE])"
_FENCE = regex(
    rf"{_LESS}(?:(?P<close>\\{{0,8}}/)(?:{_ANY})\s{{0,8}}"
    rf"|(?:{_ANY})(?P<attributes>(?!{_MORE})[^\n<>\w-](?:(?!{_MORE})[^\n<>]){{0,300}}+)?+){_MORE}"
)
_QUOTE = r"""(?:\\*["']|\\+u0022|&(?:quot|\#34);)?"""
_ATTRIBUTE_ID = regex(rf"\bid\s{{0,4}}=\s{{0,4}}{_QUOTE}({_ID.pattern})")


def fence(text: str, context_id: str) -> str:
    """Return *text* between markers that carry *context_id*, in one line where it is one.

    Markers within *text*, and what looks like one, lose their hyphen: it is data, and cannot end
    its own fence. Characters that cannot be seen are removed. Raises ValueError for an id with
    characters other than letters, digits and `_.:-`.
    """
    if not is_id(context_id):
        raise ValueError(f"context id {context_id!r}: only letters, digits and _.:- are allowed")
    data = visible(text)
    if not data.isascii() or "memory" in data.lower():
        data = _ANY_NAME.sub(r"\1\2 \3", data)
    if "|" in data:
        data = _TURN.sub("< |", data)
    line = "\n" if "\n" in data else ""
    return f"<{_NAME} id={context_id}>{line}{data}{line}</{_NAME}>"


def is_id(text: str) -> bool:
    """True for at most 128 characters, all of them letters, digits or ``_.:-``."""
    return _ID.fullmatch(text) is not None


def may_be_fenced(text: str) -> bool:
    """False for a text that no marker is in."""
    return any(name in text for name in _NAMES)


def strip_fenced(text: str) -> tuple[str, tuple[str, ...]]:
    """Return *text* without its fenced blocks, and the context ids found, first seen first.

    Fences may be escaped as JSON or HTML and nested. A fence that is not closed (its end was cut
    off) reaches to the end of the text; an end without a beginning is dropped by itself.
    """
    if not may_be_fenced(text):
        return text, ()
    parts: list[str] = []
    ids: dict[str, None] = {}
    depth = end = 0
    for marker in _FENCE.finditer(text):
        if depth == 0:
            parts.append(text[end : marker.start()])
        if marker["close"]:
            depth = max(0, depth - 1)
        else:
            depth += 1
            ids.update(dict.fromkeys(_ATTRIBUTE_ID.findall(marker["attributes"] or "")[:1]))
        end = marker.end()
    if depth == 0:
        parts.append(text[end:])
    return "".join(parts), tuple(ids)


def plain(text: str) -> str:
    """*text* without control characters and characters that cannot be seen."""
    return _TERMINAL.sub("", visible(text))


def one_line(text: str, width: int) -> str:
    """*text* on one line of at most *width* characters, cut with an ellipsis."""
    return cut(" ".join(plain(text).split()), width)


def cut(text: str, width: int) -> str:
    """The first *width* characters of *text*, with an ellipsis in them for what is left out."""
    return text if len(text) <= width else f"{text[: width - 1].rstrip()}…"
