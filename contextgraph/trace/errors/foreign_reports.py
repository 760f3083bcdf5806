"""Test reports of other languages: Go, Rust, Java, C++; and where a report says all is well."""

import re
from collections.abc import Callable

from contextgraph.model import Family
from contextgraph.trace.errors.crashes import go_panic, rust_panic
from contextgraph.trace.errors.finding import Finding, line_at
from contextgraph.trace.errors.javascript_reports import javascript_failure, tap_failure

_GTEST = re.compile(r"^\[ {2}FAILED {2}\] ([^\n]*)", re.MULTILINE)
_GTEST_PLACE = re.compile(r"^([^\s:]{1,300}:\d+): Failure\n([^\n]*)", re.MULTILINE)
_CTEST = re.compile(r"^The following tests FAILED:\n[ \t]*\d+ - (\S+) \(([^)\n]*)\)", re.MULTILINE)
_GO_FAIL = re.compile(r"^([ \t]*)--- FAIL: (\S+)", re.MULTILINE)
_GO_PLACE = re.compile(r"^[ \t]+(\S+_test\.go:\d+): ?([^\n]*)", re.MULTILINE)
_GO_NEXT = re.compile(r"^(?:--- |=== RUN|FAIL|ok)", re.MULTILINE)
_TESTIFY = re.compile(r"^[ \t]+Error:[ \t]+([^\n]*)", re.MULTILINE)
_GO_PACKAGE = re.compile(r"^FAIL\t\S+", re.MULTILINE)
_RUST_FAILED = re.compile(r"^test result: FAILED|^error: test failed", re.MULTILINE)
_RUST_SAID = re.compile(r"^---- [^\n]{1,400} stdout ----\n([^\n]+)", re.MULTILINE)
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
_PASSED = re.compile(
    r"^(?:Tests: [^\n]{0,200}\d passed[^\n]*|[ \t]{1,20}Tests {2,9}\d+ passed[^\n]*"
    r"|test result: ok\.[^\n]*|\[INFO\] BUILD SUCCESS|BUILD SUCCESSFUL in [^\n]*"
    r"|100% tests passed[^\n]*|ok {2}\t[^\n]*"
    r"|PASS|[ \t]+\d+ passing(?: \([^\n]*)?|[#ℹ] fail 0)$",
    re.MULTILINE,
)
_SIGNS = (" passed", "test result: ok", "BUILD SUCCESS", "ok  \t", "PASS", " passing", " fail 0")


def foreign_failure(text: str) -> Finding | None:
    """The first failed test of a runner that is not Python's."""
    for words, report in _REPORTS:
        if words in text and (found := report(text)):
            return found
    return None


def after_passed_tests(text: str) -> str:
    """What stands behind the last report of a runner of another language that all went well.

    What tests print, and the exceptions that they expect, stand before it.
    """
    if not any(sign in text for sign in _SIGNS):
        return text
    end = 0
    for match in _PASSED.finditer(text):
        end = match.end()
    return text[end:]


def _failure(error_type: str, message: str, location: str | None = None) -> Finding:
    return Finding(Family.TEST_FAILURE, error_type, message.strip(), location)


def _in_a_test(crash: Finding) -> Finding:
    return _failure(crash.error_type, crash.message, crash.location)


def _gtest(text: str) -> Finding | None:
    """GoogleTest, and runners that report in its manner."""
    if not (failed := _GTEST.search(text)):
        return None
    if place := _GTEST_PLACE.search(text):
        return _failure("test failure", place[2], place[1])
    return _failure("test failure", failed[1])


def _ctest(text: str) -> Finding | None:
    failed = _CTEST.search(text)
    return _failure(f"ctest: {failed[2]}", failed[1]) if failed else None


def _go(text: str) -> Finding | None:
    failed = _GO_FAIL.search(text)
    if (failed or _GO_PACKAGE.search(text)) and (panic := go_panic(text)):
        return _in_a_test(panic)
    if failed is None:
        return None
    name, end = _deepest(text, failed)
    border = _GO_NEXT.search(text, end)
    place = _GO_PLACE.search(text, end, border.start() if border else len(text))
    place = place or _told_before(text, name, failed.start())
    if place is None:
        return _failure("test failure", name)
    said = place[2] or _testify(text, place.end())
    return _failure("test failure", said, place[1])


def _deepest(text: str, failed: re.Match[str]) -> tuple[str, int]:
    """The subtest that the first failed test failed for, and where its line ends."""
    name, end = failed[2], failed.end()
    for match in _GO_FAIL.finditer(text, end):
        if not match[2].startswith(f"{name}/"):
            break
        name, end = match[2], match.end()
    return name, end


def _told_before(text: str, name: str, before: int) -> re.Match[str] | None:
    """What a test said while it ran, where that is told as it happens."""
    start = text.find(f"=== RUN   {name}\n")
    return _GO_PLACE.search(text, start, before) if start >= 0 else None


def _testify(text: str, position: int) -> str:
    said = _TESTIFY.search(text, position, position + 2000)
    return said[1] if said else ""


def _rust(text: str) -> Finding | None:
    if not _RUST_FAILED.search(text):
        return None
    if panic := rust_panic(text):
        return _in_a_test(panic)
    if said := _RUST_SAID.search(text):
        return _failure("test failure", said[1])
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
    (" fail", javascript_failure),
    ("Failed tests:", javascript_failure),
    ("Unhandled Errors", javascript_failure),
    ("exiting with code 1", javascript_failure),
    ("[  FAILED  ]", _gtest),
    ("The following tests FAILED", _ctest),
    ("not ok ", tap_failure),
    ("FAIL", _go),
    ("panic: ", _go),
    ("test result: FAILED", _rust),
    ("error: test failed", _rust),
    ("Tests run:", _maven),
    (" FAILED\n", _gradle),
)
