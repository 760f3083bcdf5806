"""Terminal output made plain text."""

import re

# CSI and OSC sequences, then the escapes of two or three characters.
_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]?"
    r"|\x1b[\]PX^_][^\x07\x1b\n]{0,4096}+(?:\x07|\x1b\\)"
    r"|\x1b[ -/]{0,2}[0-~]"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]+")
_UNWANTED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_PLAIN_ASCII = bytes((*b"\t\n", *range(32, 127)))
_CONTROL_ASCII = bytes(code for code in (*range(32), 127) if code not in b"\t\n\r")


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
