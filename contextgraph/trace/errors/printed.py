"""Failures that a program tells of in its own words."""

import re

from contextgraph.model import Family
from contextgraph.trace.errors.finding import Finding
from contextgraph.trace.errors.tracebacks import bare_class

PRINTED = "printed error"
USAGE = "argparse usage error"

_USAGE_LINE = re.compile(r"^(?:ERROR: )?[ \t]*[Uu]sage: ", re.MULTILINE)
_HINT = re.compile(r"^(Try '[^'\n]{1,80}' for [^\n]*)", re.MULTILINE)
_COMPLAINT = re.compile(
    r"^(?:[\w./ -]{1,120}: error|Error|ERROR): (?!usage: )([^\n]*)", re.MULTILINE
)
_MARKS = (
    r"\[?(?:ERROR|Error|error|FATAL|Fatal|fatal|CRITICAL|critical)\]?\s?(?::|-|!)",
    (
        r"(?:An?|Caught an?|Unexpected|Caught) (?:unexpected |unhandled )?"
        r"(?:error|exception|\w+Error)(?: has)?"
        r"(?: occurr?ed| was raised| happened| caught)?(?: [^:\n]{0,60})?:"
    ),
    r"(?:Error|Exception) (?:occurred|raised|caught|while|during|in)\b[^:\n]{0,80}:",
    r"Error [a-z]{3,12}ing\b[^:\n]{0,80}(?::|(?=\.?$))",
    r"[A-Z][\w ]{1,40} failed(?: with[^:\n]{0,60})?:",
    r"(?:An e|E)rror occurr?ed(?=\.?$)",
    r"\d+ validation errors? for(?= )",
    r"(?:Caught e|E)xception:",
    r"Failed (?:to|with)\b[^:\n]{0,80}:",
)
_MARKED = re.compile(rf"^({'|'.join(_MARKS)})[ \t]*([^\n]*)", re.MULTILINE)
_NAMED_IN_MARK = re.compile(r"\b[A-Z]\w*(?:Error|Exception)\b")
_CLASS = re.compile(
    r"^((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|NotFound|Timeout)"
    r"|(?:[A-Za-z_]\w*\.)+error):[ \t]*([^\n]*)",
    re.MULTILINE,
)
_STARTS_WITH_CLASS = re.compile(r"((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception))\b(?::[ ]?|\()?")
_HARMLESS = re.compile(
    r"(?i)^[ \t]*(?:0\b|none\b|no errors?(?:[.,;]|\s*$)|pip's dependency|false\b|\[\]|$)"
)
_SYNTAX = ("SyntaxError", "IndentationError", "TabError")


def usage_error(text: str) -> Finding | None:
    """A command line that a program's own argument parser refused."""
    if "sage: " not in text or _USAGE_LINE.search(text) is None:
        return None
    match = _COMPLAINT.search(text) or _HINT.search(text)
    return Finding(Family.TOOL_USAGE, USAGE, match[1]) if match else None


def printed_error(text: str) -> Finding | None:
    """The first failure that a program prints itself, with its class where that is shown."""
    lowered = "rror" in text or "xception" in text or "ERROR" in text
    if not lowered and not any(word in text for word in ("ailed", "atal", "ritical", "RITICAL")):
        return None
    if match := _CLASS.search(text):
        return named(match[1], match[2])
    for match in _MARKED.finditer(text):
        if not _HARMLESS.match(match[2]) or match[1].startswith(("Error ", "An error")):
            return _marked(match[1], match[2])
    return None


def named(name: str, message: str) -> Finding:
    """An exception of which only the line with its class is shown."""
    error_type = bare_class(name)
    family = Family.SYNTAX_ERROR if error_type in _SYNTAX else Family.PYTHON_EXCEPTION
    return Finding(family, error_type, message)


def _marked(mark: str, message: str) -> Finding:
    if match := _NAMED_IN_MARK.search(mark):
        return named(match.group(), message)
    if match := _STARTS_WITH_CLASS.match(message):
        return named(match[1], message[match.end() :].rstrip(")"))
    return Finding(Family.PYTHON_EXCEPTION, PRINTED, message.strip(" .") or mark)
