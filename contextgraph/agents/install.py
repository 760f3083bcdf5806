"""Hook configuration in the settings files of agents: install, uninstall, list."""

import hashlib
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from contextgraph.errors import SettingsError
from contextgraph.lazy import dataclass, regex

_SECONDS = 10
_OURS = regex(r"\bcontextgraph\b.*\bhook\b")
_TOOLS = regex(r'"contextgraph"\s*:|^\[mcp_servers\.contextgraph\]', re.MULTILINE)
_INDENT = regex(r'^([ \t]+)"', re.MULTILINE)

Config: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent with hooks: its settings file, and the event names with the tools they match.

    *home* is its folder in the home directory, which *home_variable* of the environment moves.
    *tools* begins its command that adds an MCP server, *tools_file* is where it keeps these.
    """

    name: str
    home: str
    file: str
    events: Mapping[str, str]
    home_variable: str = ""
    note: str = ""
    tools: tuple[str, ...] = ()
    tools_file: str = ""

    def settings_file(self, project: Path | None = None) -> Path:
        """The file of the user, or of the *project* in that folder."""
        if project is not None:
            return project / self.home / self.file
        return self._folder() / self.file

    def is_present(self) -> bool:
        """Whether the agent has been used on this machine."""
        return self._folder().is_dir()

    def has_tools(self) -> bool:
        """Whether it has the tools of a memory."""
        if not self.tools_file:
            return False
        moved = self.home_variable in os.environ
        # Claude Code keeps this file beside its folder, unless that was moved.
        beside = self.tools_file.startswith(".") and not moved
        file = (Path.home() if beside else self._folder()) / self.tools_file
        try:
            return _TOOLS.search(file.read_text()) is not None
        except OSError:
            return False

    def tools_command(self, server: Sequence[str]) -> Sequence[str]:
        """Return what gives it the tools of *server*; empty where it has no such command."""
        return [*self.tools, "contextgraph", "--", *server] if self.tools else []

    def _folder(self) -> Path:
        moved = os.environ.get(self.home_variable) if self.home_variable else None
        return Path(moved) if moved else Path.home() / self.home


def _events(before: str, after: str, *more: str) -> dict[str, str]:
    """The events of all agents, with the tools of those before and after a call, and *more*."""
    shared = {"SessionStart": "", "UserPromptSubmit": "", "PreToolUse": before}
    shared |= {"PostToolUse": after, "Stop": "", "SessionEnd": ""}
    return {**shared, **dict.fromkeys(more, "")}


AGENTS = {
    agent.name: agent
    for agent in (
        Agent(
            "claude-code",
            ".claude",
            "settings.json",
            _events(
                "Bash|Edit|MultiEdit|NotebookEdit|Write",
                # It does not fire where a command fails; many failures end with code 0.
                "Bash",
                "SubagentStart",
                "PostToolUseFailure",
                "PreCompact",
            ),
            home_variable="CLAUDE_CONFIG_DIR",
            tools=("claude", "mcp", "add", "--scope", "user"),
            tools_file=".claude.json",
        ),
        Agent(
            "openhands",
            ".openhands",
            "hooks.json",
            _events("terminal", "terminal"),  # it refuses a file with events that it does not know
            note="OpenHands passes context on at prompts only: remedies wait for the next one",
        ),
        Agent(
            "codex-cli",
            ".codex",
            "hooks.json",
            _events("Bash", "Bash", "SubagentStart", "PreCompact"),
            home_variable="CODEX_HOME",
            tools=("codex", "mcp", "add"),
            tools_file="config.toml",
            note="Codex CLI runs these hooks once you have trusted them (/hooks)",
        ),
    )
}


def hook_command(store: str | None, *, is_shared: bool = False) -> str:
    """Return the command line of the hook, which does nothing where it is not installed.

    One that *is_shared* finds the program by its name; any other may outlive its environment, and
    starts Python without what a hook does not need (`contextgraph.__main__`).
    """
    option = f" --store {shlex.quote(store)}" if store else ""
    if is_shared:
        return f"command -v contextgraph >/dev/null && contextgraph hook{option} || true"
    python = shlex.quote(sys.executable)
    program = shlex.quote(str(Path(__file__).parents[1] / "__main__.py"))
    command = f"{python} -I -S {program} hook{option}"
    return f"test -x {python} && test -f {program} && {command} || true"


class SettingsFile:
    """The settings file *path* of an agent; its former content is in the folder *backup*."""

    def __init__(self, path: Path, backup: Path) -> None:
        self.path = path
        name = hashlib.blake2b(str(path.absolute()).encode(), digest_size=8).hexdigest()
        self._backup = backup / f"{name}.json"

    def has_hooks(self) -> bool:
        """Whether it holds hooks of ContextGraph."""
        config = self._config(self._content())
        return _without_ours(config) != config

    def install(self, agent: Agent, command: str) -> bool:
        """Add the hooks of *agent*; False where they were there already.

        Other entries stay. Raises `SettingsError` for a file that is not as the agent wants it;
        then nothing is written.
        """
        before = self._content()
        config = self._config(before)
        wanted = _with_hooks(_without_ours(config), agent.events, command)
        if wanted == config:
            return False
        after = _written(wanted, before)
        if _without_ours(config) == config:
            self._keep(before, after)
        elif (backup := self._read_backup()).get("after") == before:
            self._keep(backup["before"], after)
        _replace(self.path, after)
        return True

    def uninstall(self) -> bool:
        """Remove the hooks of ContextGraph; False where there are none.

        Where nothing else changed since `install`, the file is as it was, or gone if it was not
        there.
        """
        now = self._content()
        config = self._config(now)
        rest = _without_ours(config)
        if rest == config:
            return False
        backup = self._read_backup()
        before = backup.get("before") if backup.get("after") == now else _written(rest, now)
        self._backup.unlink(missing_ok=True)
        if before is None:
            self.path.unlink()
        else:
            _replace(self.path, before)
        return True

    def _content(self) -> str | None:
        try:
            return self.path.read_bytes().decode()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{self.path} cannot be read: {error}") from error

    def _config(self, content: str | None) -> Config:
        """The object in *content*; raises `SettingsError` where hooks cannot be added to it."""
        try:
            config = json.loads(content) if content and content.strip() else {}
        except ValueError as error:
            raise SettingsError(
                f"{self.path} is not valid JSON ({error}); repair it, nothing was changed"
            ) from error
        hooks = config.get("hooks", {}) if isinstance(config, dict) else None
        groups = hooks.values() if isinstance(hooks, dict) else [None]
        if not all(isinstance(group, list) for group in groups):
            raise SettingsError(
                f'{self.path}: "hooks" is not an object of lists; repair it, nothing was changed'
            )
        return dict(config)

    def _read_backup(self) -> dict[str, str | None]:
        """Return the file before and after the hooks were installed; nothing if unknown."""
        return json.loads(self._backup.read_text()) if self._backup.exists() else {}

    def _keep(self, before: str | None, after: str) -> None:
        self._backup.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(self._backup, json.dumps({"before": before, "after": after}))


def _with_hooks(config: Config, events: Mapping[str, str], command: str) -> Config:
    hooks = {event: list(groups) for event, groups in config.get("hooks", {}).items()}
    for event, matcher in events.items():
        entry = {"type": "command", "command": command, "timeout": _SECONDS}
        group = {"matcher": matcher} if matcher else {}
        hooks.setdefault(event, []).append({**group, "hooks": [entry]})
    return {**config, "hooks": hooks}


def _without_ours(config: Config) -> Config:
    """*config* without hooks of ContextGraph, and without the lists that this leaves empty."""
    hooks: dict[str, list[Any]] = {}
    for event, groups in config.get("hooks", {}).items():
        rest = [cut for group in groups if (cut := _group_without_ours(group)) or cut == group]
        if rest or not groups:
            hooks[event] = rest
    before = config.get("hooks")
    if not before or hooks == before:
        return config
    others = {key: value for key, value in config.items() if key != "hooks"}
    return {**config, "hooks": hooks} if hooks else others


def _group_without_ours(group: Any) -> Any:
    entries = group.get("hooks") if isinstance(group, dict) else None
    if not isinstance(entries, list):
        return group
    rest = [entry for entry in entries if not _is_ours(entry)]
    if rest == entries:
        return group
    return {**group, "hooks": rest} if rest else {}


def _is_ours(entry: Any) -> bool:
    command = entry.get("command") if isinstance(entry, dict) else None
    return isinstance(command, str) and _OURS.search(command) is not None


def _written(config: Config, before: str | None) -> str:
    """*config* as JSON, indented as *before* was."""
    indent = _INDENT.search(before or "")
    text = json.dumps(config, indent=indent[1] if indent else 2, ensure_ascii=False)
    return text if before and not before.endswith("\n") else f"{text}\n"


def _replace(path: Path, content: str) -> None:
    """Write *path* at once; a link stays a link, and a file keeps its permissions."""
    target = path.resolve()
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content.encode())
        if target.exists():
            shutil.copymode(target, part)
        part.replace(target)
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


def chosen_agents(names: Sequence[str], *, all_known: bool = False) -> Sequence[Agent]:
    """The agents of these *names*; without any, those on this machine, or *all_known*.

    Raises `SettingsError` for a name that is not known.
    """
    unknown = [name for name in names if name not in AGENTS]
    if unknown:
        raise SettingsError(f"unknown agent {unknown[0]!r}; known: {', '.join(AGENTS)}")
    if names:
        return [AGENTS[name] for name in names]
    return [agent for agent in AGENTS.values() if all_known or agent.is_present()]
