"""Remedies from commands: changed commands, and preparations for the next attempt."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence

from contextgraph.lazy import regex
from contextgraph.model import RemedyAction, RemedyKind, RemedyPattern
from contextgraph.trace.actions import looks, run_of
from contextgraph.trace.edits import Names, Term, folder_placeholder, path_placeholder, retry
from contextgraph.trace.shell import SCRIPT, Command, commands_in, folder_of, is_path
from contextgraph.trace.steps import StepTrace
from contextgraph.trace.wording import command_text

COMMAND_CHARS = 200
ANY_VERSION = "any version"

_SHAPE_CHARS = 60
_PROGRAM = regex(r"(?:python)?[A-Za-z_][\w+-]*|python[\d.]+")
_TOKEN = regex(r"\"[^\"]*\"|'[^']*'|\S+")
_UNDOING = frozenset({"git checkout", "git restore", "git reset", "git stash", "git revert"})
_FILE_NAMES = frozenset({"__init__.py", "conftest.py", "setup.py", "setup.cfg", "pytest.ini"})
_SEARCHING = frozenset({"ls", "find", "grep", "tree", "rg", "find_file", "search_dir"})
_FOLDER_NAMES = frozenset({"src", "tests", "test", "lib", "docs"})

Parameters = list[tuple[str, str]]


def other_command(failed: StepTrace, worked: StepTrace, repo_name: str) -> list[RemedyAction]:
    """Return how the command that *worked* differs from the one that *failed*."""
    was, now = run_of(failed), run_of(worked)
    actions = [*_other_folder(failed, worked)]
    old, new = map(_commands, (failed, worked))
    if old and new and was.split() != now.split():
        actions += _replacement(old[-1], new[-1], was, now, repo_name)
    return actions or [retry(_line(now))]


def _commands(step: StepTrace) -> tuple[Command, ...]:
    # The text of an edit is not a command.
    is_edit = step.reading.verb == "edit"
    return commands_in(step.reading.command if is_edit else run_of(step))


def looked_up(worked: StepTrace, between: Sequence[StepTrace]) -> list[RemedyAction]:
    """The listing or search among *between* that showed the path which was then used."""
    source = next((step for step in reversed(between) if _shows(step, worked)), None)
    if source is None or source.reading.command == worked.reading.command:
        return []
    command = _line(source.step.action.text)
    pattern = RemedyPattern(RemedyKind.SEARCH, _lookup_shape(source.step.action.text))
    return [RemedyAction(RemedyKind.SEARCH, command, pattern)]


def opened(file: str, command: str) -> RemedyAction:
    """The *file* that had to be open for *command*."""
    pattern = RemedyPattern(RemedyKind.OPEN, Term.FILE_TO_LOOK_AT)
    return RemedyAction(RemedyKind.OPEN, file, pattern, parameters=(("command", command),))


def shell_action(part: str, names: Names, edited: frozenset[str]) -> RemedyAction | None:
    """Return what one command of a shell line changes; None where it bears on nothing.

    *edited* are the files that were changed since the error.
    """
    commands = commands_in(part)
    if not commands:
        return None
    command = commands[0]
    if command.program == "export":
        return next(iter(_settings(command, part)), None)
    if command.installs or command.program.endswith("setup.py"):
        return _installed(command, part, names)
    if command.program in _UNDOING and not _is_branch(command):
        return _reverted(command, part, edited)
    if command.program in ("mkdir", "touch"):
        return _created(command, part, names)
    if command.program in ("rm", "rmdir", "unlink"):
        return _deleted(command, part, names)
    return _done(_line(part), RemedyPattern(RemedyKind.OTHER, command.name), part)


def _other_folder(failed: StepTrace, worked: StepTrace) -> Iterator[RemedyAction]:
    """The folder in which *worked* ran, where *failed* ran in another."""
    if not worked.reading.kind.runs:
        return
    was = _folder(failed, failed.step.cwd or "")
    now = _folder(worked, failed.step.cwd or "")
    if not was or not now or now == was:
        return
    pattern = RemedyPattern(RemedyKind.CWD, folder_placeholder(was, now))
    yield RemedyAction(RemedyKind.CWD, now, pattern, was, (("command", _line(run_of(worked))),))


def _folder(step: StepTrace, before: str) -> str:
    """The folder in which the line of *step* ran, which was given while in *before*."""
    folder, cwd = folder_of(step.step.action.text), step.step.cwd or ""
    # Where the shell stays in the folder, the log shows it after the step.
    if not folder.startswith("/") and cwd != before:
        folder = cwd
    return posixpath.normpath(posixpath.join(cwd, folder)) if folder or cwd else ""


def _replacement(
    old: Command, new: Command, was: str, now: str, repo_name: str
) -> Iterator[RemedyAction]:
    settings = tuple(setting for setting in new.settings if setting not in old.settings)
    yield from _settings(Command(new.program, settings=settings), now)
    if new.installs:
        yield _reinstalled(old, new, was, now) if old.installs else _installed(new, now, Names())
    elif old.launcher != new.launcher:
        yield _other_program(old, new, was, now, repo_name)
    elif (old.words, old.flags) != (new.words, new.flags):
        yield _other_arguments(old, new, was, now, repo_name)
    elif not settings:
        pattern = RemedyPattern(RemedyKind.RUN, new.name, parameters=(Term.OTHER_ARGUMENTS,))
        yield RemedyAction(RemedyKind.RUN, _line(now), pattern, _line(was))


def _reinstalled(old: Command, new: Command, was: str, now: str) -> RemedyAction:
    """An installation of other packages than those of *old*, or of other versions."""
    action = _installed(new, now, Names())
    pattern = action.pattern
    if old.packages.keys() == new.packages.keys() and old.packages != new.packages:
        version = pattern.parameters or (ANY_VERSION,)
        pattern = RemedyPattern(pattern.kind, pattern.target, "", version)
    return RemedyAction(action.kind, action.target, pattern, _line(was), action.parameters)


def _settings(command: Command, line: str) -> Iterator[RemedyAction]:
    for setting in command.settings:
        name, _, value = setting.partition("=")
        is_folder = "/" in value or value in (".", "src", "lib") or value.startswith("$PWD")
        general = Term.SOURCE_FOLDER if is_folder or name == "PYTHONPATH" else value
        yield _done(setting, RemedyPattern(RemedyKind.SET_ENV, f"{name}={general}"), line)


def _other_program(old: Command, new: Command, was: str, now: str, repo_name: str) -> RemedyAction:
    """Another program instead of *old*; `find.` for `find .` is the same, run together."""
    letters = (re.sub(r"\W", "", command.program) for command in (old, new))
    if old.program != new.program and len(set(letters)) == 1:
        pattern = RemedyPattern(RemedyKind.USE, new.program, f"{new.program}{Term.ITS_ARGUMENT}")
    elif old.program == new.program:
        launchers = (new.interpreter, old.interpreter)
        if not all(launchers) or old.runner != new.runner:
            launchers = (new.launcher, old.launcher)
        pattern = RemedyPattern(RemedyKind.USE, *launchers)
    elif looks(old.program) or looks(new.program):
        pattern = RemedyPattern(RemedyKind.USE, _shape(now), _shape(was))
    else:
        was_name, name = _shared_name(old, repo_name), _shared_name(new, repo_name)
        if was_name.endswith(f" {SCRIPT}") and name.endswith(f" {SCRIPT}"):
            was_name, name = old.program, new.program
        pattern = RemedyPattern(RemedyKind.USE, name, was_name)
    return RemedyAction(RemedyKind.USE, _line(now), pattern, _line(was))


def _shared_name(command: Command, repo_name: str) -> str:
    """The name of a program; a placeholder for the project's own, and for one that is none."""
    if command.program.replace("_", "-").lower() == repo_name.replace("_", "-").lower():
        return SCRIPT
    is_program = _PROGRAM.fullmatch(command.program.partition(" ")[0]) is not None
    return command.name if is_program or command.name.startswith("<") else Term.UNKNOWN_COMMAND


def _other_arguments(
    old: Command, new: Command, was: str, now: str, repo_name: str
) -> RemedyAction:
    """The same program with other flags, paths or words."""
    came = [word for word in new.words if word not in old.words]
    went = [word for word in old.words if word not in new.words]
    flags = [flag for flag in new.flags if flag not in old.flags]
    dropped = [flag for flag in old.flags if flag not in new.flags]
    parameters: Parameters = [("flag", flag) for flag in flags]
    parameters += [("without_flag", flag) for flag in dropped]
    parameters += [("from", word) for word in went] + [("to", word) for word in came]
    kind = _kind_of(new)
    pattern = _path_pattern(kind, new, went, came, repo_name) or RemedyPattern(
        kind,
        _shared_name(new, repo_name),
        replaced=" ".join(_flag_names(dropped)),
        parameters=_flag_names(flags) if flags or dropped else _other_words(went, came),
    )
    return RemedyAction(kind, _line(now), pattern, _line(was), tuple(parameters))


def _kind_of(command: Command) -> RemedyKind:
    if command.program == "cd":
        return RemedyKind.CWD
    if command.program in _SEARCHING:
        return RemedyKind.SEARCH
    return RemedyKind.OPEN if looks(command.program) else RemedyKind.RUN


def _path_pattern(
    kind: RemedyKind, new: Command, went: Sequence[str], came: Sequence[str], repo_name: str
) -> RemedyPattern | None:
    """How a path was put right; None where something else was changed."""
    if new.program == "goto" and came:
        return RemedyPattern(kind, Term.ANOTHER_LINE)
    looking = kind is not RemedyKind.RUN
    wrong = [word for word in went if is_path(word) or (looking and word.isidentifier())]
    right = [word for word in came if is_path(word) or (looking and word.isidentifier())]
    if len(went) == len(came) == 1 and wrong and right:
        path = path_placeholder(wrong[0], right[0], repo_name)
    elif wrong and not came and kind is RemedyKind.SEARCH:
        path = Term.CURRENT_FOLDER
    elif wrong and right and kind is RemedyKind.SEARCH:
        path = Term.ANOTHER_PATH
    else:
        return None
    old = wrong[0].strip("/")
    replaced = old if path == Term.ANOTHER_PATH and old in _FOLDER_NAMES else ""
    program = (new.name,) if kind in (RemedyKind.SEARCH, RemedyKind.RUN) else ()
    return RemedyPattern(kind, path, replaced, program)


def _flag_names(flags: Iterable[str]) -> tuple[str, ...]:
    return tuple(flag.partition("=")[0] for flag in flags)


def _other_words(went: Sequence[str], came: Sequence[str]) -> tuple[str, ...]:
    """Of words that are not flags only that they differ."""
    if came and went:
        return (Term.OTHER_ARGUMENTS,)
    return (Term.FEWER_ARGUMENTS,) if went else (Term.MORE_ARGUMENTS,)


def _installed(command: Command, line: str, names: Names) -> RemedyAction:
    packages = command.packages
    name, version = next(iter(packages.items()), (".", ""))
    target = " ".join(f"{package}{version}" for package, version in packages.items()) or "."
    program = command.program.partition(" ")[0]
    parameters: tuple[str, ...] = (version,) if version else ()
    if program not in ("pip", "conda", "python"):
        parameters = (version, program)
    package = _package_placeholder(name, names)
    pattern = RemedyPattern(RemedyKind.INSTALL, package, parameters=parameters)
    return _done(target, pattern, line)


def _package_placeholder(name: str, names: Names) -> str:
    if name == ".":
        return Term.THE_REPOSITORY
    if name.endswith((".txt", ".toml", ".yml", ".yaml")):
        return Term.REQUIREMENTS
    wanted = {module.partition(".")[0].lower().replace("_", "-") for module in names.names}
    return Term.MISSING_MODULE if name in wanted else name


def _is_branch(command: Command) -> bool:
    """True for a checkout of another commit rather than of files."""
    named = command.words
    return (
        command.program == "git checkout"
        and bool(named)
        and not any(is_path(word) or word == "." for word in named)
    )


def _reverted(command: Command, part: str, edited: frozenset[str]) -> RemedyAction:
    files = [word for word in command.words if is_path(word)]
    is_edited = any(file in edited for file in files) or (edited and not files)
    general = Term.FILE_JUST_EDITED if is_edited else Term.WORKING_TREE
    target = " ".join(files) or command.program
    return _done(target, RemedyPattern(RemedyKind.REVERT, general), part)


def _created(command: Command, part: str, names: Names) -> RemedyAction:
    path = next(iter(command.words), "")
    name = posixpath.basename(path)
    if command.program == "mkdir":
        named = any(missing.strip("/").startswith(f"{path.strip('/')}/") for missing in names.names)
        general = names.role_of(path) or (Term.PARENT_FOLDER if named else Term.FOLDER)
    elif name in _FILE_NAMES:
        general = name
    else:
        general = names.role_of(path) or Term.FILE
    return _done(path, RemedyPattern(RemedyKind.CREATE, general), part)


def _deleted(command: Command, part: str, names: Names) -> RemedyAction:
    path = next(iter(command.words), "")
    return _done(path, RemedyPattern(RemedyKind.DELETE, names.role_of(path) or Term.FILE), part)


def _done(target: str, pattern: RemedyPattern, line: str) -> RemedyAction:
    """Read the command *line*; returned with the line itself."""
    return RemedyAction(pattern.kind, target, pattern, parameters=(("command", _line(line)),))


def _shows(step: StepTrace, worked: StepTrace) -> bool:
    if not step.reading.kind.searches:
        return False
    shown = step.step.observation or ""
    return any(posixpath.basename(target) in shown for target in worked.reading.targets)


def _lookup_shape(line: str) -> str:
    """The program of a search or listing, with what it goes by."""
    command = commands_in(line)[-1] if commands_in(line) else Command("ls")
    if command.program == "ls":
        return "ls <folder>" if command.words else "ls"
    return f"{command.program} {'<file name>' if command.program.startswith('find') else '<text>'}"


def _shape(line: str) -> str:
    """A command with placeholders for its arguments; its program where that is long."""
    tokens = _TOKEN.findall(line)
    shape = [token if _PROGRAM.fullmatch(token) else Term.UNKNOWN_COMMAND for token in tokens[:1]]
    if shape == [Term.UNKNOWN_COMMAND]:
        return Term.UNKNOWN_COMMAND
    for token in tokens[1:]:
        if token.startswith("-") and len(token) > 1:
            shape.append(token)
        elif token[0] in "\"'":
            shape.append("<text>")
        elif token.isdecimal():
            shape.append("<line>")
        else:
            shape.append("<path>" if is_path(token) else "<text>")
    text = " ".join(shape)
    return text if len(text) <= _SHAPE_CHARS else shape[0]


def _line(text: str) -> str:
    return command_text(text, COMMAND_CHARS)
