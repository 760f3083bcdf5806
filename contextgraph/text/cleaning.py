"""Terminal output made plain text."""

import re

# CSI and OSC sequences, then the escapes of two or three characters.
_ANSI = re.compile(
    r"\x1b\[[0-?]*+[ -/]*+[@-~]"
    r"|\x9b[0-?]*+[ -/]*+[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b\n]{0,4096}+(?:\x07|\x1b\\)"
    r"|\x1b[ -/]{0,2}[0-Z\\^-~]"
)
_UNWANTED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_CONTROL = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t\r"}


def clean(text: str) -> str:
    r"""Return *text* without escape sequences and control characters, with `\n` as line end.

    A line that was redrawn after a carriage return keeps its last state; a surrogate without its
    partner becomes U+FFFD, so that the result always encodes. Cleaning twice changes nothing more.
    """
    if not _UNWANTED.search(text):
        return text
    text = _ANSI.sub("", text).translate(_CONTROL)
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _collapsed(text) if "\r" in text else text


def _collapsed(text: str) -> str:
    """*text* as a terminal leaves it after carriage returns."""
    text = re.sub(r"\r+\n", "\n", text)
    if "\r" not in text:
        return text
    return "\n".join(_last_state(line) for line in text.split("\n"))


def _last_state(line: str) -> str:
    return next((state for state in reversed(line.split("\r")) if state), "")
