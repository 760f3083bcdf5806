"""Reports of pytest, unittest, doctest and tox: the first failure."""

import re
from dataclasses import replace
from functools import partial

from contextgraph.model import Family
from contextgraph.trace.errors.crashes import last_traceback
from contextgraph.trace.errors.finding import (
    Finding,
    Recogniser,
    class_name,
)

_failed_test = partial(Recogniser, Family.TEST_FAILURE)

_SUMMARY = re.compile(
    r"^(?:=+ )?((?:no tests ran|\d+ (?:failed|passed|skipped|deselected|xfailed|xpassed|warnings?"
    r"|errors?|rerun|subtests? passed)\b)[^\n]{0,300}?) in \d[\d.:]*s?\b[^\n]*$",
    re.MULTILINE,
)
_BAD = re.compile(r"\b[1-9]\d* (?:failed|errors?)\b")
_SECTION = re.compile(r"^=+ (?:ERRORS|FAILURES) =+$", re.MULTILINE)
_BLOCK = re.compile(r"^_+ (?!_ )[^\n]* _+$|^_{3,} [^\n]*_$", re.MULTILINE)
_BLOCK_END = re.compile(
    r"^(?:_{2,} (?!_)[^\n]*_|={3,} [^\n]* ={3,}|-{5,} Captured [^\n]*)$", re.MULTILINE
)
_PLACE = re.compile(r"^([^\s:>][^:\n]{0,400}):(\d+): ?([^\n]*)$", re.MULTILINE)
_E_LINE = re.compile(r"^E   ([^\n]*)$", re.MULTILINE)
_RAISED = re.compile(r"\s*((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?:: ?(.*))?$", re.DOTALL)
_CLASS = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*")
_LISTED = re.compile(r"^(?:FAILED|ERROR) (\S+?\.py\S*)(?: - ([^\n]*))?$", re.MULTILINE)
_VERBOSE = re.compile(r"^([^\s:]+\.py::\S+) (?:FAILED|ERROR)\b", re.MULTILINE)
_CONFTEST = "ImportError while loading conftest"
_NOT_COLLECTED = _failed_test(
    "pytest: {kind}",
    "ERROR: ",
    r"^(?:collecting \.\.\. )?ERROR: "
    r"(?P<kind>file or directory not found|file not found|not found|found no collectors for)"
    r":? (?P<message>[^\n]*)",
)
_INTERNAL = re.compile(
    r"^INTERNALERROR> ((?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception)\b)(?:: ([^\n]*))?", re.MULTILINE
)
_INTERNAL_PLACE = re.compile(r"^INTERNALERROR>   File \"([^\"\n]+)\", line (\d+)", re.MULTILINE)
_UNKNOWN = "test failure"
_RAN = re.compile(r"^Ran \d+ tests? in ", re.MULTILINE)
_FAILED = re.compile(r"^FAILED \([^\n]*\)", re.MULTILINE)
_UNITTEST_BLOCK = re.compile(r"^={20,}\n\[?((?:ERROR|FAIL)[^\n]*)$", re.MULTILINE)
_UNITTEST_END = re.compile(r"^={20,}$|^-{20,}\nRan ", re.MULTILINE)
DOCTEST = _failed_test(
    "doctest",
    "Failed example:",
    r"^\*{20,}\nFile \"(?P<file>[^\"\n]+)\", line (?P<line>\d+), in [^\n]*\n"
    r"Failed example:\n\s*(?P<message>[^\n]*)",
)
TOX = _failed_test(
    "tox: commands failed",
    ("tox", "commands failed"),
    r"^(?:ERROR: {3}|  )\S+: (?:commands failed|FAIL\b[^\n]*|could not install[^\n]*)",
)


def pytest_ran(text: str) -> bool:
    """True where *text* shows that pytest ran at least some tests to a verdict."""
    return (" in " in text and _SUMMARY.search(text, max(0, len(text) - 5000)) is not None) or (
        "test session starts" in text or "short test summary info" in text
    )


def pytest_failure(text: str) -> Finding | None:
    """The first failed, broken or uncollected test that a report of pytest names."""
    if "INTERNALERROR>" in text and (match := _INTERNAL.search(text)):
        places = _INTERNAL_PLACE.findall(text)
        location = f"{places[-1][0]}:{places[-1][1]}" if places else None
        return Finding(Family.PYTHON_EXCEPTION, class_name(match[1]), match[2] or "", location)
    if not _shows_failure(text):
        return _NOT_COLLECTED.find(text)
    section = _SECTION.search(text)
    if section and (block := _BLOCK.search(text, section.end())):
        end = _BLOCK_END.search(text, block.end())
        return _in_block(text[block.end() : end.start() if end else len(text)])
    return _listed(text)


def failed_tests(text: str) -> tuple[str, ...]:
    """The tests that a report of pytest or unittest names as failed or broken, each once."""
    if "FAIL" not in text and "ERROR" not in text:
        return ()
    of_pytest = [match[1] for match in _LISTED.finditer(text)]
    of_pytest += [match[1] for match in _VERBOSE.finditer(text)]
    of_unittest = [match[1].split(": ", 1)[-1] for match in _UNITTEST_BLOCK.finditer(text)]
    return tuple(dict.fromkeys((*of_pytest, *of_unittest)))


def conftest_failure(text: str) -> Finding | None:
    """Why pytest could not even load its configuration."""
    at = text.find(_CONFTEST)
    return _in_block(text[at:]) if at >= 0 else None


def _shows_failure(text: str) -> bool:
    if " in " in text and (summaries := _SUMMARY.findall(text, max(0, len(text) - 20_000))):
        return _BAD.search(summaries[-1]) is not None
    if "FAIL" not in text and "ERROR" not in text:
        return False
    return bool(_SECTION.search(text) or _VERBOSE.search(text) or _LISTED.search(text))


def _in_block(block: str) -> Finding:
    """The exception of one failure: its last place, and what its last ``E`` lines say."""
    places = list(_PLACE.finditer(block))
    location = f"{places[-1][1]}:{places[-1][2]}" if places else None
    raised = _last_error_line(block)
    if raised is None:
        native = last_traceback(block)
        if native is not None:
            return replace(native, family=Family.TEST_FAILURE)
        raised = ""
    named = places[-1][3] if places else ""
    error_type, message = _class_and_message(raised)
    if _CLASS.fullmatch(named) and not named.islower():
        error_type = class_name(named)
    return Finding(Family.TEST_FAILURE, error_type, message, location)


def _last_error_line(block: str) -> str | None:
    """The first line of the last run of ``E`` lines."""
    first, end = None, -2
    for match in _E_LINE.finditer(block):
        if match.start() != end + 1:
            first = match[1]
        end = match.end()
    return first


def _class_and_message(raised: str) -> tuple[str, str]:
    text = raised.strip()
    if text.startswith("assert ") or not text:
        return "AssertionError" if text else _UNKNOWN, text
    match = _RAISED.match(text)
    if match and (match[2] is not None or "Error" in text or "Exception" in text):
        return class_name(match[1]), match[2] or ""
    return _UNKNOWN, text


def _listed(text: str) -> Finding:
    """The first line of the short summary, where nothing more is shown."""
    match = _LISTED.search(text)
    if match is None or not match[2]:
        return Finding(Family.TEST_FAILURE, _UNKNOWN, match[1] if match else "")
    error_type, message = _class_and_message(match[2])
    return Finding(Family.TEST_FAILURE, error_type, message or match[1])


def unittest_ran(text: str) -> bool:
    """True where *text* shows that unittest or a relative ran to a verdict."""
    return "Ran " in text and _RAN.search(text) is not None


def unittest_failure(text: str) -> Finding | None:
    """The first failed or broken test that a report of unittest names."""
    if "=====" not in text:
        return None
    block = _UNITTEST_BLOCK.search(text)
    if block is None:
        failed = _FAILED.search(text)
        return Finding(Family.TEST_FAILURE, _UNKNOWN, failed.group()) if failed else None
    end = _UNITTEST_END.search(text, block.end())
    raised = last_traceback(text[block.end() : end.start() if end else len(text)])
    if raised is None:
        return Finding(Family.TEST_FAILURE, _UNKNOWN, block[1])
    return replace(raised, family=Family.TEST_FAILURE)
