"""Reports of pytest: whether anything failed, and the first thing that did."""

import re

from contextgraph.model import Family
from contextgraph.trace.errors.finding import Finding
from contextgraph.trace.errors.tracebacks import bare_class, last_traceback

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
_VERBOSE = re.compile(r"^[^\s:]+\.py::\S+ (?:FAILED|ERROR)\b", re.MULTILINE)
_CONFTEST = "ImportError while loading conftest"
_NOT_COLLECTED = re.compile(
    r"^(?:collecting \.\.\. )?ERROR: "
    r"(file or directory not found|file not found|not found|found no collectors for)"
    r":? ([^\n]*)",
    re.MULTILINE,
)
_INTERNAL = re.compile(
    r"^INTERNALERROR> ((?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception)\b)(?:: ([^\n]*))?", re.MULTILINE
)
_INTERNAL_PLACE = re.compile(r"^INTERNALERROR>   File \"([^\"\n]+)\", line (\d+)", re.MULTILINE)
_UNKNOWN = "test failure"


def pytest_ran(text: str) -> bool:
    """True where *text* shows that pytest ran at least some tests to a verdict."""
    return (" in " in text and _SUMMARY.search(text, max(0, len(text) - 5000)) is not None) or (
        "test session starts" in text or "short test summary info" in text
    )


def pytest_failure(text: str) -> Finding | None:
    """The first failed, broken or uncollected test that a report of pytest tells of."""
    if "INTERNALERROR>" in text and (match := _INTERNAL.search(text)):
        places = _INTERNAL_PLACE.findall(text)
        location = f"{places[-1][0]}:{places[-1][1]}" if places else None
        return Finding(Family.PYTHON_EXCEPTION, bare_class(match[1]), match[2] or "", location)
    if not _shows_failure(text):
        return _not_collected(text)
    section = _SECTION.search(text)
    if section and (block := _BLOCK.search(text, section.end())):
        end = _BLOCK_END.search(text, block.end())
        return _in_block(text[block.end() : end.start() if end else len(text)])
    return _listed(text)


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


def _not_collected(text: str) -> Finding | None:
    if "ERROR: " in text and (match := _NOT_COLLECTED.search(text)):
        return Finding(Family.TEST_FAILURE, f"pytest: {match[1]}", match[2])
    return None


def _in_block(block: str) -> Finding:
    """The exception of one failure: its last place, and what is said on the last ``E`` lines."""
    places = list(_PLACE.finditer(block))
    location = f"{places[-1][1]}:{places[-1][2]}" if places else None
    said = _last_said(block)
    if said is None:
        native = last_traceback(block)
        if native is not None:
            return Finding(Family.TEST_FAILURE, native.error_type, native.message, native.location)
        said = ""
    named = places[-1][3] if places else ""
    error_type, message = _raised(said)
    if _CLASS.fullmatch(named) and not named.islower():
        error_type = bare_class(named)
    return Finding(Family.TEST_FAILURE, error_type, message, location)


def _last_said(block: str) -> str | None:
    """The first line of the last run of ``E`` lines."""
    first, end = None, -2
    for match in _E_LINE.finditer(block):
        if match.start() != end + 1:
            first = match[1]
        end = match.end()
    return first


def _raised(said: str) -> tuple[str, str]:
    text = said.strip()
    if text.startswith("assert ") or not text:
        return "AssertionError" if text else _UNKNOWN, text
    match = _RAISED.match(text)
    if match and (match[2] is not None or "Error" in text or "Exception" in text):
        return bare_class(match[1]), match[2] or ""
    return _UNKNOWN, text


def _listed(text: str) -> Finding:
    """The first line of the short summary, where nothing more is shown."""
    match = _LISTED.search(text)
    if match is None or not match[2]:
        return Finding(Family.TEST_FAILURE, _UNKNOWN, match[1] if match else "")
    error_type, message = _raised(match[2])
    return Finding(Family.TEST_FAILURE, error_type, message or match[1])
