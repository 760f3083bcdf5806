"""What an action does: its kind, the command that decides, and the files it touches."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from contextgraph.model import Action, Json
from contextgraph.trace.actions.commands import CommandReading, read_command_line
from contextgraph.trace.actions.kinds import CHANGING, ActionKind
from contextgraph.trace.actions.paths import repository_path

__all__ = ["ActionKind", "ActionReading", "canonical", "new_text", "read_action"]

# Agents that use another tool by habit name the file, too; the edit is meant all the same.
_EDIT = re.compile(r"\s*edit[ \t]+(?:(?P<file>\S+)[ \t]+)?(\d{1,9}):(\d{1,9})[ \t]*(?:\n|$)")
_EDITOR_TEXT = re.compile(r"(?:\w+ )?(view|create|str_replace|insert|undo_edit)[ \t]+(\S+)")

_SHELLS = frozenset(
    {"", "bash", "execute_bash", "run", "shell", "terminal", "sh", "exec", "local_shell"}
    | {"execute_command", "run_command", "run_terminal_cmd", "exec_command", "run_bash"}
    | {"sweagent", "swe-agent", "command", "container.exec", "shell_command"}
)
_EDITORS = frozenset(
    {"str_replace_editor", "str_replace_based_edit_tool", "file_editor", "edit_anthropic"}
)
_EDITOR_KINDS = {
    "view": ActionKind.VIEW,
    "create": ActionKind.CREATE,
    "str_replace": ActionKind.EDIT,
    "insert": ActionKind.EDIT,
    "undo_edit": ActionKind.EDIT,
}
_TOOL_KINDS = {
    "edit": ActionKind.EDIT,
    "multiedit": ActionKind.EDIT,
    "multi_edit": ActionKind.EDIT,
    "notebookedit": ActionKind.EDIT,
    "apply_patch": ActionKind.EDIT,
    "edit_file": ActionKind.EDIT,
    "replace": ActionKind.EDIT,
    "write": ActionKind.CREATE,
    "write_file": ActionKind.CREATE,
    "create": ActionKind.CREATE,
    "read": ActionKind.VIEW,
    "read_file": ActionKind.VIEW,
    "view": ActionKind.VIEW,
    "open": ActionKind.VIEW,
    "grep": ActionKind.SEARCH,
    "glob": ActionKind.SEARCH,
    "search": ActionKind.SEARCH,
    "ls": ActionKind.LIST,
    "list_dir": ActionKind.LIST,
    "run_ipython": ActionKind.RUN,
    "execute_ipython_cell": ActionKind.RUN,
    "ipython": ActionKind.RUN,
    "python": ActionKind.RUN,
    "think": ActionKind.THINK,
    "todowrite": ActionKind.THINK,
    "task_tracker": ActionKind.THINK,
    "update_plan": ActionKind.THINK,
    "finish": ActionKind.SUBMIT,
    "submit": ActionKind.SUBMIT,
}
NEW_TEXT = ("new_str", "new_string", "file_text", "content", "new_text", "text")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w++)\1[^\n]*\n")
_PATH_ARGUMENTS = ("file_path", "path", "filename", "file", "notebook_path", "target_file")


@dataclass(frozen=True, slots=True)
class ActionReading:
    """What an action does.

    *verb* is the program or tool that decides (``pytest``, ``sed``, ``search_dir``), *command* its
    own call without what stands around it, *targets* the files, scripts or tests it touches,
    relative to the repository where that can be told; *changed* are those of them that it creates,
    edits or deletes. *span* are the lines an edit replaces.
    """

    kind: ActionKind
    verb: str
    targets: tuple[str, ...]
    command: str
    changed: tuple[str, ...] = ()
    span: tuple[int, int] | None = None


def read_action(action: Action, cwd: str | None, open_file: str | None) -> ActionReading:
    """What *action* does, given the directory and the file that were open when it was taken."""
    tool = action.tool.lower()
    if tool in _EDITORS or action.text.startswith("str_replace_editor "):
        return _editor(action, cwd)
    if edit := _EDIT.match(action.text):
        return _window_edit(edit, cwd, open_file)
    if tool in _TOOL_KINDS and (action.arguments or not _is_typed(tool, action.text)):
        return _structured(tool, action, cwd)
    command = read_command_line(_command_line(tool, action))
    return _relative(command, cwd, open_file)


def canonical(action: Action, open_file: str | None = None) -> str:
    """A form in which two attempts at the same thing are equal.

    White space is normalised; of an edit the file, the lines and the new content count.
    """
    if edit := _EDIT.match(action.text):
        content = action.text[edit.end() :].rstrip().removesuffix("end_of_edit").rstrip()
        lines = "\n".join(line.rstrip() for line in content.split("\n"))
        return f"edit {edit['file'] or open_file or ''} {edit[2]}:{edit[3]}\n{lines}"
    if action.arguments and action.tool.lower() not in _SHELLS:
        return f"{action.tool} {json.dumps(dict(action.arguments), sort_keys=True)}"
    return " ".join(_command_line(action.tool.lower(), action).split())


def new_text(action: Action, reading: ActionReading) -> tuple[str, ...]:
    """The lines that an edit puts in, without line ends; none for `sed` and its like."""
    for name in NEW_TEXT:
        if isinstance(value := action.arguments.get(name), str):
            return tuple(value.splitlines())
    if reading.span is not None:
        body = action.text.partition("\n")[2].rstrip().removesuffix("end_of_edit")
        return tuple(body.rstrip("\n").splitlines())
    if opening := _HEREDOC.search(action.text):
        body = action.text[opening.end() :].split(f"\n{opening[2]}", 1)[0]
        return tuple(body.splitlines())
    return ()


def _is_typed(tool: str, text: str) -> bool:
    """True where *text* is a command line rather than a tool's name with arguments."""
    return tool in ("python", "open", "create", "edit", "ls", "grep") or "\n" in text


def _command_line(tool: str, action: Action) -> str:
    if not action.arguments or tool not in _SHELLS:
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


def _window_edit(edit: re.Match[str], cwd: str | None, open_file: str | None) -> ActionReading:
    file = edit["file"] or open_file
    targets = (repository_path(file, cwd),) if file else ()
    command = f"edit {edit[2]}:{edit[3]}"
    span = (int(edit[2]), int(edit[3]))
    return ActionReading(ActionKind.EDIT, "edit", targets, command, targets, span)


def _editor(action: Action, cwd: str | None) -> ActionReading:
    verb, path = _string(action.arguments, "command"), _path(action.arguments)
    if not verb and (match := _EDITOR_TEXT.match(action.text.strip())):
        verb, path = match[1], match[2].strip("'\"")
    kind = _EDITOR_KINDS.get(verb, ActionKind.OTHER)
    targets = (repository_path(path, cwd),) if path else ()
    changed = targets if kind in CHANGING else ()
    return ActionReading(kind, verb or action.tool, targets, f"{verb} {path}".strip(), changed)


def _structured(tool: str, action: Action, cwd: str | None) -> ActionReading:
    path = _path(action.arguments)
    pattern = _string(action.arguments, "pattern") or _string(action.arguments, "query")
    targets = (repository_path(path, cwd),) if path else ()
    command = " ".join(part for part in (tool, pattern, path) if part)
    kind = _TOOL_KINDS[tool]
    return ActionReading(kind, tool, targets, command, targets if kind in CHANGING else ())


def _relative(command: CommandReading, cwd: str | None, open_file: str | None) -> ActionReading:
    paths = command.targets
    if command.on_open_file and open_file:
        paths = (open_file, *paths)
    where = _directory(cwd, command.directory)
    relative = {path: repository_path(path, where) for path in (*paths, *command.changed)}
    targets = tuple(dict.fromkeys(relative[path] for path in paths))
    changed = tuple(dict.fromkeys(relative[path] for path in command.changed))
    return ActionReading(command.kind, command.verb, targets, command.text, changed)


def _directory(cwd: str | None, directory: str | None) -> str | None:
    """Where a command ran that was preceded by ``cd directory``."""
    if directory is None:
        return cwd
    return directory if directory.startswith("/") or not cwd else f"{cwd}/{directory}"


def _string(arguments: Mapping[str, Json], name: str) -> str:
    value = arguments.get(name)
    return value if isinstance(value, str) else ""


def _path(arguments: Mapping[str, Json]) -> str:
    return next((value for name in _PATH_ARGUMENTS if (value := _string(arguments, name))), "")
