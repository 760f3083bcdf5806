"""Files that a patch changes."""

import re
from collections.abc import Iterator

_GIT_HEADER = re.compile(r"^diff --git (?:\"a/([^\"]+)\"|a/(.+?)) (?:\"b/([^\"]+)\"|b/(.+))$")
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NO_FILE = "/dev/null"
_SYMBOL = re.compile(r"[ +-]?[ \t]*(?:async )?(?:def|class|func|fn|function) +(\w+)")


def files_changed(patch: str) -> tuple[str, ...]:
    """Repository-relative paths of the files that the unified diff *patch* changes.

    In the order of the patch, with created files last: agents leave scripts of their own behind.
    A deleted file counts, a renamed one by its new name.
    """
    changed, created = _files(patch)
    return tuple(sorted(changed, key=created.__contains__))


def files_created(patch: str) -> frozenset[str]:
    """Those of `files_changed` that the unified diff *patch* makes."""
    return frozenset(_files(patch)[1])


def _files(patch: str) -> tuple[list[str], set[str]]:
    """The files that *patch* changes, and those of them that it makes."""
    found: dict[str, None] = {}
    created: set[str] = set()
    old = ""
    in_hunk = 0, 0
    for line in patch.splitlines():
        if any(in_hunk):
            in_hunk = _remaining(line, in_hunk)
        elif match := _GIT_HEADER.match(line):
            found[match[3] or match[4]] = None
        elif line.startswith("--- "):
            old = _path(line)
        elif line.startswith("+++ "):
            new = _path(line)
            found[new if new != _NO_FILE else old] = None
            if old == _NO_FILE:
                created.add(new)
        elif line.startswith("@@ "):
            in_hunk = _hunk_lines(line)
    return [path for path in found if path and path != _NO_FILE], created


def lines_changed(patch: str) -> Iterator[tuple[str, str, str]]:
    """Each line that the unified diff *patch*, or several in a row, adds or removes.

    File, the name of the function or class around it (empty for none), and the line with its sign.
    """
    file = symbol = ""
    in_hunk = 0, 0
    for line in patch.splitlines():
        if any(in_hunk):
            in_hunk = _remaining(line, in_hunk)
            if match := _SYMBOL.match(line):
                symbol = match[1]
            if line[:1] in ("+", "-"):
                yield file, symbol, line
        elif line.startswith("+++ "):
            file, symbol = _path(line), ""
        elif line.startswith("@@ "):
            in_hunk = _hunk_lines(line)
            match = _SYMBOL.match(line.rpartition("@@ ")[2])
            symbol = match[1] if match else symbol


def added_lines(patch: str) -> Iterator[tuple[str, str]]:
    """File and text of each line that the unified diff *patch*, or several in a row, adds."""
    return ((file, line[1:]) for file, _, line in lines_changed(patch) if line.startswith("+"))


def _path(line: str) -> str:
    """The path of a `---` or `+++` line, without what git puts before and diff behind it."""
    path = line[4:].split("\t", 1)[0].strip().strip('"')
    return path[2:] if path[:2] in ("a/", "b/") else path


def _hunk_lines(header: str) -> tuple[int, int]:
    """How many old and new lines a hunk has: inside it, `---` is a removed line."""
    match = _HUNK.match(header)
    if match is None:
        return 0, 0
    return int(match[1] or 1), int(match[2] or 1)


def _remaining(line: str, left: tuple[int, int]) -> tuple[int, int]:
    old, new = left
    if line.startswith("\\"):
        return left
    if not line.startswith("+"):
        old = max(old - 1, 0)
    if not line.startswith("-"):
        new = max(new - 1, 0)
    return old, new
