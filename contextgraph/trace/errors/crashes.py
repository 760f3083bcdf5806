"""What ended a program that is not Python's: exceptions, panics, signals."""

import re

from contextgraph.model import Family
from contextgraph.trace.errors.finding import Finding, line_at
from contextgraph.trace.errors.printed import PRINTED, named
from contextgraph.trace.errors.tracebacks import bare_class

_NODE = re.compile(
    r"^ ?(?:Uncaught |\[|Exception during run: )?(\w*(?:Error|Exception|Rejection))"
    r"(?: \[(\w+)\])?: ([^\n]*)(?:\n(?!    at )[^\n]*){0,12}\n    at ",
    re.MULTILINE,
)
_NODE_PLACE = re.compile(r"^(\S+\.(?:[cm]?[jt]sx?)):(\d+)$", re.MULTILINE)
_NODE_FRAME = re.compile(
    r"^    at (?:[^\n(]{0,200}\()?(?:file://)?((?!node:)[^\s():]{1,300}:\d+)", re.MULTILINE
)
_JAVA = re.compile(
    r"^(?:Exception in thread \"[^\"\n]*\"|Caused by:) ([\w.$]+)(?:: ([^\n]*))?", re.MULTILINE
)
_JAVA_PLACE = re.compile(r"^[ \t]+at [^\n(]{1,300}\((\w+\.(?:java|kt|scala):\d+)\)", re.MULTILINE)
_RUST_PANIC = re.compile(
    r"^thread '[^'\n]*'(?: \(\d+\))? panicked at "
    r"(?:'([^\n]*)', )?([^\s:]+:\d+)(?::\d+)?:?\n?([^\n]*)",
    re.MULTILINE,
)
_GO_PANIC = re.compile(r"^(panic|fatal error): ([^\n]*)", re.MULTILINE)
# The frame that is one's own says more than the one in the standard library that it called.
_GO_FRAME = re.compile(
    r"^\t((?!\S*/src/(?:runtime|testing|internal|reflect|sync|time)/)\S+\.go:\d+)", re.MULTILINE
)
_GO_EXIT = re.compile(r"^exit status [1-9]\d*$", re.MULTILINE)
_STAMP = re.compile(r"\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d\S*[ \t]+")
_SIGNAL = re.compile(
    r"^(?:\S{1,200}: line \d+: +\d+ )?"
    r"(Segmentation fault|Floating point exception|Bus error|Illegal instruction|Aborted)"
    r"(?:(?: +\(core dumped\)| {3,})[^\n]*)?$",
    re.MULTILINE,
)
_C_ASSERTION = re.compile(
    r"^\S+: ([^\s:]+:\d+): [^\n]{1,300}: Assertion [`'‘]([^\n]*)", re.MULTILINE
)
_CPP = re.compile(
    r"^terminate called after throwing an instance of '([^'\n]+)'(?:\n\s*what\(\): +([^\n]*))?",
    re.MULTILINE,
)
_SANITIZER = re.compile(r"^==\d+==ERROR: (\w+Sanitizer: [\w-]+)([^\n]*)", re.MULTILINE)
_C_FRAME = re.compile(r"^ +#\d+ 0x[0-9a-f]+ in \S+ (\S+?:\d+)", re.MULTILINE)
_UNDEFINED = re.compile(r"^(\S+?:\d+):\d+: runtime error: ([^\n]*)", re.MULTILINE)


def foreign_crash(text: str) -> Finding | None:
    """What ended a program in JavaScript, Java, Rust, Go, C or C++."""
    if "\n    at " in text and (found := _node(text)):
        return found
    if ("Exception in thread" in text or "Caused by:" in text) and (match := _JAVA.search(text)):
        place = _JAVA_PLACE.search(text, match.end())
        name = bare_class(match[1].replace("$", "."))
        return _crash(name, match[2] or "", place[1] if place else None)
    return rust_panic(text) or go_panic(text) or _native(text) or _signal(text) or _go_exit(text)


def rust_panic(text: str) -> Finding | None:
    """The first panic of a Rust program."""
    if "panicked at" not in text or not (match := _RUST_PANIC.search(text)):
        return None
    return _crash("panic", match[1] or match[3], match[2])


def go_panic(text: str) -> Finding | None:
    """The first panic of a Go program, with its deepest frame outside the standard library."""
    if "panic: " not in text and not ("fatal error: " in text and "\ngoroutine " in text):
        return None
    if not (match := _GO_PANIC.search(text)):
        return None
    frame = _GO_FRAME.search(text, match.end())
    return _crash(match[1], match[2], frame[1] if frame else None)


def _crash(error_type: str, message: str, location: str | None = None) -> Finding:
    return Finding(Family.PYTHON_EXCEPTION, error_type, message, location)


def _node(text: str) -> Finding | None:
    match = _NODE.search(text)
    if match is None:
        return None
    frame = _NODE_FRAME.search(text, match.start())
    place = _NODE_PLACE.search(text)
    if place and (match[1] == "SyntaxError" or not frame):
        location: str | None = f"{place[1]}:{place[2]}"
    else:
        location = frame[1] if frame else None
    found = named(match[1], match[3])
    return Finding(found.family, found.error_type, found.message, location)


def _native(text: str) -> Finding | None:
    """A C or C++ program that found itself broken."""
    if "Assertion" in text and (match := _C_ASSERTION.search(text)):
        return _crash("assertion failed", match[2], match[1])
    if "terminate called" in text and (match := _CPP.search(text)):
        return _crash(match[1].rsplit("::", 1)[-1], match[2] or "")
    if "Sanitizer: " in text and (match := _SANITIZER.search(text)):
        frame = _C_FRAME.search(text, match.end())
        return _crash(match[1], match[1] + match[2], frame[1] if frame else None)
    if ": runtime error: " in text and (match := _UNDEFINED.search(text)):
        return _crash("runtime error", match[2], match[1])
    return None


def _signal(text: str) -> Finding | None:
    words = ("fault", "Aborted", "exception", "Bus error", "Illegal instruction")
    if any(word in text for word in words) and (match := _SIGNAL.search(text)):
        return _crash(match[1], match[1])
    return None


def _go_exit(text: str) -> Finding | None:
    """A program that `go run` tells the end of; what it said last is why."""
    if "exit status " not in text or not (match := _GO_EXIT.search(text)):
        return None
    said = line_at(text, match.start() - 1) if match.start() else match.group()
    return _crash(PRINTED, _STAMP.sub("", said))
