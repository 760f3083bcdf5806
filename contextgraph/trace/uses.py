"""The purpose of a command line: what of a project it runs, and in which form."""

import posixpath
from collections.abc import Collection, Iterator, Sequence

from contextgraph.lazy import dataclass, regex
from contextgraph.model import EXCEPTIONS, Action, ErrorSignature, Family, Step
from contextgraph.trace.actions import read_action, within_repository
from contextgraph.trace.kinds import KIND_OF_PROGRAM, SHELL_TOOLS, ActionKind
from contextgraph.trace.shell import SCRIPT, Command, commands_in, folder_of, what_ran

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
    if error is not None and (len(commands) != 1 or _misses_folder(error, line)):
        return
    folder = _folder(line, cwd)
    for command in commands:
        own = read_action(Action("bash", command.text), None, None)
        if own.kind in RUNNABLE and _INFORMATION_FLAGS.isdisjoint(command.flags):
            kind = _kind(own.kind, command)
            ran = error is None or _ran(kind, error)
            for form in _forms(command, kind, own.verb, created):
                reason = error.error_type if error else ""
                yield CommandUse(kind, command.text, form, folder, ran, reason)


def _misses_folder(error: ErrorSignature, line: str) -> bool:
    """Return True where *error* says that the folder to which *line* changes does not exist."""
    folder = folder_of(line)
    return bool(folder) and error.error_type == _NO_FOLDER and folder in error.message


def _kind(kind: ActionKind, command: Command) -> ActionKind:
    installs = command.installs or "setup.py" in command.text
    return kind if kind is not ActionKind.INSTALL or installs else ActionKind.OTHER


def _folder(line: str, cwd: str | None) -> str:
    """The folder in which *line* runs, relative to the repository; empty for its root."""
    target = folder_of(line)
    if (cwd and cwd.startswith(("/", "./"))) or target.startswith("/"):
        return within_repository(target or ".", cwd)
    return posixpath.normpath(target) if target.strip("./") else ""


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
