"""The tasks of an experiment: the task, its folder, and the check that shows it is done."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path

import orjson

from contextgraph.codec import decoded
from contextgraph.errors import ReadError, SettingsError
from contextgraph.model import Json


class Part(StrEnum):
    """Whether a task is run to be learned, or to judge the arms."""

    LEARN = "learn"
    JUDGE = "judge"


@dataclass(frozen=True, slots=True)
class Workspace:
    """What an agent works in: a copy of *folder*, a clone of *git* at *commit*, or an *image*.

    Of an *image* (Docker), *folder* is that within it.
    """

    folder: str = ""
    git: str = ""
    commit: str = ""
    image: str = ""

    def __post_init__(self) -> None:
        if bool(self.git) + bool(self.image) > 1 or not (self.git or self.image or self.folder):
            raise ValueError("needs one of folder, git and image")

    def put_into(self, folder: Path) -> None:
        """Make *folder*, which must not exist, a fresh copy of it; not for an image."""
        if not self.git:
            shutil.copytree(self.folder, folder, symlinks=True)
            return
        for command in (
            ["git", "clone", "--quiet", "--no-checkout", self.git, str(folder)],
            ["git", "-C", str(folder), "checkout", "--quiet", self.commit or "HEAD"],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SettingsError(f"{self.git} cannot be cloned: {done.stderr.strip()}")


@dataclass(frozen=True, slots=True)
class Task:
    """A task for an agent; the command *check* ends with 0 in the workspace once it is solved.

    *split* fixes the part that it belongs to, else chance decides.
    """

    instance_id: str
    repo: str
    task: str
    check: str
    workspace: Workspace
    split: Part | None = None


def read_tasks(path: Path) -> Sequence[Task]:
    """The tasks of a file of JSON lines; see docs/experiments.md.

    Relative folders are relative to the file. Raises `SettingsError` with the line of what is
    wrong.
    """
    try:
        tasks = list(_parsed(path))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
    known: set[str] = set()
    for task in tasks:
        if task.instance_id in known:
            raise SettingsError(f"{path}: {task.instance_id} occurs twice")
        known.add(task.instance_id)
    if not tasks:
        raise SettingsError(f"{path} holds no tasks")
    return tasks


def split_tasks(tasks: Sequence[Task], share: float, seed: int) -> dict[Part, list[Task]]:
    """The tasks of each part: *share* of those whose split is not fixed are to be learned."""
    drawn = sorted(
        (task for task in tasks if task.split is None), key=lambda task: _draw(task, seed)
    )
    learned = {task.instance_id for task in drawn[: round(share * len(drawn))]}
    learned |= {task.instance_id for task in tasks if task.split is Part.LEARN}
    return {
        part: [task for task in tasks if (task.instance_id in learned) == (part is Part.LEARN)]
        for part in Part
    }


def _draw(task: Task, seed: int) -> bytes:
    return blake2b(f"{seed}:{task.instance_id}".encode(), digest_size=8).digest()


def _parsed(path: Path) -> Iterator[Task]:
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if not line.strip():
            continue
        try:
            yield _located(decoded(Task, _row(orjson.loads(line))), path.parent)
        except (orjson.JSONDecodeError, ReadError) as error:
            raise SettingsError(f"{path}: line {number}: {error}") from error


def _row(row: Json) -> Json:
    """*row* with a workspace that is an object, and the task where SWE-bench has it."""
    if isinstance(row, dict):
        if isinstance(row.get("workspace"), str):
            row["workspace"] = {"folder": row["workspace"]}
        row.setdefault("task", row.get("problem_statement"))
    return row


def _located(task: Task, base: Path) -> Task:
    place = task.workspace
    if place.git or place.image:
        return task
    folder = (base / place.folder).resolve()
    if not folder.is_dir():
        raise ReadError("", "", f"the workspace {folder} is not a folder")
    return replace(task, workspace=replace(place, folder=str(folder)))
