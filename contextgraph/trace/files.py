"""Files, and names in them: those of a patch, of listings, and of source text."""

import posixpath
from collections import Counter
from collections.abc import Iterator, Sequence
from sys import stdlib_module_names

from contextgraph.lazy import TYPE_CHECKING, dataclass, regex
from contextgraph.trace.actions import NEW_TEXT, new_text
from contextgraph.trace.kinds import ActionKind
from contextgraph.trace.steps import StepTrace

if TYPE_CHECKING:
    from typing import TypeAlias

_GIT_HEADER = regex(r"^diff --git (?:\"a/([^\"]+)\"|a/(.+?)) (?:\"b/([^\"]+)\"|b/(.+))$")
_HUNK = regex(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_CONTENT_HASHES = regex(r"index ([0-9a-f]{7,40})\.\.([0-9a-f]{7,40})")
_NO_FILE = "/dev/null"
_PATH = regex(r"(?<![\w/.:@-])(?:\./|/)?(?:[\w-][\w.-]*/)+[\w-]+\.\w+")
_FILE_NAME = regex(r"[\w.-]+\.\w+")
# Viewers put the number of a line before it, searches its file as well. `re` skips to a line end
# ten times as fast as it looks for the start of a line.
_KNOWN_NAME = regex(
    r"\n[\d:|\t →]*(?:(?:async )?(?:def|class) +(\w+)"
    r"|from +([\w.]+) +import +(\([^)]{0,2000}\)|[^\n#]*)|import +([\w.]+))"
)
_FOUND_DEFINITION = regex(r"\n((?:\./|/)?[\w./-]+\.\w+):[\d: \t]*(?:async )?(?:def|class) +(\w+)")
_NAME = regex(r"[A-Za-z_]\w*")
_RENAMED = regex(r" as +\w+")
_SYMBOL = regex(r"[ +-]?[ \t]*(?:async )?(?:def|class|func|fn|function) +(\w+)")


def files_changed(patch: str) -> tuple[str, ...]:
    """Repository-relative paths of the files that the unified diff *patch* changes.

    In the order of the patch, with created files last: agents leave scripts of their own behind.
    A deleted file counts, a renamed one by its new name.
    """
    changed, created = _files(patch)
    return tuple(sorted(changed, key=created.__contains__))


def files_created(patch: str) -> frozenset[str]:
    """Return the files that the unified diff *patch* makes."""
    return frozenset(_files(patch)[1])


def _files(patch: str) -> tuple[list[str], set[str]]:
    """The files that *patch* changes, and those of them that it makes."""
    paths: dict[str, None] = {}
    created: set[str] = set()
    old = ""
    in_hunk = 0, 0
    for line in patch.splitlines():
        if any(in_hunk):
            in_hunk = _remaining(line, in_hunk)
        elif match := _GIT_HEADER.match(line):
            paths[match[3] or match[4]] = None
        elif line.startswith("--- "):
            old = _path(line)
        elif line.startswith("+++ "):
            new = _path(line)
            paths[new if new != _NO_FILE else old] = None
            if old == _NO_FILE:
                created.add(new)
        elif line.startswith("@@ "):
            in_hunk = _hunk_lines(line)
    return [path for path in paths if path and path != _NO_FILE], created


def content_hashes(patch: str) -> Iterator[tuple[str, str]]:
    """Path and git's hash of the content of files that *patch* changes, before and after it.

    Hashes may be abbreviated. There is none where the file did not exist, or in other diffs.
    """
    file = ""
    heads = (line for line in patch.splitlines() if line.startswith(("diff --git ", "index ")))
    for line in heads:
        if match := _GIT_HEADER.match(line):
            file = match[3] or match[4]
        elif match := _CONTENT_HASHES.match(line):
            yield from ((file, digest) for digest in match.groups() if digest.strip("0"))


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


def listed_files(command: str, output: str) -> Iterator[str]:
    """The paths that the *output* of a listing or a search shows, and the names that `ls` shows."""
    # The pattern is tried at each character, so first leave out what has no path.
    yield from dict.fromkeys(
        _PATH.findall(" ".join(word for word in output.split() if "/" in word))
    )
    folders = [word for word in command.split()[1:] if not word.startswith("-")]
    if command.partition(" ")[0] == "ls" and len(folders) <= 1:
        for line in output.splitlines():
            name = line.rpartition(" ")[2]
            if _FILE_NAME.fullmatch(name):
                yield posixpath.join(*folders, name)


def definitions_found(output: str) -> Iterator[tuple[str, str]]:
    """File and name of the functions and classes in the *output* of a search like `grep -n`."""
    return ((match[1], match[2]) for match in _FOUND_DEFINITION.finditer(f"\n{output}"))


def names_shown(source: str, file: str) -> Iterator[tuple[str, Sequence[str]]]:
    """Functions, classes and other names in *source*, which a view of *file* shows, by place.

    Those that it defines are in *file*, those that it imports in a module: a path without ending.
    Modules of the standard library are left out.
    """
    for defined, origin, imported, module in _KNOWN_NAME.findall(f"\n{source}"):
        if defined:
            yield file, (defined,)
        elif (origin or module).partition(".")[0] not in stdlib_module_names:
            names = _NAME.findall(_RENAMED.sub("", imported))
            yield _module_path(origin or module, file), names


def _module_path(module: str, file: str) -> str:
    """The path of the dotted *module* that *file* imports, without ending."""
    name = module.lstrip(".")
    folders = file.split("/")[: len(name) - len(module)] if name != module else []
    return "/".join((*folders, *filter(None, name.split("."))))


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


_OLD_TEXT = ("old_str", "old_string", "old_text")
_VIEWS_BACK = 12
_DISTINCTIVE_CHARS = 6
_FILE_COMMANDS = frozenset({"mkdir", "touch", "cp", "mv", "ln", "install"})

Span: "TypeAlias" = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Change:
    """Lines that an edit of *file* takes away and adds, in order, without those it keeps.

    Blank lines do not count.
    """

    file: str
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


def is_edit(step: StepTrace) -> bool:
    """True for a step that writes text into a file."""
    if step.reading.kind is ActionKind.CREATE:
        return step.reading.verb not in _FILE_COMMANDS
    return step.reading.kind is ActionKind.EDIT


def is_tool_edit(step: StepTrace) -> bool:
    """True for an edit by an editing tool, whose text is known, rather than by a shell line."""
    named = any(name in step.step.action.arguments for name in NEW_TEXT)
    return is_edit(step) and (named or step.reading.span is not None)


def edited_file(step: StepTrace) -> str:
    """The file that an edit writes into; empty where the log does not show it."""
    paths = step.reading.changed or step.reading.targets
    return paths[0] if paths else ""


def new_lines(step: StepTrace) -> tuple[str, ...]:
    """The text that an edit puts in, without line ends; empty for `sed` and its like."""
    return new_text(step.step.action, step.reading)


def change_of(steps: Sequence[StepTrace], at: int) -> Change:
    """Return what the edit at *steps[at]* changes, as far as the run shows it."""
    step = steps[at]
    new, old = new_lines(step), _old_lines(steps, at)
    common = {line.strip() for line in old} & {line.strip() for line in new} | {""}
    return Change(
        edited_file(step),
        tuple(line for line in old if line.strip() not in common),
        tuple(line for line in new if line.strip() not in common),
    )


def net_changes(changes: Sequence[Change]) -> list[Change]:
    """Sum up changes by file: what is put in and taken out cancels."""
    files: dict[str, tuple[Counter[str], Counter[str]]] = {}
    for change in changes:
        removed, added = files.setdefault(change.file, (Counter(), Counter()))
        _move(change.removed, added, removed)
        _move(change.added, removed, added)
    net = (
        Change(file, tuple(removed.elements()), tuple(added.elements()))
        for file, (removed, added) in files.items()
    )
    return [change for change in net if change.removed or change.added]


def _move(lines: Sequence[str], source: Counter[str], target: Counter[str]) -> None:
    """Take *lines* out of *source*, and put those that it has not into *target*."""
    for line in lines:
        place = source if source[line] > 0 else target
        place[line] += 1 if place is target else -1


def similarity(text: Sequence[str], other: Sequence[str]) -> float:
    """The share of lines of the shorter of two texts that the longer has, from 0 to 1."""
    first, second = ({line.strip() for line in lines} - {""} for lines in (text, other))
    # Brackets, quotes and `else:` are found in any text.
    long, other_long = (
        {line for line in lines if len(line) >= _DISTINCTIVE_CHARS} for lines in (first, second)
    )
    if long and other_long:
        first, second = long, other_long
    smaller = min(len(first), len(second))
    return len(first & second) / smaller if smaller else 0.0


def _old_lines(steps: Sequence[StepTrace], at: int) -> tuple[str, ...]:
    step = steps[at]
    for name in _OLD_TEXT:
        if isinstance(value := step.step.action.arguments.get(name), str):
            return tuple(value.splitlines())
    if step.reading.span is None:
        return ()
    file = edited_file(step)
    for before in reversed(steps[max(0, at - _VIEWS_BACK) : at]):
        shown = before.step.observation or ""
        # A refused edit shows the file as it would have been.
        if before.error is None and file and _shows(shown, file):
            first, last = step.reading.span
            lines = numbered_lines(shown, shown.find(f"\n{first}:"), first, last)
            return lines if len(lines) == last - first + 1 else ()
    return ()


def _shows(observation: str, file: str) -> bool:
    start = observation.find("[File: ")
    if start < 0:
        return False
    header = observation[start : observation.find("\n", start)]
    return f"/{file} (" in header or f" {file} (" in header


def numbered_lines(view: str, at: int, first: int, last: int) -> tuple[str, ...]:
    """Lines *first* to *last* of a numbered *view* after the line end *at* (-1: none of them).

    Up to the first one that it does not show.
    """
    lines = []
    rest = view[at + 1 :] if at >= 0 else ""
    for number, line in enumerate(rest.split("\n", max(0, last - first + 1)), start=first):
        if number > last or not line.startswith(f"{number}:"):
            break
        lines.append(line.removeprefix(f"{number}:"))
    return tuple(lines)
