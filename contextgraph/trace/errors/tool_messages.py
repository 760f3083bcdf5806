"""What the tools of agent harnesses answer when they are used wrongly."""

import re

from contextgraph.model import Family
from contextgraph.trace.errors.finding import Finding

_HEAD = 2000
_USAGE = re.compile(
    r"Usage: (edit|open|goto|scroll_up|scroll_down|create|search_dir|search_file|find_file|submit)"
    r"(?![\w-])(?! \[OPTIONS\])"
)
_NOT_FOUND = re.compile(r"(File|Directory) ([^\n]{0,500}?) not found\.?(?=\n|$)")
# Tools that stumble over a wrong path print their usage, or errors of their own script, first.
_BEHIND_NOISE = re.compile(
    r"(?:(?:Usage: |awk: |/\S{1,100}: line )[^\n]*\n){1,4}"
    r"((?:Error: )?File (?:name )?[^\n]{0,500} not found\b[^\n]*)"
)
_ALREADY = re.compile(r"Error: File [^\n]{0,500} already exists")
_OUT_OF_RANGE = re.compile(
    r"Error: <(?:\w+)>[^\n]*(?:must be|greater than|less than|out of range)[^\n]*"
)
_IS_DIRECTORY = re.compile(r"Error: [^\n]{0,500} is a directory\. You can only open files[^\n]*")
_TOOL_ERROR = re.compile(r"<tool_use_error>(?:Error: )?([^<\n]*)|<error>([^<\n]*)")
_INVALID = re.compile(r"(?:ERROR:?\n?)?(?:Error: )?Invalid `?(\w+)`? parameter:?([^\n]*)")
_MISSING_PARAMETER = re.compile(
    r"(?:ERROR:?\n?)?(Parameter `\w+` is required[^\n]*|InputValidationError[^\n]*)"
)
_WRONG_PARAMETER = re.compile(
    r"(?:ERROR:?\n?)?(Parameter ['`](\w+)['`] is expected to be one of[^\n]*)"
)
_MISSING_PATH = re.compile(
    r"(?:The path [^\n]{0,500} does not exist|File does not exist|Path does not exist)[^\n]*"
)
# How all of the above begin; most answers do not.
_COMPLAINS = re.compile(
    r"File |Directory |Usage: |awk: |/|Error: |ERROR|Invalid |Parameter |InputValidationError"
    r"|The path |Path |<tool_use_error>|<error>|No file open|goto allows"
)
_STARTS = (
    ("No file open", Family.TOOL_USAGE, "tool: No file open"),
    ("goto allows only one line number", Family.TOOL_USAGE, "tool: Usage: goto"),
    ("File already exists at", Family.TOOL_USAGE, "tool: File already exists"),
)


def tool_answer(text: str) -> Finding | None:
    """The complaint that *text* starts with, where a tool made it."""
    head = text[:_HEAD].strip()
    if not _COMPLAINS.match(head):
        return None
    for start, family, error_type in _STARTS:
        if head.startswith(start):
            return Finding(family, error_type, head.split("\n", 1)[0])
    return _patterned(head) or _wrapped(head)


def _patterned(head: str) -> Finding | None:
    first = head.split("\n", 1)[0]
    if match := _NOT_FOUND.match(head):
        return Finding(Family.NOT_FOUND, f"tool: {match[1]} not found", first)
    if named := _BEHIND_NOISE.match(head):
        return Finding(Family.NOT_FOUND, "tool: File not found", named[1])
    if match := _USAGE.match(head):
        return Finding(Family.TOOL_USAGE, f"tool: Usage: {match[1]}", first)
    if _ALREADY.match(head):
        return Finding(Family.TOOL_USAGE, "tool: File already exists", first)
    if _OUT_OF_RANGE.match(head):
        return Finding(Family.TOOL_USAGE, "tool: line out of range", first)
    if _IS_DIRECTORY.match(head):
        return Finding(Family.TOOL_USAGE, "tool: Is a directory", first)
    return None


def _wrapped(head: str) -> Finding | None:
    """Answers of editors and of harnesses that mark their own errors."""
    if match := _TOOL_ERROR.match(head):
        message = match[1] or match[2] or ""
        if found := refused_parameter(message):
            return found
        return Finding(Family.TOOL_USAGE, "tool: error", message)
    return refused_parameter(head)


def refused_parameter(head: str) -> Finding | None:
    """The parameter that a tool did not take."""
    if match := _INVALID.match(head):
        if "does not exist" in match[2]:
            return Finding(Family.NOT_FOUND, "tool: File not found", match.group())
        return Finding(Family.TOOL_USAGE, f"tool: Invalid {match[1]}", match.group())
    if match := _MISSING_PATH.match(head):
        return Finding(Family.NOT_FOUND, "tool: File not found", match.group())
    if match := _MISSING_PARAMETER.match(head):
        return Finding(Family.TOOL_USAGE, "tool: Missing parameter", match[1])
    if match := _WRONG_PARAMETER.match(head):
        return Finding(Family.TOOL_USAGE, f"tool: Invalid {match[2]}", match[1])
    return None
