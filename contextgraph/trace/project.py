"""Facts about a project that a run shows: commands that ran, failing tests, changed files."""

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from sys import intern

from contextgraph.lazy import TYPE_CHECKING, dataclass, field, regex, replace
from contextgraph.model import (
    EXCEPTIONS,
    Action,
    ErrorSignature,
    Family,
    PatchSummary,
    RawTrajectory,
    Step,
)
from contextgraph.text.strings import identifiers
from contextgraph.trace.actions import (
    KIND_OF_PROGRAM,
    SHELL_TOOLS,
    ActionKind,
    ActionReader,
    ActionReading,
    read_action,
    read_command_line,
    repository_path,
    shell_line,
    within_repository,
)
from contextgraph.trace.shell import SCRIPT, Command, commands_in, folder_of, is_path, what_ran
from contextgraph.trace.steps import (
    content_hashes,
    definitions_found,
    files_created,
    lines_changed,
    listed_files,
    names_shown,
)

if TYPE_CHECKING:
    from contextgraph.model import Environment  # which a hook need not load

TESTS = "<tests>"

RUNNABLE = frozenset({ActionKind.TEST, ActionKind.RUN, ActionKind.INSTALL, ActionKind.OTHER})
_NO_FOLDER = "bash: No such file or directory"
_IMPORTS = frozenset({"ModuleNotFoundError", "ImportError"})
_OF_CODE = EXCEPTIONS | {Family.SYNTAX_ERROR, Family.RUNTIME_EXCEPTION}
# What only asks, or only shapes the output, says nothing of how a project is used.
_INFORMATION_FLAGS = frozenset(
    {"--version", "-V", "--help", "-h", "--collect-only", "--co", "--fixtures"}
)
_SHOWING = regex(
    r"-(?:[vqsxly]+\d?|r\w|-quiet|-verbose|-(?:verbosity|parallel|tb|color)(?:=\S+)?|-no-header|-yes)"
)
_CHOOSING = frozenset({"-k", "-m", "-n", "--maxfail", "--timeout"})
_SUBCOMMANDS = frozenset({"run", "test", "tests", "check"})
_PACKAGE = regex(r"['\"]?[A-Za-z][\w.\[\],-]*(?:[=<>!~]=?[^'\"]+)?['\"]?")
_LONGEST = 400


@dataclass(frozen=True, slots=True)
class CommandUse:
    """A command that a run gave, and whether it *ran*: a test that fails ran, too.

    *text* is as typed, without redirections; *form* has placeholders for the choice of tests and
    for scripts of the run; *folder* is where it ran, relative to the repository. *error_type* says
    why it did not run, or what it reported. *prompted*: the run had given another command of its
    kind before, or, before an installation, one that did not run.
    """

    kind: ActionKind
    text: str
    form: str
    folder: str
    ran: bool
    error_type: str = ""
    prompted: bool = False

    @property
    def runner(self) -> str:
        """Its form whether or not tests were chosen: that does not decide whether it runs."""
        return self.form.removesuffix(f" {TESTS}")


def command_use(line: str, created: Collection[str] = ()) -> CommandUse | None:
    """Return the purpose of *line*, as if it had run; None where it runs nothing."""
    step = Step(0, "", Action("bash", line), "")
    return next(reversed([*uses_of(step, None, None, created)]), None)


def uses_of(
    step: Step, error: ErrorSignature | None, cwd: str | None, created: Collection[str]
) -> Iterator[CommandUse]:
    """The commands of a shell line, which met *error*.

    None of a line of several that failed, as it is not known which did, or whose `cd` did.
    """
    line = what_ran(step.action.text.strip(), failed=error is not None)
    # A log that leaves out arguments shows a call by the name of its tool, such as `Edit`.
    is_call = step.action.text == step.action.tool and step.action.tool[:1].isupper()
    is_typed = not (step.action.arguments or is_call)
    is_shell = is_typed or step.action.tool.lower() in SHELL_TOOLS
    if not is_shell or "\n" in line or len(line) > _LONGEST or step.denied or step.interrupted:
        return
    commands = [command for command in commands_in(line) if command.program not in ("cd", "export")]
    target = folder_of(line)
    if error is not None:
        misses_folder = target and error.error_type == _NO_FOLDER and target in error.message
        if len(commands) != 1 or misses_folder:
            return
    if (cwd and cwd.startswith(("/", "./"))) or target.startswith("/"):
        folder = within_repository(target or ".", cwd)
    else:  # empty for the root of the repository
        folder = posixpath.normpath(target) if target.strip("./") else ""
    for command in commands:
        own = read_action(Action("bash", command.text), None, None)
        if own.kind in RUNNABLE and _INFORMATION_FLAGS.isdisjoint(command.flags):
            installs = command.installs or "setup.py" in command.text
            is_query = own.kind is ActionKind.INSTALL and not installs
            kind = ActionKind.OTHER if is_query else own.kind
            ran = error is None or _ran(kind, error)
            for form in _forms(command, kind, own.verb, created):
                reason = error.error_type if error else ""
                yield CommandUse(kind, command.text, form, folder, ran, reason)


def _forms(
    command: Command, kind: ActionKind, verb: str, created: Collection[str]
) -> tuple[str, ...]:
    """The command with placeholders; of several packages an installation of each."""
    tokens = [token for token in command.text.split() if not _SHOWING.fullmatch(token)]
    if kind is ActionKind.TEST:
        return (" ".join(_test_form(tokens, verb)),)
    if kind is ActionKind.RUN and verb == "python":
        return (" ".join(_script_form(tokens, created)),)
    packages = command.packages if kind is ActionKind.INSTALL else {}
    if not command.settings and all(_PACKAGE.fullmatch(token) for token in tokens[2:]) and packages:
        return tuple(f"{command.program} {name}{version}" for name, version in packages.items())
    return (" ".join(tokens),)


def _test_form(tokens: Sequence[str], verb: str) -> Iterator[str]:
    """The runner with its flags; one placeholder for the tests."""
    start = _runner_end(tokens, verb)
    yield from tokens[:start]
    chosen = skipped = False
    for token in tokens[start:]:
        if skipped:
            skipped = False
        elif token.startswith("-"):
            if token in _CHOOSING:
                skipped = True
            else:
                yield token
        else:
            chosen = True
    if chosen:
        yield TESTS


def _runner_end(tokens: Sequence[str], verb: str) -> int:
    """Count the *tokens* that name the runner."""
    at = next(
        (n for n, token in enumerate(tokens) if posixpath.basename(token).startswith(verb)), 0
    )
    if verb == "python":
        at += 1
    is_runner = KIND_OF_PROGRAM.get(verb) is ActionKind.TEST
    while not is_runner and at + 1 < len(tokens) and tokens[at + 1] in _SUBCOMMANDS:
        at += 1
    return at + 1


def _script_form(tokens: Sequence[str], created: Collection[str]) -> Iterator[str]:
    """A run of Python: scripts of the run itself by a placeholder, code on the line as well."""
    for n, token in enumerate(tokens):
        if token == "-c":
            yield "-c <code>"
            return
        if token.endswith(".py"):
            names = {posixpath.basename(path) for path in created}
            if posixpath.basename(token) in names:
                yield SCRIPT
                return
            yield from tokens[n:]
            return
        yield token


def _ran(kind: ActionKind, error: ErrorSignature) -> bool:
    """Return True where what met *error* ran: its imports worked, and it got to its purpose."""
    if error.error_type in _IMPORTS or kind is ActionKind.INSTALL:
        return False
    if kind is ActionKind.TEST:
        return error.family is Family.TEST_FAILURE and not error.error_type.startswith("pytest: ")
    return error.family in _OF_CODE


# What other actions write, such as `git diff > patch.txt`, the run made itself.
_CHANGING = frozenset({ActionKind.EDIT, ActionKind.DELETE})
_UNUSABLE = frozenset({"ModuleNotFoundError", "python -m: No module named"})
_MODULE = regex(r"No module named '?([\w.]+)")
_LONGEST_MESSAGE, _LONGEST_LISTING, _MOST_NAMES = 500, 10_000, 24


def _environment(
    system: str = "", root: str = "", versions: tuple[tuple[str, str], ...] = ()
) -> "Environment":
    from contextgraph.model import Environment

    return Environment(system, root, versions)


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """Facts that one run shows of its project.

    *created* are files that the run itself made, *opened* those it looked at, *listed* those that
    listings and searches showed. *names* are functions, classes and other names by file, and by
    module (a path without ending) where an import showed them. *failing* are the tests that failed
    when they were last run. *patch* is what it changed in existing files, and *symbols* the
    functions and classes of that by file. *edited* are files that it wrote or changed by actions.
    *content_hashes* are git's hashes of files, by path, maybe abbreviated. *environment* is the
    machine that it ran on.
    """

    commands: tuple[CommandUse, ...] = ()
    created: frozenset[str] = frozenset()
    opened: frozenset[str] = frozenset()
    listed: frozenset[str] = frozenset()
    names: dict[str, set[str]] = field(default_factory=dict, hash=False)
    failing: tuple[str, ...] = ()
    patch: PatchSummary = field(default_factory=PatchSummary)
    symbols: dict[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    edited: frozenset[str] = frozenset()
    content_hashes: dict[str, set[str]] = field(default_factory=dict, hash=False)
    environment: "Environment" = field(default_factory=_environment)


def project_facts(raw: RawTrajectory) -> ProjectFacts:
    """Return the facts that *raw* shows of its project."""
    seen = _Seen()
    for step in raw.steps:
        seen.add(step)
    patch = raw.patch or ""
    made_by_patch = files_created(patch)
    lines = _lines_in_existing(patch, made_by_patch)
    changed_by_patch = {file for file, _, _ in lines}
    return ProjectFacts(
        tuple(seen.uses),
        frozenset((seen.created - changed_by_patch) | made_by_patch),
        frozenset(seen.opened),
        frozenset(seen.listed),
        seen.names,
        tuple(seen.failing),
        *_changes(lines),
        frozenset(seen.edited),
        _hashes(chain(content_hashes(patch), raw.content_hashes.items())),
        environment_of(raw),
    )


def _hashes(contents: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    by_path: dict[str, set[str]] = {}
    for path, content in contents:
        by_path.setdefault(path, set()).add(content)
    return by_path


def patch_summary(patch: str) -> PatchSummary:
    """Return what *patch* changes in files that it does not make."""
    return _changes(_lines_in_existing(patch, files_created(patch)))[0]


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


@dataclass(slots=True)
class _Seen:
    """Facts of a growing run about its project; fields: see `ProjectFacts`."""

    uses: list[CommandUse] = field(default_factory=list)
    runners: dict[ActionKind, set[str]] = field(default_factory=dict)
    created: set[str] = field(default_factory=set)
    edited: set[str] = field(default_factory=set)
    opened: set[str] = field(default_factory=set)
    listed: set[str] = field(default_factory=set)
    names: dict[str, set[str]] = field(default_factory=dict)
    failing: dict[str, None] = field(default_factory=dict)
    actions: ActionReader = field(default_factory=ActionReader)

    def add(self, step: Step) -> None:
        """Add the next step."""
        reading = self.actions.push(step)
        cwd, checkout = self.actions.cwd, self.actions.checkout
        if reading.changed:
            made = set(_written(step.action.text, reading)).intersection(reading.changed)
            self.created.update(made - self.opened - self.edited)
            self.edited.update(set(reading.changed) - made)
        if reading.kind is ActionKind.VIEW and _is_shown(step, reading):
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
            error = _error(step, reading)
            if error is not None and error.error_type in _UNUSABLE:
                self._mark_useless(error)
            for use in uses_of(step, error, cwd, self.created):
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

    def _add_names(self, definitions: Iterable[tuple[str, Iterable[str]]]) -> None:
        for place, names in definitions:
            self.names.setdefault(place, set()).update(map(intern, names))

    def _prompts(self, use: CommandUse) -> bool:
        """Whether what the run has given so far may have been the reason for *use*."""
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
    """Whether the test command *use* runs *test*, too: it chooses none, or names its file."""
    chosen = [word for command in commands_in(use.text) for word in command.words]
    return not use.form.endswith(TESTS) or any(word.strip("./") in test for word in chosen)


def _written(text: str, reading: ActionReading) -> Iterator[str]:
    """The names of files that an action writes as a whole, rather than edits."""
    if reading.kind is ActionKind.CREATE:
        yield from reading.changed
    elif reading.span is None:
        parts = map(read_command_line, shell_line(text).changes)
        yield from (path for part in parts if part.kind not in _CHANGING for path in part.changed)


def _is_shown(step: Step, reading: ActionReading) -> bool:
    """Whether a file was shown: messages that it was not are short."""
    length = len(step.observation or "")
    return length > _LONGEST_MESSAGE or (length > 0 and _error(step, reading) is None)


def _error(step: Step, reading: ActionReading) -> ErrorSignature | None:
    from contextgraph.trace.signature import error_at

    return error_at(step, reading)


_VERSION_ASKED = regex(r"(?:^|&& )([A-Za-z][\w.+-]*) (?:--version|-V|version)(?: 2>&1)?$")
_VERSION = regex(r"(?<![\w.])v?(\d+\.\d+)(?=[.\s,)]|$)")
_OF_PYTHON = regex(r"lib/python(\d\.\d+)/|^platform \w+ -- Python (\d+\.\d+)", re.MULTILINE)
_PYTHON = regex(r"(?:^|&& |/)(python[\d.]*|pip[\d.]*|pytest) [^&|;]*(?:$|2>&1|\|)")
_SYSTEMS = (
    ("darwin", regex(r"^platform darwin|/opt/homebrew/|/Users/", re.MULTILINE)),
    ("win32", regex(r"^platform win32|\b[A-Z]:\\\\?(?:Users|Program)", re.MULTILINE)),
    ("linux", regex(r"^platform linux|/usr/lib/python|x86_64-linux|/home/", re.MULTILINE)),
)
_MOST_READ, _FEW_LINES = 2_000, 4


def environment_of(raw: RawTrajectory) -> "Environment":
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
            asked, ran = _VERSION_ASKED.search(line), _PYTHON.search(line)
            output = (step.observation or "")[:_MOST_READ] if asked or ran else ""
            shown = _OF_PYTHON.search(output)
            if asked and output.count("\n") < _FEW_LINES:
                versions.setdefault(asked[1], Counter()).update(_VERSION.findall(output)[:1])
            elif ran and shown:
                versions.setdefault(ran[1], Counter())[shown[1] or shown[2]] += 1
        if output or roots[cwd] == 1:
            place = f"{cwd}\n{output}"
            systems.update([name for name, marks in _SYSTEMS if marks.search(place)][:1])
    return _environment(
        _most_common(systems),
        _most_common(roots),
        tuple((name, _most_common(seen)) for name, seen in sorted(versions.items()) if seen),
    )


def usual_environment(environments: "Iterable[Environment]") -> "Environment":
    """Return the most frequent value of each property of *environments*, without the folder."""
    systems = Counter[str]()
    versions: dict[str, Counter[str]] = {}
    for one in environments:
        systems.update([one.system] if one.system else [])
        for name, version in one.versions:
            versions.setdefault(name, Counter())[version] += 1
    usual = tuple((name, _most_common(seen)) for name, seen in sorted(versions.items()))
    return _environment(_most_common(systems), "", usual)


def _most_common(counted: Counter[str]) -> str:
    return max(counted, key=lambda name: counted[name], default="")
