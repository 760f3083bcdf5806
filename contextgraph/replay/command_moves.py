"""What a command line does about an error, alone or in the place of one that failed."""

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from contextgraph.model import Action
from contextgraph.replay.corrections import path_moves, right_path
from contextgraph.replay.moves import Move, MoveKind
from contextgraph.trace import ActionKind, read_action

# What stands between `&&`, `||`, `|`, `;` and line ends that are not quoted.
_SIMPLE = re.compile(r"""(?:'[^']*'|"[^"]*"|[^&|;\n⏎]|(?<!&)&(?!&))+""")
_SETTING = re.compile(r"([A-Za-z_]\w*)=\S*")
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*((?:[=<>!~]=?|===).*)?")
_INSTALLERS = frozenset({"pip", "apt", "apt-get", "conda", "mamba", "brew", "poetry", "npm"})
_VALUED = frozenset({"-i", "--index-url", "-c", "--constraint", "-t", "--target", "-f"})
# What follows these says what is done, as the program's own name does not.
_WITH_SUBCOMMAND = frozenset({"git", "pip", "conda", "npm", "poetry", "dvc", "apt-get", "docker"})
_LOOKING = frozenset({ActionKind.VIEW, ActionKind.SEARCH, ActionKind.LIST})


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command: the *program* (with `-m` module or subcommand), its words and flags."""

    program: str
    words: tuple[str, ...]
    flags: frozenset[str]
    settings: tuple[str, ...] = ()


def moves_of_line(line: str, repo: str) -> Iterator[Move]:
    """What the commands of *line* do, where that by itself can be a cure."""
    for command in commands_in(line):
        yield from (Move(MoveKind.SET, name) for name in command.settings)
        if _installs(command):
            yield from (Move(MoveKind.INSTALL, name) for name, _ in _packages(command))
        elif command.program == "mkdir":
            yield from (Move(MoveKind.MAKE, f"{repo}:{word}") for word in command.words)
        elif not _looks(command.program) and command.program not in ("cd", "echo", "export"):
            what = posixpath.basename(command.words[0]) if command.words else ""
            yield Move(MoveKind.RUN, f"{command.program} {what}".strip())


def moves_between(failed: str, worked: str, repo: str) -> Iterator[Move]:
    """What is different in the command line that *worked* from the one that *failed*."""
    before, after = commands_in(failed), commands_in(worked)
    if not before or not after:
        return
    old, new = before[-1], after[-1]
    for earlier in after[: len(after) - 1]:
        if earlier not in before:
            yield from moves_of_line(shlex.join((earlier.program, *earlier.words)), repo)
    yield from (Move(MoveKind.SET, name) for name in new.settings if name not in old.settings)
    if old.program == new.program:
        yield from _same_program(old, new, repo)
    else:
        yield from _other_program(old, new, repo)


def commands_in(line: str) -> tuple[Command, ...]:
    """The simple commands of *line*, in order."""
    found = (_command(_words(part)) for part in _SIMPLE.findall(line))
    return tuple(command for command in found if command)


def _same_program(old: Command, new: Command, repo: str) -> Iterator[Move]:
    if old == new:
        return
    if _installs(new):
        yield from _other_packages(old, new)
        return
    program = new.program
    yield from (Move(MoveKind.FLAG, f"{program} {flag}") for flag in new.flags - old.flags)
    yield from (Move(MoveKind.FLAG, f"{program} not {flag}") for flag in old.flags - new.flags)
    if _looks(program) and (places := _places(old, new)):
        yield from path_moves(*places, repo)
        return
    gone = [word for word in old.words if word not in new.words]
    come = [word for word in new.words if word not in old.words]
    if len(gone) == len(come) == 1 and (_is_path(gone[0]) or _is_path(come[0])):
        yield from path_moves(gone[0], come[0], repo)
    elif gone and not come:
        yield Move(MoveKind.ARGUMENT, f"{program} without {_sort(gone)}")
    elif come and not gone:
        yield Move(MoveKind.ARGUMENT, f"{program} with {_sort(come)}")
    elif come:
        yield Move(MoveKind.ARGUMENT, f"{program} {repo}:{' '.join(come)}")


def _places(old: Command, new: Command) -> tuple[str, str] | None:
    """Where two commands looked, if that differs; what they looked for may change with it."""
    if len(old.words) != len(new.words):
        return None
    pairs = zip(old.words, new.words, strict=True)
    changed = [(a, b) for a, b in pairs if a != b and not a.isdigit()]
    only = len(old.words) == 1 and old.program != "ls"
    if not changed or (only and not any(map(_is_path, changed[-1]))):
        return None
    return changed[-1]


def _other_program(old: Command, new: Command, repo: str) -> Iterator[Move]:
    if _installs(new):
        yield from (Move(MoveKind.INSTALL, name) for name, _ in _packages(new))
    elif _looks(old.program) and _looks(new.program):
        # That another program can look too is no news; where it looked is.
        for word in new.words:
            if _is_path(word) and word not in (".", ".."):
                yield right_path(word, repo)
    else:
        # `find.` for `find .` is no other program but the same, run together with its argument.
        apart = re.sub(r"\W", "", old.program) == re.sub(r"\W", "", new.program)
        other = f"{new.program} apart" if apart else f"{new.program} instead of {old.program}"
        yield Move(MoveKind.USE, other)


def _other_packages(old: Command, new: Command) -> Iterator[Move]:
    before = dict(_packages(old))
    for name, version in _packages(new):
        if name not in before:
            yield Move(MoveKind.INSTALL, name)
        elif version != before[name]:
            yield Move(MoveKind.PIN, f"{name}{version}")
    yield from (Move(MoveKind.FLAG, f"install {flag}") for flag in new.flags - old.flags)


def _command(words: Sequence[str]) -> Command | None:
    settings: list[str] = []
    rest = [word for word in words if word]
    if rest and rest[0] == "export":
        rest = rest[1:]
    while rest and (match := _SETTING.fullmatch(rest[0])):
        settings.append(match[1])
        rest = rest[1:]
    if not rest:
        return Command("export", (), frozenset(), tuple(settings)) if settings else None
    program, rest = _program(rest)
    flags = frozenset(word.split("=")[0] for word in rest if word.startswith("-"))
    # The word after a long flag is taken for its value.
    plain = [
        word
        for before, word in zip(("", *rest), rest, strict=False)
        if not word.startswith("-") and (not before.startswith("--") or "=" in before)
    ]
    return Command(program, tuple(plain), flags, tuple(settings))


def _program(words: list[str]) -> tuple[str, list[str]]:
    """The name of what is run, without the directory it is in, and the words after it."""
    name, rest = posixpath.basename(words[0]) or words[0], words[1:]
    if name in ("sudo", "time", "timeout") and rest:
        return _program([word for word in rest if not word.isdigit()] or rest)
    if name.startswith("python") and rest[:1] == ["-m"] and len(rest) > 1:
        name, rest = rest[1], rest[2:]
    if name == "pip3":
        name = "pip"
    if name in _WITH_SUBCOMMAND and rest and rest[0].isalpha():
        return f"{name} {rest[0]}", rest[1:]
    return name, rest


def _words(part: str) -> list[str]:
    try:
        return shlex.split(part)
    except ValueError:  # a quotation that was cut off
        return part.split()


def _installs(command: Command) -> bool:
    program, _, verb = command.program.partition(" ")
    verb = verb or next(iter(command.words), "")
    return program in _INSTALLERS and verb in ("install", "add")


def _packages(command: Command) -> list[tuple[str, str]]:
    """The packages that are named, in one spelling, with what is asked of their version."""
    found = []
    for word in command.words:
        if word in (".", "install", "add") or "/" in word or word in _VALUED:
            continue
        if match := _REQUIREMENT.fullmatch(word):
            found.append((match[1].lower().replace("_", "-"), match[2] or ""))
    return found or ([(".", "")] if "." in command.words else [])


def _looks(program: str) -> bool:
    return read_action(Action("bash", program), None, None).kind in _LOOKING


def _is_path(word: str) -> bool:
    return "/" in word or bool(re.search(r"\.[A-Za-z]\w{0,4}$", word)) or word in (".", "..")


def _sort(words: Sequence[str]) -> str:
    """What kind of argument these are."""
    sorts = {_sort_of(word) for word in words}
    return " ".join(sorted(sorts))


def _sort_of(word: str) -> str:
    if _is_path(word) or re.fullmatch(r"[A-Za-z_]\w*", word):
        return "path"
    return "number" if word.isdigit() else "text"
