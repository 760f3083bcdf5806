"""Interprets an action: its kind, the decisive command, and the files it uses."""

import json
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, pairwise

from contextgraph.model import Action, Json, Step
from contextgraph.trace.actions.commands import read_command_line
from contextgraph.trace.actions.kinds import (
    EDITOR_TOOLS,
    KIND_OF_EDITOR_COMMAND,
    KIND_OF_TOOL,
    SHELL_TOOLS,
    ActionKind,
)
from contextgraph.trace.shell import simple_commands

__all__ = ["ActionKind", "ActionReading", "canonical", "new_text", "read_action"]

# Agents that use another tool by habit name the file, too; the edit is meant all the same.
_EDIT = re.compile(r"\s*edit[ \t]+(?:(?P<file>\S+)[ \t]+)?(\d{1,9}):(\d{1,9})[ \t]*(?:\n|$)")
_EDITOR_TEXT = re.compile(r"(?:\w+ )?(view|create|str_replace|insert|undo_edit)[ \t]+(\S+)")

NEW_TEXT = ("new_str", "new_string", "file_text", "content", "new_text", "text")
_IMPORT = re.compile(r"\b(?:from\s+([\w.]{1,100})\s+)?import\s+([\w.]{1,100}(?:[ ,\w.]{0,300}))")
_COMMON_MODULES = frozenset({"os", "re", "sys", "traceback", "warnings"})
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w++)\1[^\n]*\n")
# Directories that hold repositories rather than being one, and those whose children do.
_SYSTEM = frozenset({"home", "Users", "tmp", "usr", "root", "opt", "var", "etc", "private", "mnt"})
_NESTED = frozenset({"workspace", "workspaces"})
# Some published logs have this in place of the home folder: such a path is a full one.
_HOME = "./"
# How far into a line `git clone` is looked for, in how many commands, and what it does not clone.
_CLONE_WITHIN = 2000
_COMMANDS_READ = 16
_NOT_CLONED = frozenset(
    {"-", "-b", "--branch", "--depth", "-c", "--config", "-o", "--origin", "-j"}
)
_PATH_ARGUMENTS = ("file_path", "path", "filename", "file", "notebook_path", "target_file")


@dataclass(frozen=True, slots=True)
class ActionReading:
    """What an action does.

    *verb* is the program or tool that decides (``pytest``, ``sed``, ``search_dir``), *command* its
    own call without what stands around it, *targets* the files, scripts or tests it touches,
    relative to the repository where that is known; *changed* are those of them that it creates,
    edits or deletes. *span* are the lines an edit replaces. *scripted* are files that a script of
    the run's own, which this runs, was written to change.
    """

    kind: ActionKind
    verb: str
    targets: tuple[str, ...]
    command: str
    changed: tuple[str, ...] = ()
    span: tuple[int, int] | None = None
    scripted: tuple[str, ...] = ()


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
        """What the action of the next step does."""
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
    for command in islice(simple_commands(line[:_CLONE_WITHIN]), _COMMANDS_READ):
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


def read_action(
    action: Action, cwd: str | None, open_file: str | None, checkout: str = ""
) -> ActionReading:
    """What *action* does, given the directory and the file that were open when it was taken.

    *checkout* is as of `repository_path`.
    """
    tool = action.tool.lower()
    if tool in EDITOR_TOOLS or action.text.startswith("str_replace_editor "):
        reading, where = _editor(action), cwd
    elif edit := _EDIT.match(action.text):
        reading, where = _window_edit(edit, open_file), cwd
    elif action.text.startswith("edit ") and action.text.rstrip().endswith("\nend_of_edit"):
        reading, where = _refused_edit(action.text, open_file), cwd
    elif tool in KIND_OF_TOOL and (action.arguments or not _is_typed(tool, action.text)):
        reading, where = _structured(tool, action), cwd
    else:
        command = read_command_line(_command_line(tool, action))
        first = (open_file,) if command.on_open_file and open_file else ()
        reading = ActionReading(
            command.kind, command.verb, (*first, *command.targets), command.text, command.changed
        )
        where = cwd if command.directory is None else _full_path(command.directory, cwd)
    if not reading.targets and not reading.changed:
        return reading
    relative = {
        path: repository_path(path, where, checkout)
        for path in (*reading.targets, *reading.changed)
    }
    return replace(
        reading,
        targets=tuple(dict.fromkeys(relative[path] for path in reading.targets)),
        changed=tuple(dict.fromkeys(relative[path] for path in reading.changed)),
    )


def canonical(action: Action, open_file: str | None = None) -> str:
    """A form in which two attempts at the same thing are equal.

    White space is normalised; of an edit the file, the lines and the new content count.
    """
    if edit := _EDIT.match(action.text):
        content = action.text[edit.end() :].rstrip().removesuffix("end_of_edit").rstrip()
        lines = "\n".join(line.rstrip() for line in content.split("\n"))
        return f"edit {edit['file'] or open_file or ''} {edit[2]}:{edit[3]}\n{lines}"
    if action.arguments and action.tool.lower() not in SHELL_TOOLS:
        return f"{action.tool} {json.dumps(dict(action.arguments), sort_keys=True)}"
    return " ".join(_command_line(action.tool.lower(), action).split())


def new_text(action: Action, reading: ActionReading) -> tuple[str, ...]:
    """The lines that an edit puts in, without line ends; none for `sed` and its like."""
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


def imported_names(text: str) -> frozenset[str]:
    """What the Python code in *text* imports, but for modules that any script needs."""
    imported: set[str] = set()
    for module, names in _IMPORT.findall(text):
        parts = [part.split(" as ")[0].strip(" ()") for part in names.split(",")]
        imported.update(f"{module}.{part}" if module else part for part in parts if part)
    return frozenset(imported - _COMMON_MODULES)


def _is_typed(tool: str, text: str) -> bool:
    """True where *text* is a command line rather than a tool's name with arguments."""
    return tool in ("python", "open", "create", "edit", "ls", "grep") or "\n" in text


def _command_line(tool: str, action: Action) -> str:
    if not action.arguments or tool not in SHELL_TOOLS:
        return action.text
    for name in ("command", "cmd", "code"):
        value = action.arguments.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            return _argv_line([word for word in value if isinstance(word, str)])
    return action.text


def _argv_line(argv: list[str]) -> str:
    """The line of an argument vector; of ``bash -lc LINE`` the line itself."""
    if len(argv) > 2 and argv[0].endswith("sh") and argv[1].startswith("-") and "c" in argv[1]:
        return argv[2]
    return " ".join(argv)


def _window_edit(edit: re.Match[str], open_file: str | None) -> ActionReading:
    file = edit["file"] or open_file
    targets = (file,) if file else ()
    span = (int(edit[2]), int(edit[3]))
    return ActionReading(
        ActionKind.EDIT, "edit", targets, f"edit {edit[2]}:{edit[3]}", targets, span
    )


def _refused_edit(text: str, open_file: str | None) -> ActionReading:
    """An edit without a readable range, such as `edit 3`: its text is not a command line."""
    targets = (open_file,) if open_file else ()
    return ActionReading(ActionKind.EDIT, "edit", targets, text.partition("\n")[0], targets)


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
    """*path* relative to the repository that *cwd* is in; unchanged where that is unknown.

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
    """*folder*, as it is meant in *cwd*, relative to the repository; empty for its root.

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
