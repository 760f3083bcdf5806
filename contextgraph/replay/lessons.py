"""What the learned runs hold, kept beside the memory for the baselines."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from contextgraph.model import RawTrajectory
from contextgraph.replay.cures import Cure, cure_in
from contextgraph.trace import Trace, files_changed


@dataclass(frozen=True, slots=True)
class Lesson:
    """One recovery of a learned run, as its text tells it."""

    instance_id: str
    repo: str
    error_type: str
    text: str
    advice: str
    cure: Cure


@dataclass(frozen=True, slots=True)
class PastTask:
    """The task of a learned run, and the files that it changed."""

    instance_id: str
    repo: str
    task: str
    files: tuple[str, ...]


def lessons_of(read: Trace) -> list[Lesson]:
    """The recoveries of a run, verified or not, as a memory is taught them."""
    return [
        Lesson(
            instance_id=read.raw.instance_id,
            repo=read.raw.repo,
            error_type=recovery.error.error_type,
            text="\n".join((recovery.error.message, recovery.what, *recovery.actions)),
            advice=recovery.what,
            cure=cure_in(recovery.what, recovery.actions, read.raw.repo),
        )
        for recovery in read.recoveries
    ]


def past_task(raw: RawTrajectory) -> PastTask:
    """The task of *raw*; its files are those of its patch."""
    return PastTask(raw.instance_id, raw.repo, raw.task, files_changed(raw.patch or ""))


def in_scope(found: Sequence[Lesson], repo: str, hidden: Collection[str]) -> list[Lesson]:
    """Those of *found* that may be seen: of *repo* where it has any, else of all repositories."""
    visible = [lesson for lesson in found if lesson.instance_id not in hidden]
    return [lesson for lesson in visible if lesson.repo == repo] or visible
