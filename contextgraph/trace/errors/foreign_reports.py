"""Test reports of other languages: JavaScript, Go, Rust, Java."""

import re
from collections.abc import Callable

from contextgraph.model import Family
from contextgraph.trace.errors.finding import Finding, line_at

_JEST_TOTAL = re.compile(
    r"^[ \t]*(?:Tests|Test Suites|Test Files):?\s+[^\n]*?\b[1-9]\d* failed", re.MULTILINE
)
_JEST_NAME = re.compile(r"^ {2}● ([^\n]*)$", re.MULTILINE)
_VITEST_FAIL = re.compile(r"^ ?(?:FAIL|×|❯) {1,3}\S[^\n]*$", re.MULTILINE)
_JS_RAISED = re.compile(r"^\s{0,6}((?:\w+)?(?:Error|Exception)): ([^\n]*)", re.MULTILINE)
_JS_EXPECT = re.compile(r"^[ \t]+(expect\([^\n]*)", re.MULTILINE)
_JS_PLACE = re.compile(
    r"^[ \t]+(?:at [^\n(]{0,200}\(|at |❯ )((?!node:|internal/)[^\s():]{1,300}:\d+)[\d:)]*[^\n]*$",
    re.MULTILINE,
)
_TAP = re.compile(r"^not ok \d+(?: - )?([^\n]*)", re.MULTILINE)
_TAP_PLACE = re.compile(r"^[ \t]+location: '([^'\n]+?:\d+)(?::\d+)?'", re.MULTILINE)
_GTEST = re.compile(r"^\[ {2}FAILED {2}\] ([^\n]*)", re.MULTILINE)
_GTEST_PLACE = re.compile(r"^([^\s:]{1,300}:\d+): Failure\n([^\n]*)", re.MULTILINE)
_MOCHA = re.compile(r"^[ \t]+[1-9]\d* failing$", re.MULTILINE)
_GO_FAIL = re.compile(r"^[ \t]*--- FAIL: (\S+)", re.MULTILINE)
_GO_PLACE = re.compile(r"^[ \t]+(\S+_test\.go:\d+): ?([^\n]*)", re.MULTILINE)
_GO_PANIC = re.compile(r"^panic: ([^\n]*)", re.MULTILINE)
_GO_PACKAGE = re.compile(r"^FAIL\t\S+", re.MULTILINE)
_RUST_FAILED = re.compile(r"^test result: FAILED|^error: test failed", re.MULTILINE)
_RUST_PANIC = re.compile(
    r"^thread '[^'\n]*'(?: \(\d+\))? panicked at "
    r"(?:'([^\n]*)', )?([^\s:]+:\d+)(?::\d+)?:?\n?([^\n]*)",
    re.MULTILINE,
)
_MAVEN = re.compile(
    r"^(?:\[ERROR\] +)?Tests run: \d+, Failures: (\d+), Errors: (\d+)", re.MULTILINE
)
_MAVEN_FIRST = re.compile(r"^\[ERROR\] +(\S+?)[.:](\w+):(\d+)(?:->\S+)? ([^\n]*)", re.MULTILINE)
_GRADLE = re.compile(
    r"^(\S+) > ([^\n]+) FAILED\n[ \t]+(?:[\w.]+\.)?(\w+)(?:: ([^\n]*?))? at (\S+?):(\d+)",
    re.MULTILINE,
)
_JAVA_RAISED = re.compile(
    r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Failure))\b:? ?([^\n]*)", re.MULTILINE
)


def foreign_failure(text: str) -> Finding | None:
    """The first failed test of a runner that is not Python's."""
    for words, report in _REPORTS:
        if words in text and (found := report(text)):
            return found
    return None


def rust_panic(text: str) -> tuple[str, str] | None:
    """Message and place of the first panic of a Rust program."""
    if "panicked at" not in text or not (match := _RUST_PANIC.search(text)):
        return None
    return match[1] or match[3], match[2]


def _failure(error_type: str, message: str, location: str | None = None) -> Finding:
    return Finding(Family.TEST_FAILURE, error_type, message.strip(), location)


def _javascript(text: str) -> Finding | None:
    if not _JEST_TOTAL.search(text) and not _MOCHA.search(text):
        return None
    first = _JEST_NAME.search(text) or _VITEST_FAIL.search(text) or _MOCHA.search(text)
    start = first.end() if first else 0
    raised = _JS_RAISED.search(text, start)
    expected = _JS_EXPECT.search(text, start)
    place = _JS_PLACE.search(text, start)
    location = place[1] if place else None
    if raised and (not expected or raised.start() < expected.start()):
        return _failure(raised[1], raised[2], location)
    if expected:
        return _failure("AssertionError", expected[1], location)
    return _failure("test failure", first.group() if first else "", location)


def _tap(text: str) -> Finding | None:
    if not (failed := _TAP.search(text)):
        return None
    place = _TAP_PLACE.search(text, failed.end())
    return _failure("test failure", failed[1], place[1] if place else None)


def _gtest(text: str) -> Finding | None:
    """GoogleTest, and runners that report in its manner."""
    if not (failed := _GTEST.search(text)):
        return None
    if place := _GTEST_PLACE.search(text):
        return _failure("test failure", place[2], place[1])
    return _failure("test failure", failed[1])


def _go(text: str) -> Finding | None:
    failed = _GO_FAIL.search(text)
    panic = _GO_PANIC.search(text)
    if panic and (failed or _GO_PACKAGE.search(text)):
        return _failure("panic", panic[1])
    if failed is None:
        return None
    place = _GO_PLACE.search(text, failed.end())
    return _failure("test failure", place[2] if place else failed[1], place[1] if place else None)


def _rust(text: str) -> Finding | None:
    if not _RUST_FAILED.search(text):
        return None
    if panic := rust_panic(text):
        return _failure("panic", *panic)
    return _failure("test failure", line_at(text, text.find("FAILED")))


def _maven(text: str) -> Finding | None:
    totals = _MAVEN.findall(text)
    if not any(failures != "0" or errors != "0" for failures, errors in totals):
        return None
    first = _MAVEN_FIRST.search(text)
    raised = _JAVA_RAISED.search(text)
    error_type = raised[1] if raised else "test failure"
    if first is None:
        return _failure(error_type, raised[2] if raised else "")
    return _failure(error_type, first[4], f"{first[1].rsplit('.', 1)[-1]}.java:{first[3]}")


def _gradle(text: str) -> Finding | None:
    if match := _GRADLE.search(text):
        return _failure(match[3], match[4] or match[2], f"{match[5]}:{match[6]}")
    return None


_REPORTS: tuple[tuple[str, Callable[[str], Finding | None]], ...] = (
    (" fail", _javascript),
    ("[  FAILED  ]", _gtest),
    ("not ok ", _tap),
    ("FAIL", _go),
    ("panic: ", _go),
    ("test result: FAILED", _rust),
    ("error: test failed", _rust),
    ("Tests run:", _maven),
    (" FAILED\n", _gradle),
)
