"""Why a file, or a line of it, is as it is: the sessions that changed it, newest first."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path, PurePosixPath

from msgspec import Struct

from contextgraph.errors import ReadError
from contextgraph.knowledge.last import is_decided, line_of
from contextgraph.model import Lesson, RawTrajectory, RunFilter, Trajectory
from contextgraph.readers import resume_command
from contextgraph.readers.repository import GitFolder
from contextgraph.store.memory_store import RunStore
from contextgraph.system.intake import content
from contextgraph.trace import read_steps
from contextgraph.trace.steps import StepTrace, is_edit, new_lines

_SESSIONS = 400
_MIN_CHARS = 4
# Shorter words of a person say that the agent may go on, not what it is to do.
_MIN_WORDS = 4
_MAX_BYTES = 1 << 24


class LineCommit(Struct, frozen=True):
    """The commit that a line comes from, by git blame."""

    id: str
    time: datetime
    author: str
    subject: str


class FileChange(Struct, frozen=True):
    """A session that changed a file: what was *asked* before, and what was *decided* by then.

    *steps* is how many of its steps edited the file; *step* is the one that wrote the line in
    question, else the last of them. *decided* are the statements up to it that probably are
    lessons, the last ones first. *resume* is the command that goes on with the session in its
    client, empty where none on this machine keeps it.
    """

    id: str
    repo: str
    agent: str
    time: datetime
    task: str
    step: int
    steps: int
    asked: str
    decided: tuple[str, ...]
    resume: str
    contributor: str = ""


class FileHistory(Struct, frozen=True):
    """Sessions that changed *file*, newest first.

    With a *line* they are those that wrote its *text*, and *is_exact* is True; where none did, they
    are those that changed the file. *commit* is where git has the line from, None where it is not
    committed.
    """

    file: str
    line: int | None
    text: str
    is_exact: bool
    commit: LineCommit | None
    changes: tuple[FileChange, ...]


def file_history(
    runs: RunStore, lessons: Sequence[Lesson], repo: str, path: Path, line: int | None = None
) -> FileHistory:
    """Return the sessions of *repo* that changed the file at *path*, or wrote a *line* of it.

    A line that says too little to be found again counts as written by none. Raises `ReadError`
    where the file or the line does not exist.
    """
    git = GitFolder.around(str(folder_of(path)))
    file = PurePosixPath(path.absolute().relative_to(git.root) if git else path).as_posix()
    text = "" if line is None else _line_at(path, line)
    commit = _commit_of(git, file, text, line) if git and line else None
    sought = text if sum(map(str.isalnum, text)) >= _MIN_CHARS else ""
    found = [*_changes(runs, lessons, repo, file, sought)]
    exact = [change for change, wrote in found if wrote]
    changes = exact or [change for change, _ in found]
    changes.sort(key=lambda change: (change.time, change.id), reverse=True)
    return FileHistory(file, line, text, bool(exact), commit, tuple(changes))


def folder_of(path: Path) -> Path:
    """Return the folder of *path*; of a file that is gone, the nearest one that still exists."""
    return next(folder for folder in path.absolute().parents if folder.is_dir())


def _line_at(path: Path, line: int) -> str:
    try:
        lines = content(path, _MAX_BYTES).decode("utf-8", "replace").splitlines()
    except OSError as error:
        raise ReadError(str(path), "", error.strerror or str(error)) from error
    if not 1 <= line <= len(lines):
        raise ReadError(str(path), f"line {line}", f"the file has {len(lines)} lines")
    return lines[line - 1].strip()


def _changes(
    runs: RunStore, lessons: Sequence[Lesson], repo: str, file: str, text: str
) -> Iterator[tuple[FileChange, bool]]:
    listed = {run.id: run for run in runs.listed(RunFilter(repo=repo), _SESSIONS)}
    facts = runs.facts(listed)
    for run in listed.values():
        edited = (*run.files, *(facts[run.id].edited if run.id in facts else ()))
        if any(_is_same(other, file) for other in edited) and (raw := runs.raw(run.id)):
            edits = [step for step in read_steps(raw) if _edits(step, file)]
            wrote = [step for step in edits if text and text in map(str.strip, new_lines(step))]
            if edits:
                yield _change(run, raw, edits, (wrote or edits)[-1].index, lessons), bool(wrote)


def _edits(step: StepTrace, file: str) -> bool:
    changed = step.reading.changed or (step.reading.targets if is_edit(step) else ())
    return step.succeeded and any(_is_same(other, file) for other in changed)


def _is_same(other: str, file: str) -> bool:
    """Return whether two paths, of which either may begin above the repository, are one file."""
    return f"/{other}".endswith(f"/{file}") or f"/{file}".endswith(f"/{other}")


def _change(
    run: Trajectory,
    raw: RawTrajectory,
    edits: Sequence[StepTrace],
    at: int,
    lessons: Sequence[Lesson],
) -> FileChange:
    said = (step.user_message for step in reversed(raw.steps[:at]) if step.user_message)
    asked = next((text for text in said if len(text.split()) >= _MIN_WORDS), raw.task)
    decided = [
        (quote.step, lesson.text)
        for lesson in lessons
        if is_decided(lesson)
        for quote in lesson.evidence
        if quote.run == run.id and quote.step < at
    ]
    decided.sort(key=lambda one: one[0], reverse=True)
    return FileChange(
        id=run.id,
        repo=run.repo,
        agent=run.agent,
        time=raw.steps[at].timestamp or run.seen_at,
        task=line_of(raw.task),
        step=at,
        steps=len(edits),
        asked=line_of(asked),
        decided=tuple(dict.fromkeys(text for _, text in decided)),
        resume=resume_command(run),
        contributor=run.contributor,
    )


def _commit_of(git: GitFolder, file: str, text: str, line: int) -> LineCommit | None:
    """Return the commit of the line of HEAD with this *text* that is nearest to *line*."""
    head = git.head()
    printed = git.output("blame", "--line-porcelain", head, "--", file) if head else ""
    found, fields, number = list[tuple[int, dict[str, str]]](), dict[str, str](), 0
    for row in printed.splitlines():
        if row.startswith("\t"):
            number += 1
            if row.strip() == text:
                found.append((abs(number - line), fields))
            fields = {}
        else:
            name, _, value = row.partition(" ")
            fields.setdefault(name if fields else "id", value if fields else name)
    if not found:
        return None
    _, fields = min(found, key=lambda one: one[0])
    time = datetime.fromtimestamp(int(fields["author-time"])).astimezone()
    return LineCommit(fields["id"], time, fields["author"], fields["summary"])
