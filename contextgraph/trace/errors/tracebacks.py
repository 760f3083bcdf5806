"""Exceptions that an interpreter reports: the last one of the chain, and its deepest frame."""

import re
from collections.abc import Iterator

from contextgraph.model import Family
from contextgraph.trace.errors.finding import Finding, exception

_HEADER = "Traceback (most recent call last)"
_FRAME = re.compile(r'\s{0,6}File "([^"\n]{1,1000})", line (\d+)')
_RAISED = re.compile(r"([A-Za-z_][\w.]{0,150})(?::[ ]?(.*))?$", re.DOTALL)
# What a program prints on its other stream may stand between the frames and the exception.
_CERTAIN = re.compile(
    r"(?:[A-Za-z_]\w*\.)*\w*(?:[Ee]rror|Exception|Warning|Interrupt|Exit|Iteration|NotFound|Expired"
    r"|[Tt]imeout|Failure|Failed|Fault|Abort|Group)(?:: |:?[ ]?$)"
)
_LIKELY = re.compile(r"(?:[A-Za-z_]\w*\.)+[A-Z]\w*(?:: |:?[ ]?$)|[A-Z]\w*: ")
_LOOKED_AHEAD = 40
_BARE_SYNTAX = re.compile(r"^(SyntaxError|IndentationError|TabError): ([^\n]*)", re.MULTILINE)
_LINES = 20_000


def last_traceback(text: str) -> Finding | None:
    """The exception that the last traceback of *text* ends in, with its deepest frame."""
    start = text.rfind(_HEADER)
    if start < 0:
        return _bare_syntax_error(text)
    location, likely, wait = None, "", _LOOKED_AHEAD
    lines = _unprefixed(text, start)
    for line in lines:
        if frame := _FRAME.match(line):
            location, likely, wait = f"{frame[1]}:{frame[2]}", "", _LOOKED_AHEAD
        elif line and not line[0].isspace():
            if _CERTAIN.match(line):
                return _raised(line, lines, location)
            likely = likely or (line if _LIKELY.match(line) else "")
            wait -= 1
        if wait == 0:
            break
    return _raised(likely or _first_after(text, start), iter(()), location)


def _first_after(text: str, start: int) -> str:
    """The first line after a traceback's frames, where none looks like an exception."""
    lines = (line for line in _unprefixed(text, start) if line and not line[0].isspace())
    return next(lines, "")


def _raised(line: str, following: Iterator[str], location: str | None) -> Finding:
    """The exception named on the last *line* of a traceback."""
    match = _RAISED.match(line[:2000])
    if match is None:
        return Finding(Family.PYTHON_EXCEPTION, "Exception", line, location)
    return exception(match[1], _message(match[2], following), location)


def _message(first: str | None, following: Iterator[str]) -> str:
    """The *first* line of a message, with two more where it only announces them."""
    if first is None:
        return ""
    if first.strip() and not first.rstrip().endswith(":") and "validation error" not in first:
        return first
    more = [line.strip() for line, _ in zip(following, range(2), strict=False)]
    return " ".join(part for part in (first.strip(), *more) if part)


def _unprefixed(text: str, start: int) -> Iterator[str]:
    """The lines after the header at *start*, without what stands before it on each line."""
    line_start = text.rfind("\n", max(0, start - 200), start) + 1 or start
    prefix = text[line_start:start].replace("Exception Group ", "")
    position = text.find("\n", start) + 1
    for _ in range(_LINES):
        if position <= 0:
            return
        end = text.find("\n", position)
        line = text[position : end if end >= 0 else len(text)]
        yield _without(prefix, line)
        position = end + 1


def _without(prefix: str, line: str) -> str:
    head = line[: len(prefix)]
    return line[len(prefix) :] if head == prefix or not head.strip(" |+-\t") else line


def _bare_syntax_error(text: str) -> Finding | None:
    """A syntax error in the script itself, which is reported without a header."""
    if "SyntaxError" not in text and "IndentationError" not in text and "TabError" not in text:
        return None
    if not (match := _BARE_SYNTAX.search(text)):
        return None
    frames = _FRAME.findall(text, max(0, match.start() - 1500), match.start())
    if not frames:
        return None
    return Finding(Family.SYNTAX_ERROR, match[1], match[2], ":".join(frames[-1]))
