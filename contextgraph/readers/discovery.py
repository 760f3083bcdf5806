"""The histories that coding agents keep on this machine."""

import glob
import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from hashlib import blake2b
from pathlib import Path
from typing import Any

import orjson

from contextgraph.errors import ReadError
from contextgraph.readers.databases import count_sessions
from contextgraph.readers.formats import FORMATS
from contextgraph.readers.markdown import SPECSTORY, SPECSTORY_FOLDER
from contextgraph.readers.marked_text import CLINE, ROO, ROO_EXTENSION, TASK_FILE
from contextgraph.readers.sources import size_of

# Where each agent keeps its sessions, below a folder: that of the first variable that is set, else
# the one in the home folder.
_PLACES: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("claude-code", "CLAUDE_CONFIG_DIR", ".claude", ("projects/**/*.jsonl",)),
    (
        "codex-cli",
        "CODEX_HOME",
        ".codex",
        ("sessions/**/rollout-*.jsonl", "archived_sessions/rollout-*.jsonl"),
    ),
    ("opencode", "XDG_DATA_HOME", ".local/share", ("opencode/opencode.db",)),
    (
        "goose",
        "XDG_DATA_HOME",
        ".local/share",
        ("goose/sessions/sessions.db", "goose/sessions/*.jsonl"),
    ),
    (
        "gemini-cli",
        "GEMINI_CLI_HOME",
        "",
        (".gemini/tmp/*/chats/**/*.json", ".gemini/tmp/*/chats/**/*.jsonl"),
    ),
    ("qwen-code", "", ".qwen", ("projects/*/chats/*.jsonl",)),
    ("copilot-cli", "", ".copilot", ("session-state/*/events.jsonl",)),
    ("cursor", "CURSOR_CONFIG_DIR", ".cursor", ("projects/*/agent-transcripts/**/*.jsonl",)),
    ("cursor", "XDG_CONFIG_HOME", ".config", ("Cursor/User/globalStorage/state.vscdb",)),
    (
        "cursor",
        "",
        "Library/Application Support",
        ("Cursor/User/globalStorage/state.vscdb",),
    ),
    (CLINE, "CLINE_DIR", ".cline", ("data/sessions/*/*.messages.json",)),
    *(
        (agent, "", folder, (f"*/User/globalStorage/{extension}/tasks/*/{TASK_FILE}",))
        for agent, extension in ((CLINE, "saoudrizwan.claude-dev"), (ROO, ROO_EXTENSION))
        for folder in (".config", "Library/Application Support")
    ),
    ("aider", "", "", (".aider.chat.history.md",)),
    # Kept in each project, which lie a few folders deep.
    (
        SPECSTORY,
        "",
        "",
        tuple(f"{'*/' * depth}{SPECSTORY_FOLDER}/history/*.md" for depth in range(5)),
    ),
    ("openhands", "", ".openhands", ("sessions/*/events", "conversations/*/events")),
    ("mini-swe-agent", "", ".config", ("mini-swe-agent/*.traj.json",)),
)
_DATABASES = (".db", ".vscdb")


@dataclass(frozen=True, slots=True)
class History:
    """The sessions of one *agent* in *folder*: their *files* (or folders), number and size.

    *runs* counts files, or the sessions of a database; a session may be read as several runs or,
    where nothing was done, as none. *experimental* as in `FORMATS`.
    """

    agent: str
    folder: Path
    files: tuple[Path, ...]
    runs: int
    bytes: int
    experimental: bool = False


def discover(
    home: Path | None = None,
    environment: Mapping[str, str] | None = None,
    exclude: Sequence[str] = (),
) -> list[History]:
    """The histories on this machine, without the files that match a pattern in *exclude*.

    Only names and sizes are looked at. Patterns are as those of `fnmatch`, on the whole path.
    """
    home = home or Path.home()
    environment = os.environ if environment is None else environment
    histories = []
    for agent, variable, default, patterns in _PLACES:
        folder = Path(environment.get(variable) or home / default)
        files = tuple(_files(folder, patterns, exclude))
        if files:
            runs = sum(map(_sessions, files))
            experimental = FORMATS[CLINE if agent == ROO else agent].experimental
            histories.append(History(agent, folder, files, runs, size_of(files), experimental))
    return histories


class ReadFiles:
    """What each file held when it was read, and the runs that it gave, kept in the file *record*.

    A file is known while its content is the same and the memory has all of its runs.
    """

    def __init__(self, record: Path) -> None:
        self._record = record
        try:
            self._files: dict[str, dict[str, Any]] = orjson.loads(record.read_bytes())
        except (OSError, ValueError):
            self._files = {}

    def new(
        self, files: Iterable[Path], learned: Callable[[Sequence[str]], Container[str]]
    ) -> list[Path]:
        """Return those of *files* that are to be read; *learned* tells which runs a memory has."""
        found = {str(file): self._files.get(str(file)) for file in files}
        known = learned(sorted({run for entry in found.values() if entry for run in entry["runs"]}))
        return [
            Path(file)
            for file, entry in found.items()
            if entry is None
            or any(run not in known for run in entry["runs"])
            or not self._is_same(Path(file), entry)
        ]

    def _is_same(self, file: Path, entry: dict[str, Any]) -> bool:
        size, modified = _state(file)
        if size != entry["size"]:
            return False
        return bool(modified == entry["modified"]) or _digest(file) == entry["digest"]

    def note(self, runs: Mapping[Path, Sequence[str]]) -> None:
        """Keep that files gave *runs*, by their ids."""
        for file, ids in runs.items():
            size, modified = _state(file)
            entry = {"size": size, "modified": modified, "digest": _digest(file)}
            self._files[str(file)] = {**entry, "runs": sorted(ids)}
        self._record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = self._record.with_suffix(f".{os.getpid()}.part")
        with os.fdopen(
            os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb"
        ) as written:
            written.write(orjson.dumps(self._files))
        part.replace(self._record)


def _parts(file: Path) -> list[Path]:
    """The files behind *file*: those in a folder, and what a database has not yet taken in."""
    if file.is_dir():
        return sorted(part for part in file.rglob("*") if part.is_file())
    journal = file.with_name(f"{file.name}-wal")
    return [file, journal] if journal.exists() else [file]


def _state(file: Path) -> tuple[int, int]:
    """Size in bytes, and when it was modified last, in nanoseconds."""
    try:
        states = [part.stat() for part in _parts(file)]
    except OSError:
        return -1, 0
    return sum(s.st_size for s in states), max((s.st_mtime_ns for s in states), default=0)


def _digest(file: Path) -> str:
    digest = blake2b(digest_size=16)
    try:
        for part in _parts(file):
            with part.open("rb") as opened:
                while piece := opened.read(1 << 20):
                    digest.update(piece)
    except OSError:
        return ""
    return digest.hexdigest()


def _files(folder: Path, patterns: Sequence[str], exclude: Sequence[str]) -> Iterator[Path]:
    for pattern in patterns:
        for name in sorted(glob.glob(f"{glob.escape(str(folder))}/{pattern}", recursive=True)):
            if not any(fnmatch(name, excluded) for excluded in exclude):
                yield Path(name)


def _sessions(file: Path) -> int:
    if file.suffix not in _DATABASES:
        return 1
    try:
        return count_sessions(str(file))
    except ReadError:
        return 0  # reading it reports why
