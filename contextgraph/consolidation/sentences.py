"""Taking apart the sentences in which recoveries are told."""

import re

_CODE = re.compile(r"`([^`]*)`")
_PARTED = re.compile(r"; (?=(?:[^`]*`[^`]*`)*[^`]*$)")
_END = re.compile(r"then (?:it worked|that error was gone\b.*)")


def clauses_of(what: str) -> list[str]:
    """The parts of *what* that tell what was done, without how it ended."""
    return [clause for clause in _PARTED.split(what) if not _END.fullmatch(clause)]


def codes_in(clause: str) -> list[str]:
    """What stands in backquotes, without what was cut off."""
    return [code for code in _CODE.findall(clause) if not code.endswith("…")]
