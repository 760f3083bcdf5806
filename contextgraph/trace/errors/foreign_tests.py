"""Reports of test runners other than Python's: JavaScript, Go, Rust, Java, C++, and TAP."""

import re
from dataclasses import replace
from functools import partial

from contextgraph.model import Family
from contextgraph.trace.errors.crashes import (
    CRASHES,
    GO_PANIC,
    RUST_PANIC,
)
from contextgraph.trace.errors.finding import (
    Finding,
    Recogniser,
    Search,
    first_in,
    line_at,
)

_failed_test = partial(Recogniser, Family.TEST_FAILURE)

_FAILED = "test failure"
_PASSED = re.compile(
    r"^(?:Tests: [^\n]{0,200}\d passed[^\n]*|[ \t]{1,20}Tests {2,9}\d+ passed[^\n]*"
    r"|test result: ok\.[^\n]*|\[INFO\] BUILD SUCCESS|BUILD SUCCESSFUL in [^\n]*"
    r"|100% tests passed[^\n]*|ok {2}\t[^\n]*"
    r"|PASS|[ \t]+\d+ passing(?: \([^\n]*)?|[#ℹ] fail 0)$",
    re.MULTILINE,
)
_GO_FAIL = re.compile(r"^([ \t]*)--- FAIL: (\S+)", re.MULTILINE)
_GO_PLACE = re.compile(r"^[ \t]+(\S+_test\.go:\d+): ?([^\n]*)", re.MULTILINE)
_GO_NEXT = re.compile(r"^(?:--- |=== RUN|FAIL|ok)", re.MULTILINE)
_GO_PACKAGE = re.compile(r"^FAIL\t\S+", re.MULTILINE)
_TESTIFY = re.compile(r"^[ \t]+Error:[ \t]+([^\n]*)", re.MULTILINE)
_RUST_FAILED = re.compile(r"^test result: FAILED|^error: test failed", re.MULTILINE)
_RUST_OUTPUT = re.compile(r"^---- [^\n]{1,400} stdout ----\n([^\n]+)", re.MULTILINE)
_SUREFIRE = re.compile(
    r"^(?:\[ERROR\] +)?Tests run: \d+, Failures: (\d+), Errors: (\d+)", re.MULTILINE
)
_SUREFIRE_FIRST = re.compile(r"^\[ERROR\] +(\S+?)[.:](\w+):(\d+)(?:->\S+)? ([^\n]*)", re.MULTILINE)
_JAVA_EXCEPTION = re.compile(
    r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Failure))\b:? ?([^\n]*)", re.MULTILINE
)
_JS_TOTALS = (
    re.compile(
        r"^[ \t]*(?:(?:Tests|Test Suites|Test Files):? [^\n]{0,200}?\b[1-9]\d{0,8} failed"
        r"|Errors\s+[1-9]\d* errors?$)",
        re.MULTILINE,
    ),
    re.compile(r"^[ \t]+[1-9]\d* failing$", re.MULTILINE),
    re.compile(r"^(?:[ℹ#] fail [1-9]\d*|Failed tests:)$", re.MULTILINE),
)
# Where the report of the first failure starts, as the runners mark it.
_JS_STARTS = (
    re.compile(r"^ {2}● [^\n]*$", re.MULTILINE),
    re.compile(r"^[ \t]*FAIL {1,3}\S[^\n]*$|^⎯+ Unhandled (?!Errors)[^\n]*$", re.MULTILINE),
    _JS_TOTALS[1],
    re.compile(r"^(?:✖ failing|Failed) tests:$", re.MULTILINE),
)
_JS_NEXT = re.compile(r"^ {2}● |^[ \t]*Test(?:s| Suites| Files):? |^⎯{4,}", re.MULTILINE)
_JS_TEST = re.compile(r"^✖ ([^\n]*?)(?: \([\d.]+ms\))?$", re.MULTILINE)
_JS_EXCEPTION = re.compile(
    r"^\s{0,8}(\w*(?:Error|Exception)|[A-Z]\w+Rejection)(?: \[\w+\])?: "
    r"([^\n]*?(?::\n[^\n]*|$))",
    re.MULTILINE,
)
_JS_EXPECT = re.compile(r"^[ \t]+(expect\([^\n]*)", re.MULTILINE)
_JS_MESSAGE = re.compile(r"\n[ \t]*\n[ \t]*(?:thrown: \"?)?(\S[^\n]*)")
_JS_PLACE = re.compile(
    r"^[ \t]+(?:at (?:[^\n(]{0,200}\()?|❯ (?:[^\s:]{1,200} )?)(?:file://)?"
    r"((?!node:|internal/)[^\s():]{1,300}:\d+)[\d:)]*[^\n]*$",
    re.MULTILINE,
)
_JS_PARSER = re.compile(r"(\S+): (.*) \((\d+):\d+\)$")
_TAP = re.compile(r"^([ \t]*)not ok \d+(?: - )?(?![^\n]*# (?:TODO|SKIP))([^\n]*)", re.MULTILINE)
_TAP_DETAILS = re.compile(r"\n[ \t]+---\n((?:[ \t]++[^\n]*+\n){1,200}?)[ \t]+\.\.\.$", re.MULTILINE)
_TAP_PLACE = re.compile(r"^[ \t]+location: '([^'\n]+?:\d+)(?::\d+)?'", re.MULTILINE)
_TAP_FRAME = re.compile(
    r"^[ \t]+(?:[^\n(]{1,200} \()?(?:file://)?((?!node:|location)[^\s():']{1,300}:\d+):\d+\)?$",
    re.MULTILINE,
)
_TAP_CLASS = re.compile(r"^[ \t]+name: '(\w+)'", re.MULTILINE)
_TAP_MESSAGE = re.compile(r"^[ \t]+error: (?:\|-\n[ \t]+)?'?([^\n]*?)'?$", re.MULTILINE)


def foreign_failure(text: str) -> Finding | None:
    """The first failed test of a runner that is not Python's."""
    for word, report in _REPORTS:
        if word in text and (finding := report(text)):
            return finding
    return None


def after_passed_tests(text: str) -> str:
    """What stands behind the last report of a runner of another language that all tests passed.

    What tests print, and the exceptions that they expect, stand before it.
    """
    end = 0
    for match in _PASSED.finditer(text):
        end = match.end()
    return text[end:]


def _failure(error_type: str, message: str, location: str | None = None) -> Finding:
    return Finding(Family.TEST_FAILURE, error_type, message.strip(), location)


def _go(text: str) -> Finding | None:
    failed = _GO_FAIL.search(text)
    if (failed or _GO_PACKAGE.search(text)) and (panic := GO_PANIC.find(text)):
        return replace(panic, family=Family.TEST_FAILURE)
    if failed is None:
        return None
    name, end = _deepest_subtest(text, failed)
    following = _GO_NEXT.search(text, end)
    place = _GO_PLACE.search(text, end, following.start() if following else len(text))
    if place is None and (start := text.find(f"=== RUN   {name}\n")) >= 0:
        # With -v, output stands where it was printed, before the verdict.
        place = _GO_PLACE.search(text, start, failed.start())
    if place is None:
        return _failure(_FAILED, name)
    testify = _TESTIFY.search(text, place.end(), place.end() + 2000)
    return _failure(_FAILED, place[2] or (testify[1] if testify else ""), place[1])


def _deepest_subtest(text: str, failed: re.Match[str]) -> tuple[str, int]:
    """The subtest that the first failed test failed for, and where its line ends."""
    name, end = failed[2], failed.end()
    for match in _GO_FAIL.finditer(text, end):
        if not match[2].startswith(f"{name}/"):
            break
        name, end = match[2], match.end()
    return name, end


def _rust(text: str) -> Finding | None:
    if not _RUST_FAILED.search(text):
        return None
    if panic := RUST_PANIC.find(text):
        return replace(panic, family=Family.TEST_FAILURE)
    output = _RUST_OUTPUT.search(text)
    return _failure(_FAILED, output[1] if output else line_at(text, text.find("FAILED")))


def _surefire(text: str) -> Finding | None:
    """Maven's report, which gives the totals of all tests before the first failure."""
    totals = _SUREFIRE.findall(text)
    if not any(failures != "0" or errors != "0" for failures, errors in totals):
        return None
    first = _SUREFIRE_FIRST.search(text)
    exception = _JAVA_EXCEPTION.search(text)
    error_type = exception[1] if exception else _FAILED
    if first is None:
        return _failure(error_type, exception[2] if exception else "")
    return _failure(error_type, first[4], f"{first[1].rsplit('.', 1)[-1]}.java:{first[3]}")


def _javascript(text: str) -> Finding | None:
    """The first failed test of Jest, Vitest, Mocha or Node's own runner."""
    if not any(total.search(text) for total in _JS_TOTALS):
        return None
    if finding := _tap(text):
        return finding
    first = next((match for start in _JS_STARTS if (match := start.search(text))), None)
    if first is None:
        return _failure(_FAILED, "")
    end = _JS_NEXT.search(text, first.end() + 1)
    block = text[first.end() : end.start() if end else len(text)]
    place = _JS_PLACE.search(block)
    location = place[1] if place else None
    exception, expected = _JS_EXCEPTION.search(block), _JS_EXPECT.search(block)
    if exception and (not expected or exception.start() < expected.start()):
        return _javascript_exception(exception[1], exception[2], location)
    if expected:
        return _failure("AssertionError", expected[1], location)
    return _without_exception(text, first.group(), block, location)


def _javascript_exception(error_type: str, message: str, location: str | None) -> Finding:
    """An exception in a test; a parser gives its place within the message."""
    if error_type == "SyntaxError" and (parsed := _JS_PARSER.match(message)):
        return _failure(error_type, parsed[2], f"{parsed[1]}:{parsed[3]}")
    return _failure(error_type, " ".join(message.split()), location)


def _without_exception(text: str, heading: str, block: str, location: str | None) -> Finding:
    """A failure without an exception: the first line of its report, else the name of the test."""
    if not heading.startswith("✖"):
        message = _JS_MESSAGE.match(block)
        return _failure(_FAILED, message[1] if message else heading, location)
    if crash := first_in(CRASHES, text):
        return replace(crash, family=Family.TEST_FAILURE)
    test = _JS_TEST.search(block)
    return _failure(_FAILED, test[1] if test else heading, location)


def _tap(text: str) -> Finding | None:
    """The first failed test of a report in the Test Anything Protocol."""
    if "not ok " not in text or not (failed := _TAP.search(text)):
        return None
    details = _TAP_DETAILS.match(text, failed.end())
    if details is None:
        return _failure(_FAILED, failed[2])
    name = _TAP_CLASS.search(details[1])
    message = _TAP_MESSAGE.search(details[1])
    stack = details[1].find("stack: ")
    place = (stack >= 0 and _TAP_FRAME.search(details[1], stack)) or _TAP_PLACE.search(details[1])
    return _failure(
        name[1] if name else _FAILED,
        message[1] if message else failed[2],
        place[1] if place else None,
    )


_NO_TESTS = _failed_test(
    "no tests found", "exiting with code 1", r"^No test(?: file)?s found, exiting with code 1$"
)
# GoogleTest, and runners that report like it.
_GOOGLE_TEST = (
    _failed_test(
        _FAILED, "[  FAILED  ]", r"^(?P<place>[^\s:]{1,300}:\d+): Failure\n(?P<message>[^\n]*)"
    ),
    _failed_test(_FAILED, "[  FAILED  ]", r"^\[ {2}FAILED {2}\] (?P<message>[^\n]*)"),
)
_CTEST = _failed_test(
    "ctest: {kind}",
    "The following tests FAILED",
    r"^The following tests FAILED:\n[ \t]*\d+ - (?P<message>\S+) \((?P<kind>[^)\n]*)\)",
)
_GRADLE = _failed_test(
    "{name}",
    " FAILED\n",
    r"^\S+ > (?P<detail>[^\n]+) FAILED\n[ \t]+(?:[\w.]+\.)?(?P<name>\w+)"
    r"(?:: (?P<message>[^\n]*?))? at (?P<file>\S+?):(?P<line>\d+)",
)
_REPORTS: tuple[tuple[str, Search], ...] = (
    (" fail", _javascript),
    ("Failed tests:", _javascript),
    ("Unhandled Errors", _javascript),
    ("exiting with code 1", _NO_TESTS.find),
    ("[  FAILED  ]", lambda text: first_in(_GOOGLE_TEST, text)),
    ("The following tests FAILED", _CTEST.find),
    ("not ok ", _tap),
    ("FAIL", _go),
    ("panic: ", _go),
    ("test result: FAILED", _rust),
    ("error: test failed", _rust),
    ("Tests run:", _surefire),
    (" FAILED\n", _GRADLE.find),
)
