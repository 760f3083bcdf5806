"""Kinds of action, what the action of a step does, and the commands that it uses."""

import json
import posixpath
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

from contextgraph.model import TESTS, Action, ActionKind, CommandUse, Json, Step
from contextgraph.model.values import replace
from contextgraph.text import regex
from contextgraph.trace.shell import (
    SCRIPT,
    Command,
    SimpleCommand,
    commands_in,
    folder_of,
    line_parts,
    simple_commands,
    what_ran,
)

if TYPE_CHECKING:
    from contextgraph.model import ErrorSignature  # not of hooks before a command


KIND_OF_PROGRAM = {
    program: kind
    for kind, programs in {
        ActionKind.EDIT: "edit patch apply_patch ed",
        ActionKind.CREATE: "create touch mkdir cp mv ln install tee",
        ActionKind.VIEW: (
            "open goto scroll_up scroll_down cat head tail less more nl view bat wc file stat od "
            "diff cmp hexdump strings jq column cut sort uniq sed awk"
        ),
        ActionKind.SEARCH: "search_dir search_file find_file grep egrep fgrep rg ag ack find which",
        ActionKind.LIST: "ls tree pwd dir du df",
        ActionKind.RUN: (
            "python node deno bash sh zsh ruby perl php java ts-node tsx Rscript julia cmake "
            "tsc gcc g++ cc clang javac mypy pylint flake8 ruff black isort eslint curl wget"
        ),
        ActionKind.TEST: (
            "pytest py.test tox nox nosetests nose2 unittest trial jest vitest mocha ctest phpunit "
            "rspec stestr zope-testrunner runtests.py runtests.sh run_tests.py run_tests.sh"
        ),
        ActionKind.INSTALL: "pip pip3 apt apt-get conda mamba brew easy_install apk yum dnf",
        ActionKind.DELETE: "rm rmdir unlink",
        ActionKind.VCS: "git hg svn",
        ActionKind.SUBMIT: "submit finish exit_forfeit",
        ActionKind.THINK: "think",
    }.items()
    for program in programs.split()
}

# The tools of agents, by name in lower case: shells, whose command is read as a shell line,
# editors with a subcommand, and all others by the kind of what they do.
_COMMAND_ARGUMENTS = ("command", "cmd", "code", "script", "commands")
SHELL_TOOLS = frozenset(
    {"", "bash", "execute_bash", "run", "shell", "terminal", "sh", "exec", "local_shell"}
    | {"execute_command", "run_command", "run_terminal_cmd", "exec_command", "run_bash"}
    | {"sweagent", "swe-agent", "command", "container.exec", "shell_command", "run_commands"}
    | {"run_shell_command", "run_terminal_command", "run_in_terminal", "developer__shell"}
)
EDITOR_TOOLS = frozenset(
    {"str_replace_editor", "str_replace_based_edit_tool", "file_editor", "edit_anthropic"}
    | {"developer__text_editor", "text_editor"}
)
KIND_OF_EDITOR_COMMAND = {
    "view": ActionKind.VIEW,
    "create": ActionKind.CREATE,
    "write": ActionKind.CREATE,
    "str_replace": ActionKind.EDIT,
    "insert": ActionKind.EDIT,
    "undo_edit": ActionKind.EDIT,
}
KIND_OF_TOOL = {
    tool: kind
    for kind, tools in {
        ActionKind.EDIT: (
            "edit multiedit multi_edit notebookedit edit_notebook apply_patch edit_file replace "
            "patch write_patch repair apply_diff replace_in_file search_and_replace insert_content "
            "strreplace search_replace stringreplace requestcodechange applychange editcode editor"
        ),
        ActionKind.CREATE: (
            "write write_file create create_file write_to_file createfile insertlines appendstring"
        ),
        ActionKind.VIEW: (
            "read read_file read_files read_many_files view open view_image notebookread "
            "bashoutput viewcode view_code requestmorecontext requestcode"
        ),
        ActionKind.SEARCH: (
            "grep glob search search_files search_file_content grep_search file_search "
            "codebase_search list_code_definition_names semanticsearch findclass findfunction "
            "findcodesnippet searchcode identifycode search_class search_class_in_file "
            "search_method search_method_in_file search_method_in_class search_code "
            "search_code_in_file websearch web_search google_web_search locate_files "
            "locate_code locate_edits"
        ),
        ActionKind.LIST: "ls list_dir list_directory list_files list",
        ActionKind.RUN: "run_ipython execute_ipython_cell ipython python",
        ActionKind.TEST: "runtests run_tests",
        ActionKind.DELETE: "delete delete_file",
        ActionKind.THINK: (
            "think todowrite todo_write task_tracker update_plan write_todos update_todo_list "
            "exitplanmode plantocode"
        ),
        ActionKind.SUBMIT: "finish submit attempt_completion finished",
    }.items()
    for tool in tools.split()
}

# Of the commands of one line, the first of these kinds is what the line is for.
PRECEDENCE = (
    ActionKind.SUBMIT,
    ActionKind.TEST,
    ActionKind.RUN,
    ActionKind.EDIT,
    ActionKind.INSTALL,
    ActionKind.CREATE,
    ActionKind.DELETE,
    ActionKind.VCS,
    ActionKind.SEARCH,
    ActionKind.VIEW,
    ActionKind.LIST,
    ActionKind.THINK,
    ActionKind.OTHER,
)


_PYTHON = regex(r"(?:python|pypy)[\d.]*")
_WRITES = regex(r"write_text\(|\.write\(|writelines\(|open\([^)\n]{0,200}['\"][wa]b?['\"]")
_FILE_NAME = regex(r"[\w@+=.-]*[\w-]\.[A-Za-z][\w]{0,9}(?:::\S+)?")
_NO_PATH = regex(r"[*?|^\\ \n]")
_QUOTED_PATH = regex(r"['\"]([\w./-]{1,200}\.\w{1,8})['\"]")
WINDOW_VERBS = frozenset({"goto", "scroll_up", "scroll_down"})
_FEEDING = frozenset({"echo", "printf", "cat", "yes"})
_COPYING = frozenset({"cp", "ln", "install"})
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


CHANGING = frozenset({ActionKind.EDIT, ActionKind.CREATE, ActionKind.DELETE, ActionKind.INSTALL})
RESTORING = regex(r"git\s+(?:checkout|restore|apply|stash|revert|reset)\b|export\s")


# Kinds that change files that were there.
_IN_PART = frozenset({ActionKind.EDIT, ActionKind.DELETE})


class CommandReading(Struct, frozen=True):
    """The deciding command of a line; its *targets* as typed.

    *directory* is where the line went before it, *changed* are the files that any command of the
    line creates, edits or deletes, *made* those that one writes as a whole.
    """

    kind: ActionKind
    verb: str
    targets: tuple[str, ...]
    text: str
    directory: str | None = None
    changed: tuple[str, ...] = ()
    on_open_file: bool = False
    made: tuple[str, ...] = ()


def read_command_line(line: str) -> CommandReading:
    """Read what a shell *line* does."""
    # Agents type the same short lines many times; long ones are not worth the memory.
    return _read_cached(line) if len(line) <= _CACHED_LINE else _read_line(line)


def _read_line(line: str) -> CommandReading:
    readings = []
    directory = None
    feeds = False
    for command in islice(simple_commands(line), _COMMANDS_READ):
        first = command.words[0] if command.words else ""
        if first in ("cd", "pushd") and not command.piped:
            directory = command.words[1] if len(command.words) > 1 else directory
            continue
        # A program reads what is fed to it; any other pipe only filters what was shown.
        if not command.piped:
            feeds = first in _FEEDING
            readings.append(_read(command, directory))
        elif feeds:
            feeds = False
            reading = _read(command, directory)
            if reading.kind.runs or reading.kind is ActionKind.OTHER:
                fed = f"{readings[-1].text} | {reading.text}"
                readings.append(replace(reading, text=fed))
    if not readings:
        return CommandReading(ActionKind.OTHER, "cd" if directory else "", (), line.strip()[:200])
    if len(readings) == 1:
        return readings[0]
    # What a line runs last is what its output shows.
    best = min(reversed(readings), key=lambda reading: PRECEDENCE.index(reading.kind))
    changed = tuple(dict.fromkeys(path for reading in readings for path in reading.changed))
    made = tuple(dict.fromkeys(path for reading in readings for path in reading.made))
    targets = tuple(dict.fromkeys((*best.targets, *changed)))
    return replace(best, targets=targets, changed=changed, made=made)


_read_cached = lru_cache(maxsize=4096)(_read_line)


def _read(command: SimpleCommand, directory: str | None) -> CommandReading:
    verb, rest = _verb(command.words)
    kind = _kind(verb, rest, command)
    written = tuple(path for path in command.written if not path.startswith("/dev/"))
    # A leading pattern or script names no file.
    first = next((at for at, word in enumerate(rest) if not word.startswith("-")), len(rest))
    named = rest[first + 1 :] if verb in _PATTERN_FIRST else rest
    paths = (*written, *(word.split("=", 1)[-1] for word in named if _looks_like_path(word)))
    if kind is ActionKind.EDIT and verb == "python":
        paths = files_written_by(_inline(command))
    changed = paths if kind.changes_files else written
    if verb in _COPYING:
        changed = paths[-1:]  # the others are only read
    # What another command writes, such as `git diff > patch.txt`, was not there before.
    made = () if kind in _IN_PART else changed
    text = " ".join((verb, *rest)).strip()
    return CommandReading(kind, verb, paths, text, directory, changed, verb in WINDOW_VERBS, made)


def files_written_by(program: str) -> tuple[str, ...]:
    """Return the files that the Python code *program* names, at most five, where it writes any."""
    if _WRITES.search(program) is None:
        return ()
    return tuple(dict.fromkeys(_QUOTED_PATH.findall(program)))[:5]


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
        # Flags of the interpreter itself.
        while rest and rest[0] in ("-u", "-B", "-O", "-E", "-s", "-I", "-v", "-W"):
            rest = rest[2 if rest[0] == "-W" else 1 :]
        if len(rest) > 1 and rest[0] == "-m":
            return rest[1], rest[2:]
    if verb == "uv" and rest and rest[0] == "pip":
        return "pip", rest[1:]
    return verb, rest


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


_KIND_BY_ARGUMENTS: dict[str, Callable[[tuple[str, ...]], ActionKind]] = {
    "git": _git,
    **dict.fromkeys(
        ("django", "django-admin"),
        lambda rest: ActionKind.TEST if rest[:1] == ("test",) else ActionKind.RUN,
    ),
    **dict.fromkeys(_PACKAGE_TOOLS, _package_tool),
}


class ShellLine(Struct, frozen=True):
    """The *changes* a line makes to files or the environment, and what it *runs* last."""

    changes: tuple[str, ...]
    runs: str


# What was done about an error is read several times, for each error that was open then.
@lru_cache(maxsize=1024)
def shell_line(text: str) -> ShellLine:
    """Return what the line *text* changes and runs, as typed."""
    parts = [part for _, part in line_parts(text)]
    changes = tuple(part for part in parts if _is_change(part))
    others = [part for part in parts if part not in changes and not part.startswith("cd ")]
    return ShellLine(changes, others[-1] if others else "")


def _is_change(part: str) -> bool:
    if RESTORING.match(part):
        return True
    reading = read_command_line(part)
    return reading.kind in CHANGING or bool(reading.changed)


def looks(program: str) -> bool:
    """True for a program that only shows files or folders."""
    return read_command_line(program).kind.reads


__all__ = ["ActionKind", "ActionReading", "canonical", "new_text", "read_action"]

# Agents that use another tool by habit name the file, too; the edit is meant all the same.
_EDIT = regex(r"\s*edit[ \t]+(?:(?P<file>\S+)[ \t]+)?(\d{1,9}):(\d{1,9})[ \t]*(?:\n|$)")
_EDITOR_TEXT = regex(r"(?:\w+ )?(view|create|str_replace|insert|undo_edit)[ \t]+(\S+)")

NEW_TEXT = ("new_str", "new_string", "file_text", "content", "new_text", "text")
_PROSE = (".md", ".rst", ".txt", ".adoc")
_IMPORT = regex(r"\b(?:from\s+([\w.]{1,100})\s+)?import\s+([\w.]{1,100}(?:[ ,\w.]{0,300}))")
_COMMON_MODULES = frozenset({"os", "re", "sys", "traceback", "warnings"})
_HEREDOC = regex(r"<<-?\s*(['\"]?)(\w++)\1[^\n]*\n")
# Directories that hold repositories rather than being one, and those whose children do.
_SYSTEM = frozenset({"home", "Users", "tmp", "usr", "root", "opt", "var", "etc", "private", "mnt"})
_NESTED = frozenset({"workspace", "workspaces"})
# Some published logs have this in place of the home folder: such a path is a full one.
_HOME = "./"
# How far into a line `git clone` is looked for, in how many commands, and what it does not clone.
_CLONE_WITHIN = 2000
_CLONE_COMMANDS = 16
_NOT_CLONED = frozenset(
    {"-", "-b", "--branch", "--depth", "-c", "--config", "-o", "--origin", "-j"}
)
_PATH_ARGUMENTS = ("file_path", "path", "filename", "file", "notebook_path", "target_file")


class ActionReading(Struct, frozen=True):
    """Reading of an action.

    *verb* is the program or tool that decides (``pytest``, ``sed``, ``search_dir``), *command* its
    own call without what stands around it, *targets* the files, scripts or tests it touches,
    relative to the repository where that is known; *changed* are those of them that it creates,
    edits or deletes, *made* those that it writes as a whole. *span* are the lines an edit replaces.
    *scripted* are files that a script of the run's own, which this runs, was written to change.
    """

    kind: ActionKind
    verb: str
    targets: tuple[str, ...]
    command: str
    changed: tuple[str, ...] = ()
    span: tuple[int, int] | None = None
    scripted: tuple[str, ...] = ()
    made: tuple[str, ...] = ()


class ActionReader:
    """Reads the actions of a growing run, each at constant cost.

    *cwd* and *open_file* are as the last action found them, *checkout* is the folder into which the
    run cloned the project, if it did.
    """

    def __init__(self) -> None:
        self.cwd: str | None = None
        self.checkout = ""
        self._after: tuple[str | None, str | None] = (None, None)
        self._has_changed = False

    def push(self, step: Step) -> ActionReading:
        """Read the action of the next step."""
        # Logs give directory and open file as they are after the action, which saw those before.
        cwd, open_file = self._after
        self.cwd = cwd or step.cwd
        reading = read_action(step.action, self.cwd, open_file, self.checkout)
        # What is cloned once the run has changed something is another project.
        if not self._has_changed and "git clone" in step.action.text[:_CLONE_WITHIN]:
            self.checkout = self.checkout or _cloned(step.action.text, self.cwd)
        self._has_changed = self._has_changed or bool(reading.changed)
        self._after = step.cwd or cwd, step.open_file
        return reading


def _cloned(line: str, cwd: str | None) -> str:
    """The folder that a `git clone` in *line* makes, or finds; empty where that is unknown."""
    folder = cwd
    for command in islice(simple_commands(line[:_CLONE_WITHIN]), _CLONE_COMMANDS):
        program, *rest = command.words or ("",)
        if program == "cd" and rest:
            folder = _full_path(rest[0], folder)
        elif program == "git" and rest[:1] == ["clone"]:
            words = pairwise(rest)
            named = [word for before, word in words if not {before, word[:1]} & _NOT_CLONED]
            if named:
                name = posixpath.basename(named[0].rstrip("/")).removesuffix(".git")
                into = _full_path((*named[1:], name)[0], folder)
                return into if into.startswith(("/", _HOME)) else ""
    return ""


# Without arguments, what is called so is a command line.
_ALSO_PROGRAMS = frozenset({"python", "open", "create", "edit", "ls", "grep"})


def read_action(
    action: Action, cwd: str | None, open_file: str | None, checkout: str = ""
) -> ActionReading:
    """Read *action*, given the directory and the file that were open then.

    *checkout* is as in `repository_path`.
    """
    tool = action.tool.lower()
    opened = (open_file,) if open_file else ()
    if tool in EDITOR_TOOLS or action.text.startswith("str_replace_editor "):
        reading, where = _editor(action), cwd
    elif edit := _EDIT.match(action.text):
        reading, where = _window_edit(edit, open_file), cwd
    elif action.text.startswith("edit ") and action.text.rstrip().endswith("\nend_of_edit"):
        # Without a readable range, such as `edit 3`: its text is not a command line.
        head = action.text.partition("\n")[0]
        reading, where = ActionReading(ActionKind.EDIT, "edit", opened, head, opened), cwd
    elif tool in KIND_OF_TOOL and (
        action.arguments or not (tool in _ALSO_PROGRAMS or "\n" in action.text)
    ):
        reading, where = _structured(tool, action), cwd
    else:
        command = read_command_line(typed_line(action))
        where = cwd if command.directory is None else _full_path(command.directory, cwd)
        targets = (*opened, *command.targets) if command.on_open_file else command.targets
        return ActionReading(
            command.kind,
            command.verb,
            _repository_paths(targets, where, checkout),
            command.text,
            _repository_paths(command.changed, where, checkout),
            made=_repository_paths(command.made, where, checkout),
        )
    targets = _repository_paths(reading.targets, where, checkout)
    changed = _repository_paths(reading.changed, where, checkout)
    made = changed if reading.kind is ActionKind.CREATE else ()
    if (targets, changed, made) == (reading.targets, reading.changed, reading.made):
        return reading
    # Several times as fast as `replace`, for each step.
    return ActionReading(
        reading.kind, reading.verb, targets, reading.command, changed, reading.span, made=made
    )


def _repository_paths(paths: tuple[str, ...], cwd: str | None, checkout: str) -> tuple[str, ...]:
    """The `repository_path` of each of *paths*, each once."""
    if not paths:
        return ()
    if len(paths) == 1:
        return (repository_path(paths[0], cwd, checkout),)
    return tuple(dict.fromkeys([repository_path(path, cwd, checkout) for path in paths]))


def canonical(action: Action, open_file: str | None = None) -> str:
    """Return a form in which two attempts at the same thing are equal.

    White space is normalised; of an edit the file, the lines and the new content count.
    """
    if edit := _EDIT.match(action.text):
        content = action.text[edit.end() :].rstrip().removesuffix("end_of_edit").rstrip()
        lines = "\n".join(line.rstrip() for line in content.split("\n"))
        return f"edit {edit['file'] or open_file or ''} {edit[2]}:{edit[3]}\n{lines}"
    if action.arguments and action.tool.lower() not in SHELL_TOOLS:
        return f"{action.tool} {json.dumps(dict(action.arguments), sort_keys=True)}"
    return " ".join(typed_line(action).split())


def new_text(action: Action, reading: ActionReading) -> tuple[str, ...]:
    """Return the lines that an edit puts in, without line ends; none for `sed` and its like."""
    if action.arguments:
        for name in NEW_TEXT:
            if isinstance(value := action.arguments.get(name), str):
                return tuple(value.splitlines())
    if reading.span is not None:
        body = action.text.partition("\n")[2].rstrip().removesuffix("end_of_edit")
        return tuple(body.rstrip("\n").splitlines())
    if "<<" in action.text and (opening := _HEREDOC.search(action.text)):
        body = action.text[opening.end() :].split(f"\n{opening[2]}", 1)[0]
        return tuple(body.splitlines())
    return ()


def is_prose(path: str) -> bool:
    """Return True where *path* has the ending of a text for people."""
    return path.endswith(_PROSE)


def imported_names(text: str) -> frozenset[str]:
    """Return imports of the Python code in *text*, without modules that any script needs."""
    imported: set[str] = set()
    for module, names in _IMPORT.findall(text):
        parts = [part.split(" as ")[0].strip(" ()") for part in names.split(",")]
        imported.update(f"{module}.{part}" if module else part for part in parts if part)
    return frozenset(imported - _COMMON_MODULES)


def command_in(arguments: Mapping[str, Json]) -> str | None:
    """Return the shell line in the *arguments* of a call, a text or a list; None without one."""
    for name in _COMMAND_ARGUMENTS:
        value = arguments.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value:
            return command_line([str(word) for word in value])
    return None


def command_line(words: Sequence[str]) -> str:
    """Return the line of an argument vector; of ``bash -lc LINE`` the line itself."""
    if len(words) > 2 and words[0].endswith("sh") and words[1].startswith("-") and "c" in words[1]:
        return words[2]
    return words[0] if len(words) == 1 else shlex.join(words)


def shell_text(action: Action) -> str:
    """Return the text of *action* where it is one for a shell; empty for any other."""
    return action.text if action.tool.lower() in SHELL_TOOLS else ""


def typed_line(action: Action) -> str:
    """Return the line that *action* gives to a shell; the text of any other action."""
    is_shell = action.arguments and action.tool.lower() in SHELL_TOOLS
    line = command_in(action.arguments) if is_shell else None
    return action.text if line is None else line


def _window_edit(edit: re.Match[str], open_file: str | None) -> ActionReading:
    file = edit["file"] or open_file
    targets = (file,) if file else ()
    span = (int(edit[2]), int(edit[3]))
    return ActionReading(
        ActionKind.EDIT, "edit", targets, f"edit {edit[2]}:{edit[3]}", targets, span
    )


def _editor(action: Action) -> ActionReading:
    verb, path = _string(action.arguments, "command"), _path(action.arguments)
    if not verb and (match := _EDITOR_TEXT.match(action.text.strip())):
        verb, path = match[1], match[2].strip("'\"")
    kind = KIND_OF_EDITOR_COMMAND.get(verb, ActionKind.OTHER)
    targets = (path,) if path else ()
    changed = targets if kind.changes_files else ()
    return ActionReading(kind, verb or action.tool, targets, f"{verb} {path}".strip(), changed)


def _structured(tool: str, action: Action) -> ActionReading:
    path = _path(action.arguments)
    pattern = _string(action.arguments, "pattern") or _string(action.arguments, "query")
    targets = (path,) if path else ()
    command = " ".join(part for part in (tool, pattern, path) if part)
    kind = KIND_OF_TOOL[tool]
    return ActionReading(kind, tool, targets, command, targets if kind.changes_files else ())


def _string(arguments: Mapping[str, Json], name: str) -> str:
    value = arguments.get(name)
    return value if isinstance(value, str) else ""


def _path(arguments: Mapping[str, Json]) -> str:
    return next((value for name in _PATH_ARGUMENTS if (value := _string(arguments, name))), "")


# A run names the same few files many times.
@lru_cache(maxsize=4096)
def repository_path(path: str, cwd: str | None, checkout: str = "") -> str:
    """Return *path* relative to the repository that *cwd* is in; unchanged where that is unknown.

    *checkout* is the folder of the repository, where the run showed it. What lies beside it is
    named from there, with `..`.
    """
    full = _full_path(path, cwd)
    if checkout:
        beside = posixpath.dirname(checkout)
        if full.startswith(f"{checkout if beside in ('', '/') else beside}/"):
            return posixpath.relpath(full, checkout)
    if not full.startswith(("/", _HOME)):
        return full
    root = _repository_root(full, cwd)
    if full.startswith(root + "/"):
        return full[len(root) + 1 :]
    return posixpath.relpath(full, root) if full.startswith(_HOME) else full


def _full_path(path: str, cwd: str | None) -> str:
    """*path* as it is meant in *cwd*, normalised; it begins with `./` where *cwd* does."""
    if not cwd or not cwd.startswith(_HOME):
        return posixpath.normpath(posixpath.join(cwd or "", path))
    named, here = posixpath.normpath(path), posixpath.normpath(cwd)
    if named.split("/")[0] != here.split("/")[0]:
        named = posixpath.normpath(posixpath.join(here, named))
    return named if named.startswith("/") else f"{_HOME}{named}"


def within_repository(folder: str, cwd: str | None) -> str:
    """Return *folder*, as it is meant in *cwd*, relative to the repository; empty for its root.

    One of both has to be a full path.
    """
    full = _full_path(folder, cwd)
    return "" if full == _repository_root(full, cwd) else repository_path(full, cwd)


def _repository_root(full: str, cwd: str | None) -> str:
    """The directory that is taken for the root of the repository."""
    if cwd and full.startswith(_HOME):
        return _full_path(".", cwd)
    parts = full.split("/")
    if parts[1] in _SYSTEM:
        return posixpath.normpath(cwd) if cwd and cwd.count("/") > 1 else full
    depth = 3 if parts[1] in _NESTED else 2
    return "/".join(parts[:depth])


RUNNABLE = frozenset({ActionKind.TEST, ActionKind.RUN, ActionKind.INSTALL, ActionKind.OTHER})
_NO_FOLDER = "bash: No such file or directory"
_PROJECT = regex(r" (?:-e|--editable)[ =]([\w./-]*\w)/?(?![\w./-])")
_NO_PROJECT = "pip: is not a valid editable requirement"
_IMPORTS = frozenset({"ModuleNotFoundError", "ImportError"})
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


def command_use(line: str, created: Collection[str] = ()) -> CommandUse | None:
    """Return the purpose of *line*, as if it had run; None where it runs nothing."""
    step = Step(0, "", Action("bash", line), "")
    return next(reversed([*uses_of(step, None, None, created)]), None)


def uses_of(
    step: Step,
    error: "ErrorSignature | None",
    cwd: str | None,
    created: Collection[str],
    checkout: str = "",
) -> Iterator[CommandUse]:
    """The commands of a shell line, which met *error*; what installs *checkout* as from there.

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
        misses_folder = error.error_type == _NO_PROJECT or (
            target and error.error_type == _NO_FOLDER and target in error.message
        )
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
                project = installs and checkout and _PROJECT.search(form)
                if project and posixpath.basename(project[1]) == posixpath.basename(checkout):
                    within = _PROJECT.sub(" -e .", form)
                    yield CommandUse(kind, command.text, within, "", ran, reason)
                else:
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


def _ran(kind: ActionKind, error: "ErrorSignature") -> bool:
    """Return True where what met *error* ran: its imports worked, and it got to its purpose."""
    from contextgraph.model import EXCEPTIONS, Family

    if error.error_type in _IMPORTS or kind is ActionKind.INSTALL:
        return False
    if kind is ActionKind.TEST:
        return error.family is Family.TEST_FAILURE and not error.error_type.startswith("pytest: ")
    return error.family in EXCEPTIONS
