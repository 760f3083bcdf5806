"""Whether an error was avoided rather than solved."""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

from contextgraph.model import ErrorSignature
from contextgraph.trace.edits import Change
from contextgraph.trace.remedies.edits import IMPORTING
from contextgraph.trace.remedies.open_errors import Cleared

_NAME = re.compile(r"['\"`]([A-Za-z_][\w.]*)['\"`]")
_SKIPPING = re.compile(r"\bskip\w*\b|\bxfail\b|\bsuppress\(|# *noqa|# *type: ignore")
_CATCHING = re.compile(r"\bexcept\b")
_DOING = re.compile(r"\w\(|^[ \t]*(?:assert|raise|import|from)\b", re.MULTILINE)
# Empty values that replace what failed.
_NOTHING = re.compile(
    r"^(?!\s*(?:async +)?(?:def|class)\b).*(?:(?:=|\breturn|\belse)\s*"
    r"(?:None|(?:np|math)\.nan|\"\"|'')|(?:\breturn|\belse)\s*"
    r"(?:\[(?:\"\")?\]|\{\}|(?:set|dict|list|pd\.DataFrame)\(\)))"
    r"(?![\w.,(=\[])",
    re.MULTILINE,
)
_STAND_IN = re.compile(r"\b(?:Magic)?Mock\(|\bclass \w*(?:Mock|Dummy|Fake|Stub)|\bsys\.modules\[")
_IMPORTS = re.compile(r"^[ \t]*((?:from\s+\S+\s+)?import\s.+)$", re.MULTILINE)
_WORD = re.compile(r"\b(?!from\b|import\b|as\b)[A-Za-z_]\w+")
_DEFINED = re.compile(r"\b(?:class|def) (\w+)")
_ASSERTING = re.compile(r"\bassert")


def is_workaround(end: Cleared, changes: Sequence[Change], commands: Sequence[str]) -> bool:
    """True where the failure was caught, skipped, cut out or replaced by a stand-in."""
    everywhere = _Diff.of(changes)
    skips = _SKIPPING.search("\n".join((everywhere.added, *commands)))
    if skips and not _SKIPPING.search(everywhere.removed):
        return True
    error = end.opened.error
    if error.error_type in IMPORTING:
        return _is_import_given_up(error, everywhere)
    # What a fix of the project may well do is a workaround in the script that shows the failure.
    script = {posixpath.basename(target) for target in end.opened.last.reading.targets}
    shown = _Diff.of([one for one in changes if posixpath.basename(one.file) in script])
    if _is_commented_out(changes):
        return True
    if _NOTHING.search(everywhere.added) and not _NOTHING.search(everywhere.removed):
        return True
    if _CATCHING.search(shown.added) and not _CATCHING.search(shown.removed):
        return True
    if error.error_type == "AssertionError" and _ASSERTING.search(shown.removed):
        return not _ASSERTING.search(shown.added)
    return not shown.added and _DOING.search(shown.removed) is not None


@dataclass(frozen=True, slots=True)
class _Diff:
    """The code of several changes in one text each, comments left out."""

    removed: str
    added: str

    @classmethod
    def of(cls, changes: Sequence[Change]) -> "_Diff":
        removed = (line for one in changes for line in one.removed if _is_code(line))
        added = (line for one in changes for line in one.added if _is_code(line))
        return cls("\n".join(removed), "\n".join(added))


def _is_commented_out(changes: Sequence[Change]) -> bool:
    """True where code that does something was turned into a comment."""
    removed = {line.strip() for one in changes for line in one.removed if _DOING.search(line)}
    comments = {line.strip().lstrip("# ") for one in changes for line in one.added if "#" in line}
    return not removed.isdisjoint(comments)


def _is_import_given_up(error: ErrorSignature, diff: _Diff) -> bool:
    """True where what could not be imported is defined on the spot or not used any more."""
    if _STAND_IN.search(diff.added):
        return True
    imports = "\n".join(_IMPORTS.findall(diff.added))
    defined = set(_DEFINED.findall(diff.added))
    for line in _IMPORTS.findall(diff.removed):
        words = _WORD.findall(line)
        if not defined.isdisjoint(words):
            return True
        is_wanted = any(name.partition(".")[0] in words for name in _NAME.findall(error.message))
        if is_wanted and not any(word in imports for word in words):
            return True
    return False


def _is_code(line: str) -> bool:
    return not line.lstrip().startswith("#")
