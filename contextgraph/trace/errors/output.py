"""The output of a program without banners and other noise."""

import re

_CONTROL = re.compile(
    r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\)|[@-Z\\-_])"
)
_INDENTED = r"(?:(?:[ \t][^\n]*)?\n)*+"
_REPORT = r"(?:(?![ \t]*Remainder of file)(?:[ \t][^\n]*)?\n)*+"
_BROKEN_PTH = r"Error processing line \d+"
# Up to the next one: a report that held all that follow would be read once for each of them.
_OWN_REPORT = _REPORT.replace("(?:", rf"(?:(?![^\n]*{_BROKEN_PTH})", 1)
_REMAINDER = r"[ \t]*Remainder of file ignored(?:\n|\Z)"
# What interpreters print when they start or stop, and go on: also where all went well.
_BANNERS = re.compile(
    # A broken `.pth` file; `head` and `tail` may have cut either end of the report.
    rf"{_BROKEN_PTH} of [^\n]{{0,1000}}\n{_OWN_REPORT}(?:{_REMAINDER}|(?:[ \t][^\n]*)?\Z)"
    rf"|\A{_REPORT}{_REMAINDER}"
    # An exception that a destructor raised.
    r"|^Exception ignored (?:in|on|while)\b[^\n]*(?:\n|\Z)"
    rf"(?:Traceback \(most recent call last\):\n{_INDENTED})?"
    r"(?:[A-Za-z_][\w.]*+(?::[^\n]*)?(?:\n|\Z))?"
    r"|^Error in sitecustomize; [^\n]*\n[^\n]*(?:\n|\Z)",
    re.MULTILINE,
)


def plain(text: str) -> str:
    """*text* with plain line ends and without control sequences."""
    if "\x1b" in text:
        text = _CONTROL.sub("", text)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def without_banners(text: str) -> str:
    """Plain *text* without what interpreters print although they go on."""
    if "ignored" in text or "Error processing line" in text or "Error in sitecustomize" in text:
        return _BANNERS.sub("", text)
    return text
