"""Fragments of a run, and how they hang together with the errors in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from contextgraph.model.trajectory import TaskType


class Phase(StrEnum):
    """What the agent is about at a step."""

    UNDERSTANDING = "understanding"
    LOCATING = "locating"
    REPRODUCING = "reproducing"
    FIXING = "fixing"
    TESTING = "testing"
    SUBMITTING = "submitting"


class FragmentType(StrEnum):
    """What a fragment is an example of."""

    ERROR_RECOVERY = "error_recovery"
    EXPLORATION = "exploration"
    SUCCESSFUL_FIX = "successful_fix"
    FAILED_ATTEMPT = "failed_attempt"
    LOOP = "loop"


class FragmentOutcome(StrEnum):
    """How a fragment ended: without an error, with its error cleared, or with it open."""

    COMPLETED = "completed"
    RECOVERED = "recovered"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Fragment:
    """Consecutive steps of one run, *start* to *end* inclusive, that belong together.

    *repo*, *task_type*, *phase*, *open_file* and *files* are of the state in which it happened:
    retrieval needs them without a walk to the trajectory.
    """

    id: str
    trajectory_id: str
    order: int
    start: int
    end: int
    fragment_type: FragmentType
    phase: Phase
    outcome: FragmentOutcome
    description: str
    action_sequence: tuple[str, ...]
    files: tuple[str, ...]
    open_file: str | None
    repo: str
    task_type: TaskType

    @property
    def name(self) -> str:
        """The label of the node in a graph browser."""
        return f"{self.fragment_type} {self.start}-{self.end}"


@dataclass(frozen=True, slots=True)
class CausedError:
    """A fragment met an error pattern: at which *steps*, at which *locations* (sorted)."""

    fragment_id: str
    error_id: str
    steps: tuple[int, ...]
    locations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Recovered:
    """An error of one run that was later cleared, and what was done in between.

    *fragment_id* holds the step at which it was cleared. *message* is the error as it was shown
    (masked, clipped), *what* a sentence for another agent, *actions* those that bear on it.
    *verified*: the next observations of the same run show it gone. *workaround*: it was avoided
    rather than solved.
    """

    fragment_id: str
    error_id: str
    error_step: int
    cleared_step: int
    message: str
    location: str | None
    what: str
    actions: tuple[str, ...]
    verified: bool
    workaround: bool


# What another run learns most from, first.
TELLING = (
    FragmentType.ERROR_RECOVERY,
    FragmentType.SUCCESSFUL_FIX,
    FragmentType.LOOP,
    FragmentType.FAILED_ATTEMPT,
    FragmentType.EXPLORATION,
)


def most_telling(fragments: Sequence[Fragment], count: int) -> tuple[Fragment, ...]:
    """At most *count* of *fragments*: those that another run learns most from, first."""
    telling = sorted(fragments, key=lambda f: (TELLING.index(f.fragment_type), f.order))
    return tuple(telling[:count])
