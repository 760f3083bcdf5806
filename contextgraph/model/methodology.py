"""What many runs teach together: a situation, and what has worked in it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from contextgraph.model.error import ErrorPattern
from contextgraph.model.fragment import Phase, Recovered
from contextgraph.model.trajectory import Outcome, TaskType
from contextgraph.model.usage import NO_USAGE, Usage


class MethodologyStatus(StrEnum):
    """How far a methodology is trusted.

    Probation: not shown yet to be better than no advice, and it says so. Active: the error clears
    more often with it than without. Quarantined: it harmed where it was shown. Retired: another one
    took its place, or it did not hold; a tombstone, so that it does not come up again.
    """

    PROBATION = "probation"
    ACTIVE = "active"
    QUARANTINED = "quarantined"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """A fragment by its id and that of its run, where stores find it fast."""

    trajectory_id: str
    fragment_id: str


@dataclass(frozen=True, slots=True)
class Meeting:
    """A run met a kind of error; *message* is one example of it."""

    trajectory_id: str
    repo: str
    task_type: TaskType
    message: str


@dataclass(frozen=True, slots=True)
class Clearance:
    """An error was cleared in a run."""

    recovered: Recovered
    trajectory_id: str
    repo: str
    task_type: TaskType
    outcome: Outcome
    seen_at: datetime

    @property
    def source(self) -> Source:
        """The fragment in which it was cleared."""
        return Source(self.trajectory_id, self.recovered.fragment_id)

    @property
    def steps(self) -> int:
        """Steps from the error to its clearance."""
        return self.recovered.cleared_step - self.recovered.error_step


@dataclass(frozen=True, slots=True)
class ErrorHistory:
    """How one kind of error went in the newest runs that met it, the newest first."""

    error: ErrorPattern
    meetings: tuple[Meeting, ...]
    clearances: tuple[Clearance, ...]


@dataclass(frozen=True, slots=True)
class CommonRemedy:
    """What several clearances have in common.

    *text* tells another agent what to do; what varies stands in it as ``<the missing module>``.
    *runs* did it in *repositories*, *steps* is their mean from the error to its clearance.
    """

    text: str
    runs: int
    repositories: int
    steps: float


@dataclass(frozen=True, slots=True)
class MethodologyGroup:
    """Clearances of one kind of error in one scope, and what they have in common.

    *keyword* narrows the error to messages about one thing, empty for all of them; *repo* None is
    the general scope, *task_type* None any task. *met* counts the runs that met the error there,
    *cleared* those that got over it, *otherwise* those of them that did so in other ways within as
    many steps. *remedies* is never empty, the most frequent first; *clearances* are those that
    they cover, the newest first.
    """

    error: ErrorPattern
    keyword: str
    task_type: TaskType | None
    repo: str | None
    met: int
    cleared: int
    otherwise: int
    remedies: tuple[CommonRemedy, ...]
    clearances: tuple[Clearance, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """A group in words: when it applies, what to do, and who worded it (name and version)."""

    situation: str
    strategy: str
    made_by: str


def counted(strategy: str) -> str:
    """What of a strategy was counted: its first line. What follows are a model's words."""
    return strategy.partition("\n")[0]


def first_remedy(strategy: str) -> str:
    """The first of the remedies that a strategy counts, and may number."""
    return counted(strategy).partition(" (2) ")[0].removeprefix("(1) ")


@dataclass(frozen=True, slots=True)
class ResolvedBy:
    """An error pattern is resolved by a methodology.

    *success_rate* is among the runs that did it or never got over the error, *avg_steps* from the
    error to its clearance, *support* the number of runs in which it was seen to work.
    """

    error_id: str
    methodology_id: str
    success_rate: float
    avg_steps: float
    support: int


@dataclass(frozen=True, slots=True)
class Methodology:
    """Advice abstracted from several runs.

    The id comes from error pattern, keyword, task type, phase and scope, never from the wording.
    *error_id* is empty for what worked where there was no error; that is of one *phase*.
    *confidence* (0 to 1) is the lower bound of the lift over the base rate. *support* runs in
    *repositories* did it, of *frequency* that met the error (or were about the *keyword*, the type
    of task, in that phase). *success_count* and *failure_count*
    are of the times it was shown: shares, where several items were shown together. *sources* are
    fragments, ascending. *superseded_by* is the methodology that took its place.
    """

    id: str
    error_id: str
    keyword: str
    task_type: TaskType | None
    repo: str | None
    situation: str
    strategy: str
    made_by: str
    status: MethodologyStatus
    confidence: float
    support: int
    repositories: int
    success_rate: float
    avg_steps: float
    frequency: int
    success_count: float = 0.0
    failure_count: float = 0.0
    last_used: datetime | None = None
    sources: tuple[Source, ...] = ()
    superseded_by: str | None = None
    phase: Phase | None = None

    @property
    def name(self) -> str:
        """The label of the node in a graph browser."""
        return self.situation[:120]


@dataclass(frozen=True, slots=True)
class SimilarTo:
    """A fragment cleared an error as another one did, its representative; *weight* is 0 to 1.

    A fragment that represents itself is like none before it.
    """

    error_id: str
    fragment: Source
    representative: Source
    weight: float


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one step of a consolidation looked at, and changed."""

    name: str
    examined: int
    created: int = 0
    updated: int = 0
    removed: int = 0

    @property
    def changed(self) -> int:
        """All changes of the step."""
        return self.created + self.updated + self.removed


@dataclass(frozen=True, slots=True)
class ConsolidationReport:
    """What a consolidation did; *started* False: another one was at work, *reason* says so.

    *usage* is what a language model took, *waiting* how many methodologies wait for its words,
    *runs_waiting* how many runs, and *not_worded* says why. *unusable* counts what it said nothing
    usable of, which is not asked again; *fault* is what was wrong with one of these answers.
    """

    started: bool
    reason: str
    trajectories: int
    steps: tuple[StepReport, ...]
    seconds: float
    usage: Usage = NO_USAGE
    waiting: int = 0
    runs_waiting: int = 0
    not_worded: str = ""
    unusable: int = 0
    fault: str = ""

    @property
    def changed(self) -> int:
        """All changes; 0 where there was nothing to do."""
        return sum(step.changed for step in self.steps)


@dataclass(frozen=True, slots=True)
class Unconsolidated:
    """What changed up to *revision*: how many trajectories, of which repositories, which errors."""

    revision: int
    trajectories: int
    error_ids: tuple[str, ...]
    repos: tuple[str, ...] = ()
