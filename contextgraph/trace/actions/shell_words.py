"""A command line taken apart: its simple commands, their words, redirections and heredocs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\f\v]++|\\\n)
    |(?P<comment>\#[^\n]*+)
    |(?P<heredoc><<-?[ \t]*+(?P<quote>['"]?)(?P<tag>[A-Za-z_][\w.-]*+)(?P=quote))
    |(?P<redirect>\d?(?:&>>?|>>|>\||>&|<<<|<&|>|<))
    |(?P<operator>&&|\|\||;;|\|&|[;|&\n()])
    |(?P<word>(?:[^\s'"\\;|&<>()]|\\.|'[^']*+'|"(?:[^"\\]|\\.)*+")++|['"\\])""",
    re.VERBOSE | re.DOTALL,
)
_SPECIAL = re.compile(r"[;|&<>()\n\\'\"#]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*+=")
# A line of more words is a paste, whose beginning shows what it does.
_TOKENS_READ = 4000
_KEYWORDS = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "{", "time"})
_WRAPPERS = frozenset(
    {"sudo", "env", "nohup", "timeout", "xvfb-run", "exec", "command", "stdbuf", "nice", "npx"}
    | {"uv", "poetry", "pipenv", "hatch", "pdm", "coverage", "bundle"}
)
_RUNNERS = frozenset({"uv", "poetry", "pipenv", "hatch", "pdm", "coverage"})


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
    if _SPECIAL.search(line) is None:
        if words := tuple(line.split(maxsplit=_TOKENS_READ)):
            yield _unwrapped(SimpleCommand(words))
        return
    for command in map(_unwrapped, _commands(line)):
        if command.words or command.written:
            yield command


def _commands(line: str) -> Iterator[SimpleCommand]:
    words: list[str] = []
    written: list[str] = []
    tags: list[str] = []
    bodies: list[str] = []
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
            redirection = match.group().lstrip("012&")
            if redirection in (">", ">>", ">|"):
                waiting = written
            # The number after `2>&` is not an argument.
            elif redirection in (">&", "<&"):
                waiting = []
        elif kind == "operator":
            if match.group() == "\n" or line.startswith("\n", position):
                position = _heredocs(line, position, tags, bodies)
            yield SimpleCommand(tuple(words), tuple(written), "\n".join(bodies), piped)
            piped = match.group() in ("|", "|&")
            words, written, bodies, waiting = [], [], [], None
    yield SimpleCommand(tuple(words), tuple(written), "\n".join(bodies), piped)


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
