"""What a methodology says to do, read from its words and put to the error at hand."""

import re
from collections.abc import Iterator

from contextgraph.replay.command_moves import moves_between, moves_of_line
from contextgraph.replay.corrections import path_moves
from contextgraph.replay.cures import MOVED_DOWN, MOVED_UP, Cure, change_in, import_in
from contextgraph.replay.moves import Move, MoveKind
from contextgraph.text import quoted_names

# Placeholders stand for the names that the error's message quotes, in their order.
_FIRST = re.compile(
    r"<the (?:undefined name|missing module|variable|class|argument|key|path|name)>"
)
_SECOND = re.compile(r"<the (?:attribute|package|other name)>")
_NUMBERED = re.compile(r"(?:^|\s)\(\d\) ")
_IMPORTED = re.compile(r"`(from \S+ import [^`]+|import [^`]+)`")
_PUT_IMPORT = re.compile(r"(?:put|add) its import\b")
_CHANGED = re.compile(r"change `([^`]*)` to `([^`]*)`|(?:also )?add `([^`]*)`(?! to)")
_RAN_FIRST = re.compile(r"run `([^`]*)`")
_INSTEAD = re.compile(r"use `([^`]*)` instead of `([^`]*)`")
_APART = re.compile(r"write `([^`]*)` and its argument apart")
_PATH_OUT = re.compile(r"leave the path out: [^`]*`(\w+)")
_LEFT_OUT = re.compile(r"leave `([^`]*)` out of `([^`]*)`")
_IS = re.compile(r"there is no `([^`]*)`: it is `([^`]*)`")
_LEADING = re.compile(r"leave out the leading (?:`([^`]*)/`|<name of the repository>/)")
_BEFORE = re.compile(r"put `([^`]*)/` before the path")
_PLACE = re.compile(r"use `\S+ (?:/|~|\.|\.\.)`")
_FLAG = re.compile(r"add `(-[^`]*)` to `([^`]*)`")
_OPEN = re.compile(r"open the file you mean first: `(\w+)`")
_WITH = re.compile(r"with `([^`]*)` in the edit")
_WITHOUT = re.compile(r"send the text again without `([^`]*)`")
_SAID = {
    "another file was open": Move(MoveKind.OTHER_FILE, ""),
    "indented like the lines around": Move(MoveKind.INDENT, ""),
    "a range that ends later": Move(MoveKind.RANGE, "widened"),
    "start the range earlier": Move(MoveKind.RANGE, "widened"),
    "same text for fewer lines": Move(MoveKind.RANGE, "narrowed"),
    "give the path from the root": Move(MoveKind.PATH, "made absolute"),
}


def cures_of_strategy(strategy: str, message: str, repo: str) -> list[Cure]:
    """What each of the ways that *strategy* offers comes to, in their order."""
    ways = filter(str.strip, _NUMBERED.split(strategy))
    return [cure_of_strategy(way, message, repo) for way in ways]


def cure_of_strategy(strategy: str, message: str, repo: str) -> Cure:
    """The cure that *strategy* comes to for an error of this *message* in *repo*."""
    said = _put_to(strategy, message)
    moves = frozenset(
        (*_of_edits(said, message), *_of_commands(said, message, repo), *_of_paths(said, repo))
    )
    removed, added = [], []
    for old, new, only in _CHANGED.findall(said):
        removed.append(old)
        added.append(new or only)
    return Cure(moves, *change_in(removed, added))


def _put_to(strategy: str, message: str) -> str:
    """*strategy* with its placeholders filled in from *message*."""
    names = quoted_names(message)
    for pattern, name in zip((_FIRST, _SECOND), names, strict=False):
        strategy = name.join(pattern.split(strategy))
    return strategy


def _of_edits(said: str, message: str) -> Iterator[Move]:
    names = quoted_names(message)
    if names and _PUT_IMPORT.search(said):
        # That it is imported from its module does not say from which.
        yield Move(MoveKind.IMPORT, names[0])
    elif names:
        for line in _IMPORTED.findall(said):
            if move := import_in(line, names[0]):
                yield move
    for line in _WITH.findall(said):
        yield Move(MoveKind.LINE, " ".join(line.split()))
    for line in _WITHOUT.findall(said):
        yield Move(MoveKind.LINE, f"not {' '.join(line.split())}")
    yield from (move for words, move in _SAID.items() if words in said)
    if "look at the line numbers again" in said:  # it says of no direction
        yield from (Move(MoveKind.RANGE, moved) for moved in (MOVED_DOWN, MOVED_UP))


def _of_commands(said: str, message: str, repo: str) -> Iterator[Move]:
    for line in _RAN_FIRST.findall(said):
        yield from moves_of_line(line, repo)
    for new, old in _INSTEAD.findall(said):
        yield from moves_between(old, new, repo)
    yield from (Move(MoveKind.USE, f"{program} apart") for program in _APART.findall(said))
    yield from (Move(MoveKind.FLAG, f"{program} {flag}") for flag, program in _FLAG.findall(said))
    yield from (Move(MoveKind.OPEN_FIRST, verb) for verb in _OPEN.findall(said))
    left_out = [verb for path, verb in _LEFT_OUT.findall(said) if _is_named(path, message)]
    for verb in (*_PATH_OUT.findall(said), *left_out):
        yield Move(MoveKind.ARGUMENT, f"{verb} without path")


def _is_named(path: str, message: str) -> bool:
    """True where *message* is about this very *path*, not one that begins or ends with it."""
    return re.search(rf"(?<![\w./-]){re.escape(path)}(?![\w/-]|\.\w)", message) is not None


def _of_paths(said: str, repo: str) -> Iterator[Move]:
    for old, new in _IS.findall(said):
        yield from path_moves(old, new, repo)
    for directory in _LEADING.findall(said):
        yield Move(MoveKind.PATH, "without the doubled directory")
        yield Move(MoveKind.PATH, f"without {repo}:{directory or repo.rpartition('/')[2]}")
    for directory in _BEFORE.findall(said):
        yield Move(MoveKind.PATH, f"under {repo}:{directory}")
    if _PLACE.search(said):
        yield Move(MoveKind.PATH, "up to a parent")
