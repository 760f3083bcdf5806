"""Parses shell lines: their commands, the decisive one, its kind and the files it uses."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

from contextgraph.trace.actions.kinds import (
    KIND_OF_PROGRAM,
    PRECEDENCE,
    ActionKind,
)

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\f\v]++|\\\n)
    |(?P<comment>\#[^\n]*+)
    |(?P<heredoc><<-?[ \t]*+(?P<quote>['"]?)(?P<tag>[A-Za-z_][\w.-]*+)(?P=quote))
    |(?P<redirect>\d?(?:&>>?|>>|>\||>&|<<<|<&|>|<))
    |(?P<operator>&&|\|\||;;|\|&|[;|&\n()])
    |(?P<word>(?:[^\s'"\\;|&<>()]|\\.|'[^']*+'|"(?:[^"\\]|\\.)*+")++|['"\\])""",
    re.VERBOSE | re.DOTALL,
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*+=")
# A line of more words is a paste, whose beginning shows what it does.
_TOKENS_READ = 4000
_KEYWORDS = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "{", "time"})
_WRAPPERS = frozenset(
    {"sudo", "env", "nohup", "timeout", "xvfb-run", "exec", "command", "stdbuf", "nice", "npx"}
    | {"uv", "poetry", "pipenv", "hatch", "pdm", "coverage", "bundle"}
)
_RUNNERS = frozenset({"uv", "poetry", "pipenv", "hatch", "pdm", "coverage"})

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


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One command of a line: its *words* without quotes, where it writes to, what is fed to it.

    *piped* is true where it reads the output of the command before it.
    """

    words: tuple[str, ...]
    written: tuple[str, ...] = ()
    heredoc: str = ""
    piped: bool = False


def simple_commands(line: str) -> Iterator[SimpleCommand]:
    """The simple commands of a shell *line* in order, wrappers and assignments skipped."""
    for command in map(_unwrapped, _commands(line)):
        if command.words or command.written:
            yield command


def _commands(line: str) -> Iterator[SimpleCommand]:
    words, written, bodies = list[str](), list[str](), list[str]()
    tags: list[str] = []
    waiting: list[str] | None = None
    piped = False
    position = 0
    for _ in range(_TOKENS_READ):
        if not (match := _TOKEN.match(line, position)):
            break
        position = match.end()
        kind = match.lastgroup
        if kind == "word":
            (words if waiting is None else waiting).append(_unquoted(match.group()))
            waiting = None
        elif kind == "heredoc":
            tags.append(match["tag"])
        elif kind == "redirect":
            waiting = _taking_next(match.group().lstrip("012&"), written, waiting)
        elif kind == "operator":
            if match.group() == "\n" or line.startswith("\n", position):
                position = _heredocs(line, position, tags, bodies)
            yield SimpleCommand(tuple(words), tuple(written), "\n".join(bodies), piped)
            piped = match.group() in ("|", "|&")
            words, written, bodies, waiting = [], [], [], None
    yield SimpleCommand(tuple(words), tuple(written), "\n".join(bodies), piped)


def _taking_next(
    redirection: str, written: list[str], waiting: list[str] | None
) -> list[str] | None:
    """The list that takes the word after *redirection*; None for that of the arguments."""
    if redirection in (">", ">>", ">|"):
        return written
    # The number after `2>&` is not an argument.
    return [] if redirection in (">&", "<&") else waiting


def _heredocs(line: str, start: int, tags: list[str], bodies: list[str]) -> int:
    """Move the bodies announced by *tags* into *bodies*; where the line goes on after them."""
    for tag in tags:
        end = re.compile(rf"^[ \t]*{re.escape(tag)}[ \t]*$", re.MULTILINE).search(line, start)
        bodies.append(line[start : end.start() if end else len(line)])
        start = end.end() if end else len(line)
    tags.clear()
    return start


def _unquoted(word: str) -> str:
    if len(word) > 1 and word[0] in "'\"" and word[-1] == word[0] and word[0] not in word[1:-1]:
        return word[1:-1]
    if "'" in word or '"' in word:
        return word.replace('"', "").replace("'", "")
    return word


def _unwrapped(command: SimpleCommand) -> SimpleCommand:
    if not command.words or not _wraps(command.words[0]):
        return command
    words = list(command.words)
    while words and _wraps(words[0]):
        wrapper = words.pop(0)
        if wrapper in _RUNNERS:
            if not words or words[0] != "run":
                words.insert(0, wrapper)
                break
            words.pop(0)
        if wrapper == "timeout":
            words = _without_options(words)[1:]
        elif wrapper in _WRAPPERS:
            words = _without_options(words)
    return SimpleCommand(tuple(words), command.written, command.heredoc, command.piped)


def _wraps(word: str) -> bool:
    return word in _KEYWORDS or word in _WRAPPERS or _ASSIGNMENT.match(word) is not None


def _without_options(words: list[str]) -> list[str]:
    while words and words[0].startswith("-"):
        words = words[1:]
    return words


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
