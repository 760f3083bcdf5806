"""A finished agent run: as read from its log, and as stored in the graph."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import wraps
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec import Struct, field

from contextgraph.model.step import Json, Step, Time
from contextgraph.text import regex

Value = TypeVar("Value")

# With which the name of a source begins that is a history in a checkout, which anybody wrote.
CLONE = "clone:"
# That of an archive whose source nobody named.
ARCHIVE = "archive:"
# The name of the format of archives, with which their first line begins.
ARCHIVE_FORMAT = "contextgraph-memory-archive"


def vouches(contributor: str, repo: str, wanted: str) -> bool:
    """Return True where *contributor*, about a run of *repo*, counts for the repository *wanted*.

    A clone counts for its own repository alone.
    """
    return not contributor.startswith(CLONE) or repo.casefold() == wanted.casefold()


def independent(sources: Iterable[str]) -> int:
    """Return how many of *sources* count.

    All clones are one, and none beside a named source, which may have sent them. So are all
    archives whose source nobody named: one may have several names.
    """
    given = {ARCHIVE if source.startswith(ARCHIVE) else source for source in sources}
    others = {source for source in given if not source.startswith(CLONE)}
    return len(others) + (given != others and others <= {""})


# Of a field that is neither stored nor part of a JSON record.
TRANSIENT = {"transient": True}
# Characters of a task or a command in the caption of a node.
CAPTION = 80
# The time of what did not happen.
NEVER = datetime.min.replace(tzinfo=UTC)


def is_subagent(agent: str) -> bool:
    """Return whether this is the name of a sub-agent, whose prompts another agent wrote."""
    return agent.endswith("/subagent")


def also_accepts(
    name: str, position: int, kind: type, fields_in: "Callable[[Any], Mapping[str, Any]]"
) -> "Callable[[type[Value]], type[Value]]":
    """Let the constructor of a class take the argument *name*, which *fields_in* turns into fields.

    Without its name it is known by its *position* and *kind*.
    """

    def decorate(node: "type[Value]") -> "type[Value]":
        generated: Callable[..., None] = node.__init__

        @wraps(generated)
        def initialize(self: "Value", *arguments: "Any", **given: "Any") -> None:
            if name in given:
                given |= fields_in(given.pop(name))
            elif isinstance(argument := next(iter(arguments[position:]), None), kind):
                before, after = arguments[:position], arguments[position + 1 :]
                arguments = (*before, *fields_in(argument).values(), *after)
            generated(self, *arguments, **given)

        node.__init__ = initialize  # type: ignore[assignment]
        return node

    return decorate


def texts_in(value: Json) -> Iterator[str]:
    """Yield all texts in *value*, without the keys of objects."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts_in(item)


# GitHub's owners have no underscore; `x__owner__repo-1` is an id with something before it.
_INSTANCE_ID = regex(
    r"(?P<owner>[A-Za-z0-9][A-Za-z0-9-]*)__(?P<repo>(?:(?!__)[\w.-])+)-(?P<number>\d+)"
)


class Outcome(StrEnum):
    """Outcome of a task; most logs do not say it, and unknown never counts as solved."""

    SOLVED = "solved"
    FAILED = "failed"
    UNKNOWN = "unknown"

    @classmethod
    def of(cls, success: bool | None) -> "Outcome":
        """Return the outcome of a run with this *success*, None where that is unknown."""
        return cls.UNKNOWN if success is None else cls.SOLVED if success else cls.FAILED


class OutcomeSource(StrEnum):
    """Sources of an outcome, the weakest first."""

    LOG = "log"
    REPORT = "report"
    HAND = "hand"


class ChangeStatus(StrEnum):
    """State of a run's change: held or reverted by later commits, else made, or none.

    Unknown before the run is read.
    """

    HELD = "held"
    REVERTED = "reverted"
    MADE = "made"
    NONE = "none"
    UNKNOWN = "unknown"


class Basis(StrEnum):
    """The evidence by which the outcome of a session is known, or guessed.

    Known: the log itself, a report of an evaluation, a person by hand. Guessed: later commits
    (change), a merged pull request, a person who stopped the agent, a plan that was put before them
    at the end, the person's last words, tests after the last edit, a commit, an error of the last
    call, other programs that ran after the last edit, or that the agent finished and nobody
    objected (answered).
    """

    LOG = "log"
    REPORT = "report"
    HAND = "hand"
    CHANGE = "change"
    MERGED = "merged"
    STOPPED = "stopped"
    PLAN = "plan"
    TESTS = "tests"
    WORDS = "words"
    COMMIT = "commit"
    ERROR = "error"
    RAN = "ran"
    ANSWERED = "answered"
    NOTHING = "nothing"

    @property
    def is_guess(self) -> bool:
        """Return whether this allows a guess alone."""
        return self not in (Basis.LOG, Basis.REPORT, Basis.HAND)


class Ending(Struct, frozen=True, omit_defaults=True):
    """The outcome of a session, and its *basis*, with the *reason* in words."""

    outcome: Outcome = Outcome.UNKNOWN
    basis: Basis = Basis.NOTHING
    reason: str = "the log ends before anything shows it"

    @property
    def is_guess(self) -> bool:
        """Return whether the outcome is guessed."""
        return self.outcome is not Outcome.UNKNOWN and self.basis.is_guess

    @property
    def text(self) -> str:
        """The outcome as people read it, marked where it is guessed."""
        return f"{self.outcome}?" if self.is_guess else f"{self.outcome}"

    def with_change(self, change: "ChangeStatus") -> "Ending":
        """Return what later commits say of the *change*, else this ending."""
        if change is ChangeStatus.REVERTED:
            return Ending(Outcome.FAILED, Basis.CHANGE, "its change was reverted later")
        if change is ChangeStatus.HELD:
            return Ending(Outcome.SOLVED, Basis.CHANGE, "later commits kept its change")
        return self


NO_ENDING = Ending()


class Spent(Struct, frozen=True, omit_defaults=True):
    """Tokens that a model read and wrote; *cost* in US dollars where the log says it.

    *input* leaves out what was *cached* (read from a cache) and *written* into one.
    """

    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    cost: float | None = None

    def __add__(self, other: "Spent") -> "Spent":
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Spent(
            self.input + other.input,
            self.cached + other.cached,
            self.written + other.written,
            self.output + other.output,
            sum(costs) if costs else None,
        )

    @property
    def tokens(self) -> int:
        """The sum of all tokens."""
        return self.input + self.cached + self.written + self.output


NOTHING_SPENT = Spent()


class TaskType(StrEnum):
    """Kinds of task."""

    BUG_FIX = "bug_fix"
    FEATURE = "feature"
    REFACTOR = "refactor"
    DOCS = "docs"
    TEST = "test"
    OTHER = "other"


class Inherited(Struct, frozen=True, omit_defaults=True):
    """The beginning of a session that another session owns: how many *messages*, their *digest*.

    It *began_at* that time. *with_request*: what the first step answers is among it, and repeated
    as the task; else the task answers what the agent wrote *before*. *within* is the digest of the
    owner's beginning that ends there, where the session began with its end.
    """

    messages: int = 0
    digest: str = ""
    began_at: Time | None = None
    with_request: bool = False
    before: str = ""
    within: str = ""

    @property
    def ends(self) -> tuple[str, str]:
        """Return the digests of the beginnings that end there, its own and that of the owner."""
        return self.digest, self.within


class RawTrajectory(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One run as read from a log, in the order it happened.

    No steps is valid: an imported fix is a task and the patch that solved it. *repo* is
    ``owner/repo``. *source* says where it was read, e.g. ``runs.jsonl:12``. What the agent could
    not see (evaluation logs, hidden tests) may have set the *outcome* and nothing else.
    *content_hashes* are git's hashes of files by path, of the working tree at the end of the run,
    where that was known. *session* is the id of the conversation, where a log has one. *advised*
    are the contexts that this product showed in the run, each with the step after which it did (-1:
    at the start). *folder* is where it worked, where a log says so once for the whole. *inherited*
    is what it began with and another session owns; the steps are those that follow. *origin* is the
    source that a reader gives it by where it was read, else empty: no log says it itself.
    *opening_id* stands for the id that its client gave to the request, as `Step.message_id`.
    *spent* are the tokens of its model, where a log counts them.
    """

    source_format: str
    instance_id: str
    repo: str
    task: str
    steps: tuple[Step, ...] = ()
    agent: str = ""
    model: str = ""
    outcome: Outcome = Outcome.UNKNOWN
    exit_status: str | None = None
    patch: str | None = None
    started_at: Time | None = None
    source: str = ""
    system_prompt: str = ""
    outcome_source: OutcomeSource = OutcomeSource.LOG
    change: ChangeStatus = ChangeStatus.UNKNOWN
    content_hashes: Mapping[str, str] = field(default_factory=dict)
    session: str = ""
    advised: Mapping[str, int] = field(default_factory=dict)
    folder: str = ""
    inherited: Inherited | None = None
    origin: str = ""
    opening_id: str = ""
    spent: Spent = NOTHING_SPENT

    @property
    def misnumbered(self) -> str:
        """The reason why its steps are not in order; empty if they are numbered from 0."""
        for position, step in enumerate(self.steps):
            if step.index != position:
                return f"step {position} has the index {step.index}"
        return ""

    @property
    def is_talk(self) -> bool:
        """True for a conversation in which no tool was called."""
        return bool(self.steps) and not any(step.action.text for step in self.steps)


class Condition(StrEnum):
    """A condition that a run shows at its end, or so far, and under which runs fail more often.

    No edit: no file was changed that the run did not make itself. Not reproduced: no program ran
    before the first edit. Not run: no program ran since the last edit; a script that edits is the
    edit. Not tested: no test ran since then, by a test runner or a program that reports tests; the
    agent's own scripts are programs. Tests red: the last test failed. Error open: an error was
    never cleared. Looped: a loop lasted longer than such loops usually do. Stuck: the last step
    continues one. Exhausted: its context, money, time or turns were used up. Wrong place: no file
    was changed that a solved run of the same task changed.
    """

    NO_EDIT = "no_edit"
    NOT_REPRODUCED = "not_reproduced"
    NOT_RUN = "not_run"
    NOT_TESTED = "not_tested"
    TESTS_RED = "tests_red"
    ERROR_OPEN = "error_open"
    LOOPED = "looped"
    STUCK = "stuck"
    EXHAUSTED = "exhausted"
    WRONG_PLACE = "wrong_place"

    @property
    def text(self) -> str:
        """The condition in words."""
        return _CONDITIONS[self]


_CONDITIONS = {
    Condition.NO_EDIT: "No existing file was changed",
    Condition.NOT_REPRODUCED: "Nothing was run before the first edit",
    Condition.NOT_RUN: "Nothing was run since the last edit",
    Condition.NOT_TESTED: "No test was run since the last edit",
    Condition.TESTS_RED: "The last test failed",
    Condition.ERROR_OPEN: "An error was never cleared",
    Condition.LOOPED: "An attempt was repeated without a new outcome",
    Condition.STUCK: "The last steps repeat an attempt without a new outcome",
    Condition.EXHAUSTED: "The context, money or time was used up",
    Condition.WRONG_PLACE: "No file was changed that a solved run of the task changed",
}


class Course(Struct, frozen=True, omit_defaults=True):
    """The course of a run of so many *steps*, and the *conditions* that it ended with.

    *first_edit* is the step that first changed a file which the run did not make itself, *loops*
    are the first and last step of each loop, *open_error* is the type of the error that stood last.
    """

    steps: int = 0
    conditions: tuple[Condition, ...] = ()
    first_edit: int | None = None
    loops: tuple[tuple[int, int], ...] = ()
    open_error: str = ""

    def has_edit(self, before: int) -> bool:
        """Return whether an existing file was changed *before* a step."""
        return self.first_edit is not None and self.first_edit < before

    def looped(self, before: int) -> int:
        """Return the number of steps in loops among those *before* a step."""
        return sum(max(0, min(end + 1, before) - start) for start, end in self.loops)


class RunCourse(NamedTuple):
    """The *course* of a run whose outcome is known."""

    id: str
    is_solved: bool
    course: Course

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions that it ended with."""
        return self.course.conditions


@also_accepts("success", 4, bool, lambda success: {"outcome": Outcome.of(success)})
@dataclasses.dataclass(frozen=True, slots=True)
class Trajectory:
    """The node of one run in the graph; *task* is its issue text, masked and clipped.

    *success* may be given in place of *outcome*. *embedding* is the vector by which the run was
    found (`MemoryRetriever.by_semantic`), else empty.

    *repo* is in lower case. *files* are the repository-relative files that the run changed, by its
    patch if there is one, without files that the run created. *contributor* names who supplied the
    run (``learn --source``), or is empty. *course* is how it went. *session* is the id of its
    conversation at its client, *seconds* the time from its first to its last step, *guess* the
    ending that its steps suggest, *title* a line that says what was asked, *has_turns* whether a
    person wrote more than the task in it, and that is kept.
    """

    id: str
    instance_id: str
    repo: str
    task_type: TaskType
    outcome: Outcome
    total_steps: int
    summary: str
    embedding: Sequence[float] = dataclasses.field(
        default=(), metadata=TRANSIENT, compare=False, repr=False
    )
    task: str = ""
    exit_status: str | None = None
    files: tuple[str, ...] = ()
    agent: str = ""
    model: str = ""
    source_format: str = ""
    source: str = ""
    run_at: Time | None = None
    learned_at: Time = NEVER
    outcome_source: OutcomeSource = OutcomeSource.LOG
    change: ChangeStatus = ChangeStatus.UNKNOWN
    contributor: str = ""
    course: Course = dataclasses.field(default_factory=Course)
    session: str = ""
    seconds: float | None = None
    spent: Spent = NOTHING_SPENT
    guess: Ending = NO_ENDING
    folder: str = ""
    title: str = ""
    has_turns: bool = False

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions that the run ended with."""
        return self.course.conditions

    @property
    def name(self) -> str:
        """Return the caption of the node in a graph browser: the task and the outcome."""
        return f"{self.title[:CAPTION] or self.instance_id} ({self.ending.text})"

    @property
    def ending(self) -> Ending:
        """The known outcome; else what later commits say of its change, else the guess."""
        if self.outcome is not Outcome.UNKNOWN:
            return Ending(self.outcome, Basis(self.outcome_source.value), "")
        return self.guess.with_change(self.change)

    @property
    def change_made(self) -> ChangeStatus:
        """Its change as later commits show it, else by whether it changed files."""
        if self.change is not ChangeStatus.UNKNOWN:
            return self.change
        return ChangeStatus.MADE if self.files else ChangeStatus.NONE

    @property
    def success(self) -> bool | None:
        """True if solved, False if failed, None if unknown."""
        return None if self.outcome is Outcome.UNKNOWN else self.outcome is Outcome.SOLVED

    @property
    def seen_at(self) -> datetime:
        """The time of the run; of a log without times, the time at which it was learned."""
        return self.run_at or self.learned_at


class PatchSummary(Struct, frozen=True, omit_defaults=True):
    """Changes of a patch to existing files, in its order.

    *symbols* are the functions and classes around the changed lines, *added* and *removed* the
    identifiers that only the new or only the old lines have.
    """

    symbols: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class Judged(Protocol):
    """A run in any form, with its outcome."""

    @property
    def outcome(self) -> Outcome: ...

    @property
    def outcome_source(self) -> OutcomeSource: ...

    @property
    def change(self) -> ChangeStatus: ...


def precedes(given: Judged, known: Judged) -> bool:
    """Return True where the outcome of *given* replaces that of *known*.

    By hand precedes a report, a report precedes a log, and each an unknown outcome; of two from the
    same kind of source the known one stays.
    """
    ranks = list(OutcomeSource)
    return given.outcome is not Outcome.UNKNOWN and (
        known.outcome is Outcome.UNKNOWN
        or ranks.index(given.outcome_source) > ranks.index(known.outcome_source)
    )


def adds_to(given: Judged, known: Judged) -> bool:
    """Return True where *given* says more of its outcome or change than is *known* of its run."""
    return precedes(given, known) or given.change not in (ChangeStatus.UNKNOWN, known.change)


def instance_id_in(text: str) -> str | None:
    """Return the first SWE-bench instance id (``owner__repo-12``) in *text*, as a file name."""
    match = _INSTANCE_ID.search(text)
    return match.group() if match else None


def task_instance(repo: str, task: str) -> str:
    """Return the id of a *task* that has none: ``owner/repo#`` and a checksum of its text."""
    from hashlib import blake2b  # slow to load

    digest = blake2b(task.encode("utf-8", "replace"), digest_size=6).hexdigest()
    return f"{repo}#{digest}"


def repo_of(instance_id: str) -> str:
    """``owner/repo`` of an instance id ``owner__repo-12``; empty where it has another form."""
    match = _INSTANCE_ID.fullmatch(instance_id)
    return f"{match['owner']}/{match['repo']}" if match else ""
