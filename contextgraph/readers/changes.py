"""Checks whether the changes of a run are still in its git repository."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath

from contextgraph.model import ChangeStatus, RawTrajectory
from contextgraph.readers.repository import git_output
from contextgraph.trace import (
    added_lines,
    change_of as edited,
    is_edit,
    net_changes,
    read_steps,
)

# Shorter lines, such as brackets and `else:`, are in any file.
_DISTINCTIVE_CHARS = 8
# So many lines decide, and so many seconds are waited for git.
_MOST_LINES = 200
_GIT_SECONDS = 60.0

_LinesByFile = Mapping[str, set[str]]


def change_status(raw: RawTrajectory) -> ChangeStatus:
    """Whether the lines that *raw* added are still in the git repository that it worked in.

    They are held where at least half of those that later commits added are in the commit that is
    checked out now, else reverted. Unknown where the run gives no time or no folder that is in a
    repository on this machine, or where later commits hold less than half of what it added to
    the files that they change.
    """
    started_at = raw.started_at or next((s.timestamp for s in raw.steps if s.timestamp), None)
    folder = next((step.cwd for step in raw.steps if step.cwd), None)
    if started_at is None or folder is None or not PurePath(folder).is_absolute():
        return ChangeStatus.UNKNOWN
    added = _added_by(raw)
    files = [f":(top,glob)**/{name}" for name in added]
    if not files:
        return ChangeStatus.UNKNOWN
    since = f"--since={started_at.isoformat()}"
    later = ("log", "-p", "--no-color", "--no-ext-diff", "--format=", since, "HEAD", "--", *files)
    committed = _by_name(added_lines(git_output(folder, *later, seconds=_GIT_SECONDS)))
    touched = added.keys() & committed.keys()
    wanted = sum(len(added[name]) for name in touched)
    remaining = sorted({line for name in touched for line in added[name] & committed[name]})
    if not remaining or 2 * len(remaining) < wanted:
        return ChangeStatus.UNKNOWN
    decisive = remaining[:_MOST_LINES]
    is_held = 2 * len(_at_head(folder, decisive)) >= len(decisive)
    return ChangeStatus.HELD if is_held else ChangeStatus.REVERTED


def _added_by(raw: RawTrajectory) -> _LinesByFile:
    """The lines that *raw* added, by the names of files: of its patch, else of its edits."""
    if raw.patch:
        return _by_name(added_lines(raw.patch))
    steps = tuple(read_steps(raw))
    changes = [
        edited(steps, at) for at, step in enumerate(steps) if is_edit(step) and not step.error
    ]
    return _by_name((change.file, line) for change in net_changes(changes) for line in change.added)


def _by_name(added: Iterable[tuple[str, str]]) -> _LinesByFile:
    lines_by_name: defaultdict[str, set[str]] = defaultdict(set)
    for file, line in added:
        name, bare = PurePath(file).name, line.strip()
        if name and len(bare) >= _DISTINCTIVE_CHARS:
            lines_by_name[name].add(bare)
    return lines_by_name


def _at_head(folder: str, lines: Sequence[str]) -> set[str]:
    """Those of *lines* that some file of the commit that is checked out has."""
    patterns = [word for line in lines for word in ("-e", line)]
    # From the root: in a subfolder git looks at that one only.
    root = git_output(folder, "rev-parse", "--show-toplevel").rstrip("\n")
    output = git_output(root, "grep", "-h", "-I", "-F", *patterns, "HEAD", seconds=_GIT_SECONDS)
    return {line.strip() for line in output.splitlines()} & {*lines}
