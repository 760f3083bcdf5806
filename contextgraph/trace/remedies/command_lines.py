"""Shell lines: their parts, and the programs, words, flags and settings of each command."""

import posixpath
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from contextgraph.trace.actions.commands import read_command_line
from contextgraph.trace.actions.kinds import ActionKind

if TYPE_CHECKING:
    from contextgraph.trace.steps import StepTrace

_PART = re.compile(
    r"""((?:[^;&|'"\n\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*"|&(?!&)|\|(?!\|))+)|&&|\|\||.""", re.DOTALL
)
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)")
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
_LONGEST = 4_000

_SEPARATED = re.compile(
    r"""((?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^&|;\n'"\\]|(?<=>)&|&(?=>))+)|(\|\|?|&&?|;|\n|.)"""
)
_SETTING = re.compile(r"([A-Za-z_]\w*)=\S*")
_REDIRECTION = re.compile(r"(?:\s\d?>{1,2}\s*(?:&\d|\S+)|\s&>\s*\S+|<<-?\s*['\"]?\w+['\"]?)")
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*((?:[=<>!~]=?|===).*)?")
_INSTALLERS = frozenset(
    {"pip", "apt", "apt-get", "conda", "mamba", "brew", "poetry", "npm", "yarn", "pnpm", "uv"}
    | {"yum", "dnf", "apk", "easy_install", "gem", "cargo"}
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
_WRAPPERS = frozenset({"sudo", "time", "timeout", "nohup", "env", "exec", "nice"})
_TEST_RUNNERS = frozenset({"pytest", "py.test", "nosetests", "nose2", "tox", "unittest", "trial"})
TEST_RUNNER = "<test runner>"
SCRIPT = "<script>"
_LINE_READ = 1_000


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
    line = what_ran(step.step.action.text.strip()[:_LONGEST], failed=step.error is not None)
    parts = _parts(line)
    return next((part for part in reversed(parts) if _STATEFUL.match(part)), "")


def run_of(step: "StepTrace") -> str:
    """What the line of *step* runs, without what it changes first."""
    return line_of(step).runs or step.step.action.text


def shell_line(text: str) -> ShellLine:
    """What the line *text* changes and runs, as typed."""
    parts = _parts(text[:_LONGEST])
    changes = tuple(part for part in parts if _is_change(part))
    others = [part for part in parts if part not in changes and not part.startswith("cd ")]
    return ShellLine(changes, others[-1] if others else "")


def what_ran(line: str, *, failed: bool) -> str:
    """*line* with one command of each ``a || b``: the first, or the last if an error was shown."""
    if "||" not in line or "<<" in line:
        return line
    kept: list[str] = []
    is_alternative = False
    for match in _PART.finditer(line):
        separator = "" if match[1] else match.group()
        if separator == "||":
            if failed and kept:
                kept.pop()
            is_alternative = True
        elif separator:
            kept.append(separator)
            is_alternative = False
        elif failed or not is_alternative:
            kept.append(match[1])
    return "".join(kept).strip()


def _is_change(part: str) -> bool:
    if _RESTORING.match(part):
        return True
    reading = read_command_line(part)
    return reading.kind in _CHANGING or bool(reading.changed)


def _parts(text: str) -> list[str]:
    """The commands of a line, each heredoc with its command."""
    parts: list[str] = []
    position, waiting = 0, ""
    while match := _PART.match(text, position):
        position = match.end()
        if match[1] and (part := match[1].strip()):
            parts.append(part)
            opening = _HEREDOC.search(part)
            waiting = opening[1] if opening else waiting
        elif waiting and match.group() == "\n":
            end = text.find(f"\n{waiting}", position - 1)
            end = len(text) if end < 0 else end + 1 + len(waiting)
            fed = max(at for at, part in enumerate(parts) if "<<" in part)
            parts[fed] = f"{parts[fed]}\n{text[position:end]}"
            position, waiting = end, ""
    return parts


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command: the *program* (with `-m` module or subcommand), its words and flags.

    *settings* are the environment variables set for it, as ``NAME=value``; *interpreter* is what
    runs a module, such as ``python3`` in ``python3 -m pytest``. *text* is the command as typed,
    without redirections and wrappers such as ``timeout 60``.
    """

    program: str
    words: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    interpreter: str = ""
    text: str = ""

    @property
    def launcher(self) -> str:
        """What is typed before the arguments: the program, with what runs it."""
        return f"{self.interpreter} -m {self.program}" if self.interpreter else self.program

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


_KNOWN_SCRIPTS = frozenset({"setup.py", "manage.py", "runtests.py"})


@lru_cache(2048)
def commands_in(line: str) -> tuple[Command, ...]:
    """The simple commands of *line* in order, without those that only filter output."""
    commands: list[Command] = []
    separator = ""
    for match in _SEPARATED.finditer(line[:_LINE_READ]):
        if match[2]:
            separator = match[2]
        elif separator != "|" and (command := _command(match[1])):
            commands.append(command)
    return tuple(commands)


def folder_of(line: str) -> str:
    """The folder into which *line* changes before it runs what it is for; empty for none."""
    changes = (
        command for command in commands_in(line)[:-1] if command.program == "cd" and command.words
    )
    return next((change.words[0] for change in changes), "")


def looks(program: str) -> bool:
    """True for a program that only shows files or folders."""
    return read_command_line(program).kind.reads


def is_path(word: str) -> bool:
    """True for a word that names a file or folder."""
    if word in (".", "..", "/", "~"):
        return True
    if word[:1] in "-\"'" or re.search(r"[\s()=*?]", word):
        return False
    return "/" in word or bool(re.search(r"\w\.[A-Za-z]\w{0,4}$", word))


def _command(text: str) -> Command | None:
    typed = _REDIRECTION.sub(" ", f" {text}")
    words = _words(typed)
    settings: list[str] = []
    if words[:1] == ["export"]:
        words = words[1:]
    while words and (_SETTING.fullmatch(words[0]) or words[0] in _WRAPPERS):
        if "=" in words[0]:
            settings.append(words[0])
        elif words[0] == "timeout":
            words = [words[0], *(word for word in words[1:] if not word[:1].isdigit())]
        words = words[1:]
    if not words:
        return Command("export", settings=tuple(settings)) if settings else None
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
    return Command(program, plain, flags, tuple(settings), interpreter, _unwrapped(typed))


def _unwrapped(typed: str) -> str:
    """The command *typed*, with single spaces and without wrappers."""
    tokens = typed.split()
    while tokens and tokens[0] in _WRAPPERS:
        tokens = tokens[2 if tokens[0] == "timeout" else 1 :]
    return " ".join(tokens)


def _program(words: Sequence[str]) -> tuple[str, list[str]]:
    """The name of what is run, without the folder it is in, and the words after it."""
    name, rest = words[0], list(words[1:])
    if not name.endswith((".sh", ".py")) and not name.startswith("./"):
        name = posixpath.basename(name) or name
    if name.startswith("python") and rest[:1] == ["-m"] and len(rest) > 1:
        name, rest = rest[1], rest[2:]
    name = "pip" if name == "pip3" else name
    if name in _WITH_SUBCOMMAND and rest and re.fullmatch(r"[a-z][\w:-]*", rest[0]):
        return f"{name} {rest[0]}", rest[1:]
    return name, rest


def _words(part: str) -> list[str]:
    try:
        return shlex.split(part)
    except ValueError:  # a quotation that goes on beyond the text
        return part.split()


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word.startswith("-") and not word[1:2].isdigit()
