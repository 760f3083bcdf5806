"""The steps of a run, read one by one: phase, changes of files, and attempts at one goal."""

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from sys import stdlib_module_names
from typing import TYPE_CHECKING

from msgspec import Struct

from contextgraph.model import ActionKind, ErrorSignature, Family, Phase, RawTrajectory, Step
from contextgraph.model.values import replace
from contextgraph.text import regex
from contextgraph.trace.actions import (
    CHANGING,
    NEW_TEXT,
    RESTORING,
    WINDOW_VERBS,
    ActionReader,
    ActionReading,
    ShellLine,
    files_written_by,
    imported_names,
    new_text,
    repository_path,
    shell_line,
)
from contextgraph.trace.shell import commands_in, line_parts, what_ran
from contextgraph.trace.signature import error_at

if TYPE_CHECKING:
    from typing import TypeAlias


_SCRIPT = regex(
    r"(?:^|[/_-])(?:reproduc\w*|repro\d*|test|tests|check|debug|demo|example|verify|try|simulat\w*"
    r"|replicat\w*|script|sandbox|trigger|minimal|mwe|issue|bug|tmp|temp)(?:[/_.-]|\d|$)"
)
_ORIENTATION = regex(
    r"(?:^|/)(?:readme|contributing|changelog|changes|history|license|setup\.(?:py|cfg)"
    r"|pyproject\.toml|tox\.ini|package\.json|requirements)[^/]*$",
    re.IGNORECASE,
)
_VERSION_QUERY = regex(r"--version\b|\bpip3? (?:list|show|freeze)\b|\b__version__\b| -V$")
_TEST_DIRECTORY = regex(r"(?:^|/)tests?/")
# How thoughts describe a new file of the project, and one that only tries something out.
_IMPLEMENTS = regex(r"implement|functionality|\b(?:add|define|write) the\b", re.IGNORECASE)
_TRIES_OUT = regex(
    r"script|reproduc|replicat|simulat|\btest|verif|check|exampl|sample|snippet|mock|dummy|paste",
    re.IGNORECASE,
)
_SETS_UP = regex(r"\b(?:clone|checkout|fetch|switch|submodule)\b")
_CLEANS_UP = regex(r"no longer|clean\w* up|submit", re.IGNORECASE)
# What changes the state in which a command runs again: services, builds, checkouts, and scripts of
# the project; not tests, looking around, nor a script that the agent wrote to find out something.
_STATEFUL = regex(
    r"""(?:sudo\s+)?(?:
        (?:docker|podman)(?:[\s-]compose)?\s(?:[^\n]*\s)?(?:up|start|restart|run|build)\b
        | (?:make|ninja|cmake|meson)\b(?![^\n]*(?:test|check|lint|help|-n\b))
        | (?:npm|pnpm|yarn)\s(?:run\s)?(?:build|generate|compile|codegen|prepare|setup)\b
        | (?:cargo|go)\s(?:build|generate|mod\s+(?:tidy|download|vendor))\b
        | (?:mvn|\./mvnw|gradle|\./gradlew)\s[^\n]*\b(?:package|compile|install|assemble|build)\b
        | service\s+\S+\s+(?:re)?start\b | systemctl\s+(?:re)?start\b
        | git\s+(?:switch|pull|merge|cherry-pick|submodule\s+update|lfs\s+pull)\b
        | python[\d.]*\s+(?:\S*/)?manage\.py\s+(?:migrate|makemigrations|loaddata|collectstatic)\b
        | python[\d.]*\s+(?:\S*/)?setup\.py\s+build
        | alembic\s+upgrade\b | (?:gunzip|unzip|tar\s+-?\w*x|p?kill(?:all)?)\b
        | (?:(?:ba|z)?sh\s+|\./)(?!\S*test)[\w./-]+\.sh\b
        | python[\d.]*\s+(?!/)(?!\S*(?:test|repro|debug|check))(?:[\w.-]+/)+[\w-]+\.py\b
    )""",
    re.VERBOSE,
)
_SEVERAL = regex(r"[;&\n]")
_SHORTEST_LINE = 8
_QUIET = frozenset({"", "cd", "echo", "export", "pushd", "true", "sleep", "history", "type"})


class PhaseTracker:
    """The phase of each step of a growing run, at constant cost per step."""

    def __init__(self) -> None:
        self._source_edited = False
        self._scripts: set[str] = set()
        self._lines: dict[str, bool] = {}
        self._last = Phase.UNDERSTANDING

    def push(
        self,
        step: Step,
        reading: ActionReading,
        error: ErrorSignature | None,
        new: Sequence[str],
    ) -> Phase:
        """Return the phase of the next step, which does what *reading* says and met *error*.

        *new* are the lines that it puts in.
        """
        lines = [line for line in map(str.strip, new) if len(line) >= _SHORTEST_LINE]
        edits_source = self._edits_source(step, reading, lines)
        self._last = self._phase(step, reading, edits_source=edits_source)
        if error is None:
            # A refused edit leaves the project as it is, and may have been meant for elsewhere.
            self._source_edited = self._source_edited or edits_source
            self._lines.update(dict.fromkeys(lines, not edits_source))
        return self._last

    def _phase(self, step: Step, reading: ActionReading, *, edits_source: bool) -> Phase:
        kind = reading.kind
        if kind is ActionKind.SUBMIT:
            return Phase.SUBMITTING
        if kind is ActionKind.THINK or (kind is ActionKind.OTHER and reading.verb in _QUIET):
            return self._last
        # A line that also edits the project, and then runs it, is about the edit.
        if reading.scripted or (edits_source and not kind.writes):
            return Phase.FIXING
        if kind.runs or kind is ActionKind.INSTALL or kind is ActionKind.OTHER:
            return Phase.UNDERSTANDING if is_version_query(reading) else self._trying()
        if kind.writes:
            return Phase.FIXING if edits_source else self._trying()
        if kind is ActionKind.DELETE or kind is ActionKind.VCS:
            return self._cleaning_up(step, reading)
        return self._looking(reading)

    def _trying(self) -> Phase:
        return Phase.TESTING if self._source_edited else Phase.REPRODUCING

    def _edits_source(self, step: Step, reading: ActionReading, lines: list[str]) -> bool:
        """Return True if the step changes files of the project, no scripts of the agent."""
        if reading.scripted:
            return True
        if reading.kind is ActionKind.DELETE or not reading.changed:
            return False
        scripts = [path for path in reading.changed if self._is_script(path, step, reading)]
        self._scripts.update(scripts)
        in_source = len(scripts) < len(reading.changed)
        first_line = step.action.text.partition("\n")[0]
        text = f"{step.thought} {first_line}"
        if _names(text, reading.changed) and not (in_source and _names(text, self._scripts)):
            return in_source
        return self._is_text_of_source(lines, default=in_source)

    def _is_script(self, path: str, step: Step, reading: ActionReading) -> bool:
        created = reading.kind is ActionKind.CREATE
        if path in self._scripts:
            return True
        if _SCRIPT.search(path.lower()) and (created or not _TEST_DIRECTORY.search(path)):
            return True
        if not created or "/" in path or reading.verb != "create":
            return False
        return _TRIES_OUT.search(step.thought) is not None or not _IMPLEMENTS.search(step.thought)

    def _is_text_of_source(self, lines: list[str], *, default: bool) -> bool:
        """Return True if text seen before is of the project, whichever file is open now."""
        known = [self._lines[line] for line in lines if line in self._lines]
        if 2 * len(known) < len(lines) or len(set(known)) != 1:
            return default
        self._lines.update(dict.fromkeys(lines, known[0]))
        return not known[0]

    def _cleaning_up(self, step: Step, reading: ActionReading) -> Phase:
        if self._source_edited or _CLEANS_UP.search(step.thought):
            return Phase.SUBMITTING
        if reading.kind is ActionKind.VCS and not _SETS_UP.search(reading.command[:300]):
            return Phase.UNDERSTANDING
        return Phase.REPRODUCING

    def _looking(self, reading: ActionReading) -> Phase:
        if reading.kind is ActionKind.LIST:
            return Phase.UNDERSTANDING
        if any(path in self._scripts for path in reading.targets):
            return self._trying()
        if reading.targets and all(_ORIENTATION.search(path) for path in reading.targets):
            return Phase.UNDERSTANDING
        return Phase.LOCATING


def _names(text: str, paths: Iterable[str]) -> bool:
    return any(posixpath.basename(path) in text for path in paths)


def is_version_query(reading: ActionReading) -> bool:
    """True for a command that only asks which version of something is there."""
    return _VERSION_QUERY.search(reading.command[:300]) is not None


class StepTrace(Struct, frozen=True):
    """Trace of one step: its action, phase and error.

    *cwd* is the folder that the action ran in, *checkout* that of the project, where the run cloned
    it by then.
    """

    step: Step
    reading: ActionReading
    phase: Phase
    error: ErrorSignature | None = None
    cwd: str | None = None
    checkout: str = ""

    @property
    def index(self) -> int:
        """The place of the step in its run."""
        return self.step.index

    @property
    def succeeded(self) -> bool:
        """True where an answer came and shows no error."""
        return self.error is None and self.step.observation is not None


class StepReader:
    """Reads the steps of a growing run, each at constant cost, knowing only what came before."""

    def __init__(self) -> None:
        self._phases = PhaseTracker()
        self._scripts: dict[str, tuple[str, ...]] = {}
        self._viewed: set[str] = set()
        self._actions = ActionReader()

    def push(self, step: Step) -> StepTrace:
        """Trace the next step."""
        reading = self._actions.push(step)
        new = new_text(step.action, reading)
        reading = self._with_scripts(reading, new)
        error = error_at(step, reading)
        phase = self._phases.push(step, reading, error, new)
        return StepTrace(step, reading, phase, error, self._actions.cwd, self._actions.checkout)

    def _with_scripts(self, reading: ActionReading, new: Sequence[str]) -> ActionReading:
        """*reading* with the files that scripts and patches which the run wrote change.

        *new* are the lines that it puts in.
        """
        if reading.kind is ActionKind.VIEW:
            self._viewed.update(reading.targets)
        for script in reading.changed:
            if script.endswith(".py"):
                self._scripts[script] = tuple(self._edited_by("\n".join(new)))
            elif new and new[0].startswith(("--- ", "diff ")):
                self._scripts[script] = files_changed("\n".join(new))
        if not (reading.kind.runs or reading.verb == "patch" or "git apply" in reading.command):
            return reading
        files = dict.fromkeys(
            file for path in reading.targets for file in self._scripts.get(path, ())
        )
        return replace(reading, scripted=tuple(files)) if files else reading

    def _edited_by(self, program: str) -> Iterator[str]:
        """The files of a repository that *program* reads and writes.

        One at its root counts where the run looked at it before: others may be data.
        """
        for file in files_written_by(program) if ".read" in program else ():
            path = repository_path(file, self._actions.cwd)
            is_known = "/" in path or path in self._viewed
            if is_known and not path.startswith("/"):
                yield repository_path(file, self._actions.cwd, self._actions.checkout)


def read_steps(raw: RawTrajectory) -> Iterator[StepTrace]:
    """Return the steps of *raw* in order, each read knowing only what came before it."""
    return map(StepReader().push, raw.steps)


_GIT_HEADER = regex(r"^diff --git (?:\"a/([^\"]+)\"|a/(.+?)) (?:\"b/([^\"]+)\"|b/(.+))$")
_HUNK = regex(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_CONTENT_HASHES = regex(r"index ([0-9a-f]{7,40})\.\.([0-9a-f]{7,40})")
_NO_FILE = "/dev/null"
_NO_LINES = 0, 0
_PATH = regex(r"(?<![\w/.:@-])(?:\./|/)?(?:[\w-][\w.-]*/)+[\w-]+\.\w+")
_FILE_NAME = regex(r"[\w.-]+\.\w+")
# Viewers put the number of a line before it, searches its file as well. `re` skips to a line end
# ten times as fast as it looks for the start of a line.
_KNOWN_NAME = regex(
    r"\n[\d:|\t →]*+(?:(?:async )?(?:def|class) +(\w+)"
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
    changed, created, _ = _files(patch)
    return tuple(sorted(changed, key=created.__contains__))


def files_created(patch: str) -> frozenset[str]:
    """Return the files that the unified diff *patch* makes."""
    return _files(patch)[1]


def files_deleted(patch: str) -> frozenset[str]:
    """Return the files that the unified diff *patch* removes."""
    return _files(patch)[2]


# Of the patch of one run both are asked for, one after the other.
@lru_cache(4)
def _files(patch: str) -> tuple[tuple[str, ...], frozenset[str], frozenset[str]]:
    """The files that *patch* changes, and those of them that it makes and removes."""
    paths: dict[str, None] = {}
    created: set[str] = set()
    deleted: set[str] = set()
    named = old = ""
    in_hunk = _NO_LINES
    for line in patch.splitlines():
        if in_hunk != _NO_LINES:
            in_hunk = _remaining(line, in_hunk)
        elif match := _GIT_HEADER.match(line):
            named = match[3] or match[4]
            paths[named] = None
        elif line.startswith("deleted file mode "):
            deleted.add(named)
        elif line.startswith("--- "):
            old = _path(line)
        elif line.startswith("+++ "):
            new = _path(line)
            paths[new if new != _NO_FILE else old] = None
            if old == _NO_FILE:
                created.add(new)
            elif new == _NO_FILE:
                deleted.add(old)
        elif line.startswith("@@ "):
            in_hunk = _hunk_lines(line)
    changed = tuple(path for path in paths if path and path != _NO_FILE)
    return changed, frozenset(created), frozenset(deleted)


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
    """Yield each line that the unified diff *patch*, or several in a row, adds or removes.

    File, the name of the function or class around it (empty for none), and the line with its sign.
    """
    file = symbol = ""
    in_hunk = _NO_LINES
    for line in patch.splitlines():
        if in_hunk != _NO_LINES:
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
    """Yield paths in the *output* of a listing or a search, and names that `ls` shows."""
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
    """Return the numbers of old and new lines of a hunk: inside it, `---` is a removed line."""
    match = _HUNK.match(header)
    if match is None:
        return _NO_LINES
    return int(match[1] or 1), int(match[2] or 1)


def _remaining(line: str, left: tuple[int, int]) -> tuple[int, int]:
    old, new = left
    sign = line[:1]
    if sign == "\\":
        return left
    if old and sign != "+":
        old -= 1
    if new and sign != "-":
        new -= 1
    return old, new


_OLD_TEXT = ("old_str", "old_string", "old_text")
_VIEWS_BACK = 12
_DISTINCTIVE_CHARS = 6
_FILE_COMMANDS = frozenset({"mkdir", "touch", "cp", "mv", "ln", "install"})

Span: "TypeAlias" = tuple[int, int]


class Change(Struct, frozen=True):
    """Lines that an edit of *file* takes away and adds, in order, without those it keeps.

    Blank lines do not count.
    """

    file: str
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


def overlap(span: Span | None, other: Span | None) -> bool:
    """True for ranges of lines, both known, that have a line in common."""
    return bool(span and other and span[0] <= other[1] and other[0] <= span[1])


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
    """Return the file that an edit writes into; empty where the log does not show it."""
    paths = step.reading.changed or step.reading.targets
    return paths[0] if paths else ""


def new_lines(step: StepTrace) -> tuple[str, ...]:
    """Return the text that an edit puts in, without line ends; empty for `sed` and its like."""
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
    """Return the share of lines of the shorter of two texts that the longer has, from 0 to 1."""
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


_WORD = regex(r"[A-Za-z_][\w-]*|\d+")
_NAME_WORD = regex(r"[a-z]+")
_OPTION = regex(r"(?<=\s--)[A-Za-z][\w-]*")
_TEST_NAME = regex(r"\btest_\w+")
_TESTS_RAN = regex(r"^Ran [1-9]\d* tests? in |\b[1-9]\d* passed\b", re.MULTILINE)
_NO_TEST_RAN = regex(
    r"^(?:Ran 0 tests|(?:=+ )?(?:no tests ran|\d+ deselected(?:, \d+ warnings?)?)) in ",
    re.MULTILINE,
)
_STEM = regex(r"[A-Za-z_]\w*")
# What SWE-agent answers instead of nothing.
SILENCE = "Your command ran successfully and did not produce any output."
_MISTYPED = frozenset({Family.SHELL, Family.TOOL_USAGE, Family.NOT_FOUND})
# What a search answers that has too many hits to show any.
_TOO_MANY = "Please narrow your search"
_HELP = regex(r"\s(?:-h|--help)\b")

# A corrected attempt follows soon after; the same command much later serves another end.
_NEAR = 6
_LINE_READ = 400
_PROGRAM_READ = 4000
_SHARED_WORDS = 0.4
_SAME_WORDS = 0.8
_SHARED_PROGRAM = 0.6
_SHARED_NAME = 0.5
_SAME_PLACE = 3


def same_goal(failed: StepTrace, later: StepTrace) -> bool:
    """Return True if *later* tries what *failed* tried, perhaps in another way."""
    # The goal first: few steps have it, and the rest looks through their texts.
    if not _has_goal_of(failed, later) or (_asks_for_help(later) and not _asks_for_help(failed)):
        return False
    return _is_unknown(failed) or not answers_nothing(later)


def _has_goal_of(failed: StepTrace, later: StepTrace) -> bool:
    kind = failed.reading.kind
    if (kind.writes or failed.reading.scripted) and _changes_the_same(failed, later):
        return True
    if kind.writes and not is_edit(failed):
        return _is_similar(failed, later)
    return _GOALS.get(kind, _is_similar)(failed, later)


def _asks_for_help(step: StepTrace) -> bool:
    line = _line(step)
    return "-h" in line and _HELP.search(line) is not None


def _changes_the_same(failed: StepTrace, later: StepTrace) -> bool:
    """True for an edit, by any means, of the file that a script, `sed` or patch was to edit."""
    if later.index - failed.index > _NEAR or is_tool_edit(failed):
        return False
    made = {*later.reading.scripted, *(later.reading.changed if is_edit(later) else ())}
    wanted = {*failed.reading.scripted, *failed.reading.changed}
    is_unknown = not wanted or failed.reading.verb in ("patch", "git")
    return bool(made if is_unknown else made & wanted)


def answers_nothing(step: StepTrace) -> bool:
    """True for a search that shows no hit, and for any other look at nothing."""
    shown = (step.step.observation or "").strip()
    if shown.startswith("No matches found") or _TOO_MANY in shown.partition("\n")[0]:
        return True
    return step.reading.kind.reads and shown in ("", SILENCE)


def same_run(reading: ActionReading, other: ActionReading) -> bool:
    """True for two readings of one command or of one script or set of tests."""
    if not reading.kind.runs or not other.kind.runs:
        return False
    if reading.command == other.command:
        return True
    return (
        reading.verb == other.verb
        and bool(reading.targets)
        and _targets(reading) == _targets(other)
    )


def _same_run(failed: StepTrace, later: StepTrace) -> bool:
    if same_run(failed.reading, later.reading):
        return True
    if ActionKind.TEST is failed.reading.kind is later.reading.kind:
        soon = later.index - failed.index <= _NEAR
        if soon and ran_no_test(failed) and failed.reading.verb == later.reading.verb:
            return True
        return _covers(later.reading, failed.reading)
    if failed.reading.kind is ActionKind.TEST:
        return False
    if failed.error is not None and failed.error.family in _MISTYPED:
        return _is_similar(failed, later)
    if later.index - failed.index <= _NEAR and is_version(failed.reading, later.reading):
        return True
    # A program typed on the line has no name by which to know it again.
    if not is_typed_again(failed, later):
        return False
    return _share(failed, later) >= _SHARED_PROGRAM and _is_similar(failed, later)


def is_typed_again(failed: StepTrace, later: StepTrace) -> bool:
    """True for programs on the line, unless both import something, but nothing in common."""
    if failed.reading.targets or later.reading.targets:
        return False
    imported, other = (
        imported_names(step.step.action.text[:_PROGRAM_READ]) for step in (failed, later)
    )
    return not (imported and other and imported.isdisjoint(other))


def runs_by_hand(failed: StepTrace, later: StepTrace) -> bool:
    """True for a program that names tests which their runner could not run, or soon ran some."""
    if failed.error and failed.error.family is Family.TEST_FAILURE and not ran_no_test(failed):
        return False
    names = _TEST_NAME.findall(" ".join(failed.reading.targets))
    if later.index - failed.index <= _NEAR and _reports_tests(later.step.observation or ""):
        return True
    return any(name in later.step.action.text for name in names)


def _reports_tests(shown: str) -> bool:
    # The pattern is tried at all characters, and few texts have one of its words.
    has_words = " passed" in shown or "Ran " in shown
    return has_words and _TESTS_RAN.search(shown) is not None


def ran_no_test(failed: StepTrace) -> bool:
    """Return True if the tests were not found or their runner could not be started."""
    error = failed.error
    return error is not None and (
        error.family in _MISTYPED or error.error_type.startswith("pytest: ")
    )


def runs_program(step: StepTrace) -> bool:
    """Return True if a program ran, the project's own among them: it was found, and typed right."""
    kind = step.reading.kind
    runs = kind.runs or (kind is ActionKind.OTHER and step.reading.verb not in _QUIET)
    return runs and (step.error is None or step.error.family not in _MISTYPED)


def runs_tests(step: StepTrace) -> bool:
    """True for tests that were run, by their runner or a program that reports them."""
    shown, kind = step.step.observation, step.reading.kind
    if shown is None or kind not in (ActionKind.TEST, ActionKind.RUN):
        return False
    if _reports_tests(shown):
        return True
    return kind is ActionKind.TEST and not (ran_no_test(step) or _NO_TEST_RAN.search(shown))


def is_version(reading: ActionReading, other: ActionReading) -> bool:
    """True for two scripts of similar names: agents write a script again, as another file."""
    if not reading.kind is other.kind is ActionKind.RUN or _targets(reading) & _targets(other):
        return False
    if bool(reading.scripted) is not bool(other.scripted):
        return False
    return any(
        _part(_name_words(name), _name_words(again)) > _SHARED_NAME
        for name in _targets(reading)
        for again in _targets(other)
    )


def _name_words(name: str) -> set[str]:
    return set(_NAME_WORD.findall(posixpath.splitext(name)[0].lower()))


def _covers(wide: ActionReading, narrow: ActionReading) -> bool:
    """True where the tests of *narrow* are among those of *wide*."""
    if not narrow.targets:
        return not wide.targets and wide.verb == narrow.verb
    named = (*wide.targets, *wide.command.split())
    return all(any(_is_in(target, other) for other in named) for target in narrow.targets)


def _is_in(target: str, other: str) -> bool:
    # One runner wants files, another modules.
    return f".{_dotted(other)}." in f".{_dotted(target)}."


def _dotted(tests: str) -> str:
    return tests.replace(".py", "").replace("::", ".").replace("/", ".")


def _same_look(failed: StepTrace, later: StepTrace) -> bool:
    wanted, seen = failed.reading, later.reading
    if not seen.kind.reads:
        return False
    if _named_file(wanted) and seen.kind is not ActionKind.VIEW:
        return False
    soon = later.index - failed.index <= _NEAR
    if (
        ActionKind.SEARCH is wanted.kind is seen.kind
        and soon
        and _search_terms(wanted) & _search_terms(seen)
    ):
        return True
    if wanted.verb in WINDOW_VERBS:
        return seen.verb == wanted.verb or (soon and bool(_numbers(wanted) & _numbers(seen)))
    if _targets(wanted) & _targets(seen) or (soon and _terms(wanted) & _targets(seen)):
        return True
    if failed.error is None or failed.error.family not in _MISTYPED:
        return False
    return soon and wanted.verb == seen.verb and _share_arguments(failed, later)


def _same_install(failed: StepTrace, later: StepTrace) -> bool:
    soon = later.index - failed.index <= 2 * _NEAR
    return (
        soon and later.reading.kind is ActionKind.INSTALL and is_installing(later.reading.command)
    )


def is_installing(command: str) -> bool:
    """True for a package manager's command that installs, rather than lists."""
    some = commands_in(command[:200])
    return any(one.installs or "setup.py" in one.text for one in some)


def _is_similar(failed: StepTrace, later: StepTrace) -> bool:
    """True for a command that shares most of its words with the one that failed."""
    near = 2 * _NEAR if _share(failed, later) >= _SAME_WORDS else _NEAR
    if later.index - failed.index > near:
        return False
    if _stem(failed.reading.verb) == _stem(later.reading.verb) != "":
        named, used = _targets(failed.reading), _targets(later.reading)
        if named and used:
            return bool(named & used)
        arguments, other = _arguments(failed), _arguments(later)
        return arguments == other or _part(arguments, other) >= _SHARED_WORDS
    # Another program may stand in for one that the shell does not know, and for no other.
    similar = _share(failed, later) > _SHARED_WORDS
    return _is_unknown(failed) and similar and not later.reading.kind.changes_files


def same_edit(failed: StepTrace, later: StepTrace) -> bool:
    """True for much the same text, or for another one at the same place."""
    if not is_edit(later):
        return False
    new, old = new_lines(later), new_lines(failed)
    if _gives_up(old, new) and not _within(later.reading.span, failed.reading.span):
        return False
    if similarity(new, old) >= 0.5:
        return True
    if edited_file(failed) != edited_file(later):
        return False
    return _near(failed.reading.span, later.reading.span)


def _gives_up(old: Sequence[str], new: Sequence[str]) -> bool:
    """True where most of a text is left out and nothing put in its place."""
    wanted, sent = (({line.strip() for line in lines} - {""}) for lines in (old, new))
    return sent <= wanted and 2 * len(sent) < len(wanted)


def _within(inner: Span | None, outer: Span | None) -> bool:
    """True where an edit takes fewer of the same lines: what it leaves out stays as it is."""
    if inner is None or outer is None:
        return False
    return outer[0] <= inner[0] and inner[1] <= outer[1] and inner != outer


def _near(span: Span | None, other: Span | None) -> bool:
    """True for ranges that overlap or start close to one another."""
    if span is None or other is None:
        return span is other
    return overlap(span, other) or abs(span[0] - other[0]) <= _SAME_PLACE


_GOALS: dict[ActionKind, Callable[[StepTrace, StepTrace], bool]] = {
    ActionKind.EDIT: same_edit,
    ActionKind.CREATE: same_edit,
    ActionKind.VIEW: _same_look,
    ActionKind.SEARCH: _same_look,
    ActionKind.LIST: _same_look,
    ActionKind.RUN: _same_run,
    ActionKind.TEST: _same_run,
    ActionKind.INSTALL: _same_install,
}


def _is_unknown(step: StepTrace) -> bool:
    return step.error is not None and step.error.error_type.endswith("command not found")


def _share(failed: StepTrace, later: StepTrace) -> float:
    """Return the share of words of the shorter line that the longer one has, 0 to 1."""
    return _part(_words(failed), _words(later))


def _part(words: set[str], other: set[str]) -> float:
    smaller = min(len(words), len(other))
    return len(words & other) / smaller if smaller else 0.0


def _share_arguments(failed: StepTrace, later: StepTrace) -> bool:
    """True where a corrected look asks for some of the same, or for all there is."""
    if _named_file(failed.reading):
        return False
    other = _arguments(later)
    options = set(_OPTION.findall(_line(later)))
    return not other or not (_arguments(failed) - options).isdisjoint(other)


def _arguments(step: StepTrace) -> set[str]:
    """The words of a line but for its verb and one-letter options."""
    words = _words(step) - {step.reading.verb}
    return {word for word in words if len(word) > 1}


def _targets(reading: ActionReading) -> set[str]:
    return {posixpath.basename(target) for target in reading.targets} - {""}


def _named_file(reading: ActionReading) -> bool:
    """True where a file was requested rather than a directory."""
    return reading.kind is ActionKind.VIEW and any("." in name for name in _targets(reading))


def _terms(reading: ActionReading) -> set[str]:
    return {word.strip("\"'") for word in reading.command.split()[1:]}


def _search_terms(reading: ActionReading) -> set[str]:
    """Return what a search asks for, without options and places."""
    return {term for term in _terms(reading) - {*reading.targets} if not term.startswith("-")}


def _numbers(reading: ActionReading) -> set[str]:
    return {word for word in reading.command.split() if word.isdecimal()}


def _line(step: StepTrace) -> str:
    return step.step.action.text[:_LINE_READ]


def _words(step: StepTrace) -> set[str]:
    return set(_WORD.findall(_line(step)))


def _stem(verb: str) -> str:
    match = _STEM.match(verb)
    return match.group() if match else ""


def line_of(step: StepTrace) -> ShellLine:
    """Return what the shell line of *step* changes and runs."""
    text = step.step.action.text.strip()
    if step.reading.verb != "edit":
        text = what_ran(text, failed=step.error is not None)
    # The text of a window edit is not a shell line, even where the edit is malformed.
    if _SEVERAL.search(text) and step.reading.verb != "edit":
        return shell_line(text)
    is_change = step.reading.kind in CHANGING or step.reading.changed or RESTORING.match(text)
    return ShellLine((text,), "") if is_change else ShellLine((), text)


def stateful_part(step: StepTrace) -> str:
    """Return the last command of *step* that changes what later ones meet, or ""."""
    line = what_ran(step.step.action.text.strip(), failed=step.error is not None)
    parts = [part for _, part in line_parts(line)]
    return next((part for part in reversed(parts) if _STATEFUL.match(part)), "")


def run_of(step: StepTrace) -> str:
    """Return what the line of *step* runs, without what it changes first."""
    return line_of(step).runs or step.step.action.text
