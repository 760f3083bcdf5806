"""Errors of agents' own tools: time-outs, refused edits, wrong arguments."""

import re
from functools import partial

from contextgraph.model import Family
from contextgraph.trace.errors.finding import (
    Finding,
    Recogniser,
    first_in,
)

_wrong_usage = partial(Recogniser, Family.TOOL_USAGE)
_not_found = partial(Recogniser, Family.NOT_FOUND)

# A harness reports a time-out at the end, editors and other tools answer at the beginning.
_TAIL = 600
_EDITOR_HEAD = 500
_HEAD = 2000

_TIMEOUTS = (
    Recogniser(
        Family.ENVIRONMENT,
        "EXECUTION FAILED OR COMMAND MALFORMED",
        "EXECUTION FAILED OR COMMAND MALFORMED",
        "EXECUTION FAILED OR COMMAND MALFORMED",
    ),
    Recogniser(Family.TIMEOUT, "EXECUTION TIMED OUT", "EXECUTION TIMED OUT"),
    Recogniser(
        Family.TIMEOUT,
        "command timed out",
        ("timed out", "took more than", "no new output after"),
        r"^[^\n]*(?:timed out after|[Cc]ommand timed out|was timed out"
        r"|was cancelled because it took more than|The command has no new output after)[^\n]*",
    ),
)
_REFUSED = "Your proposed edit has introduced new syntax error"
_LISTED = re.compile(r"^- (?:([A-Z]\d{3}) )?([^\n]*)", re.MULTILINE)
_LINT_CLASS = re.compile(r"(?:\w+(?:Error|Warning))\b")
_LINTER_LINE = re.compile(r"^\S+?:\d+:\d+: ([A-Z]\d{3}) ([^\n]*)", re.MULTILINE)
_LINT_NAME = re.compile(r"\s*[`'\"‘’“”].*|\s*\(.*", re.DOTALL)
_LISTED_LENGTH = 5000
# What editors answer that could not do what was requested.
_REFUSED_EDITS = tuple(
    Recogniser(Family.EDIT_REJECTED, f"tool: {kind}", words)
    for kind, words in {
        "old_str not found": (
            "No replacement was performed, old_str",
            "did not appear verbatim in",
            "String to replace not found in file",
        ),
        "old_str not unique": (
            "No replacement was performed. Multiple occurrences",
            "matches of the string to replace, but replace_all is false",
        ),
        "File not read": ("File has not been read yet",),
        "File modified since read": (
            "File has been modified since read",
            "File has been unexpectedly modified",
        ),
        "No change": ("No changes to make: old_string and new_string are exactly the same",),
        "No replacement": ("No replacement was performed",),
    }.items()
)
_MARKED_ERROR = re.compile(r"<tool_use_error>(?:Error: )?([^<\n]*)|<error>([^<\n]*)")
_WRONG_ARGUMENTS = (
    _wrong_usage("tool: No file open", "No file open", r"\ANo file open[^\n]*"),
    _wrong_usage("tool: Usage: goto", "goto allows", r"\Agoto allows only one line number[^\n]*"),
    _not_found(
        "tool: {kind} not found",
        " not found",
        r"\A(?P<message>(?P<kind>File|Directory) [^\n]{0,500}? not found\.?)(?=\n|\Z)",
    ),
    # Tools that fail at a wrong path print their usage, or errors of their own script, first.
    _not_found(
        "tool: File not found",
        " not found",
        r"\A(?:(?:Usage: |awk: |/\S{1,100}: line )[^\n]*\n){1,4}"
        r"(?P<message>(?:Error: )?File (?:name )?[^\n]{0,500} not found\b[^\n]*)",
    ),
    _wrong_usage(
        "tool: Usage: {command}",
        "Usage: ",
        r"\A(?P<message>Usage: (?P<command>edit|open|goto|scroll_up|scroll_down|create"
        r"|search_dir|search_file|find_file|submit)(?![\w-])(?! \[OPTIONS\])[^\n]*)",
    ),
    _wrong_usage(
        "tool: File already exists",
        "already exists",
        r"\A(?:Error: File [^\n]{0,500} already exists|File already exists at)[^\n]*",
    ),
    _wrong_usage(
        "tool: line out of range",
        "Error: <",
        r"\AError: <\w+>[^\n]*(?:must be|greater than|less than|out of range)[^\n]*",
    ),
    _wrong_usage(
        "tool: Is a directory",
        " is a directory",
        r"\AError: [^\n]{0,500} is a directory\. You can only open files[^\n]*",
    ),
)
_PARAMETERS = (
    _not_found(
        "tool: File not found",
        "does not exist",
        r"\A(?:(?:ERROR:?\n?)?(?:Error: )?Invalid `?\w+`? parameter:?[^\n]*does not exist"
        r"|The path [^\n]{0,500} does not exist|File does not exist|Path does not exist)[^\n]*",
    ),
    _wrong_usage(
        "tool: Invalid {name}",
        "Invalid ",
        r"\A(?:ERROR:?\n?)?(?:Error: )?Invalid `?(?P<name>\w+)`? parameter:?[^\n]*",
    ),
    _wrong_usage(
        "tool: Missing parameter",
        ("Parameter `", "InputValidationError"),
        r"\A(?:ERROR:?\n?)?(?P<message>Parameter `\w+` is required[^\n]*"
        r"|InputValidationError[^\n]*)",
    ),
    _wrong_usage(
        "tool: Invalid {name}",
        "is expected to be one of",
        r"\A(?:ERROR:?\n?)?"
        r"(?P<message>Parameter ['`](?P<name>\w+)['`] is expected to be one of[^\n]*)",
    ),
)


def timeout(text: str) -> Finding | None:
    """The message of a harness that gave up waiting, or could not run the command at all."""
    return first_in(_TIMEOUTS, text[-_TAIL:])


def refused_edit(text: str) -> Finding | None:
    """The first reason for which an edit was refused."""
    head = text[:_EDITOR_HEAD]
    start = head.find(_REFUSED)
    return _lint_message(text, start) if start >= 0 else first_in(_REFUSED_EDITS, head)


def tool_message(text: str) -> Finding | None:
    """The message that *text* starts with, where a tool refused its arguments."""
    head = text[:_HEAD].strip()
    if finding := first_in(_WRONG_ARGUMENTS, head):
        return finding
    if marked := _MARKED_ERROR.match(head):
        message = marked[1] or marked[2] or ""
        return first_in(_PARAMETERS, message) or Finding(Family.TOOL_USAGE, "tool: error", message)
    return first_in(_PARAMETERS, head)


def _lint_message(text: str, start: int) -> Finding:
    """The first message of the linter that checked an edit."""
    listed = text.find("ERRORS:", start)
    match = _LISTED.search(text, listed, listed + _LISTED_LENGTH) if listed >= 0 else None
    match = match or _LINTER_LINE.search(text, start, start + _LISTED_LENGTH)
    if match is None:
        line = text[start:].partition("\n")[0]
        return Finding(Family.EDIT_REJECTED, "edit refused", line)
    code, message = match[1] or "", match[2]
    if code or _LINT_CLASS.match(message):
        return Finding(Family.EDIT_REJECTED, _lint_type(code, message), message)
    # The linter itself failed, and its last words are listed as if they were messages.
    end = text.find("\nThis is how", start, start + _LISTED_LENGTH)
    end = end if end >= 0 else start + _LISTED_LENGTH
    lines = [line for _, line in _LISTED.findall(text[match.start() : end])]
    last = next((line for line in reversed(lines) if line.strip()), message)
    return Finding(Family.EDIT_REJECTED, "linter crashed", last)


def _lint_type(code: str, message: str) -> str:
    """The lint code with the class of the message: no names, no details."""
    if code.startswith("E9") and (match := _LINT_CLASS.match(message)):
        return f"{code} {match.group()}"
    return f"{code} {_LINT_NAME.sub('', message)}".strip()
