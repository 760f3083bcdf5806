"""Fragments of a run, its loops, and how errors in it were cleared."""

from collections.abc import Sequence
from enum import StrEnum

from contextgraph.lazy import dataclass, field
from contextgraph.model.error import RemedyAction
from contextgraph.model.trajectory import TRANSIENT, TaskType, also_accepts


class LoopKind(StrEnum):
    """Kinds of repetition in a loop."""

    SAME_EDIT_REJECTED = "same_edit_rejected"
    SAME_COMMAND_SAME_ERROR = "same_command_same_error"
    OSCILLATION = "oscillation"
    REPEAT_NO_ERROR = "repeat_no_error"


class LoopEnding(StrEnum):
    """How a loop ended: its error was cleared, the agent did something else, or the run ended."""

    CLEARED = "cleared"
    LEFT = "left"
    RUN_ENDED = "run_ended"


class LoopSeverity(StrEnum):
    """Repeating: often ends by itself. Stuck: it has lasted longer than such loops usually do."""

    REPEATING = "repeating"
    STUCK = "stuck"


class EscapeEvidence(StrEnum):
    """Evidence for a suggestion from other runs, strongest first."""

    LEFT_SAME_LOOP = "left_same_loop"
    CLEARED_ERROR = "cleared_error"
    LEFT_SUCH_LOOP = "left_such_loop"


@dataclass(frozen=True, slots=True)
class EscapeSuggestion:
    """A way out of a loop, seen in other runs.

    *id* is the methodology or fragment that it comes from. *text* is prompt text and ends
    with its source; *actions* are the remedy, empty where a run merely continued otherwise.
    """

    id: str
    text: str
    evidence: EscapeEvidence
    actions: tuple[RemedyAction, ...] = ()
    instances: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class LoopInfo:
    """A series of steps in the same predicament, *start* to *end* inclusive.

    *length* counts all steps of the span, *repetitions* the attempts with the same outcome.
    *signatures* describe the repeated step or cycle in words; *command* is the verb that is
    repeated, *error_types* are what its attempts met, *message* is the first of these errors,
    *repo* where it happened, where that is known. *escape_suggestions* are empty where the memory
    knows none.
    """

    kind: LoopKind
    start: int
    end: int
    repetitions: int
    signatures: tuple[str, ...]
    severity: LoopSeverity
    escape_suggestions: tuple[EscapeSuggestion, ...] = ()
    command: str = ""
    error_types: tuple[str, ...] = ()
    message: str = ""
    repo: str = ""

    @property
    def length(self) -> int:
        """Steps from the first attempt to the last, both counted."""
        return self.end - self.start + 1


class Phase(StrEnum):
    """The purpose of a step."""

    UNDERSTANDING = "understanding"
    LOCATING = "locating"
    REPRODUCING = "reproducing"
    FIXING = "fixing"
    TESTING = "testing"
    SUBMITTING = "submitting"


class FragmentType(StrEnum):
    """Kinds of fragment."""

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


@also_accepts("step_range", 1, tuple, lambda steps: {"start": steps[0], "end": steps[1]})
@dataclass(frozen=True, slots=True)
class Fragment:
    """Consecutive steps of one run, *start* to *end* inclusive, that belong together.

    The two may be given as *step_range*. *embedding* is as of `Trajectory`.
    *repo*, *task_type*, *phase*, *open_file* and *files* are of the state in which it happened:
    retrieval needs them without a walk to the trajectory. Of a loop, *loop_command* is the verb
    that was repeated, *repetitions* counts the attempts, *loop_ending* says how it ended.
    """

    id: str
    start: int
    end: int
    fragment_type: FragmentType
    description: str
    action_sequence: tuple[str, ...]
    outcome: FragmentOutcome
    embedding: Sequence[float] = field(default=(), metadata=TRANSIENT, compare=False, repr=False)
    trajectory_id: str = ""
    order: int = 0
    phase: Phase = Phase.UNDERSTANDING
    files: tuple[str, ...] = ()
    open_file: str | None = None
    repo: str = ""
    task_type: TaskType = TaskType.OTHER
    loop_kind: LoopKind | None = None
    loop_command: str = ""
    repetitions: int = 0
    loop_ending: LoopEnding | None = None

    @property
    def name(self) -> str:
        """The label of the node in a graph browser."""
        return f"{self.fragment_type} {self.start}-{self.end}"

    @property
    def step_range(self) -> tuple[int, int]:
        """Its first and its last step."""
        return self.start, self.end


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
    (masked, clipped), *actions* are what cleared it, in the order in which they were done.
    *verified*: the next observations of the same run show it gone. *workaround*: it was avoided
    rather than solved. *circumstances* say how the attempt failed, in statements that other
    failures can share (`trace.circumstances_of`).
    """

    fragment_id: str
    error_id: str
    error_step: int
    cleared_step: int
    message: str
    location: str | None
    actions: tuple[RemedyAction, ...]
    verified: bool
    workaround: bool
    circumstances: tuple[str, ...] = ()


# What another run learns most from, first.
INFORMATIVE_FIRST = (
    FragmentType.ERROR_RECOVERY,
    FragmentType.SUCCESSFUL_FIX,
    FragmentType.LOOP,
    FragmentType.FAILED_ATTEMPT,
    FragmentType.EXPLORATION,
)


def most_informative(fragments: Sequence[Fragment], count: int) -> tuple[Fragment, ...]:
    """At most *count* of *fragments*: those that another run learns most from, first."""
    ranked = sorted(fragments, key=lambda f: (INFORMATIVE_FIRST.index(f.fragment_type), f.order))
    return tuple(ranked[:count])
