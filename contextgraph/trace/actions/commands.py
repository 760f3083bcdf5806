"""What shell lines do: the decisive command, its kind, the files it uses, and what it changes."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from contextgraph.trace.actions.kinds import (
    KIND_OF_PROGRAM,
    PRECEDENCE,
    ActionKind,
)
from contextgraph.trace.shell import SimpleCommand, line_parts, simple_commands, what_ran

if TYPE_CHECKING:
    from contextgraph.trace.steps import StepTrace

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_WRITES = re.compile(r"write_text\(|\.write\(|writelines\(|open\([^)\n]{0,200}['\"][wa]b?['\"]")
_FILE_NAME = re.compile(r"[\w@+=.-]*[\w-]\.[A-Za-z][\w]{0,9}(?:::\S+)?")
_NO_PATH = re.compile(r"[*?|^\\ \n]")
_QUOTED_PATH = re.compile(r"['\"]([\w./-]{1,200}\.\w{1,8})['\"]")
_WINDOW_VERBS = frozenset({"goto", "scroll_up", "scroll_down"})
_PATTERN_FIRST = frozenset(
    {"sed", "perl", "awk", "grep", "egrep", "fgrep", "rg", "ag", "ack", "search_dir", "search_file"}
)
# By this line mini-swe-agent declares that the work is done.
_FINAL = ("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",)
_IN_PLACE = ("-i", "--in-place", "-pi")
_COMMANDS_READ = 64
_CACHED_LINE = 300
_TESTING_WORDS = frozenset({"test", "tests", "check", "unittest", "pytest", "nose", "tox"})
_PACKAGE_TOOLS = frozenset(
    {"npm", "yarn", "pnpm", "cargo", "go", "mvn", "gradle", "gradlew", "mvnw", "make", "dotnet"}
    | {"composer", "bazel", "uv", "poetry", "pipenv", "hatch", "pdm", "bun", "rake", "mix"}
)
_INSTALLING = frozenset({"install", "add", "ci", "i", "sync", "get", "update", "restore"})


_CHANGING = frozenset({ActionKind.EDIT, ActionKind.CREATE, ActionKind.DELETE, ActionKind.INSTALL})
_RESTORING = re.compile(r"git\s+(?:checkout|restore|apply|stash|revert|reset)\b|export\s")
# What changes the state in which a command runs again: services, builds, checkouts, and scripts of
# the project; not tests, looking around, nor a script that the agent wrote to find out something.
_STATEFUL = re.compile(
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
_SEVERAL = re.compile(r"[;&\n]")


@dataclass(frozen=True, slots=True)
class CommandReading:
    """The deciding command of a line; its *targets* as typed.

    *directory* is where the line went before it, *changed* are the files that any command of the
    line creates, edits or deletes.
    """

    kind: ActionKind
    verb: str
    targets: tuple[str, ...]
    text: str
    directory: str | None = None
    changed: tuple[str, ...] = ()
    on_open_file: bool = False


def read_command_line(line: str) -> CommandReading:
    """What a shell *line* does."""
    # Agents type the same short lines many times; long ones are not worth the memory.
    return _read_cached(line) if len(line) <= _CACHED_LINE else _read_line(line)


def _read_line(line: str) -> CommandReading:
    readings = []
    directory = None
    for command in islice(simple_commands(line), _COMMANDS_READ):
        if command.words and command.words[0] in ("cd", "pushd") and not command.piped:
            directory = command.words[1] if len(command.words) > 1 else directory
            continue
        if not command.piped:
            readings.append(_read(command, directory))
    if not readings:
        return CommandReading(ActionKind.OTHER, "cd" if directory else "", (), line.strip()[:200])
    if len(readings) == 1:
        return readings[0]
    # What a line runs last is what its output shows.
    best = min(reversed(readings), key=lambda reading: PRECEDENCE.index(reading.kind))
    return _with_all_changes(best, readings)


_read_cached = lru_cache(maxsize=4096)(_read_line)


def _with_all_changes(best: CommandReading, readings: list[CommandReading]) -> CommandReading:
    """*best* with the files that the other commands of its line change."""
    changed = tuple(dict.fromkeys(path for reading in readings for path in reading.changed))
    targets = tuple(dict.fromkeys((*best.targets, *changed)))
    return replace(best, targets=targets, changed=changed)


def _read(command: SimpleCommand, directory: str | None) -> CommandReading:
    verb, rest = _verb(command.words)
    kind = _kind(verb, rest, command)
    written = tuple(path for path in command.written if not path.startswith("/dev/"))
    paths = (*written, *_paths(verb, rest))
    if kind is ActionKind.EDIT and verb == "python":
        paths = files_written_by(_inline(command))
    changed = paths if kind.changes_files else written
    text = " ".join((verb, *rest)).strip()
    return CommandReading(kind, verb, paths, text, directory, changed, verb in _WINDOW_VERBS)


def files_written_by(program: str) -> tuple[str, ...]:
    """The files that the Python code *program* names, at most five, where it writes any."""
    if _WRITES.search(program) is None:
        return ()
    return tuple(dict.fromkeys(_QUOTED_PATH.findall(program)))[:5]


def _paths(verb: str, rest: tuple[str, ...]) -> tuple[str, ...]:
    """The arguments that name files; a leading pattern or script is none of them."""
    if verb in _PATTERN_FIRST:
        first = next((at for at, word in enumerate(rest) if not word.startswith("-")), len(rest))
        rest = rest[first + 1 :]
    return tuple(word.split("=", 1)[-1] for word in rest if _looks_like_path(word))


def _looks_like_path(word: str) -> bool:
    """True for a word that names a file or directory rather than an option or a pattern."""
    if not word or word[0] in "-$+%=@" or len(word) > 300 or _NO_PATH.search(word):
        return False
    return "/" in word or _FILE_NAME.fullmatch(word) is not None


def _verb(words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The program that does the work, and its arguments."""
    if not words:
        return "", ()
    verb = words[0].rsplit("/", 1)[-1] or words[0]
    rest = words[1:]
    if _PYTHON.fullmatch(verb):
        verb = "python"
        rest = _without_flags(rest)
        if len(rest) > 1 and rest[0] == "-m":
            return rest[1], rest[2:]
    if verb == "uv" and rest and rest[0] == "pip":
        return "pip", rest[1:]
    return verb, rest


def _without_flags(words: tuple[str, ...]) -> tuple[str, ...]:
    """*words* without the interpreter's own flags that take no value."""
    index = 0
    while index < len(words) and words[index] in ("-u", "-B", "-O", "-E", "-s", "-I", "-v", "-W"):
        index += 2 if words[index] == "-W" else 1
    return words[index:]


def _kind(verb: str, rest: tuple[str, ...], command: SimpleCommand) -> ActionKind:
    if verb in ("sed", "perl") and any(word.startswith(_IN_PLACE) for word in rest):
        return ActionKind.EDIT
    if verb == "echo" and rest[:1] == _FINAL:
        return ActionKind.SUBMIT
    if verb in ("cat", "echo", "printf", "sed", "awk", "") and command.written:
        return ActionKind.CREATE
    if verb in _KIND_BY_ARGUMENTS:
        return _KIND_BY_ARGUMENTS[verb](rest)
    if verb == "python":
        return _python(rest, command)
    if verb in KIND_OF_PROGRAM:
        return KIND_OF_PROGRAM[verb]
    program = "".join(command.words[:1])
    is_module = _PYTHON.fullmatch(program.rsplit("/", 1)[-1]) is not None
    runnable = is_module or verb.endswith(".sh") or program.startswith(("./", "/"))
    return ActionKind.RUN if runnable else ActionKind.OTHER


def _git(rest: tuple[str, ...]) -> ActionKind:
    sub = next((word for word in rest if not word.startswith("-")), "")
    if sub == "apply":
        return ActionKind.EDIT
    return ActionKind.SEARCH if sub == "grep" else ActionKind.VCS


def _python(rest: tuple[str, ...], command: SimpleCommand) -> ActionKind:
    if _WRITES.search(_inline(command)):
        return ActionKind.EDIT
    script = next((word for word in rest if not word.startswith("-")), "")
    if script.endswith(("setup.py", "manage.py", "runtests.py")) and (
        "test" in rest or script.endswith("runtests.py")
    ):
        return ActionKind.TEST
    if script.endswith("setup.py") and ({"install", "develop"} & set(rest)):
        return ActionKind.INSTALL
    return ActionKind.RUN


def _inline(command: SimpleCommand) -> str:
    """The program text that is given on the line itself."""
    words = command.words
    if "-c" in words[:-1]:
        return words[words.index("-c") + 1]
    return command.heredoc


def _package_tool(rest: tuple[str, ...]) -> ActionKind:
    words = set(rest[:3])
    if words & _TESTING_WORDS or any(word.startswith("test") for word in rest[:3]):
        return ActionKind.TEST
    return ActionKind.INSTALL if words & _INSTALLING else ActionKind.RUN


def _django(rest: tuple[str, ...]) -> ActionKind:
    return ActionKind.TEST if rest[:1] == ("test",) else ActionKind.RUN


_KIND_BY_ARGUMENTS: dict[str, Callable[[tuple[str, ...]], ActionKind]] = {
    "git": _git,
    **dict.fromkeys(("django", "django-admin"), _django),
    **dict.fromkeys(_PACKAGE_TOOLS, _package_tool),
}


@dataclass(frozen=True, slots=True)
class ShellLine:
    """The *changes* a line makes to files or the environment, and what it *runs* last."""

    changes: tuple[str, ...]
    runs: str


def line_of(step: "StepTrace") -> ShellLine:
    """What the shell line of *step* changes and runs."""
    text = step.step.action.text.strip()
    if step.reading.verb != "edit":
        text = what_ran(text, failed=step.error is not None)
    # The text of a window edit is not a shell line, even where the edit is malformed.
    if _SEVERAL.search(text) and step.reading.verb != "edit":
        return shell_line(text)
    is_change = step.reading.kind in _CHANGING or step.reading.changed or _RESTORING.match(text)
    return ShellLine((text,), "") if is_change else ShellLine((), text)


def stateful_part(step: "StepTrace") -> str:
    """The last command of the line of *step* that changes what later commands meet, or ""."""
    line = what_ran(step.step.action.text.strip(), failed=step.error is not None)
    parts = [part for _, part in line_parts(line)]
    return next((part for part in reversed(parts) if _STATEFUL.match(part)), "")


def run_of(step: "StepTrace") -> str:
    """What the line of *step* runs, without what it changes first."""
    return line_of(step).runs or step.step.action.text


def shell_line(text: str) -> ShellLine:
    """What the line *text* changes and runs, as typed."""
    parts = [part for _, part in line_parts(text)]
    changes = tuple(part for part in parts if _is_change(part))
    others = [part for part in parts if part not in changes and not part.startswith("cd ")]
    return ShellLine(changes, others[-1] if others else "")


def _is_change(part: str) -> bool:
    if _RESTORING.match(part):
        return True
    reading = read_command_line(part)
    return reading.kind in _CHANGING or bool(reading.changed)


def looks(program: str) -> bool:
    """True for a program that only shows files or folders."""
    return read_command_line(program).kind.reads
