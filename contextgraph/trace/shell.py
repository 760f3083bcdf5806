"""Shell lines: one parser for commands with their words, settings and here-documents."""

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec import Struct, field

from contextgraph.model.values import replace
from contextgraph.text import regex

TOKEN = regex(
    r"""(?P<blank>[ \t\r\f\v]++|\\\n)
    |(?P<comment>\#[^\n]*+)
    |(?P<heredoc><<-?[ \t]*+(?P<quote>['"]?)(?P<tag>[A-Za-z_][\w.-]*+)(?P=quote))
    |(?P<redirect>\d?(?:&>>?|>>|>\||>&|<<<|<&|>|<))
    |(?P<operator>&&|\|\||;;|\|&|[;|&\n()])
    |(?P<word>(?>(?:[^\s'"\\;|&<>()]|\\.|'[^']*+'|"(?>(?:[^"\\]|\\.)*)")+)|['"\\])""",
    re.VERBOSE | re.DOTALL,
)
_SETTING = regex(r"[A-Za-z_]\w*+=")
# A line of more words is a paste, whose beginning shows what it does.
_TOKENS_READ = 4000
_KEYWORDS = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "{"})
_WRAPPERS = frozenset(
    {"sudo", "env", "nohup", "timeout", "xvfb-run", "exec", "command", "stdbuf", "nice", "time"}
)
# What runs a program of a project's environment: `uv run pytest` is pytest.
_RUNNERS = frozenset({"uv", "poetry", "pipenv", "hatch", "pdm", "coverage"})
_LAUNCHERS = frozenset({"npx", "bundle"})
# Options of these that take a value.
_WRAPPER_VALUES = frozenset({"-n", "-k", "-s", "-u", "-g", "-C", "--with", "--python", "--extra"})
_PIPES = frozenset({"|", "|&"})
# What ends a part of a line: all but pipes and the brackets around commands.
_ENDS = frozenset({"&&", "||", ";", ";;", "\n"})
_JOINED = {";": "; ", "\n": "\n"}
_LONGEST = 4_000
_BARE = regex(r"[^\s'\"\\]+")
_QUOTATION = regex(r"'([^']*)'|\"((?>(?:[^\"\\]|\\.)*))\"", re.DOTALL)
_ESCAPED_QUOTE = regex(r"\\([\"\\])")

_REQUIREMENT = regex(r"([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*((?:[=<>!~]=?|===).*)?")
_INSTALLERS = frozenset(
    {"pip", "apt", "apt-get", "conda", "mamba", "brew", "poetry", "npm", "yarn", "pnpm", "uv"}
    | {"yum", "dnf", "apk", "easy_install", "gem", "cargo", "bun", "pipenv", "pdm"}
)
_INSTALLING = frozenset({"install", "add", "i", "ci", "sync", "upgrade", "update"})
# Options of package managers whose value is no package.
_VALUED = frozenset(
    {"-i", "--index-url", "--extra-index-url", "--index", "--default-index", "-f", "--find-links"}
    | {"-c", "--constraint", "-t", "--target", "--prefix", "--root", "--registry", "--proxy"}
    | {"--cert", "--client-cert", "--trusted-host", "--cache-dir", "--python", "--platform"}
    | {"--timeout", "--retries", "--channel", "-n", "--name", "--src", "--log", "--config-settings"}
)
_TEXT_VALUED = frozenset({"-m", "-k", "-e", "-c", "-n", "-o", "-W", "--tb", "-p"})
# What follows these says what is done, as the program's own name does not.
_WITH_SUBCOMMAND = frozenset(
    {"git", "pip", "conda", "npm", "poetry", "dvc", "apt-get", "apt", "docker", "yarn", "cargo"}
    | {"go", "make", "uv", "hatch", "pdm"}
)
_TEST_RUNNERS = frozenset({"pytest", "py.test", "nosetests", "nose2", "tox", "unittest", "trial"})
TEST_RUNNER = "<test runner>"
SCRIPT = "<script>"
_KNOWN_SCRIPTS = frozenset({"setup.py", "manage.py", "runtests.py"})


class SimpleCommand(Struct, frozen=True):
    """One command of a line: its *words* without quotes, where it writes to, what is fed to it.

    Wrappers such as ``timeout 60`` and *settings* such as ``NAME=value`` are no words; *runner* is
    what runs it in the environment of a project, such as ``uv run``. *typed* are the words with
    their quotes, and all that was taken off. *separator* is the operator before the command;
    *piped* is true where it reads the output of the command before it. *start* and *end* are its
    place in the line, *bodies* its here-documents as typed.
    """

    words: tuple[str, ...]
    written: tuple[str, ...] = ()
    heredoc: str = ""
    piped: bool = False
    settings: tuple[str, ...] = ()
    runner: str = ""
    typed: tuple[str, ...] = ()
    separator: str = ""
    start: int = 0
    end: int = 0
    bodies: tuple[str, ...] = ()


def simple_commands(line: str) -> Iterator[SimpleCommand]:
    """Yield the commands of a shell *line* in order."""
    for command in map(_unwrapped, _commands(line)):
        if command.words or command.written:
            yield command


class _Open(Struct):
    """A command that is being read."""

    separator: str
    start: int
    end: int
    words: list[str] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    fed: list[str] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)
    takes_next: list[str] | None = None

    def add(self, word: str) -> None:
        if self.takes_next is None:
            self.words.append(unquoted(word))
            self.typed.append(word)
        else:
            self.takes_next.append(unquoted(word))
            self.takes_next = None

    def redirect(self, redirection: str) -> None:
        operator = redirection.lstrip("012&")
        if operator in (">", ">>", ">|"):
            self.takes_next = self.written
        elif operator in (">&", "<&"):  # the number after `2>&` is not an argument
            self.takes_next = []

    def closed(self) -> SimpleCommand:
        return SimpleCommand(
            tuple(self.words),
            tuple(self.written),
            "\n".join(self.fed),
            self.separator in _PIPES,
            typed=tuple(self.typed),
            separator=self.separator,
            start=self.start,
            end=self.end,
            bodies=tuple(self.bodies),
        )


# One line is read for what it does, for its parts, and for its programs.
@lru_cache(256)
def _commands(line: str) -> tuple[SimpleCommand, ...]:
    return tuple(_read_commands(line))


def _read_commands(line: str) -> Iterator[SimpleCommand]:
    now = _Open("", 0, 0)
    tags: list[str] = []
    position = 0
    for _ in range(_TOKENS_READ):
        if not (match := TOKEN.match(line, position)):
            break
        position = match.end()
        kind, token = match.lastgroup, match.group()
        if kind == "operator":
            if token == "\n" or line.startswith("\n", position):
                position = _heredocs(line, position, tags, now)
            yield now.closed()
            now = _Open(token, position, position)
        elif kind != "blank":
            now.end = position
            if kind == "word":
                now.add(token)
            elif kind == "heredoc":
                tags.append(match["tag"])
            elif kind == "redirect":
                now.redirect(token)
    yield now.closed()


def _heredocs(line: str, start: int, tags: list[str], now: _Open) -> int:
    """Add the here-documents announced by *tags* to a command; where the line goes on."""
    for tag in tags:
        end = re.compile(rf"^[ \t]*{re.escape(tag)}[ \t]*$", re.MULTILINE).search(line, start)
        now.fed.append(line[start : end.start() if end else len(line)])
        now.bodies.append(line[start : end.end() if end else len(line)])
        start = end.end() if end else len(line)
    tags.clear()
    return start


def unquoted(word: str) -> str:
    """Return *word* without its quotes."""
    if len(word) > 1 and word[0] in "'\"" and word[-1] == word[0] and word[0] not in word[1:-1]:
        return word[1:-1]
    if "'" in word or '"' in word:
        return word.replace('"', "").replace("'", "")
    return word


def _unwrapped(command: SimpleCommand) -> SimpleCommand:
    words = list(command.words)
    settings, runner = list[str](), ""
    while words:
        first = words[0]
        if _SETTING.match(first):
            settings.append(words.pop(0))
        elif first in _RUNNERS and words[1:2] == ["run"]:
            runner = f"{first} run"
            words = _without_options(words[2:])
        elif first == "command" and words[1:2] == ["-v"]:
            break  # only asks where a program is
        elif first in _WRAPPERS or first in _LAUNCHERS:
            words = _without_options(words[1:])
            words = words[1:] if first == "timeout" else words
            runner = first if first in _LAUNCHERS else runner
        elif first in _KEYWORDS:
            words = words[1:]
        else:
            break
    if len(words) == len(command.words):
        return command
    return replace(command, words=tuple(words), settings=tuple(settings), runner=runner)


def _without_options(words: list[str]) -> list[str]:
    while words and words[0].startswith("-"):
        words = words[2 if words[0] in _WRAPPER_VALUES else 1 :]
    return words


def line_parts(line: str) -> list[tuple[str, str]]:
    """Return parts of a *line* as typed, whole pipelines and here-documents, and separators."""
    parts: list[tuple[str, str]] = []
    text, bodies, separator, start, end = line[:_LONGEST], "", "", 0, 0
    for command in (*_commands(text), None):
        if command is not None and command.separator not in _ENDS:
            end = command.end
        else:
            part = text[start:end].strip() + bodies
            if part:
                parts.append((separator, part))
                separator = ""
            if command is None:
                break
            separator = command.separator if not separator or part else separator
            bodies, start, end = "", command.start, command.end
        bodies += "".join("\n" + body.strip("\n") for body in command.bodies)
    return parts


def what_ran(line: str, *, failed: bool) -> str:
    """Return *line* with one command of each ``a || b``: the first; after an error the last."""
    if "||" not in line or "<<" in line:
        return line
    kept: list[str] = []
    is_alternative = False
    for separator, part in line_parts(line):
        if separator == "||":
            is_alternative = True
            if failed and kept:
                kept.pop()
        else:
            is_alternative = False
            kept += [_JOINED.get(separator, f" {separator} ")] if kept else []
        if failed or not is_alternative:
            kept.append(part)
    return "".join(kept).strip()


class Command(Struct, frozen=True):
    """A simple command: the *program* (with `-m` module or subcommand), its words and flags.

    *settings* are the environment variables set for it, as ``NAME=value``; *interpreter* is what
    runs a module, such as ``python3`` in ``python3 -m pytest``, *runner* what runs it in an
    environment, such as ``uv run``. *text* is the command as typed, without redirections and
    wrappers such as ``timeout 60``.
    """

    program: str
    words: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    interpreter: str = ""
    text: str = ""
    runner: str = ""

    @property
    def launcher(self) -> str:
        """Return what is typed before the arguments: the program, with what runs it."""
        program = f"{self.interpreter} -m {self.program}" if self.interpreter else self.program
        return f"{self.runner} {program}" if self.runner else program

    @property
    def installs(self) -> bool:
        """True for a package manager's command that installs."""
        program, _, verb = self.program.partition(" ")
        return program in _INSTALLERS and (verb or next(iter(self.words), "")) in _INSTALLING

    @property
    def packages(self) -> dict[str, str]:
        """The packages that are named, in one spelling, with the version that is required.

        The repository itself is ``.``; a list of requirements stands by its file.
        """
        packages: dict[str, str] = {}
        for word in self.words:
            if word in _INSTALLING:
                continue
            if word.startswith(".") and not word.endswith(".txt"):
                packages["."] = ""
            elif word.endswith((".txt", ".toml", ".yml", ".yaml")) or "/" in word:
                packages[word] = ""
            elif match := _REQUIREMENT.fullmatch(word):
                packages[match[1].lower().replace("_", "-")] = match[2] or ""
        return packages

    @property
    def name(self) -> str:
        """The program as all projects know it: test runners and scripts by placeholders."""
        if self.program in _TEST_RUNNERS:
            return TEST_RUNNER
        if self.program.startswith("python") and self.words[:1] and is_path(self.words[0]):
            script = posixpath.basename(self.words[0])
            return f"{self.program} {script if script in _KNOWN_SCRIPTS else SCRIPT}"
        is_file = "/" in self.program or self.program.endswith((".sh", ".py"))
        return SCRIPT if is_file else self.program


@lru_cache(2048)
def commands_in(line: str) -> tuple[Command, ...]:
    """Return the simple commands of *line* in order, without those that only filter output."""
    commands = (
        _command(command)
        for command in map(_unwrapped, _commands(line[:_LONGEST]))
        if not command.piped
    )
    return tuple(command for command in commands if command)


def folder_of(line: str) -> str:
    """Return the folder into which *line* changes before it runs what it is for; empty for none."""
    changes = (
        command for command in commands_in(line)[:-1] if command.program == "cd" and command.words
    )
    return next((change.words[0] for change in changes), "")


def is_path(word: str) -> bool:
    """True for a word that names a file or folder."""
    if word in (".", "..", "/", "~"):
        return True
    if word[:1] in "-\"'" or re.search(r"[\s()=*?]", word):
        return False
    return "/" in word or bool(re.search(r"\w\.[A-Za-z]\w{0,4}$", word))


def names_program(program: str, attempt: str) -> bool:
    """Return True if *attempt*, a shell line, names *program*."""
    return re.search(rf"(?<![\w-]){re.escape(program)}\b", attempt) is not None


def is_never_installed(module: str, attempt: str) -> bool:
    """True for a submodule, whose package was found, and for what an option of *attempt* names."""
    return "." in module or bool(re.search(rf"\s--[\w-]+[= ]{re.escape(module)}\b", attempt))


def is_own_module(module: str, repo: str, open_file: str = "", listed: str = "") -> bool:
    """True for a module of the repository: it is called so, or a folder of the open file is.

    So is what a summary of the repository has *listed* among its files and folders.
    """
    name = module.partition(".")[0].casefold()
    owner = repo.casefold().rpartition("/")[2]
    folders = open_file.casefold().split("/")[:-1]
    if name in folders or name.replace("_", "-") == owner.replace("_", "-"):
        return True
    if not (name and listed):
        return False
    listed = listed.casefold()
    entries = listed.partition("files: ")[2].split(", ")
    is_listed = name in {entry.rstrip("/").removesuffix(".py") for entry in entries}
    return is_listed or re.search(rf"(?<![\w./-]){re.escape(name)}/", listed) is not None


def _command(command: SimpleCommand) -> Command | None:
    words = _split(command.typed[len(command.typed) - len(command.words) :])
    settings = tuple(map(unquoted, command.settings))
    if words[:1] == ["export"]:
        settings = (*settings, *(word for word in words[1:] if _SETTING.match(word)))
        words = [word for word in words[1:] if word not in settings]
    if not words:
        return Command("export", settings=settings) if settings else None
    program, rest = _program(words)
    runs_module = words[1:2] == ["-m"] and words[2:3] == [program]
    flags = tuple(dict.fromkeys(word for word in rest if _is_flag(word)))
    installs = program.partition(" ")[0] in _INSTALLERS
    valued = _TEXT_VALUED | _VALUED if installs else _TEXT_VALUED
    plain = tuple(
        word
        for before, word in zip(("", *rest), rest, strict=False)
        if not _is_flag(word) and before not in valued
    )
    interpreter = posixpath.basename(words[0]) if runs_module else ""
    tokens = " ".join(command.typed).split()  # without wrappers
    while tokens and (tokens[0] in _WRAPPERS or tokens[0] in _KEYWORDS):
        tokens = tokens[2 if tokens[0] == "timeout" else 1 :]
    text = " ".join(tokens)
    return Command(program, plain, flags, settings, interpreter, text, command.runner)


def _split(typed: Sequence[str]) -> list[str]:
    """Return the words that the shell makes of those *typed*, which are separated by blanks."""
    try:
        # Reading each character in Python, `shlex` takes a tenth of tracing a run: for few words.
        return [
            word
            for one in typed
            for word in ([one] if _BARE.fullmatch(one) else _quoted(one) or shlex.split(one))
        ]
    except ValueError:  # a quotation that goes on beyond the word
        pass
    line = " ".join(typed)
    try:
        return shlex.split(line)
    except ValueError:  # or beyond the text
        return line.split()


def _quoted(word: str) -> list[str]:
    """Return what one quotation holds, in a list; an empty list for anything else."""
    if match := _QUOTATION.fullmatch(word):
        return [match[1] if match[2] is None else _ESCAPED_QUOTE.sub(r"\1", match[2])]
    return []


def _program(words: Sequence[str]) -> tuple[str, list[str]]:
    """The name of what is run, without the folder it is in, and the words after it."""
    name, rest = words[0], list(words[1:])
    if not name.endswith((".sh", ".py")) and not name.startswith("./"):
        name = posixpath.basename(name) or name
    if name.startswith("python") and rest[:1] == ["-m"] and len(rest) > 1:
        name, rest = rest[1], rest[2:]
    name = "pip" if name == "pip3" else name
    verb = rest[0] if rest else ""
    if (name in _WITH_SUBCOMMAND and re.fullmatch(r"[a-z][\w:-]*", verb)) or (
        name in _INSTALLERS and verb in _INSTALLING
    ):
        return f"{name} {verb}", rest[1:]
    return name, rest


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word.startswith("-") and not word[1:2].isdigit()
