"""Facts about a project that a run shows: failing tests, changed files, its machine."""

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from itertools import chain
from sys import intern

from msgspec import Struct, field

from contextgraph.model import (
    TESTS,
    ActionKind,
    Cause,
    CommandUse,
    Environment,
    ErrorSignature,
    Loss,
    PatchSummary,
    RawTrajectory,
    RemedyKind,
    RemedyPattern,
    RunFacts,
)
from contextgraph.model.values import replace
from contextgraph.text import regex
from contextgraph.text.strings import identifiers
from contextgraph.trace.actions import RUNNABLE, ActionReader, repository_path, uses_of
from contextgraph.trace.advice import MachineLesson, Term
from contextgraph.trace.programs import FILE_TOO_LONG
from contextgraph.trace.shell import commands_in, is_path
from contextgraph.trace.steps import (
    StepTrace,
    content_hashes,
    definitions_found,
    files_created,
    lines_changed,
    listed_files,
    names_shown,
)

_UNUSABLE = frozenset({"ModuleNotFoundError", "python -m: No module named"})
_MODULE = regex(r"No module named '?([\w.]+)")
_PACKAGE = regex(r"(?:site|dist)-packages/(\w+)")
_LONGEST_MESSAGE, _LONGEST_LISTING, _MOST_NAMES = 500, 10_000, 24


def facts_of(
    raw: RawTrajectory, steps: Iterable[StepTrace], losses: Iterable[Loss] = ()
) -> RunFacts:
    """Return the facts that *raw* shows, from the trace of its *steps* and its *losses*."""
    seen = _Seen()
    for step in steps:
        seen.add(step)
    patch = raw.patch or ""
    made_by_patch = files_created(patch)
    lines = _lines_in_existing(patch, made_by_patch)
    changed_by_patch = {file for file, _, _ in lines}
    summary, symbols = _changes(lines)
    return RunFacts(
        commands=tuple(seen.uses),
        created=_ordered((seen.created - changed_by_patch) | made_by_patch),
        opened=_ordered(seen.opened),
        listed=_ordered(seen.listed),
        names={place: _ordered(names) for place, names in seen.names.items()},
        failing=tuple(seen.failing),
        patch=summary,
        symbols=symbols,
        edited=_ordered(seen.edited),
        content_hashes=_hashes(chain(content_hashes(patch), raw.content_hashes.items())),
        environment=environment_of(raw),
        losses=tuple(losses),
    )


def _ordered(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names))


def _hashes(contents: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    by_path: dict[str, set[str]] = {}
    for path, content in contents:
        by_path.setdefault(path, set()).add(content)
    return {path: _ordered(hashes) for path, hashes in by_path.items()}


def _lines_in_existing(patch: str, made: Collection[str]) -> list[tuple[str, str, str]]:
    return [line for line in lines_changed(patch) if line[0] not in made]


def _changes(
    lines: Iterable[tuple[str, str, str]],
) -> tuple[PatchSummary, dict[str, tuple[str, ...]]]:
    """Return the changes of the *lines* of a patch, and functions and classes by file."""
    names: dict[str, dict[str, None]] = {"+": {}, "-": {}}
    symbols: dict[str, dict[str, None]] = {}
    for file, symbol, line in lines:
        if line[1:].strip():
            names[line[0]].update(dict.fromkeys(sorted(identifiers([line[1:]]))))
            if symbol:
                symbols.setdefault(file, {})[symbol] = None
    added, removed = names["+"], names["-"]
    summary = PatchSummary(
        tuple(dict.fromkeys(chain.from_iterable(symbols.values()))),
        tuple(name for name in added if name not in removed)[:_MOST_NAMES],
        tuple(name for name in removed if name not in added)[:_MOST_NAMES],
    )
    return summary, {file: tuple(file_symbols) for file, file_symbols in symbols.items()}


class _Seen(Struct):
    """Facts of a growing run about its project; fields: see `RunFacts`."""

    uses: list[CommandUse] = field(default_factory=list)
    runners: dict[ActionKind, set[str]] = field(default_factory=dict)
    created: set[str] = field(default_factory=set)
    edited: set[str] = field(default_factory=set)
    opened: set[str] = field(default_factory=set)
    listed: set[str] = field(default_factory=set)
    names: dict[str, set[str]] = field(default_factory=dict)
    failing: dict[str, None] = field(default_factory=dict)

    def add(self, traced: StepTrace) -> None:
        """Add the next step."""
        step, reading, error = traced.step, traced.reading, traced.error
        cwd, checkout = traced.cwd, traced.checkout
        if reading.changed:
            self.created.update(set(reading.made) - self.opened - self.edited)
            self.edited.update(set(reading.changed).difference(reading.made))
        if reading.kind is ActionKind.VIEW and _is_shown(traced):
            self.opened.update(path for path in reading.targets if is_path(path))
            if len(reading.targets) == 1:
                self._add_names(names_shown(step.observation or "", reading.targets[0]))
        elif reading.kind.searches:
            output = (step.observation or "")[:_LONGEST_LISTING]
            listed = listed_files(step.action.text, output)
            self.listed.update(repository_path(path, cwd, checkout) for path in listed)
            definitions = definitions_found(output)
            self._add_names(
                (repository_path(path, cwd, checkout), (name,)) for path, name in definitions
            )
        elif reading.kind in RUNNABLE and step.observation is not None:
            if error is not None and error.error_type in _UNUSABLE:
                self._mark_useless(error)
            elif error is not None and error.error_type == "ImportError":
                self._mark_broken(error)
            for use in uses_of(step, error, cwd, self.created, checkout):
                self.uses.append(replace(use, prompted=self._prompts(use)))
                if use.kind is ActionKind.TEST and use.ran:
                    from contextgraph.trace.signature import failed_tests

                    again = failed_tests(step.observation)
                    remaining = [test for test in self.failing if not _covers(use, test)]
                    self.failing = dict.fromkeys((*remaining, *again))

    def _mark_useless(self, error: ErrorSignature) -> None:
        """Note that installations of what *error* still misses did not work."""
        missing = {name.partition(".")[0] for name in _MODULE.findall(error.message)}
        for at, use in enumerate(self.uses):
            if use.kind is ActionKind.INSTALL and use.ran and missing.intersection(_named(use)):
                self.uses[at] = replace(use, ran=False, error_type=error.error_type)

    def _mark_broken(self, error: ErrorSignature) -> None:
        """Note that the installation which brought the package of *error* did not work.

        A project comes with its dependencies, perhaps in versions that this machine cannot import.
        """
        if not (package := _PACKAGE.search(error.location or "")):
            return
        for at, use in reversed([*enumerate(self.uses)]):
            named = {*_named(use)} - {"."}
            if use.kind is ActionKind.INSTALL and (not named or package[1] in named):
                self.uses[at] = replace(use, ran=False, error_type=error.error_type)
                return

    def _add_names(self, definitions: Iterable[tuple[str, Iterable[str]]]) -> None:
        for place, names in definitions:
            self.names.setdefault(place, set()).update(map(intern, names))

    def _prompts(self, use: CommandUse) -> bool:
        """Return True if what the run has given so far may have been the reason for *use*."""
        if use.kind is ActionKind.INSTALL:
            return any(not earlier.ran for earlier in self.uses)
        runners = self.runners.setdefault(use.kind, set())
        runners.add(use.runner)
        return len(runners) > 1


def _named(use: CommandUse) -> Iterator[str]:
    """The packages that *use* installs, as modules are spelt."""
    for command in commands_in(use.text):
        yield from (name.replace("-", "_") for name in command.packages)


def _covers(use: CommandUse, test: str) -> bool:
    """Return True if the test command *use* runs *test*: it chooses none, or names its file."""
    chosen = [word for command in commands_in(use.text) for word in command.words]
    return not use.form.endswith(TESTS) or any(word.strip("./") in test for word in chosen)


def _is_shown(step: StepTrace) -> bool:
    """Return True if a file was shown: messages that it was not are short."""
    length = len(step.step.observation or "")
    return length > _LONGEST_MESSAGE or (length > 0 and step.error is None)


_VERSION_ASKED = regex(r"(?:^|&& )([A-Za-z][\w.+-]*) (?:--version|-V|version)(?: 2>&1)?$")
_VERSION = regex(r"(?<![\w.])v?(\d+\.\d+)(?=[.\s,)]|$)")
_OF_PYTHON = regex(r"lib/python(\d\.\d+)/|^platform \w+ -- Python (\d+\.\d+)", re.MULTILINE)
_RUNNERS = ("python", "pip", "pytest")
_PYTHON = regex(r"(?:^|&& |/)(python[\d.]*|pip[\d.]*|pytest) [^&|;]*(?:$|2>&1|\|)")
# As texts: to search for patterns took as long as all else that is read of a machine.
_SYSTEMS = (
    ("darwin", ("\nplatform darwin", "/opt/homebrew/", "/Users/")),
    ("win32", ("\nplatform win32", ":\\Users", ":\\\\Users", ":\\Program", ":\\\\Program")),
    ("linux", ("\nplatform linux", "/usr/lib/python", "x86_64-linux", "/home/")),
)
_MOST_READ, _FEW_LINES = 2_000, 4


def environment_of(raw: RawTrajectory) -> Environment:
    """Return what the commands of *raw*, and what they printed, show of its machine.

    Only what interpreters print is read: files that an agent looks at may quote other machines.
    """
    systems, roots = Counter[str](), Counter[str]()
    versions: dict[str, Counter[str]] = {}
    for step in raw.steps:
        line, cwd = step.action.text, step.cwd or ""
        output = ""
        if cwd.startswith(("/", "./")):
            roots[cwd] += 1
        if len(line) < _MOST_READ and "\n" not in line:
            # Each pattern is tried at all characters, and few lines have one of these words.
            asked = _VERSION_ASKED.search(line) if "version" in line or "-V" in line else None
            ran = _PYTHON.search(line) if any(name in line for name in _RUNNERS) else None
            output = (step.observation or "")[:_MOST_READ] if asked or ran else ""
            shown = _OF_PYTHON.search(output)
            if asked and output.count("\n") < _FEW_LINES:
                versions.setdefault(asked[1], Counter()).update(_VERSION.findall(output)[:1])
            elif ran and shown:
                versions.setdefault(ran[1], Counter())[shown[1] or shown[2]] += 1
        if output or roots[cwd] == 1:
            systems.update(_systems_in(f"{cwd}\n{output}")[:1])
    return Environment(
        _most_common(systems),
        _most_common(roots),
        tuple((name, _most_common(seen)) for name, seen in sorted(versions.items()) if seen),
    )


def _systems_in(shown: str) -> list[str]:
    return [name for name, marks in _SYSTEMS if any(mark in shown for mark in marks)]


def usual_environment(environments: Iterable[Environment]) -> Environment:
    """Return the most frequent value of each property of *environments*, without the folder."""
    known = [*environments]
    systems = Counter([one.system for one in known if one.system])
    versions: dict[str, Counter[str]] = {}
    for (name, version), count in Counter(
        chain.from_iterable(one.versions for one in known)
    ).items():
        versions.setdefault(name, Counter())[version] += count
    usual = tuple((name, _most_common(seen)) for name, seen in sorted(versions.items()))
    return Environment(_most_common(systems), "", usual)


def _most_common(counted: Counter[str]) -> str:
    return max(counted, key=lambda name: counted[name], default="")


_NOT_THERE = regex(
    r"^(?!env:).*(?:(?i:file|directory) not found$|No such file|can't open|not a valid editable)"
    r"|^git: fatal$"
)
_UNNAMED = "File does not exist"
# As tools answer that look for files, and mark no error.
_NO_FILES = "No files found"
_CLONES, _CLONE_WITHIN = "git clone", 2_000
FOLDER_PATTERNS = {
    Cause.KEPT_FOLDER: RemedyPattern(RemedyKind.CWD, Term.KEPT_FOLDER),
    Cause.CHECKOUT: RemedyPattern(RemedyKind.CWD, Term.AFTER_CLONE),
    Cause.LAYOUT: RemedyPattern(RemedyKind.SEARCH, Term.NO_SUCH_FOLDER),
}
_IN_PARTS = RemedyPattern(RemedyKind.OPEN, Term.PART_OF_FILE)
_AT_ONCE = RemedyPattern(RemedyKind.RUN, Term.WRITTEN_SCRIPT)
# As tools answer that show a part of a file in place of a file that is too long, and how a call
# names the part that it wants.
_SHOWN_IN_PART = regex(
    r"\A\s*(?:<NOTE>This file is too large to display"
    r"|IMPORTANT: The file content has been truncated)"
    r"|<response clipped><NOTE>[^<]{0,80}only part of this file has been shown"
)
_EDGE, _PART = 400, regex(r"range|offset|limit|line|start|end")
# A path that a program says is not there, within quotes or without: the apostrophe of "can't open"
# opens none, and a path that is named besides says nothing.
_FOLDER, _ABSENT = r"(?:\./)?([A-Za-z][\w-]*)", r": (?:\[Errno \d+\] )?No such file"
_MISSING_FOLDER = regex(
    rf"(?<!\w)['\u2018]{_FOLDER}(?:/[^'\u2019\n]*)?['\u2019]{_ABSENT}"
    rf"|(?:Directory |File (?:name )?|: ){_FOLDER}(?:/[^\s'\u2019:]*)?(?: not found|{_ABSENT})"
    rf"|(?:[Nn]o such file or directory|does not exist): {_FOLDER}(?:/|$)"
)


def _kind_of_file(path: str) -> str:
    """The *path* of a file in the repository; of others, with names of their session, the kind."""
    if not path.startswith(("/", "~", "../")):
        return path
    folder, name = posixpath.split(path)
    return f"{posixpath.basename(folder)}/*{posixpath.splitext(name)[1]}"


def lost_between(before: StepTrace, step: StepTrace) -> Loss | None:
    """Return what *step* lost if it ran the script that *before* only wrote.

    The command that wrote the script from its own lines could have run it, too.
    """
    if before.reading.kind is not ActionKind.CREATE or step.reading.kind is not ActionKind.RUN:
        return None
    written, run = (
        {posixpath.basename(path) for path in paths}
        for paths in (before.reading.made, step.reading.targets)
    )
    if not before.succeeded or "<<" not in before.step.action.text or written.isdisjoint(run):
        return None
    return Loss(Cause.APART, "", "", step.index, step.index + 1, _AT_ONCE)


class FolderCauses:
    """Which errors about a path come of the folder, by what the run *raw* shows besides.

    The shell was in the folder already that the path begins with, or nothing was cloned yet.
    """

    def __init__(self, raw: RawTrajectory) -> None:
        self._steps = raw.steps
        self._first = raw.steps[0].index if raw.steps else 0
        self._cloned_at, self._checkout = self._clone()

    def lesson(self, index: int, error_type: str, message: str) -> MachineLesson | None:
        """Return the lesson of an error of this type at the step *index*; None for any other."""
        if not _NOT_THERE.search(error_type):
            return None
        step = self._steps[index - self._first]
        text = step.action.text if _UNNAMED in message else message
        if self._is_in_it(text, cwd := self._cwd(index)):
            return MachineLesson(Cause.KEPT_FOLDER, posixpath.basename(cwd))
        name = re.escape(posixpath.basename(self._checkout))
        if index < self._cloned_at and re.search(rf"(?<![\w.-]){name}(?![\w.-])", text):
            return MachineLesson(Cause.CHECKOUT, posixpath.basename(self._checkout))
        missing = _MISSING_FOLDER.search(message)
        folder = next(filter(None, missing.groups())) if missing else ""
        if folder and not any(f"/{folder}/" in shown for shown in self._shown):
            return MachineLesson(Cause.LAYOUT, folder)
        return None

    def in_vain(self, step: StepTrace) -> Loss | None:
        """Return what *step* lost, which read a whole file that is too long or found no file.

        Of the latter only where it looked for one below the folder that it was in.
        """
        action, answer, at = step.step.action, step.step.observation or "", step.index
        error, reading = step.error, step.reading
        if reading.kind is ActionKind.VIEW and len(reading.targets) == 1:
            # A part that was asked for is no whole.
            is_whole = not any(map(_PART.search, action.arguments))
            is_cut = is_whole and _SHOWN_IN_PART.search(f"{answer[:_EDGE]}{answer[-_EDGE:]}")
            if error.error_type == FILE_TOO_LONG if error else is_cut:
                named = _kind_of_file(reading.targets[0])
                return Loss(Cause.LONG_FILE, named, "", at, at + 1, _IN_PARTS)
        found = self.lesson(at, error.error_type, error.message) if error else None
        if answer.strip() == _NO_FILES and "glob" in action.tool.lower():
            cwd, pattern = self._cwd(at), str(action.arguments.get("pattern", ""))
            if "/" in pattern and self._is_in_it(pattern, cwd):
                found = MachineLesson(Cause.KEPT_FOLDER, posixpath.basename(cwd))
        if found and found.cause is Cause.KEPT_FOLDER:
            return Loss(*found, at, at + 1, FOLDER_PATTERNS[found.cause])
        return None

    @cached_property
    def _shown(self) -> list[str]:
        return [f"{step.action.text}\n{step.observation}" for step in self._steps]

    def _cwd(self, index: int) -> str:
        """The folder that the shell was in before the step *index*."""
        at = max(index - self._first - 1, 0)
        return self._steps[at].cwd or self._steps[index - self._first].cwd or ""

    def _is_in_it(self, text: str, cwd: str) -> bool:
        """Return True if a path in *text* begins with the last folder of *cwd*, which has none."""
        here = posixpath.basename(cwd)
        if not here.strip("."):
            return False
        # A home folder is written like the current one.
        dotted = "" if cwd == f"./{here}" else r"(?:\./)?"
        named = re.search(
            rf"(?<![\w./-]){dotted}{re.escape(here)}(?:/([\w./+-]*)|(?![\w.-]))", text
        )
        if not named:
            return False
        rest = (named[1] or "").rstrip("/.")
        has_such = any(f"{here}/{here}/" in one for one in self._shown)
        return not has_such or (bool(rest) and any(f"{cwd}/{rest}" in one for one in self._shown))

    def _clone(self) -> tuple[int, str]:
        """The step that cloned the project, and into which folder; no step where none did."""
        for step in self._steps:
            if _CLONES in step.action.text[:_CLONE_WITHIN]:
                reader = ActionReader()
                reader.push(replace(step, cwd=self._cwd(step.index)))
                if reader.checkout and "fatal:" not in (step.observation or ""):
                    return step.index, reader.checkout
        return -1, ""
