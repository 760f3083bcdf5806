"""Reports of unittest, its relatives (nose, trial, Django) and doctest."""

import re

from contextgraph.model import Family
from contextgraph.trace.errors.finding import Finding
from contextgraph.trace.errors.tracebacks import last_traceback

_RAN = re.compile(r"^Ran \d+ tests? in ", re.MULTILINE)
_FAILED = re.compile(r"^FAILED \([^\n]*\)", re.MULTILINE)
_BLOCK = re.compile(r"^={20,}\n\[?((?:ERROR|FAIL)[^\n]*)$", re.MULTILINE)
_BLOCK_END = re.compile(r"^={20,}$|^-{20,}\nRan ", re.MULTILINE)
_DOCTEST = re.compile(
    r"^\*{20,}\nFile \"([^\"\n]+)\", line (\d+), in ([^\n]*)\nFailed example:\n\s*([^\n]*)",
    re.MULTILINE,
)
_TOX = re.compile(
    r"^(?:ERROR: {3}|  )\S+: (?:commands failed|FAIL\b[^\n]*|could not install[^\n]*)", re.MULTILINE
)


def unittest_ran(text: str) -> bool:
    """True where *text* shows that unittest or a relative ran to a verdict."""
    return "Ran " in text and _RAN.search(text) is not None


def unittest_failure(text: str) -> Finding | None:
    """The first failed or broken test that a report tells of."""
    if "=====" not in text:
        return None
    block = _BLOCK.search(text)
    if block is None:
        failed = _FAILED.search(text)
        return Finding(Family.TEST_FAILURE, "test failure", failed.group()) if failed else None
    end = _BLOCK_END.search(text, block.end())
    raised = last_traceback(text[block.end() : end.start() if end else len(text)])
    if raised is None:
        return Finding(Family.TEST_FAILURE, "test failure", block[1])
    return Finding(Family.TEST_FAILURE, raised.error_type, raised.message, raised.location)


def doctest_failure(text: str) -> Finding | None:
    """The first example that did not give what its documentation says."""
    if "Failed example:" in text and (match := _DOCTEST.search(text)):
        return Finding(Family.TEST_FAILURE, "doctest", match[4], f"{match[1]}:{match[2]}")
    return None


def tox_failure(text: str) -> Finding | None:
    """The first environment in which tox failed."""
    if ("tox" in text or "commands failed" in text) and (match := _TOX.search(text)):
        return Finding(Family.TEST_FAILURE, "tox: commands failed", match.group().strip())
    return None
