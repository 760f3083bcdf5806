"""Reads the rules and memories that people and other tools keep in files."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from contextgraph.errors import ReadError
from contextgraph.knowledge.notes import MAX_NOTE
from contextgraph.system.intake import content, leaves, loads, opened
from contextgraph.text import dice, regex, stems

_LONGEST = 1 << 24
# From here on two lines say the same.
_SAME = 0.6
_SUFFIXES = frozenset({".md", ".mdc", ".json", ".af", ".jsonl"})
_FRONT_MATTER = regex(r"\A---\n.*?\n---\n", re.DOTALL)
_FENCE = regex(r"^\s*(?:```|~~~)")
_ITEM = regex(r"^(\s*)(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(.*)")
# Where mem0, Letta and their like keep a text, and the lists of such entries.
_TEXTS = ("memory", "text", "content", "value")
_LISTS = ("results", "memories", "blocks", "core_memory", "archival_memory", "passages", "data")


class Rule(NamedTuple):
    """A *text*, and the file and line (or entry) where it stands."""

    text: str
    locator: str


class KnownRules:
    """The rules that *lines* of a file say already, in much the same words."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._words = [{*stems(line)} for line in lines]

    def add(self, rule: str) -> bool:
        """Add *rule* unless a line says it; return whether it was added."""
        own = {*stems(rule)}
        if any(dice(own, words) >= _SAME or own <= words for words in self._words):
            return False
        self._words.append(own)
        return True


def is_rules(path: Path) -> bool:
    """Return whether *path* is a folder, or a file of a kind that may hold rules; no archive."""
    if path.is_dir() or path.suffix in {".md", ".mdc", ".af"}:
        return True
    if path.suffix != ".json":
        return False
    try:
        with opened(path) as file:
            return not file.read(64).lstrip().startswith(b'{"contextgraph"')
    except OSError:
        return False  # which reading it as an archive reports


def rules_in(path: Path) -> Iterator[Rule | ReadError]:
    """Yield the rules in *path*: a Markdown file, an export of mem0 or Letta, or a folder.

    Of Markdown each item of a list and each paragraph, without headings, code and front matter.
    Yields a `ReadError` for a file that cannot be read as such, and for a link out of the folder
    that it is in; the other files of the folder are read.
    """
    if path.is_dir():
        if leaves(path, path.parent):
            yield ReadError(str(path), "", "unreadable rules", "a link to outside the folder")
            return
        for file in sorted(path.rglob("*")):
            if file.suffix in _SUFFIXES and (file.is_file() or file.is_symlink()):
                yield from rules_in(file)
        return
    try:
        text = content(path, _LONGEST, inside=path.parent).decode("utf-8-sig")
        if path.suffix in {".md", ".mdc"}:
            found = _markdown(text)
        elif path.suffix == ".jsonl":
            found = _entries([loads(line) for line in text.splitlines() if line.strip()], "")
        else:
            found = _entries(loads(text), "")
        for rule, place in found:
            if words := " ".join(rule.split()):
                yield Rule(words[:MAX_NOTE], f"{path}:{place}")
    except (OSError, ValueError) as error:
        yield ReadError(str(path), "", "unreadable rules", str(error))


def _markdown(text: str) -> Iterator[tuple[str, str]]:
    front = _FRONT_MATTER.match(text)
    skipped = text[: front.end()].count("\n") if front else 0
    lines, is_code, start = list[str](), False, 0

    def paragraph() -> Iterator[tuple[str, str]]:
        if lines:
            yield " ".join(lines), str(start)
            lines.clear()

    for number, line in enumerate(text.splitlines()[skipped:], start=skipped + 1):
        is_fence = bool(_FENCE.match(line))
        is_code ^= is_fence
        item = _ITEM.match(line)
        if is_code or is_fence or not line.strip() or line.startswith(("#", "|", "@", "<!--")):
            yield from paragraph()
            continue
        if item or not lines:
            yield from paragraph()
            start = number
        lines.append(item[2] if item else line.strip())
    yield from paragraph()


def _entries(value: object, place: str) -> Iterator[tuple[str, str]]:
    """The texts in *value*, lists of which may be nested, with the number of each entry."""
    if isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _entries(entry, f"{place}[{index}]")
    elif isinstance(value, str):
        yield value, place
    elif isinstance(value, dict):
        text = next((value[name] for name in _TEXTS if isinstance(value.get(name), str)), None)
        if text is not None:
            yield text, place
            return
        for name in _LISTS:
            if name in value:
                yield from _entries(value[name], f"{place}.{name}")
