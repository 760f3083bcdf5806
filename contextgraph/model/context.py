"""Queries and answers: state, scope, candidates, context, playbook; what was shown, explanation."""

import dataclasses
import os
from base64 import urlsafe_b64encode
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import blake2b, sha256
from math import exp
from operator import attrgetter, itemgetter
from typing import NamedTuple, Self

from msgspec import Struct, field
from msgspec.structs import astuple, force_setattr

from contextgraph.model.error import (
    Cause,
    ErrorPattern,
    ErrorSignature,
    Family,
    RemedyAction,
    RemedyPattern,
    SignatureLevel,
)
from contextgraph.model.facts import Environment
from contextgraph.model.methodology import Fragment, LoopInfo, Methodology, Phase
from contextgraph.model.note import Note, Recollection
from contextgraph.model.step import ActionKind, Json, Time
from contextgraph.model.trajectory import Condition, Outcome, PatchSummary, Trajectory
from contextgraph.model.values import replace
from contextgraph.text import count_tokens


class Freshness(StrEnum):
    """State of the files that advice names: the content that runs left or found, or another.

    Unknown without a working tree, and where no run recorded a hash of the content.
    """

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    UNKNOWN = "unknown"


class PlaybookFile(Struct, frozen=True):
    """A file of the project: how many tasks *changed* and how many *opened* it.

    *probability* is that of being changed for the task, 0 to 1; *symbols* are functions and classes
    in it that the task names or several tasks changed, the most frequent first.
    """

    path: str
    changed: int
    opened: int
    probability: float
    symbols: tuple[str, ...] = ()
    freshness: Freshness = Freshness.UNKNOWN


class CommandRecord(Struct, frozen=True):
    """Counts of a command: *tried* in so many tasks, it *worked* in so many.

    *command* has ``<tests>`` instead of the choice of tests, ``<script>`` instead of a script
    that the run had made; *folder* is where it ran, relative to the repository, empty for its root.
    Tests that failed ran, so the command worked. *error_type* is the most frequent reason why it
    did not. *prompted* counts the tasks in which it only followed another command of its kind, or,
    an installation, something that did not run. *source* is the only one that it is known from,
    where runs have several ("" for the owner): what another one alone says is not agreed.
    """

    command: str
    folder: str
    worked: int
    tried: int
    error_type: str = ""
    prompted: int = 0
    freshness: Freshness = Freshness.UNKNOWN
    source: str | None = None

    @property
    def line(self) -> str:
        """The command line, from the root of the repository."""
        return f"cd {self.folder} && {self.command}" if self.folder else self.command

    @property
    def is_agreed(self) -> bool:
        """True where it worked in at least two tasks, and in most of those that tried it."""
        return not self.source and self.worked >= max(2, 0.6 * self.tried)

    @property
    def is_news(self) -> bool:
        """True where at least a third of the tasks that tried it did not begin with it."""
        return 3 * self.prompted >= self.tried


class FailingTest(Struct, frozen=True):
    """A test that failed when it was last run, in so many *tasks*, and was fixed in none."""

    name: str
    tasks: int


class MachineFact(Struct, frozen=True):
    """Causes of errors in the machine or the harness of an agent, whatever the message.

    It did so in *tasks* of *among*, and cost *steps* in a run. *fails* does not work, *works* does
    instead; programs, packages or commands, empty where the *cause* says it all. *patterns* are
    what cleared it.
    """

    cause: Cause
    fails: str
    works: str
    tasks: int
    among: int
    steps: float
    patterns: tuple[RemedyPattern, ...] = ()


class RepositoryPlaybook(Struct, frozen=True):
    """Facts that the runs of a repository agree on, each list best first; false if empty.

    *runs* is the number of runs that were read, *tasks* that of their tasks. *tests* are test
    commands, *scripts* ways to run Python with the imports of the project, *setup* are
    installations. *package* is the folder in which *package_tasks* changed files. *notes* are
    pinned notes, newest first; *degraded* says why they could not be read. *facts* are those of the
    machine and the harness, most costly first; *environment* is the one of these runs.
    *places* are paths above the working folder that the task names, with where runs found them.
    *quarantined* are the ids of lines that are never shown.
    """

    repo: str
    runs: int = 0
    tasks: int = 0
    files: tuple[PlaybookFile, ...] = ()
    tests: tuple[CommandRecord, ...] = ()
    scripts: tuple[CommandRecord, ...] = ()
    setup: tuple[CommandRecord, ...] = ()
    failing_tests: tuple[FailingTest, ...] = ()
    package: str = ""
    package_tasks: int = 0
    notes: tuple[Note, ...] = ()
    degraded: str = ""
    facts: tuple[MachineFact, ...] = ()
    environment: Environment = Environment()
    places: tuple[tuple[str, str], ...] = ()
    quarantined: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """True where anything is known."""
        return bool(self.runs or self.notes or self.facts)


class CommandHistory(Struct, frozen=True):
    """Forms in which a *command* is really run in a repository with *runs* in the memory.

    *form* is how all commands of its form went, in any folder, *first* how the first one of each
    run did: what a run installs makes others work. *exact* is the record of this very command, None
    where no run gave it. *ways* are the commands of this form as they were typed, the
    most frequent first; *others* are other commands for the same purpose that mostly worked.
    """

    repo: str
    command: str
    runs: int = 0
    form: CommandRecord | None = None
    first: CommandRecord | None = None
    exact: CommandRecord | None = None
    ways: tuple[CommandRecord, ...] = ()
    others: tuple[CommandRecord, ...] = ()

    def __bool__(self) -> bool:
        """True where any run gave a command of this form."""
        return self.form is not None


@dataclasses.dataclass(frozen=True, slots=True)
class State:
    """The situation of an agent at one moment; every field is optional.

    *current_error* is the text of the latest error that is not cleared; *last_outcome* is the
    observation of *last_action*. *failed_actions* are earlier actions of the run that failed or
    found nothing, its searches, and listings of its working directory: they are not advised again.
    *repo* is ``owner/repo``, *agent* the name of the agent in its logs, *environment* its machine:
    facts of other machines are not shown. *phase* may be given by its value, for example
    ``"testing"``; raises `ValueError` for another text. *embedding* is the vector of the task in
    the space of the memory, if known. *action_type*, *error_category* and *error_keywords* describe
    an attempt of an agent that does not say its *last_action*: without either, a state is no
    attempt, and an error alone no loop.

    *steps* is how many steps the run has taken, *looped_steps* how many of them lie in loops, and
    *conditions* are those that it shows so far: warnings compare it with earlier runs that were
    where it is. Without *steps* it is not compared.
    """

    tools: tuple[str, ...] = ()
    repo_summary: str = ""
    task_description: str = ""
    current_error: str = ""
    phase: Phase | None = None
    embedding: Sequence[float] = ()
    repo: str = ""
    last_action: str = ""
    last_outcome: str = ""
    open_file: str = ""
    instance_id: str | None = None
    failed_actions: tuple[str, ...] = ()
    agent: str = ""
    environment: Environment | None = None
    action_type: ActionKind | None = None
    error_category: str = ""
    error_keywords: tuple[str, ...] = ()
    steps: int = 0
    looped_steps: int = 0
    conditions: tuple[Condition, ...] = ()

    def __post_init__(self) -> None:
        if None in _texts_of(self):  # not given, as null over HTTP
            for name in _TEXTS:
                object.__setattr__(self, name, getattr(self, name) or "")
        if self.phase is not None and type(self.phase) is not Phase:
            object.__setattr__(self, "phase", Phase(self.phase))
        if self.action_type is not None and type(self.action_type) is not ActionKind:
            object.__setattr__(self, "action_type", ActionKind(self.action_type))
        if any(type(one) is not Condition for one in self.conditions):
            object.__setattr__(self, "conditions", tuple(map(Condition, self.conditions)))

    @property
    def progress(self) -> "State":
        """The progress of the run alone, by which it is compared with earlier runs."""
        return State(
            repo=self.repo,
            phase=self.phase,
            last_action=self.last_action,
            agent=self.agent,
            instance_id=self.instance_id,
            steps=self.steps,
            looped_steps=self.looped_steps,
            conditions=self.conditions,
        )


_TEXTS = tuple(name for name, kind in State.__annotations__.items() if kind is str)
_texts_of = attrgetter(*_TEXTS)


class Scope(Struct, frozen=True):
    """Limits of a query: one repository or all (None); not these instances; nothing newer.

    Names of repositories are compared without case, as GitHub does. A run counts as newer by its
    `Trajectory.seen_at`; *as_of* itself is still seen.
    """

    repo: str | None = None
    exclude_instances: frozenset[str] = frozenset()
    as_of: Time | None = None

    def __post_init__(self) -> None:
        if self.repo is not None:
            force_setattr(self, "repo", self.repo.casefold())


class RunOrder(StrEnum):
    """Orders of a list of runs; `NEWEST` and `STEPS` are descending."""

    NEWEST = "newest"
    INSTANCE = "instance"
    REPO = "repo"
    AGENT = "agent"
    OUTCOME = "outcome"
    STEPS = "steps"


class RunFilter(Struct, frozen=True):
    """The runs to list, and their *order*; *repo* in any case, *since* compared with `seen_at`."""

    repo: str | None = None
    agent: str = ""
    outcome: Outcome | None = None
    since: Time | None = None
    order: RunOrder = RunOrder.NEWEST


class ErrorQuestion(Struct, frozen=True):
    """Asks about the errors that agree with *signature* at least at *level*, within *scope*."""

    signature: ErrorSignature
    level: SignatureLevel
    scope: Scope


class RecoveryCandidate(NamedTuple):
    """The fields of a recorded `Recovered`, its error, and the run it happened in.

    *words* are those of its message and of what was done, in order, with spaces between them.
    A tuple, since a query at an error reads 170 of them: made in a tenth of the time.
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
    circumstances: tuple[str, ...]
    words: str
    family: Family
    error_type: str
    template: str
    trajectory_id: str
    instance_id: str
    repo: str
    contributor: str
    agent: str
    seen_at: Time
    advised: bool = False


class FragmentCandidate(Struct, frozen=True):
    """A fragment with the run it is part of."""

    fragment: Fragment
    trajectory: Trajectory


class WordCounts(Struct, frozen=True):
    """Number of runs in *total*, and of those in which each word occurs."""

    total: int
    by_word: Mapping[str, int]


class ErrorTally(Struct, frozen=True):
    """Counts of an error within a scope: the *tasks* that met it, and those that *cleared* it.

    Several runs of one task, such as those of a session and its sub-agents, count once. It is
    cleared where an answer shows it gone. *steps* are those of all runs, *trajectories* the newest
    ten, newest first.
    """

    error: ErrorPattern
    tasks: int
    steps: int
    cleared: int
    trajectories: tuple[str, ...]


class ErrorSteps(NamedTuple):
    """The steps at which a fragment met an error."""

    fragment_id: str
    error_id: str
    error_type: str
    steps: tuple[int, ...]


class ScopeLevel(StrEnum):
    """Nearness of the evidence to the asking run."""

    REPO = "repo"
    GENERAL = "general"


class ChannelRank(Struct, frozen=True, gc=False):
    """A channel found the item at this *rank* (from 1) with this *score* (0 to 1)."""

    channel: str
    rank: int
    score: float


class FittedModel(Struct, frozen=True, omit_defaults=True):
    """A logistic regression: its *intercept* and the *weights* of features by name.

    *calibration* has the probability before it and the share that was right, ascending; between two
    of them it is interpolated.
    """

    intercept: float
    weights: Mapping[str, float]
    calibration: tuple[tuple[float, float], ...] = ()

    def probability(self, features: Mapping[str, float]) -> float:
        """Return the probability, 0 to 1, by *features*; missing features are 0."""
        evidence = sum(weight * features.get(name, 0.0) for name, weight in self.weights.items())
        at, points = 1 / (1 + exp(-self.intercept - evidence)), self.calibration
        if not points:
            return at
        above = max(bisect_left(points, at, key=itemgetter(0)), 1)
        (low, least), (high, most) = points[above - 1 : above + 1]
        return least + (most - least) * (at - low) / (high - low)


class MemoryGate(Struct, frozen=True, omit_defaults=True):
    """The *model* of remedies fitted on *errors* of a memory, when that held *runs*.

    Without a model the shipped one is used. *alarms*: by agent, after how many repetitions saying
    that it is in a loop pays.
    """

    model: FittedModel | None = None
    errors: int = 0
    runs: int = 0
    alarms: Mapping[str, int] = field(default_factory=dict)


class Likeness(StrEnum):
    """In what an earlier error can be like the one at hand, the nearest first.

    All but the last are of the same type; *here* is in the same repository.
    """

    MESSAGE_HERE = "message here"
    TEMPLATE_HERE = "template here"
    TEMPLATE = "template"
    CIRCUMSTANCES = "circumstances"
    PROGRAM = "program"
    TYPE = "type"
    FAMILY = "family"


_STATED = (Likeness.TEMPLATE_HERE, Likeness.TEMPLATE, Likeness.TYPE)


class Count(Struct, frozen=True, gc=False):
    """*did* of *cleared* independent instances did the same about an error as like as *likeness*.

    *share* is that of tasks that are evidence at this error, as they count: less where the
    circumstances differ, with one instance of doubt. The probability of a remedy follows from it.
    """

    likeness: Likeness
    did: int
    cleared: int
    share: float


class Why(Struct, frozen=True, gc=False):
    """Why an item is in the answer.

    *support* counts the runs in which it was seen to work (or to happen), *trajectories* names
    them (at most ten, newest first). Of a remedy, *counts* are what its probability follows from,
    those first that raise it most; *instances* are how many independent ones did it, *sources* who
    supplied their runs ("" where unknown); not *is_active*: one instance, or one source alone
    supports it. *saves* is how many steps runs took to find it that were not shown it; 1 where
    none is known.
    """

    channels: tuple[ChannelRank, ...]
    scope: ScopeLevel
    support: int
    trajectories: tuple[str, ...]
    signature_level: SignatureLevel | None = None
    counts: tuple[Count, ...] = ()
    instances: int = 0
    sources: tuple[str, ...] = ()
    is_active: bool = True
    saves: float = 1.0

    @property
    def agreement(self) -> Count | None:
        """The count of this error here, else anywhere, else of its type."""
        return next(
            (count for one in _STATED for count in self.counts if count.likeness is one), None
        )


class PipelineStep(StrEnum):
    """The steps that a remedy passes on its way to an agent, in order; each can silence it."""

    FOUND = "found"
    SAME = "same"
    TRUSTED = "trusted"
    WORTH_IT = "worth it"
    FRESH = "fresh"
    SURE = "sure"
    NEW = "new"
    FITS = "fits"
    CHANCE = "chance"


class Silence(Struct, frozen=True, gc=False):
    """The *step* at which a remedy was silenced, and the *reason*."""

    step: PipelineStep
    reason: str


class Remedy(Struct, frozen=True, gc=False):
    """A remedy of earlier runs: one value from candidate to text.

    *description* words its *actions* for the error at hand; *advice* is the id of what makes two
    remedies the same: its effect is recorded by it. The recovery that agrees best with the error is
    the fragment of an instance of *repo*, empty where it came with the package; *methodology* is
    what was abstracted from such, if any. *probability* is that of clearing the error; *score* is
    that times the trust in it.
    *is_supported*: the state shows what the remedy takes for granted.

    *silence* says why it is not shown; None for what is shown. *rank* is from 1 among those
    that passed the gate, 0 for others.
    """

    actions: tuple[RemedyAction, ...]
    description: str
    advice: str
    fragment_id: str
    trajectory_id: str
    instance_id: str
    repo: str
    error_type: str
    signature_level: SignatureLevel
    why: Why
    workaround: bool = False
    methodology: Methodology | None = None
    is_supported: bool = True
    probability: float = 0.0
    score: float = 0.0
    rank: int = 0
    freshness: Freshness = Freshness.UNKNOWN
    silence: Silence | None = None

    @property
    def id(self) -> str:
        """The id of its methodology, else of its fragment, else of the advice."""
        return self.methodology.id if self.methodology else self.fragment_id or self.advice

    @property
    def is_withheld(self) -> bool:
        """True where chance alone silences it."""
        return self.silence is not None and self.silence.step is PipelineStep.CHANCE

    def silenced(self, step: PipelineStep, reason: str) -> "Remedy":
        """Return this remedy silenced at *step* for *reason*."""
        return replace(self, silence=Silence(step, reason))


class SimilarCase(Struct, frozen=True):
    """A past run like this one, with its best *fragments*; *score* is between 0 and 1.

    *title* is the first line of its task, *files* are those that it changed, *changed* is what in
    them (in the same repository). *probability*: that people would link its task to that of the
    query; *is_shown*: close enough for the text. *source* supplied it; the owner has no name.
    *cause* is what was said in it about the task, where a search found it.
    """

    trajectory_id: str
    instance_id: str
    repo: str
    outcome: Outcome
    summary: str
    files: tuple[str, ...]
    fragments: tuple[Fragment, ...]
    score: float
    why: Why
    title: str = ""
    changed: PatchSummary = field(default_factory=PatchSummary)
    probability: float = 0.0
    is_shown: bool = True
    freshness: Freshness = Freshness.UNKNOWN
    source: str = ""
    cause: str = ""


class FailureWarning(Struct, frozen=True):
    """A common failure; *count* is the number of runs in which it occurred.

    *subject* is what it is about: an agent is warned of it once. *is_sure*: it is worth the
    interruption of an agent that did not ask. *fact* is the id that turns it off, if one does.
    """

    text: str
    count: int
    why: Why
    subject: str = ""
    is_sure: bool = True
    fact: str = ""


class MemoryContext(Struct, frozen=True, eq=False):
    """The answer to a query, best first in every list; equal to an answer that says the same.

    *remedies* has all that were found, including silenced ones, which name the step and the reason.
    *error* is the error as recognised in the query. *degraded* lists the parts that did not answer,
    with the reason, and *failed* their names. *loop* is set if the agent is stuck in one,
    *playbook* if the run has only begun. *warnings* are conditions that the state shows and under
    which runs fail, *notes* what people said about the task. *id* identifies this answer when its
    effect is reported.
    """

    id: str
    remedies: tuple[Remedy, ...] = ()
    similar_cases: tuple[SimilarCase, ...] = ()
    warnings: tuple[FailureWarning, ...] = ()
    degraded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    error: ErrorSignature | None = None
    loop: LoopInfo | None = None
    playbook: RepositoryPlaybook | None = None
    notes: tuple[Recollection, ...] = ()
    lessons: tuple[Recollection, ...] = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MemoryContext):
            return NotImplemented
        (_, *ours), (_, *theirs) = astuple(self), astuple(other)
        return ours == theirs

    def __ne__(self, other: object) -> bool:  # a Struct has one of its own
        return not self == other

    __hash__ = None  # type: ignore[assignment]  # as of what is compared by its values

    @property
    def ranked(self) -> tuple[Remedy, ...]:
        """The remedies that passed the gate, in order."""
        passed = (remedy for remedy in self.remedies if remedy.rank and not remedy.is_withheld)
        return tuple(sorted(passed, key=lambda remedy: remedy.rank))

    @property
    def shown(self) -> tuple[Remedy, ...]:
        """The remedies that are shown, in order."""
        return tuple(remedy for remedy in self.ranked if remedy.silence is None)

    @property
    def silenced(self) -> tuple[Remedy, ...]:
        """The remedies that are not shown."""
        return tuple(remedy for remedy in self.remedies if remedy.silence is not None)

    @property
    def suggestions(self) -> tuple[Remedy, ...]:
        """The `ranked` remedies with a methodology."""
        return tuple(remedy for remedy in self.ranked if remedy.methodology)

    @property
    def error_solutions(self) -> tuple[Remedy, ...]:
        """The `ranked` remedies without a methodology."""
        return tuple(remedy for remedy in self.ranked if not remedy.methodology)

    @property
    def methodologies(self) -> tuple[Remedy, ...]:
        """The same as `suggestions`: each is a methodology with its rank."""
        return self.suggestions

    @property
    def similar_fragments(self) -> tuple[Fragment, ...]:
        """The fragments of the similar cases, best case first."""
        return tuple(fragment for case in self.similar_cases for fragment in case.fragments)

    def __bool__(self) -> bool:
        """True where there is anything to say."""
        items = self.ranked or self.similar_cases or self.warnings
        return bool(items or self.loop or self.playbook or self.notes or self.lessons)


def new_context_id() -> str:
    """Return an id for an answer; no two are equal."""
    return f"ctx_{urlsafe_b64encode(os.urandom(6)).decode()}"


def is_withheld(context_id: str, share: float) -> bool:
    """Return True for the *share*, 0 to 1, of contexts that is not shown: the id decides."""
    draw = int.from_bytes(sha256(context_id.encode()).digest()[:8], "big")
    return draw < share * 2**64


class ShownItem(Struct, frozen=True, omit_defaults=True):
    """An item of a context: the *id* of a fragment or methodology, and its *advice*.

    Items of the same advice share their record; it is the id where nothing else is known.
    *patterns* are those of its actions. *helped* is None where that is not known, or the run that
    was shown the item did not try it. *why* says for which reason it was shown; empty where that
    was not recorded.
    """

    id: str
    advice: str = ""
    patterns: tuple[RemedyPattern, ...] = ()
    helped: bool | None = None
    why: str = ""

    def __post_init__(self) -> None:
        if not self.advice:
            force_setattr(self, "advice", self.id)


INDEX_MOMENT = "index"
"""The moment of an index of lessons, which is no advice: the agent opens what it needs."""


class Exposure(Struct, frozen=True, omit_defaults=True):
    """A context that was shown.

    *error_id* is the error that its *items* (in order, each once) were to clear. *helped*, None
    where it was not reported, says whether the error was cleared; *source* is who reported it.
    *is_withheld*: the items were found and not shown, to compare with; None where that was not
    drawn at random. *text* is what was said, empty where that was not recorded.

    *session* is that of the agent, and *moment* where in it this was shown: "start", "prompt",
    "before", "error" or "submit"; empty for an answer to a question. *said* are the things in it
    that are not shown again in the session: see `contextgraph.advising.pipeline.sayings`.
    *shown_to* is the source of the token to which a service showed it.
    """

    context_id: str
    shown_at: Time
    error_id: str | None = None
    helped: bool | None = None
    items: tuple[ShownItem, ...] = ()
    source: str = ""
    is_withheld: bool | None = None
    text: str = ""
    session: str = ""
    moment: str = ""
    agent: str = ""
    repo: str = ""
    said: tuple[str, ...] = ()
    shown_to: str = ""

    @property
    def tokens(self) -> int:
        """The tokens of the text."""
        return count_tokens(self.text)

    @classmethod
    def of(
        cls,
        context_id: str,
        items: Iterable[ShownItem],
        shown_at: datetime,
        error_id: str | None = None,
        *,
        is_withheld: bool | None = None,
        text: str = "",
    ) -> Self:
        """A context with *items* that nothing is reported for yet."""
        shown = tuple({(item.id, item.advice): item for item in items}.values())
        return cls(context_id, shown_at, error_id, None, shown, "", is_withheld, text)


class ShownIn(Struct, frozen=True):
    """Place of what is shown: the *session* of an *agent* in *repo*, and the *moment* in it.

    A service names in *shown_to* the source of the token to which it is shown.
    """

    session: str = ""
    moment: str = ""
    agent: str = ""
    repo: str = ""
    shown_to: str = ""


class ShownTally(Struct, frozen=True):
    """Counts of contexts that were *shown*, *at_errors* among them, and of their outcomes.

    Of *known* ones at an error it is known whether the error was cleared, of *cleared* ones it was;
    an item of *followed* ones was tried. *helped* is how many of these cleared which error, *wrong*
    how many items stood in contexts whose error something else cleared. *tokens* are those of all
    texts, also of an index, *known_at* are the known ones of each error.
    """

    shown: int
    at_errors: int
    known: int
    cleared: int
    followed: int
    helped: Mapping[str, int]
    wrong: int = 0
    tokens: int = 0
    known_at: Mapping[str, int] = {}

    @classmethod
    def of(cls, exposures: Iterable[Exposure]) -> Self:
        """Count *exposures*; those that were withheld are not shown."""
        shown = [exposure for exposure in exposures if not exposure.is_withheld]
        known = [one for one in shown if one.error_id and one.helped is not None]
        cleared = [one for one in known if one.helped]
        right = [one for one in cleared if any(item.helped for item in one.items)]
        return cls(
            shown=sum(1 for one in shown if one.moment != INDEX_MOMENT),
            at_errors=sum(1 for one in shown if one.error_id),
            known=len(known),
            cleared=len(cleared),
            followed=sum(1 for one in shown if any(item.helped is not None for item in one.items)),
            helped=dict(sorted(Counter(one.error_id or "" for one in right).items())),
            wrong=sum(len(one.items) for one in cleared) - sum(len(one.items) for one in right),
            tokens=sum(one.tokens for one in shown),
            known_at=dict(sorted(Counter(one.error_id or "" for one in known).items())),
        )


# What a verdict about a source begins with.
SOURCE = "source:"
# And one about a session that was forgotten: after all others, so that queries leave them out.
FORGOTTEN = "~"


def forgotten_name(session: str, contributor: str = "", began: datetime | None = None) -> str:
    """Return what a verdict names a forgotten *session* of *contributor*: no word of it.

    Of one of its sub-agents where that *began* alone.
    """
    time = (began.astimezone(UTC).isoformat(),) if began else ()
    known_by = "\n".join((contributor, session, *time)).encode()
    return f"{FORGOTTEN}{blake2b(known_by, digest_size=16).hexdigest()}"


class Verdict(Struct, frozen=True, omit_defaults=True):
    """A decision by hand about advice or a methodology: *is_quarantined*, or released.

    What was reported before *decided_at* does not count any more. Of a source, whose name follows
    `SOURCE` in *advice*, it says whether it is distrusted; of a session with a `forgotten_name`,
    whether it is never learned again.
    """

    advice: str
    is_quarantined: bool
    decided_at: Time


class KnownSource(Struct, frozen=True):
    """A supplier of *runs* of *instances*, and of *reports*; the owner has no *name*."""

    name: str
    runs: int
    instances: int
    reports: int
    trusted: bool


class AdviceRecord(Struct, frozen=True):
    """Evidence about advice that was shown.

    *exposures* are reported ones; *base_rates* says of their errors how many runs met them and how
    many of those cleared them. *verdicts* are all that were given by hand. *sources* is how many
    named sources the runs of the memory have, 2 for more.
    """

    exposures: tuple[Exposure, ...]
    base_rates: Mapping[str, tuple[int, int]]
    verdicts: tuple[Verdict, ...] = ()
    sources: int = 0

    @property
    def distrusted(self) -> frozenset[str]:
        """The sources whose runs, reports and notes count for nothing."""
        return frozenset(
            verdict.advice.removeprefix(SOURCE)
            for verdict in self.verdicts
            if verdict.is_quarantined and verdict.advice.startswith(SOURCE)
        )

    @property
    def several_sources(self) -> bool:
        """True where any source is named, as the owner, who has no name, is another one."""
        return self.sources > 0


class Relation(Struct, frozen=True):
    """An edge of a node, to (*outgoing*) or from the node *id*, with its properties."""

    type: str
    outgoing: bool
    id: str
    label: str
    name: str
    properties: Mapping[str, Json] = field(default_factory=dict)


class Effect(Struct, frozen=True):
    """Difference in the share of errors cleared with advice and without, where chance decided.

    Of *shown* contexts the run cleared the error in *shown_cleared*, of those that were *withheld*
    in *withheld_cleared*. The *difference* of both shares lies between *low* and *high* (95 %).
    """

    shown: int
    shown_cleared: int
    withheld: int
    withheld_cleared: int
    difference: float
    low: float
    high: float


class Evidence(Struct, frozen=True):
    """Evidence about the effect of advice that was shown.

    Of *shown* contexts, runs *tried* it in so many, and *cleared* the error with it. Of *runs* that
    met these errors, *runs_cleared* got over them. The *lift*, the difference of both shares, lies
    between *low* and *high* (95 %). *sources* has (tried, cleared) by who reported them ("" where
    unknown). *trust* is from 0 to 1; *by_hand* is the decision that was made by hand, if any.
    """

    shown: int
    tried: int
    cleared: int
    runs: int
    runs_cleared: int
    lift: float
    low: float
    high: float
    sources: Mapping[str, tuple[int, int]]
    trust: float
    is_quarantined: bool
    by_hand: str
    randomised: Effect


class Explanation(Struct, frozen=True):
    """A node of the graph, or a context that was shown: what is known of it, and its edges.

    Relations are ordered by type, then by id. *evidence* is that of a methodology, or of advice.
    """

    id: str
    label: str
    name: str
    facts: Mapping[str, Json]
    relations: tuple[Relation, ...] = ()
    evidence: Evidence | None = None
