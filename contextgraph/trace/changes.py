"""Remedies from what was changed: the command, the edit, the file, and preparations for them."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence

from contextgraph.model import ErrorSignature, RemedyAction, RemedyKind, RemedyPattern
from contextgraph.model.values import replace
from contextgraph.text import regex
from contextgraph.text.strings import command_text, identifiers, informative_lines, shortened
from contextgraph.trace.actions import looks
from contextgraph.trace.advice import (
    ANY_VERSION,
    GENERIC_ROLES,
    IN_ENVIRONMENT,
    Construct,
    Edited,
    ImportPath,
    Names,
    Term,
    names_in,
)
from contextgraph.trace.shell import SCRIPT, Command, commands_in, folder_of, is_path
from contextgraph.trace.steps import (
    Change,
    Span,
    StepTrace,
    edited_file,
    new_lines,
    run_of,
    similarity,
)

COMMAND_CHARS = 200

_SHAPE_CHARS = 60
_PROGRAM = regex(r"(?:python)?[A-Za-z_][\w+-]*|python[\d.]+")
_TOKEN = regex(r"\"[^\"]*\"|'[^']*'|\S+")
_UNDOING = frozenset({"git checkout", "git restore", "git reset", "git stash", "git revert"})
_FILE_NAMES = frozenset({"__init__.py", "conftest.py", "setup.py", "setup.cfg", "pytest.ini"})
_SEARCHING = frozenset({"ls", "find", "grep", "tree", "rg", "find_file", "search_dir"})
_SYSTEM = frozenset({"home", "tmp", "usr", "root", "opt", "var", "etc", "mnt"})
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
    """Return the listing or search among *between* that showed the path which was then used."""
    source = next((step for step in reversed(between) if _shows(step, worked)), None)
    if source is None or source.reading.command == worked.reading.command:
        return []
    command = _line(source.step.action.text)
    pattern = RemedyPattern(RemedyKind.SEARCH, _lookup_shape(source.step.action.text))
    return [RemedyAction(RemedyKind.SEARCH, command, pattern)]


def opening(file: str, command: str) -> RemedyAction:
    """Return the *file* that had to be open for *command*."""
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
        path = next(iter(command.words), "")
        pattern = RemedyPattern(RemedyKind.DELETE, names.role_of(path) or Term.FILE)
        return _done(path, pattern, part)
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
    # Of words that are not flags only that they differ.
    cases = ((came and went, Term.OTHER_ARGUMENTS), (went, Term.FEWER_ARGUMENTS))
    words = _first_true(cases, Term.MORE_ARGUMENTS)
    pattern = _path_pattern(kind, new, went, came, repo_name) or RemedyPattern(
        kind,
        _shared_name(new, repo_name),
        replaced=" ".join(_flag_names(dropped)),
        parameters=_flag_names(flags) if flags or dropped else (words,),
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
    """Return how a path was put right; None where something else was changed."""
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
    before, own, after = line.partition(command.text)
    # What only shortens the output is left out.
    return _done(target, pattern, line if "||" in after else before + own)


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


def _first_true(cases: Iterable[tuple[object, Term]], otherwise: Term) -> Term:
    return next((term for holds, term in cases if holds), otherwise)


def path_placeholder(wrong: str, right: str, repo_name: str) -> Term:
    """Return how the path *right* differs from the path *wrong* that it replaced."""
    old, new = wrong.strip("/"), right.strip("/")
    is_above = right in ("/", "..") or (new and old.startswith(f"{new}/"))
    # Of a name alone the folder was not known, which is more than a leading slash.
    is_full = right.startswith("/") and "/" in old and new.endswith(f"/{old}")
    head = old.removesuffix(new).strip("/") if new and old.endswith(f"/{new}") else ""
    cases = (
        (right in (".", "./", "~"), Term.CURRENT_FOLDER),
        (is_above, Term.PARENT_FOLDER),
        (without_doubled(old) == new, Term.WITHOUT_DOUBLED),
        (old == new and wrong.startswith("/"), Term.RELATIVE),
        (old == new or is_full, Term.ABSOLUTE),
        (repo_name and head == repo_name, Term.WITHOUT_REPOSITORY),
        (new and old.endswith(f"/{new}"), Term.WITHOUT_FOLDER),
        (old and new.endswith(f"/{old}"), Term.WITH_FOLDER),
        (posixpath.basename(old) == posixpath.basename(new), Term.ELSEWHERE),
    )
    return _first_true(cases, Term.ANOTHER_PATH)


def folder_placeholder(was: str, now: str) -> Term:
    """Where the folder *now* lies, in which a command ran that had failed in *was*."""
    cases = (
        (now.count("/") == 1 < len(now) and now[1:] not in _SYSTEM, Term.REPOSITORY_ROOT),
        (was.startswith(f"{now.rstrip('/')}/") or now == "..", Term.PARENT_FOLDER),
        (now.startswith(f"{was}/"), Term.SUBFOLDER),
    )
    return _first_true(cases, Term.ANOTHER_FOLDER)


def without_doubled(path: str) -> str:
    """Return *path* without the first folder that is named twice in a row; empty where none is."""
    parts = path.split("/")
    for index in range(1, len(parts)):
        if parts[index] and parts[index] == parts[index - 1]:
            return "/".join(parts[:index] + parts[index + 1 :])
    return ""


UNDEFINED = regex(r"undefined name ['\"`]?([A-Za-z_][\w.]*)")
_WORD = regex(r"\w+")
# What stands before a name that a line makes known: imports, definitions, loops, parameters.
_INTRODUCING = regex(
    r"\s*(?:(?:from\s*\S+\s+)?import\b|(?:async\s+)?(?:def|class)\s+\Z"
    r"|(?:async\s+)?def\s+\w+\(|(?:with|for|except)\b)"
)
_ASSIGNED = regex(r"\s*(?::[^=]*)?=[^=]")
_IMPORT = regex(r"\s*(?:from\s+(?P<source>\S+)\s+)?import\s+(?P<names>.+)")
_DEFINITION = regex(r"\s*(?:async\s+)?(?:def|class)\b")
_CONFIGURING = regex(
    r"\b(settings\.configure|django\.setup|sys\.path\.(?:insert|append)|matplotlib\.use"
    r"|os\.environ(?:\.setdefault)?[\[(]\s*['\"]\w+['\"]|set_event_loop_policy|basicConfig)"
)
_QUOTED = regex(r"['\"](\w+)['\"]")
_SPACE = regex(r"\s+")
_TEST_FILE = regex(r"(?:^|/)(?:test_[^/]*|[^/]*_test\.\w+|tests?/.*)$")
_LINE_READ = 500
_MAX_IDENTIFIERS = 24

IMPORTING = frozenset({"ImportError", "ModuleNotFoundError"})


def refused_edit(
    failed: StepTrace, accepted: StepTrace, before: Sequence[StepTrace]
) -> tuple[RemedyAction, ...]:
    """Return the difference between two edits, given those accepted in between."""
    return (
        _definition(failed, accepted, before)
        or _placing(failed, accepted)
        or (_sent_again(failed, accepted, _corrected_text(failed, accepted)),)
    )


def code_change(change: Change, error: ErrorSignature, script: Sequence[str]) -> RemedyAction:
    """Return *change* as an edit about *error* of a command that runs the *script* files."""
    names = names_in(error.error_type, error.message)
    added, removed = identifiers(change.added), identifiers(change.removed)
    adds, drops = sorted(added - removed), sorted(removed - added)
    parameters: Parameters = [("file", change.file)] if change.file else []
    parameters += [("adds", name) for name in adds[:_MAX_IDENTIFIERS]]
    parameters += [("drops", name) for name in drops[:_MAX_IDENTIFIERS]]
    pattern = (
        _configuring(change, error)
        or _named_change(change, names)
        or _pattern(Construct.CODE, _place(change.file, error, script))
    )
    return RemedyAction(
        pattern.kind,
        "\n".join(shortened(change.added, error.keywords)),
        pattern,
        "\n".join(shortened(change.removed, error.keywords)),
        tuple(parameters),
    )


def _pattern(construct: Construct, name: str) -> RemedyPattern:
    return RemedyPattern(RemedyKind.EDIT, Edited(construct, name).target)


def _definition(
    failed: StepTrace, accepted: StepTrace, before: Sequence[StepTrace]
) -> tuple[RemedyAction, ...]:
    """Return the edits that define an undefined name; empty without such an error."""
    match = UNDEFINED.search(failed.error.message) if failed.error else None
    if match is None:
        return ()
    name = match[1].partition(".")[0]
    for step in before:
        if line := _defining(new_lines(step), name):
            return (_definition_by(line, name, edited_file(step), "before"),)
    known = {line.strip() for line in new_lines(failed)}
    added = [line for line in new_lines(accepted) if line.strip() not in known]
    if line := _defining(added, name):
        return (_definition_by(line, name, edited_file(accepted), "same edit"),)
    if _is_used(match[1], failed) and not _is_used(match[1], accepted):
        return (_sent_again(failed, accepted, Term.WITHOUT_UNDEFINED, ("name", match[1])),)
    return ()


def _definition_by(line: str, name: str, file: str, placing: str) -> RemedyAction:
    construct = _construct(line)
    if imported := _IMPORT.match(line):
        construct, line = Construct.IMPORT, _only(imported, name)
    target = Edited(construct, Term.UNDEFINED_NAME).target
    pattern = RemedyPattern(RemedyKind.EDIT, target, parameters=(placing,))
    parameters = (("file", file), ("adds", name), ("placing", placing))
    return RemedyAction(RemedyKind.EDIT, line.strip(), pattern, parameters=parameters)


def _construct(line: str) -> Construct:
    return Construct.DEFINITION if _DEFINITION.match(line) else Construct.ASSIGNMENT


def _only(imported: re.Match[str], name: str) -> str:
    """The import of *name*, without what else its line brings in."""
    source, named = imported["source"], _WORD.findall(imported["names"])
    return f"from {source} import {name}" if source and name in named else imported.group()


def _defining(lines: Sequence[str], name: str) -> str:
    """The first of *lines* that makes *name* known; empty where none does."""
    return next((line for line in lines if name in line and _defines(line[:_LINE_READ], name)), "")


def _defines(line: str, name: str) -> bool:
    for word in _WORD.finditer(line):
        if word.group() == name:
            start, end = word.span()
            if _INTRODUCING.match(line, 0, start):
                return True
            if _ASSIGNED.match(line, end) and not line[:start].strip():
                return True
    return False


def _is_used(name: str, step: StepTrace) -> bool:
    lines = [line[:_LINE_READ] for line in new_lines(step) if name in line]
    return bool(lines) and re.search(rf"\b{re.escape(name)}\b", "\n".join(lines)) is not None


def _placing(failed: StepTrace, accepted: StepTrace) -> tuple[RemedyAction, ...]:
    """Return how the same text was placed otherwise; empty where the text itself was changed."""
    old, new = _text_of(failed), _text_of(accepted)
    if [line.strip() for line in old] != [line.strip() for line in new]:
        return ()
    file = edited_file(accepted)
    if edited_file(failed) != file:
        opening = RemedyPattern(RemedyKind.OPEN, Term.FILE_TO_EDIT)
        return (RemedyAction(RemedyKind.OPEN, file, opening, edited_file(failed)),)
    was_head, head = (step.step.action.text.split("\n", 1)[0] for step in (failed, accepted))
    if was_head.split() != head.split() and file in was_head:
        pattern = RemedyPattern(RemedyKind.RESEND, Term.NO_FILE_NAME)
        return (RemedyAction(RemedyKind.RESEND, head, pattern, was_head, (("file", file),)),)
    was, now = failed.reading.span, accepted.reading.span
    if was is not None and now is not None and was != now:
        return (_sent_again(failed, accepted, _corrected_range(was, now)),)
    if old != new:
        pairs = zip(old, new, strict=True)
        line = next(after for before, after in pairs if before != after)
        indent = f"{len(line) - len(line.lstrip())} spaces"
        again = _sent_again(failed, accepted, Term.INDENTED, ("with", line))
        return (replace(again, target=indent),)
    return (retry(head),)


def retry(what: str) -> RemedyAction:
    """Return the repetition of *what* had failed."""
    return RemedyAction(RemedyKind.RETRY, what, RemedyPattern(RemedyKind.RETRY))


def _text_of(step: StepTrace) -> list[str]:
    return [line.rstrip() for line in new_lines(step) if line.strip()]


def _span(span: Span) -> str:
    return f"{span[0]}:{span[1]}"


def _corrected_range(was: Span, now: Span) -> Term:
    """Return how the lines differ for which the same text was sent again."""
    cases = (
        (now[0] <= was[0] and was[1] < now[1], Term.MORE_LINES),
        (now[0] < was[0] and was[1] == now[1], Term.MORE_LINES_BEFORE),
        (was[0] <= now[0] and now[1] <= was[1], Term.FEWER_LINES),
    )
    return _first_true(cases, Term.OTHER_LINES)


def _corrected_text(failed: StepTrace, accepted: StepTrace) -> Term:
    """Return how the text differs that was sent again, and whether the lines had to."""
    old, new = _text_of(failed), _text_of(accepted)
    come, gone = _differences(old, new)
    was, now = failed.reading.span or (0, 0), accepted.reading.span or (0, 0)
    is_opened = come and come[0].rstrip().endswith(":") and (now[0] < was[0] or not gone)
    is_shorter = now[1] - now[0] < was[1] - was[0]
    cases = (
        (not new, Term.LINES_DELETED),
        (similarity(old, new) == 0.0, Term.OTHER_TEXT),
        (come and not gone and now[1] > was[1], Term.MORE_LINES_REPEATED),
        (is_opened, Term.BLOCK_LINE),
        (gone and not come and is_shorter, Term.FEWER_LINES),
        (_SPACE.sub("", "".join(gone)) == _SPACE.sub("", "".join(come)), Term.REORDERED),
    )
    return _first_true(cases, Term.CORRECTED_TEXT)


def _sent_again(
    failed: StepTrace, accepted: StepTrace, term: Term, *more: tuple[str, str]
) -> RemedyAction:
    """The edit that was refused, sent again with what *term* says, for other lines or text."""
    come, gone = _differences(_text_of(failed), _text_of(accepted))
    named = failed.error.keywords if failed.error else ()
    parameters: Parameters = [*more, ("file", edited_file(accepted))]
    parameters += [("with", line) for line in informative_lines(come, named)]
    parameters += [("without", line) for line in informative_lines(gone, named)]
    pattern = RemedyPattern(RemedyKind.RESEND, term)
    was, now = failed.reading.span, accepted.reading.span
    if was is not None and now is not None and was != now:
        parameters += [("lines", _span(now)), ("replaced_lines", _span(was))]
        return RemedyAction(RemedyKind.RESEND, _span(now), pattern, _span(was), tuple(parameters))
    return RemedyAction(RemedyKind.RESEND, "", pattern, parameters=tuple(parameters))


def _differences(old: Sequence[str], new: Sequence[str]) -> tuple[list[str], list[str]]:
    """The lines that came, and those that went."""
    both = {line.strip() for line in old} & {line.strip() for line in new}
    come = [line for line in new if line.strip() not in both]
    return come, [line for line in old if line.strip() not in both]


def _configuring(change: Change, error: ErrorSignature) -> RemedyPattern | None:
    """The setting that *change* makes, None where it makes none that bears on *error*."""
    for line in change.added:
        if match := _CONFIGURING.search(line[:_LINE_READ]):
            # Scripts begin with it: it clears nothing but import errors.
            if match[1].startswith("sys.path") and error.error_type not in IMPORTING:
                continue
            variable = _QUOTED.search(match[1]) if "environ" in match[1] else None
            if variable:
                return RemedyPattern(RemedyKind.CONFIGURE, variable[1], "", (IN_ENVIRONMENT,))
            return RemedyPattern(RemedyKind.CONFIGURE, match[1])
    return None


def _named_change(change: Change, names: Names) -> RemedyPattern | None:
    """Return what *change* does with a name that the error quotes; None without one."""
    added, removed = _words_in(change.added), _words_in(change.removed)
    # What a module or class lacks says more than its own name does.
    pairs = zip(names.names, names.roles, strict=True)
    for quoted, role in sorted(pairs, key=lambda pair: pair[1] != Term.ATTRIBUTE):
        last = quoted.rpartition("/")[2].rpartition(".")[2] or quoted
        name = quoted if role in GENERIC_ROLES else last
        if name not in added and name not in removed:
            continue
        imported = _import_change(change, quoted, name, role)
        if imported is not None:
            return imported
        if name not in added:
            gone = Term.ANOTHER_NAME if change.added else ""
            return RemedyPattern(RemedyKind.EDIT, gone, role)
        if line := _defining(change.added, name):
            return _pattern(_construct(line), role)
        return _pattern(Construct.USE, role)
    return None


def _words_in(lines: Iterable[str]) -> set[str]:
    return {word for line in lines for word in _WORD.findall(line[:_LINE_READ])}


def _import_change(change: Change, quoted: str, name: str, role: str) -> RemedyPattern | None:
    """Return how the import of a name was changed; None where no import of it was."""
    added, removed = (_imports_of(lines, quoted, name) for lines in (change.added, change.removed))
    if not added and not removed:
        return None
    if not added:
        imports = any(_IMPORT.match(line[:_LINE_READ]) for line in change.added)
        instead = Term.ANOTHER_MODULE if imports else ""
        return RemedyPattern(RemedyKind.EDIT, instead, Edited(Construct.IMPORT, role).target)
    if not removed:
        return _pattern(Construct.IMPORT, role)
    now = Edited(Construct.IMPORT, role, _import_path(removed[0], added[0]))
    return RemedyPattern(RemedyKind.EDIT, now.target, Edited(Construct.IMPORT, role).target)


def _imports_of(lines: Iterable[str], quoted: str, name: str) -> list[str]:
    """The modules from which *lines* import a name, or by which they name it."""
    modules = []
    for line in lines:
        match = _IMPORT.match(line[:_LINE_READ])
        if match and (name in _WORD.findall(match["names"]) or quoted in line.split()):
            modules.append(match["source"] or match["names"].split()[0].strip(","))
    return modules


def _import_path(was: str, now: str) -> ImportPath:
    if now.startswith(".") != was.startswith("."):
        return ImportPath.RELATIVE if now.startswith(".") else ImportPath.ABSOLUTE
    if now.startswith(f"{was}."):
        return ImportPath.SUBMODULE
    return ImportPath.PARENT if was.startswith(f"{now}.") else ImportPath.OTHER


def _place(file: str, error: ErrorSignature, script: Sequence[str]) -> str:
    """Where a change lies that touches no name of the error."""
    location = posixpath.basename((error.location or "").rpartition(":")[0])
    name = posixpath.basename(file)
    if name and name in {posixpath.basename(target) for target in script}:
        return Term.SCRIPT_THAT_WAS_RUN
    if name and name == location:
        return Term.FILE_AT_FAULT
    return Term.A_TEST if _TEST_FILE.search(file) else Term.ANOTHER_FILE
