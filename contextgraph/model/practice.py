"""What runs of one repository did where there was no error, or none was left."""

from dataclasses import dataclass

from contextgraph.model.fragment import Fragment, Phase
from contextgraph.model.methodology import CommonRemedy, Source
from contextgraph.model.trajectory import TaskType, Trajectory


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run with its fragments that did not fail, in order."""

    trajectory: Trajectory
    fragments: tuple[Fragment, ...]


@dataclass(frozen=True, slots=True)
class RepoHistory:
    """The newest runs of a repository, the newest first."""

    repo: str
    runs: tuple[PastRun, ...]


@dataclass(frozen=True, slots=True)
class PracticeGroup:
    """What runs of one repository have in common that did one thing, and met no error at it.

    *keyword* narrows it to tasks that speak of that, empty for all; *task_type* None is any task.
    *about* counts the runs that did such a thing there and fit both; of *others*, which fit not,
    *otherwise* did the same as the first of *practices* says. Of the runs that *practices* cover,
    *solved* solved their task. *practices* is never empty, the most frequent first; *sources* are
    the fragments that they cover, ascending.
    """

    repo: str
    phase: Phase
    keyword: str
    task_type: TaskType | None
    about: int
    others: int
    otherwise: int
    solved: int
    practices: tuple[CommonRemedy, ...]
    sources: tuple[Source, ...]
