"""Reports of JavaScript's test runners: Jest, Vitest, Mocha, Node's own, and TAP."""

import re

from contextgraph.model import Family
from contextgraph.trace.errors.crashes import foreign_crash
from contextgraph.trace.errors.finding import Finding

_TOTAL = re.compile(
    r"^[ \t]*(?:(?:Tests|Test Suites|Test Files):? [^\n]{0,200}?\b[1-9]\d{0,8} failed"
    r"|Errors\s+[1-9]\d* errors?$)",
    re.MULTILINE,
)
_MOCHA = re.compile(r"^[ \t]+[1-9]\d* failing$", re.MULTILINE)
_NODE = re.compile(r"^(?:[ℹ#] fail [1-9]\d*|Failed tests:)$", re.MULTILINE)
_NO_TESTS = re.compile(r"^(No test(?: file)?s found), exiting with code 1$", re.MULTILINE)
# Where the report of the first failure starts, as the runners mark it.
_STARTS = (
    re.compile(r"^ {2}● [^\n]*$", re.MULTILINE),
    re.compile(r"^[ \t]*FAIL {1,3}\S[^\n]*$|^⎯+ Unhandled (?!Errors)[^\n]*$", re.MULTILINE),
    _MOCHA,
    re.compile(r"^(?:✖ failing|Failed) tests:$", re.MULTILINE),
)
_NEXT = re.compile(r"^ {2}● |^[ \t]*Test(?:s| Suites| Files):? |^⎯{4,}", re.MULTILINE)
_NAMED = re.compile(r"^✖ ([^\n]*?)(?: \([\d.]+ms\))?$", re.MULTILINE)
_RAISED = re.compile(
    r"^\s{0,8}(\w*(?:Error|Exception)|[A-Z]\w+Rejection)(?: \[\w+\])?: "
    r"([^\n]*?(?::\n[^\n]*|$))",
    re.MULTILINE,
)
_EXPECT = re.compile(r"^[ \t]+(expect\([^\n]*)", re.MULTILINE)
_SAID = re.compile(r"\n[ \t]*\n[ \t]*(?:thrown: \"?)?(\S[^\n]*)")
_PLACE = re.compile(
    r"^[ \t]+(?:at (?:[^\n(]{0,200}\()?|❯ (?:[^\s:]{1,200} )?)(?:file://)?"
    r"((?!node:|internal/)[^\s():]{1,300}:\d+)[\d:)]*[^\n]*$",
    re.MULTILINE,
)
_PARSED = re.compile(r"(\S+): (.*) \((\d+):\d+\)$")
_TAP = re.compile(r"^([ \t]*)not ok \d+(?: - )?(?![^\n]*# (?:TODO|SKIP))([^\n]*)", re.MULTILINE)
_TAP_DETAILS = re.compile(r"\n[ \t]+---\n((?:[ \t]++[^\n]*+\n){1,200}?)[ \t]+\.\.\.$", re.MULTILINE)
_TAP_PLACE = re.compile(r"^[ \t]+location: '([^'\n]+?:\d+)(?::\d+)?'", re.MULTILINE)
_TAP_FRAME = re.compile(
    r"^[ \t]+(?:[^\n(]{1,200} \()?(?:file://)?((?!node:|location)[^\s():']{1,300}:\d+):\d+\)?$",
    re.MULTILINE,
)
_TAP_CLASS = re.compile(r"^[ \t]+name: '(\w+)'", re.MULTILINE)
_TAP_SAID = re.compile(r"^[ \t]+error: (?:\|-\n[ \t]+)?'?([^\n]*?)'?$", re.MULTILINE)


def javascript_failure(text: str) -> Finding | None:
    """The first failed test that Jest, Vitest, Mocha or Node tells of."""
    if any(total.search(text) for total in (_TOTAL, _MOCHA, _NODE)):
        return _tap(text) or _first(text)
    none = _NO_TESTS.search(text)
    return _failure("no tests found", none.group()) if none else None


def tap_failure(text: str) -> Finding | None:
    """The first failed test of a report in the Test Anything Protocol."""
    return _tap(text)


def _failure(error_type: str, message: str, location: str | None = None) -> Finding:
    return Finding(Family.TEST_FAILURE, error_type, message.strip(), location)


def _first(text: str) -> Finding:
    first = next((match for start in _STARTS if (match := start.search(text))), None)
    if first is None:
        return _failure("test failure", "")
    end = _NEXT.search(text, first.end() + 1)
    block = text[first.end() : end.start() if end else len(text)]
    place = _PLACE.search(block)
    location = place[1] if place else None
    raised, expected = _RAISED.search(block), _EXPECT.search(block)
    if raised and (not expected or raised.start() < expected.start()):
        return _raised(raised[1], raised[2], location)
    if expected:
        return _failure("AssertionError", expected[1], location)
    return _unexplained(text, first.group(), block, location)


def _raised(error_type: str, message: str, location: str | None) -> Finding:
    """An exception in a test; a parser tells its place within the message."""
    if error_type == "SyntaxError" and (parsed := _PARSED.match(message)):
        return _failure(error_type, parsed[2], f"{parsed[1]}:{parsed[3]}")
    return _failure(error_type, " ".join(message.split()), location)


def _unexplained(text: str, heading: str, block: str, location: str | None) -> Finding:
    """A failure without an exception: what is said first of it, else the name of the test."""
    if heading.startswith("✖"):
        crash = foreign_crash(text)
        if crash:
            return _failure(crash.error_type, crash.message, crash.location)
        named = _NAMED.search(block)
        return _failure("test failure", named[1] if named else heading, location)
    said = _SAID.match(block)
    return _failure("test failure", said[1] if said else heading, location)


def _tap(text: str) -> Finding | None:
    if "not ok " not in text or not (failed := _TAP.search(text)):
        return None
    details = _TAP_DETAILS.match(text, failed.end())
    if details is None:
        return _failure("test failure", failed[2])
    name = _TAP_CLASS.search(details[1])
    said = _TAP_SAID.search(details[1])
    stack = details[1].find("stack: ")
    place = (stack >= 0 and _TAP_FRAME.search(details[1], stack)) or _TAP_PLACE.search(details[1])
    return _failure(
        name[1] if name else "test failure",
        said[1] if said else failed[2],
        place[1] if place else None,
    )
