"""Fragments of a run, how errors in it were cleared, and the methodologies made of that."""

import dataclasses
import re
from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from contextgraph.model.error import ErrorPattern, RemedyAction
from contextgraph.model.step import Time
from contextgraph.model.trajectory import CAPTION, TRANSIENT, Outcome, TaskType, also_accepts

# Before the command that a fragment is about: variables, another folder, the interpreter.
_PREPARATION = re.compile(r"(?:\w+=\S* |cd \S+ ?(?:&&|;) ?|python[\d.]* -m )+")
# Before the name of a file, of which a browser would show no more.
_FOLDERS = re.compile(r"(?<!\S)[\w.@~+-]*/(?:[\w.@+-]+/)*(?=[\w*-]*\.\w)")
# Before the command or variable that a remedy names; the number of the first of several.
_WORDS_OF_REMEDY = re.compile(r"^(?:\(1\) )?(?:(?:set|run|use|add|install) (?=`))?")


class LoopKind(StrEnum):
    """Kinds of repetition in a loop."""

    SAME_EDIT_REJECTED = "same_edit_rejected"
    SAME_COMMAND_SAME_ERROR = "same_command_same_error"
    OSCILLATION = "oscillation"
    REPEAT_NO_ERROR = "repeat_no_error"


class LoopEnding(StrEnum):
    """Ends of a loop: its error was cleared, the agent did something else, or the run ended."""

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


class EscapeSuggestion(Struct, frozen=True):
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


class LoopInfo(Struct, frozen=True):
    """A series of steps in the same predicament, *start* to *end* inclusive.

    *length* counts all steps of the span, *repetitions* the attempts with the same outcome.
    *signatures* describe the repeated step or cycle in words, *failing* is the one of them that
    fails, *command* its verb; without an error that of the most frequent one. *error_types* are
    the errors that its attempts met, *message* is the first of them, and *repo* the repository, if
    known. *escape_suggestions* is empty if the memory knows none.
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
    failing: str = ""

    @property
    def length(self) -> int:
        """The number of steps from the first attempt to the last, inclusive."""
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
    """Ends of a fragment: without an error, with its error cleared, or with it open."""

    COMPLETED = "completed"
    RECOVERED = "recovered"
    FAILED = "failed"


@also_accepts("step_range", 1, tuple, lambda steps: {"start": steps[0], "end": steps[1]})
@dataclasses.dataclass(frozen=True, slots=True)
class Fragment:
    """Consecutive steps of one run, *start* to *end* inclusive, that belong together.

    The two may be given as *step_range*. *embedding* is as of `Trajectory`.
    *repo*, *task_type*, *phase*, *open_file* and *files* are of the state in which it happened:
    retrieval needs them without a walk to the trajectory. Of a loop, *loop_cycle* are its steps,
    *loop_failing* is the one of them that fails and *loop_command* its verb, *repetitions* counts
    the attempts, *loop_ending* says how it ended.
    """

    id: str
    start: int
    end: int
    fragment_type: FragmentType
    description: str
    action_sequence: tuple[str, ...]
    outcome: FragmentOutcome
    embedding: Sequence[float] = dataclasses.field(
        default=(), metadata=TRANSIENT, compare=False, repr=False
    )
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
    loop_cycle: tuple[str, ...] = ()
    loop_failing: str = ""

    @property
    def name(self) -> str:
        """The caption of the node in a graph browser: its first command.

        Preparations of the command and folders of files are left out.
        """
        line = next(iter(self.action_sequence), "").strip().partition("\n")[0]
        command = _FOLDERS.sub("", _PREPARATION.sub("", line))[:CAPTION]
        return f"{command or line[:CAPTION]} ({self.fragment_type})"

    @property
    def step_range(self) -> tuple[int, int]:
        """Its first and its last step."""
        return self.start, self.end


class CausedError(Struct, frozen=True, omit_defaults=True):
    """A fragment met an error pattern: at which *steps*, at which *locations* (sorted)."""

    fragment_id: str
    error_id: str
    steps: tuple[int, ...]
    locations: tuple[str, ...]


class Recovered(Struct, frozen=True, omit_defaults=True):
    """An error of one run that was later cleared, and what was done in between.

    *fragment_id* holds the step at which it was cleared. *message* is the error as it was shown
    (masked, clipped), *actions* are what cleared it, in the order in which they were done.
    *verified*: the next observations of the same run show it gone. *workaround*: it was avoided
    rather than solved. *circumstances* say how the attempt failed, in statements that other
    failures can share (`trace.circumstances_of`). *advised*: the run was shown a
    context in between.
    """

    fragment_id: str
    error_id: str
    error_step: int
    cleared_step: int
    message: str
    location: str | None = None
    actions: tuple[RemedyAction, ...] = ()
    verified: bool = False
    workaround: bool = False
    circumstances: tuple[str, ...] = ()
    advised: bool = False


# What another run learns most from, first.
INFORMATIVE_FIRST = (
    FragmentType.ERROR_RECOVERY,
    FragmentType.SUCCESSFUL_FIX,
    FragmentType.LOOP,
    FragmentType.FAILED_ATTEMPT,
    FragmentType.EXPLORATION,
)


class Usage(Struct, frozen=True, omit_defaults=True):
    """Calls of a model: *requests*, *tokens*, *cost* in US dollars, and how many texts were *cut*.

    Tokens are those that the model counted. The cost is 0 where no price is known.
    """

    requests: int = 0
    tokens: int = 0
    cost: float = 0.0
    cut: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.requests + other.requests,
            self.tokens + other.tokens,
            self.cost + other.cost,
            self.cut + other.cut,
        )


NO_USAGE = Usage()


class MethodologyStatus(StrEnum):
    """Degrees of trust in a methodology.

    Probation: not shown yet to be better than no advice, and it says so. Active: the error clears
    more often with it than without. Quarantined: it harmed where it was shown. Retired: another one
    took its place, or it did not hold; a tombstone, so that it does not come up again.
    """

    PROBATION = "probation"
    ACTIVE = "active"
    QUARANTINED = "quarantined"
    RETIRED = "retired"


class Source(Struct, frozen=True, order=True, omit_defaults=True):
    """A fragment by its id and that of its run, where stores find it fast."""

    trajectory_id: str
    fragment_id: str


class ErrorOccurrence(Struct, frozen=True):
    """A run of a task met an error at so many *steps*; *message* is one example of it."""

    trajectory_id: str
    instance_id: str
    repo: str
    task_type: TaskType
    message: str
    steps: int


class Clearance(Struct, frozen=True):
    """An error was cleared in a *phase* of a run of an instance, which *contributor* supplied."""

    recovered: Recovered
    trajectory_id: str
    repo: str
    task_type: TaskType
    outcome: Outcome
    seen_at: Time
    instance_id: str = ""
    contributor: str = ""
    phase: Phase = Phase.UNDERSTANDING

    @property
    def source(self) -> Source:
        """The fragment in which it was cleared."""
        return Source(self.trajectory_id, self.recovered.fragment_id)

    @property
    def steps(self) -> int:
        """Steps from the error to its clearance."""
        return self.recovered.cleared_step - self.recovered.error_step


class ErrorHistory(Struct, frozen=True):
    """One kind of error in the newest runs that met it, the newest first."""

    error: ErrorPattern
    occurrences: tuple[ErrorOccurrence, ...]
    clearances: tuple[Clearance, ...]


class CommonRemedy(Struct, frozen=True):
    """The common part of several clearances.

    *text* is the *action* in words; what varies stands in both as a placeholder.
    *tasks* of the *cleared* ones that cleared the error did it, alone or with other things, whether
    or not that was verified. It is supported in *repositories*; *steps* is the mean there from the
    error to its clearance.
    """

    text: str
    tasks: int
    cleared: int
    repositories: int
    steps: float
    action: RemedyAction


class MethodologyGroup(Struct, frozen=True):
    """Clearances of one kind of error in one scope, and what they have in common.

    *keyword* narrows the error to messages about one thing, empty for all of them; *repo* None is
    the general scope, *task_type* None any task. *met* counts the tasks that met the error there,
    *cleared* those with a verified clearance, *otherwise* those of them that did so in other ways
    within as many steps. *remedies* is never empty, the most frequent first; *clearances* are those
    that they cover, the newest first.
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


class Summary(Struct, frozen=True):
    """A group in words: when it applies, what to do, and who worded it (name and version)."""

    situation: str
    strategy: str
    made_by: str


class ResolvedBy(Struct, frozen=True, omit_defaults=True):
    """An error pattern is resolved by a methodology.

    *success_rate* is among the runs that did it or never got over the error, *avg_steps* from the
    error to its clearance, *support* the number of runs in which it was seen to work.
    """

    error_id: str
    methodology_id: str
    success_rate: float
    avg_steps: float
    support: int


class Words(Struct, frozen=True, omit_defaults=True):
    """A group in a model's words: when it applies, what to do, and when not to, or "".

    *model* names the model and the version of its prompt. False where its answer could not be used:
    it is not requested again.
    """

    model: str
    situation: str = ""
    strategy: str = ""
    not_when: str = ""

    def __bool__(self) -> bool:
        return bool(self.strategy)

    @property
    def lines(self) -> tuple[str, ...]:
        """Advice in words, shown below the counts: what to do, and when not to."""
        shown = (("How", self.strategy), ("Not when", self.not_when))
        return tuple(f"{label}: {text}" for label, text in shown if text)


@dataclasses.dataclass(frozen=True, slots=True)
class Methodology:
    """Advice abstracted from several runs.

    The id comes from error pattern, keyword, task type and scope, never from the wording.
    *confidence* (0 to 1) is the lower bound of its success rate (Wilson, one-sided 95 %).
    *support* runs in *repositories* did it, of *frequency* that met the error. *success_count* and
    *failure_count* are of the times it was shown: shares, where several items were shown together.
    *sources* are fragments, ascending. *superseded_by* is the methodology that took its place.
    *remedies* are the alternatives that *strategy* words, the most frequent first: as they were
    done where they agree in one repository, else with the target of their pattern. *embedding* is
    as of `Trajectory`. *words* are those of a language model for these remedies, None while there
    is no answer; *made_by* made the other texts.
    """

    id: str
    situation: str
    strategy: str
    confidence: float = 0.0
    success_count: float = 0.0
    failure_count: float = 0.0
    embedding: Sequence[float] = dataclasses.field(
        default=(), metadata=TRANSIENT, compare=False, repr=False
    )
    error_id: str = ""
    keyword: str = ""
    task_type: TaskType | None = None
    repo: str | None = None
    made_by: str = ""
    status: MethodologyStatus = MethodologyStatus.PROBATION
    support: int = 0
    repositories: int = 0
    success_rate: float = 0.0
    avg_steps: float = 0.0
    frequency: int = 0
    sources: tuple[Source, ...] = ()
    superseded_by: str | None = None
    remedies: tuple[RemedyAction, ...] = ()
    words: Words | None = None

    @property
    def name(self) -> str:
        """The caption of the node in a graph browser: where it holds, and what to do."""
        place = (self.repo or "any").rpartition("/")[2]
        remedy = _WORDS_OF_REMEDY.sub("", self.strategy or self.situation).replace("`", "")
        return f"{place}: {remedy}"[:120]


class SimilarTo(Struct, frozen=True, omit_defaults=True):
    """A fragment cleared an error as another one did, its representative; *weight* is 0 to 1.

    A fragment that represents itself is like none before it.
    """

    error_id: str
    fragment: Source
    representative: Source
    weight: float


class StepReport(Struct, frozen=True):
    """Counts of one step of a consolidation: examined and changed."""

    name: str
    examined: int
    created: int = 0
    updated: int = 0
    removed: int = 0

    @property
    def changed(self) -> int:
        """All changes of the step."""
        return self.created + self.updated + self.removed


class ConsolidationReport(Struct, frozen=True, omit_defaults=True):
    """Result of a consolidation; not *started*: another process held the lease (*reason*).

    *usage* is that of a language model, *waiting* how many methodologies still have to be worded
    and *not_worded* why. *unusable* counts answers that could not be used, which are not requested
    again; *fault* is what was wrong with one of them.
    """

    started: bool
    reason: str
    trajectories: int
    steps: tuple[StepReport, ...]
    seconds: float
    usage: Usage = NO_USAGE
    waiting: int = 0
    not_worded: str = ""
    unusable: int = 0
    fault: str = ""

    @property
    def changed(self) -> int:
        """All changes; 0 where there was nothing to do."""
        return sum(step.changed for step in self.steps)


class Unconsolidated(Struct, frozen=True):
    """Changes up to *revision*: number of trajectories, their repositories and errors."""

    revision: int
    trajectories: int
    error_ids: tuple[str, ...]
    repos: tuple[str, ...] = ()


class ModelWording(Struct, frozen=True):
    """The answer of a model and its usage; *reason* is why its words are unusable.

    It *is_formed* where it has the fields that were asked for, whatever they say.
    """

    words: Words
    usage: Usage = NO_USAGE
    reason: str = ""
    is_formed: bool = True


class WordingPlan(Struct, frozen=True):
    """Estimate of what a consolidation would send to a model, and of its usage.

    *summarizer* is the model and the version of its prompt, empty where none is configured;
    *prompts* are the texts it would be sent.
    """

    summarizer: str
    prompts: tuple[str, ...]
    usage: Usage
