"""Edits that an editing tool refused."""

import re

from contextgraph.model import Family
from contextgraph.trace.errors.finding import Finding, line_at

_REFUSED = "Your proposed edit has introduced new syntax error"
_LISTED = re.compile(r"^- (?:([A-Z]\d{3}) )?([^\n]*)", re.MULTILINE)
_CLASS = re.compile(r"(?:\w+(?:Error|Warning))\b")
_LINTER_LINE = re.compile(r"^\S+?:\d+:\d+: ([A-Z]\d{3}) ([^\n]*)", re.MULTILINE)
_NAME = re.compile(r"\s*[`'\"‘’“”].*|\s*\(.*", re.DOTALL)

_HEAD = 3000
_LISTED_CHARS = 5000
_TELLING = ("replace", "File has been", "No changes to make", "did not appear")

# What editors answer that could not do what was asked, and the type it is filed under.
_ANSWERS = (
    ("No replacement was performed, old_str", "tool: old_str not found"),
    ("did not appear verbatim in", "tool: old_str not found"),
    ("String to replace not found in file", "tool: old_str not found"),
    ("No replacement was performed. Multiple occurrences", "tool: old_str not unique"),
    ("matches of the string to replace, but replace_all is false", "tool: old_str not unique"),
    ("File has not been read yet", "tool: File not read"),
    ("File has been modified since read", "tool: File modified since read"),
    ("File has been unexpectedly modified", "tool: File modified since read"),
    ("No changes to make: old_string and new_string are exactly the same", "tool: No change"),
    ("No replacement was performed", "tool: No replacement"),
)


def refused_edit(text: str) -> Finding | None:
    """The first complaint with which an edit was refused."""
    head = text[:_HEAD]
    at = head.find(_REFUSED)
    if at >= 0:
        return _lint_complaint(text, at)
    if not any(word in head for word in _TELLING):
        return None
    for words, error_type in _ANSWERS:
        if (at := head.find(words)) >= 0:
            return Finding(Family.EDIT_REJECTED, error_type, line_at(head, at))
    return None


def _lint_complaint(text: str, at: int) -> Finding:
    listed = text.find("ERRORS:", at)
    match = _LISTED.search(text, listed, listed + _LISTED_CHARS) if listed >= 0 else None
    match = match or _LINTER_LINE.search(text, at, at + _LISTED_CHARS)
    if match is None:
        return Finding(Family.EDIT_REJECTED, "edit refused", line_at(text, at))
    code, complaint = match[1] or "", match[2]
    if not code and not _CLASS.match(complaint):
        # The linter lists no complaint of its own: it fell over, and what it said is listed.
        said = [line for _, line in _LISTED.findall(text[match.start() : _end(text, at)])]
        last = next((line for line in reversed(said) if line.strip()), complaint)
        return Finding(Family.EDIT_REJECTED, "linter crashed", last)
    return Finding(Family.EDIT_REJECTED, _lint_type(code, complaint), complaint)


def _end(text: str, at: int) -> int:
    """Where the list of complaints ends and the file is shown."""
    end = text.find("\nThis is how", at)
    return end if 0 <= end < at + _LISTED_CHARS else at + _LISTED_CHARS


def _lint_type(code: str, complaint: str) -> str:
    """The lint code with the class of the complaint: no names, no details."""
    if code.startswith("E9") and (match := _CLASS.match(complaint)):
        return f"{code} {match.group()}"
    return f"{code} {_NAME.sub('', complaint)}".strip()
