"""What an advice says to do, read from its text: the same that an agent is shown."""

import builtins
import keyword
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from contextgraph.replay.command_moves import moves_between, moves_of_line
from contextgraph.replay.moves import Move, MoveKind

_CLAUSE = re.compile(r"(?:[^`;]|`[^`]*`)+")
_CODE = re.compile(r"`([^`]*)`")
_UNDEFINED = re.compile(r"`([\w.]+)` was undefined: (added|put|did without)\b")
_INSTEAD = re.compile(r"(?:used|ran) `([^`]*)` instead of `([^`]*)`")
_OPENED = re.compile(r"opened (\S+) first, then used `(\S+)")
MOVED_DOWN, MOVED_UP = "moved down", "moved up"
_RANGES = re.compile(r"same text for lines (\d+):(\d+) instead of (\d+):(\d+)")
_NOTHING_DONE = re.compile(r"repeated |ran the same command again|sent the same edit again|then ")
_EDIT = re.compile(r"edit (\S+)(?: \d+:\d+)?: (.*)", re.DOTALL)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w+")
_IMPORT = re.compile(r"\s*(?:from\s+(\S+)\s+)?import\s+(.+)")
_STRING = re.compile(r"[rbfuRBFU]{0,2}(?:\"[^\"]*\"|'[^']*')")
_COMMON = frozenset({*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "self", "cls", "args"})


@dataclass(frozen=True, slots=True)
class Cure:
    """What an advice does: its *moves*, and which identifiers it *adds* to or *drops* from *files*.

    *files* carry their repository.
    """

    moves: frozenset[Move] = frozenset()
    adds: frozenset[str] = frozenset()
    drops: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """False where nothing is done that could help again, such as a mere repetition."""
        return bool(self.moves or self.adds or self.drops)


def cure_in(what: str, actions: Sequence[str], repo: str) -> Cure:
    """The cure that the sentence *what* and its *actions* tell, as learned in *repo*."""
    clauses = [clause.strip() for clause in _CLAUSE.findall(what)]
    edits = [match for action in actions if (match := _EDIT.match(action))]
    texts = [edit[2] for edit in edits if not edit[2].startswith("(nothing")]
    moves = [move for clause in clauses for move in _moves_said(clause, repo)]
    if not any(clause.startswith(("changed ", "added ", "removed ")) for clause in clauses):
        return Cure(frozenset(moves))
    removed = [code for clause in clauses for code in _codes_removed(clause)]
    added = [code for clause in clauses for code in _codes_added(clause)]
    adds, drops = change_in(removed, [*added, *texts])
    files = frozenset(f"{repo}:{edit[1]}" for edit in edits)
    return Cure(frozenset(moves), adds, drops, files)


def change_in(
    removed: Iterable[str], added: Iterable[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """The identifiers that a change of code adds, and those that it drops."""
    gone, come = _identifiers(removed), _identifiers(added)
    return frozenset(come - gone), frozenset(gone - come)


def import_in(line: str, name: str) -> Move | None:
    """The import of *name* that *line* is, None where it imports no such name."""
    imported = _IMPORT.match(line)
    if imported is None:
        return None
    named = (part.strip() for part in imported[2].split(","))
    source = next((part for part in named if name in part.split()), None)
    if source is None:
        return None
    return Move(MoveKind.IMPORT, f"{imported[1]}:{source}" if imported[1] else source)


def _moves_said(clause: str, repo: str) -> Iterator[Move]:
    if _NOTHING_DONE.match(clause):
        return
    if instead := _INSTEAD.match(clause):
        yield from moves_between(instead[2], instead[1], repo)
    elif opened := _OPENED.match(clause):
        yield Move(MoveKind.OPEN_FIRST, opened[2].strip("`"))
    elif clause.startswith("ran "):
        for line in _CODE.findall(clause):
            yield from moves_of_line(line, repo)
            if line.startswith("mkdir ") and " first" in clause:
                yield Move(MoveKind.MAKE, "the missing directory")
    else:
        yield from _moves_of_edit(clause)


def _moves_of_edit(clause: str) -> Iterator[Move]:
    if undefined := _UNDEFINED.match(clause):
        yield _of_undefined(undefined, clause)
    elif ranges := _RANGES.search(clause):
        yield Move(MoveKind.RANGE, _range_change(ranges))
    elif clause.startswith("indented the same text"):
        yield Move(MoveKind.INDENT, "")
    elif "another file had been open" in clause:
        yield Move(MoveKind.OTHER_FILE, "")
    elif clause.startswith(("wrote ", "sent the text again")):
        yield from _lines_said(clause)


def _of_undefined(undefined: re.Match[str], clause: str) -> Move:
    name, how = undefined[1], undefined[2]
    line = next(iter(_CODE.findall(clause[undefined.end() :])), "")
    if how == "did without":
        return Move(MoveKind.WITHOUT, name)
    if _IMPORT.match(line):
        return import_in(line, name) or Move(MoveKind.IMPORT, name)
    _, _, value = line.partition("=")
    source = _IDENTIFIER.search(_STRING.sub("", value)) if value else None
    return Move(MoveKind.DEFINE, f"{name} = {source[0]}" if source else _head(line))


def _head(line: str) -> str:
    """A definition without its parameters."""
    return line.partition("(")[0].strip().rstrip(":")


def _range_change(ranges: re.Match[str]) -> str:
    first, last, old_first, old_last = map(int, ranges.groups())
    if first <= old_first and old_last <= last:
        return "widened"
    if old_first <= first and last <= old_last:
        return "narrowed"
    return MOVED_DOWN if first + last > old_first + old_last else MOVED_UP


def _lines_said(clause: str) -> Iterator[Move]:
    """The lines that made the difference, but for those that stand in any text, as `else:`."""
    come, _, gone = clause.partition("without ")
    for sign, part in (("", come), ("not ", gone)):
        for code in _CODE.findall(part):
            if _identifiers([code]):
                yield Move(MoveKind.LINE, sign + " ".join(code.split()))


def _codes_removed(clause: str) -> list[str]:
    if clause.startswith("changed "):
        return _CODE.findall(clause.partition(" to `")[0])
    return _CODE.findall(clause) if clause.startswith("removed ") else []


def _codes_added(clause: str) -> list[str]:
    if clause.startswith("changed "):
        return _CODE.findall(f"`{clause.partition(' to `')[2]}")
    return _CODE.findall(clause) if clause.startswith("added ") else []


def _identifiers(codes: Iterable[str]) -> set[str]:
    """The names in *codes*, without keywords and builtins; strings and comments do not count."""
    bare = (_STRING.sub("", code).partition("#")[0] for code in codes)
    return {name for code in bare for name in _IDENTIFIER.findall(code)} - _COMMON
