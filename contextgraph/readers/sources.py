"""The files behind a path: a file, a folder, a glob, or "-", and which of them have changed."""

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct

from contextgraph.errors import MissingExtraError, ReadError
from contextgraph.model.values import replace
from contextgraph.system.intake import MAX_DEPTH, kind_of, leaves
from contextgraph.text import regex

# Of a project: its folder "history" has the sessions of agents.
SPECSTORY_FOLDER = ".specstory"

# In which Cline and Roo Code keep the conversation of a task.
TASK_FILE = "api_conversation_history.json"

StrPath: TypeAlias = str | os.PathLike[str]

STANDARD_INPUT = "-"
_URL = "://"
_EVENT_FILE = regex(r"(?:event-)?(\d{1,9})(?:-[\w-]+)?\.json")  # of OpenHands
_AGENT_FILE = regex(r"agent-.*\.jsonl")  # of Claude Code
# What Claude Code names the folder of a project, and the log of a session in it.
_PROJECT_FOLDER = regex(r"(?:[A-Za-z]-)?-[\w.-]+")
_SESSION_FILE = regex(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl")
_TREE_SESSION = regex(r"ses_\w+\.json")  # of OpenCode before 1.2
# What `datasets` writes beside the rows of a data set.
_OF_DATA_SETS = {"dataset_dict.json", "dataset_info.json", "state.json"}
# What clients keep beside their sessions, and why it is not read.
_SIDECARS: tuple[tuple[Callable[[Path], bool], str], ...] = (
    (
        lambda file: file.name in _OF_DATA_SETS and any(file.parent.glob("**/*.arrow")),
        "the description of a data set",
    ),
    (lambda file: file.match("cache-*.arrow"), "the cache of a data set"),
    (lambda file: file.match("agent-*.meta.json"), "the description of a sub-agent"),
    (lambda file: file.name == "sessions-index.json", "an index of sessions"),
    (
        lambda file: file.suffix != ".jsonl" and any(map(_has_sessions, file.parents[:2])),
        "kept beside the sessions of Claude Code",
    ),
    (lambda file: file.parent.name == "tool-results", "an output of a session"),
    (
        lambda file: (
            (file.name == "logs.json" or file.match("checkpoint-*.json"))
            and file.with_name("chats").is_dir()
        ),
        "kept beside the chats of Gemini CLI",
    ),
    (
        lambda file: file.with_name(f"{file.stem}.messages.json").exists(),
        "the manifest of a session",
    ),
    (
        lambda file: file.name == "workspace.json" and (file.parent / "chatSessions").is_dir(),
        "the description of a workspace",
    ),
    (
        lambda file: (
            file.suffix == ".json" and file.name != TASK_FILE and file.with_name(TASK_FILE).exists()
        ),
        "kept beside the conversation of a task",
    ),
    (
        lambda file: (
            len(file.parents) > 2
            and (file.parents[1] / "session").is_dir()
            and file.parents[1].name == "storage"
        ),
        "kept beside the sessions of OpenCode",
    ),
)
_ROUND_FILE = regex(r"conversation_round_\d+\.json")  # of AutoCodeRover

# How long a file must not have changed, in seconds: an agent may still write its log.
QUIET_SECONDS = 10.0

# Size in bytes, and when it was modified last, in nanoseconds.
_State: TypeAlias = tuple[int, int]


class Line(NamedTuple):
    """A line of a file, its number from 1, and whether a line end follows it."""

    number: int
    text: bytes
    is_ended: bool = True


class FilePart(Struct, frozen=True):
    """A part of a file that is read by itself: some of its *lines*, or a *group* of its rows.

    *size* are the bytes of the file that it stands for.
    """

    size: int
    lines: tuple[Line, ...] = ()
    group: int | None = None


class SourceFile(Struct, frozen=True):
    """A file to read, by the *name* the caller would know it by.

    *folder* is the folder in which it was found. It is None for a file that the caller named; what
    is not a trajectory is an error there, and skipped in a folder. *parts* are the files of a run
    that is spread over the folder *name*. *refused* is why it is not read, such as "a pipe", or
    empty. *part* is the part of a file with many runs that is read, where not all of it is.
    *remote_size* are the bytes of what a URL names, as far as they are known.
    """

    name: str
    folder: Path | None = None
    parts: tuple[str, ...] = ()
    refused: str = ""
    part: FilePart | None = None
    remote_size: int = 0

    @property
    def size(self) -> int:
        """Bytes to read; 0 for standard input and what is not or cannot be read."""
        if self.refused or self.name == STANDARD_INPUT:
            return 0
        if self.part:
            return self.part.size
        return self.remote_size or sum(map(_file_size, self.parts or [self.name]))

    @property
    def is_remote(self) -> bool:
        """True if the name is a URL, such as ``s3://bucket/runs.jsonl.gz``."""
        return _URL in self.name

    def __fspath__(self) -> str:
        """The name: what takes a path takes a source, too."""
        return self.name


def sources(path: StrPath, *, follow_links: bool = False) -> Sequence[SourceFile]:
    """Return the files behind *path*, sorted by name. Raises ReadError where there are none.

    A folder is read with its subfolders, without hidden files; files that together are one run
    are one source. A glob finds what a folder would. Pipes, sockets, devices and, unless
    *follow_links*, links to what is outside are refused where *path* does not name them itself. A
    source is found as it is.
    """
    if isinstance(path, SourceFile):
        return [path]
    name = os.fspath(path)
    if _URL in name:
        return _remote_sources(name)
    if is_stream(name) or os.path.isfile(name):
        return [SourceFile(name, parts=_tree(name))]
    if os.path.isdir(name):
        return list(_sources_in(name, Path(name), follow_links=follow_links))
    matches = sorted(glob.glob(name, recursive=True)) if glob.has_magic(name) else []
    if not matches:
        raise ReadError(name, "", "no such file or folder")
    sources = list(dict.fromkeys(_matched(matches, follow_links=follow_links)))
    grouped = {file for source in sources for file in source.parts}
    return [source for source in sources if source.name not in grouped]


def _remote_sources(url: str) -> Sequence[SourceFile]:
    """The files behind *url*, a file, folder or glob of a file system that fsspec knows."""
    fsspec = remote_files(url)
    try:
        system, path = fsspec.core.url_to_fs(url)
        list_files = system.glob if glob.has_magic(path) else system.find
        files = list_files(path, detail=True)
        sizes = {
            system.unstrip_protocol(file): files[file].get("size") or 0 for file in sorted(files)
        }
    except (OSError, ValueError, ImportError) as error:
        raise ReadError(url, "", f"cannot be listed: {error}") from error
    if not sizes:
        raise ReadError(url, "", "no such file or folder")
    folder = None if list(sizes) == [url] else Path(url)
    return [
        SourceFile(name, folder, remote_size=size)
        for name, size in sizes.items()
        if not name.rpartition("/")[2].startswith(".")
    ]


def remote_files(url: str) -> Any:
    """Return the module that opens *url*; raises MissingExtraError where it is not installed."""
    try:
        import fsspec
    except ImportError as error:
        raise MissingExtraError(f"{url}: URLs need fsspec", "ray") from error
    return fsspec


def is_stream(path: StrPath) -> bool:
    """Return True if *path* can be read only once: standard input, a pipe, a device."""
    name = os.fspath(path)
    return name == STANDARD_INPUT or (
        os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name)
    )


# Learning a short session takes as long as this many bytes of a long one.
FILE_WEIGHT = 1 << 20


def size_of(paths: Iterable[StrPath], *, follow_links: bool = False, of_each_file: int = 0) -> int:
    """Bytes on disk behind *paths*, and *of_each_file* for each file.

    With `FILE_WEIGHT` the total that ``on_bytes`` of `read` will get. Standard input and paths
    that do not exist count nothing.
    """
    return sum(_size(path, follow_links, of_each_file) for path in paths)


def files_in(folder: str, *, follow_links: bool = False) -> list[str]:
    """Return the files in *folder* and below, sorted by name, without hidden and refused ones.

    Sessions that a team commits are read, though their folder is hidden.
    """
    return [file for file, refused in _entries(folder, follow_links=follow_links) if not refused]


def _entries(root: str, *, follow_links: bool) -> list[tuple[str, str]]:
    """Each file in *root* and below, sorted by name, with the reason why it is not read, or ""."""
    entries, walked, top = list[tuple[str, str]](), set[str](), root.rstrip(os.sep).count(os.sep)

    def refuse(error: OSError) -> None:
        entries.append((os.fsdecode(error.filename), f"cannot be opened: {error.strerror}"))

    for parent, folders, files in os.walk(root, onerror=refuse, followlinks=follow_links):
        place = os.path.realpath(parent) if follow_links else parent
        if place in walked:  # a link leads back to it
            folders.clear()
            continue
        walked.add(place)
        if parent.count(os.sep) - top >= MAX_DEPTH:  # each path costs as much as it is long
            reason = f"nested more than {MAX_DEPTH} folders deep"
            entries += [(os.path.join(parent, name), reason) for name in folders]
            folders.clear()
        if os.path.basename(parent) == SPECSTORY_FOLDER:
            folders[:], files[:] = [name for name in folders if name == "history"], []
        folders[:] = [name for name in folders if name[0] != "." or name == SPECSTORY_FOLDER]
        paths = [os.path.join(parent, name) for name in files if not name.startswith(".")]
        entries += [(path, _refusal(path, root, follow_links=follow_links)) for path in paths]
        links = [path for name in folders if os.path.islink(path := os.path.join(parent, name))]
        refusals = ((path, _refusal(path, root, follow_links=follow_links)) for path in links)
        entries += [(path, reason) for path, reason in refusals if reason]
    return sorted(entries)


def _refusal(path: str, root: str, *, follow_links: bool) -> str:
    """Why *path*, which was found in the folder *root*, is not read; or ""."""
    try:
        if not follow_links and os.path.islink(path) and leaves(path, root):
            return "a link to outside the folder; --follow-links reads it"
        return "" if os.path.isdir(path) else kind_of(path)
    except OSError:
        return ""  # opening it reports why


def _file_size(name: str) -> int:
    try:
        return os.path.getsize(name)
    except OSError:
        return 0


def _sources_in(folder: str, root: Path, *, follow_links: bool) -> Iterator[SourceFile]:
    """A source for each file in *folder* and below, one for each group that is a single run."""
    entries = _entries(folder, follow_links=follow_links)
    by_folder: dict[str, list[str]] = {}
    for file, refused in entries:
        if not refused:
            by_folder.setdefault(os.path.dirname(file), []).append(file)
    groups = {name: _parts(name, inside) for name, inside in by_folder.items()}
    trees = {file: parts for file, refused in entries if not refused and (parts := _tree(file))}
    grouped = {file for parts in (*groups.values(), *trees.values()) for file in parts}
    for file, refused in entries:
        parent = os.path.dirname(file)
        if file in trees:
            yield SourceFile(file, root, trees[file])
        elif file not in grouped:
            yield SourceFile(file, root, refused=refused or _sidecar(Path(file), root))
        elif parts := groups.pop(parent, ()):
            yield SourceFile(_run_folder(parent), root, parts)


def _tree(file: str) -> tuple[str, ...]:
    """Return the files of a session of OpenCode before 1.2, which kept a tree of JSON files.

    They are that of the session, of its messages, and of their parts, in order; none where *file*
    is not that of a session. The first of these trees had all below the folder "session".
    """
    path = Path(file)
    sessions = path.parent.parent
    if sessions.name != "session" or not _TREE_SESSION.fullmatch(path.name):
        return ()
    is_first = path.parent.name == "info"
    tree = sessions if is_first else sessions.parent
    messages = sorted((tree / "message" / path.stem).glob("*.json"))
    parts_of = tree / "part" / path.stem if is_first else tree / "part"
    folders = [parts_of / message.stem for message in messages]
    parts = [part for folder in folders for part in sorted(folder.glob("*.json"))]
    files = (path, *messages, *parts)
    return tuple(str(file) for file in files if file.is_file() and not file.is_symlink())


def _sidecar(file: Path, root: Path) -> str:
    """Why *file* is no session but lies beside some, in the folder *root*; empty for others."""
    for is_beside, reason in _SIDECARS:
        if is_beside(file):
            return reason
    for parent in file.parents:
        if root not in parent.parents:
            break
        # Claude Code keeps all that belongs to a session in a folder of its name.
        is_of_session = (parent.parent / f"{parent.name}.jsonl").exists()
        if is_of_session and not _AGENT_FILE.fullmatch(file.name):
            return "kept in the folder of a session"
    return ""


def _has_sessions(folder: Path) -> bool:
    """Return True for the folder in which Claude Code keeps the sessions of a project."""
    if not _PROJECT_FOLDER.fullmatch(folder.name):
        return False
    return any(_SESSION_FILE.fullmatch(name) for name in os.listdir(folder))


def _parts(folder: str, files: Sequence[str]) -> tuple[str, ...]:
    """Return the *files* that together are one run, in order; none where each is its own."""
    names = {os.path.basename(file): file for file in files}
    if os.path.basename(folder) == "events":
        numbered = {name: int(match[1]) for name in names if (match := _EVENT_FILE.fullmatch(name))}
        return tuple(names[name] for name in sorted(numbered, key=lambda name: numbered[name]))
    if "meta.json" in names and any(map(_ROUND_FILE.fullmatch, names)):
        return tuple(files)
    return ()


def _run_folder(folder: str) -> str:
    """The folder that names a run: of an event store the one that holds ``events``."""
    parent = os.path.dirname(folder)
    return parent if os.path.basename(folder) == "events" and parent else folder


def _size(path: StrPath, follow_links: bool, of_each_file: int) -> int:
    try:
        found = sources(path, follow_links=follow_links)
        return sum(source.size + of_each_file for source in found)
    except ReadError:
        return 0


def _matched(matches: Sequence[str], *, follow_links: bool) -> Iterator[SourceFile]:
    for match in matches:
        parent = Path(match).parent
        refused = _refusal(match, str(parent), follow_links=follow_links)
        if os.path.isdir(match) and not refused:
            for source in _sources_in(match, Path(match), follow_links=follow_links):
                yield replace(source, folder=Path(source.name).parent)
        else:
            yield SourceFile(match, parent, refused=refused)


class Watch:
    """The files in *paths* (files, folders, globs) that are new, or have changed and are quiet."""

    def __init__(self, paths: Iterable[StrPath], *, follow_links: bool = False) -> None:
        self._paths = list(paths)
        self._follow_links = follow_links
        self._read: dict[str, _State] = {}

    def due(self, now: float) -> Sequence[SourceFile]:
        """Return the files to read (again) at *now*, in seconds since the epoch.

        Raises `ReadError` where a path does not exist.
        """
        states = {
            source: _state(source)
            for path in self._paths
            for source in sources(path, follow_links=self._follow_links)
            if not source.refused
        }
        due = {
            source: state
            for source, state in states.items()
            if state != self._read.get(source.name) and now - state[1] / 1e9 >= QUIET_SECONDS
        }
        self._read |= {source.name: state for source, state in due.items()}
        return list(due)


def _state(source: SourceFile) -> _State:
    try:
        modified = max(os.stat(name).st_mtime_ns for name in source.parts or (source.name,))
    except OSError:
        modified = 0  # removed meanwhile: reading it reports that, once
    return source.size, modified
