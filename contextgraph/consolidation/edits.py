"""What was done otherwise in an edit that had been refused."""

import re
from collections.abc import Iterator

from contextgraph.consolidation.move import Move
from contextgraph.consolidation.roles import Names
from contextgraph.consolidation.sentences import codes_in

_DEFINED = re.compile(r"`[^`]*` was undefined: (?P<how>put|added) `(?P<line>[^`]*)`")
_RANGE = re.compile(r"for lines (\d+):(\d+) instead of (\d+):(\d+)")
_INDENTED = re.compile(r"indented the same text by \d+: ")
_IMPORT = re.compile(r"import ([\w.]+)(?: as (\w+))?|from ([\w.]+) import (.+)")
_ASSIGNED = re.compile(r"\S+\s*(?::[^=]*)?=[^=]|.*\bas\b|for\b|with\b")
_IMPORTS = "`import <the undefined name>`, `from <its module> import <the undefined name>`"
_DEFINITION = re.compile(r"(?:async )?(?:def|class) ")


def of_edit(clause: str, names: Names) -> Iterator[Move]:
    """What a clause about a refused edit comes to."""
    if match := _DEFINED.match(clause):
        yield from _definition(match["how"], match["line"], names)
    elif clause.startswith("sent the same text to "):
        yield Move(
            "another file was open: open the file you mean, then send the same edit again", 1
        )
    elif _INDENTED.match(clause):
        yield Move("send the same text again, indented like the lines around it", 1)
    elif clause.startswith("sent the same text for lines "):
        yield from _same_text(clause)
    elif clause.startswith(("sent the text again", "wrote ", "deleted the lines")):
        yield from _other_text(clause, names)


def _definition(how: str, line: str, names: Names) -> Iterator[Move]:
    """How a name got its definition."""
    line = " ".join(line.split())
    if "…" in line:
        return
    if match := _IMPORT.fullmatch(line):
        only = _only(match, names)
        yield Move(
            f"import it: `{only}`, in the edit itself or at the top of the file before it", 0
        )
        yield from _import_put(how)
    elif _DEFINITION.match(line):
        yield Move(
            "send the definition of <the undefined name> in the same edit as its first use", 1
        )
    elif _ASSIGNED.match(line) and how == "put":
        yield Move(
            "send the line that sets <the undefined name> in the same edit as the lines that use "
            "it: widen the range to take both in",
            1,
        )
    elif _ASSIGNED.match(line):
        yield Move(
            "add the line that sets <the undefined name> first, then edit the lines that use it", 1
        )


def _only(match: re.Match[str], names: Names) -> str:
    """The import of the undefined name alone, without what else its line brings in."""
    if match[3] and names.names and names.names[0] in re.findall(r"\w+", match[4]):
        return f"from {match[3]} import {names.names[0]}"
    return match.group()


def _import_put(how: str) -> Iterator[Move]:
    if how == "put":
        yield Move(f"put its import ({_IMPORTS}) into the edit itself, above the first use", 1)
    else:
        yield Move(
            f"add its import ({_IMPORTS}) at the top of the file first, then send the edit again", 1
        )


def _same_text(clause: str) -> Iterator[Move]:
    match = _RANGE.search(clause)
    if match is None:
        return
    first, last, was_first, was_last = map(int, match.groups())
    if first == was_first and last > was_last:
        more = last - was_last
        exact = "one line" if more == 1 else f"{more} lines"
        yield Move(_WIDER.format(exact), 0)
        yield Move(_WIDER.format("as many lines as the old statement has"), 1)
    elif first <= was_first and last > was_last:
        yield Move(_WIDER.format("as many lines as the old statement has"), 1)
    elif first >= was_first and last < was_last:
        yield Move("send the same text for fewer lines, so that the lines around it stay", 1)
    elif first < was_first and last == was_last:
        yield Move("start the range earlier, so that it replaces the line before it as well", 1)
    else:
        yield Move(
            "look at the line numbers again (`goto`, `open`) and send the same text for the lines "
            "where the statement is now",
            1,
        )


_WIDER = (
    "send the same text for a range that ends later by {}, so that nothing of the old statement is "
    "left over"
)


def _other_text(clause: str, names: Names) -> Iterator[Move]:
    match = _RANGE.search(clause)
    with_part, _, without_part = clause.partition("without ")
    come = codes_in(with_part)
    gone = codes_in(without_part)
    for line in come:
        if _IMPORT.fullmatch(line):
            yield Move(f"with `{names.mask(line)}` in the edit", 0)
    if not come and len(gone) == 1:
        yield Move(f"send the text again without `{names.mask(gone[0])}`", 0)
    if match is None:
        if come and _opens_block(come[0]) and not gone:
            yield Move(_OPENING, 1)
        return
    first, last, was_first, was_last = map(int, match.groups())
    if come and _opens_block(come[0]) and first < was_first:
        yield Move(_OPENING, 1)
    elif come and not gone and last > was_last:
        yield Move(
            "take more lines into the range and repeat in the text those that are to stay: the "
            "edit cut a statement in two",
            1,
        )
    elif gone and not come and last - first < was_last - was_first:
        yield Move("edit fewer lines: send only the lines that change", 1)


_OPENING = (
    "send the line that opens the block (`if …:`, `def …:`, `try:`) in the same edit as its body, "
    "with the range starting there"
)


def _opens_block(line: str) -> bool:
    return line.rstrip().endswith(":")
