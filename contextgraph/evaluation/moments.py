"""The moments of recorded runs, their order, and their replay."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum

from contextgraph.lazy import dataclass, field, regex
from contextgraph.learning import masked
from contextgraph.memory import AgentMemory
from contextgraph.model import (
    EscapeSuggestion,
    LearnReceipt,
    LearnStatus,
    LoopInfo,
    MemoryContext,
    RawTrajectory,
)
from contextgraph.trace import (
    LoopTracker,
    read_steps,
    states_of,
)

OURS = "contextgraph"
BASELINES = ("nothing", "random in scope", "most frequent", "bm25 in scope", "bm25")
METHODS = (OURS, *BASELINES)
STUCK, REPEATING, SAME_ACTION = "contextgraph stuck", "contextgraph repeating", "same action 3x"
POLICIES = (STUCK, REPEATING, SAME_ACTION)

_NUMBER = regex(r"(\d+)\Z")


class MomentKind(StrEnum):
    """Why the memory is queried, or gives a warning by itself."""

    START = "start"
    ERROR = "error"
    LOOP = "loop"
    BEFORE = "before"
    SUBMIT = "submit"
    RELATED = "related"


@dataclass(frozen=True, slots=True)
class MomentVerdict:
    """How one method did at a moment.

    *rank* is the place of the first item that would have helped in the ranking before the gate,
    *shown* that among the items that are shown, *same_kind* the first in the ranking of the kind of
    command that next succeeded; None where none would. *answered* says whether anything is shown,
    *score* is of its first item, *tokens* the length of its text.
    """

    answered: bool
    rank: int | None = None
    shown: int | None = None
    score: float = 0.0
    tokens: int = 0
    same_kind: int | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment that was judged: *verdicts* by method, where the run shows what was right.

    *reachable*: what was learned has what would have helped, whether or not any method finds it.
    *run* is the id of the trajectory, *topic* the error family at an error, *steps_left* how many
    steps the run then took until it had cleared the error, *next_kind* the kind of command that
    next succeeded.
    """

    kind: MomentKind
    run: str
    instance_id: str
    repo: str
    step: int
    topic: str
    verdicts: Mapping[str, MomentVerdict]
    has_answer: bool = True
    steps_left: int = 0
    reachable: bool = False
    next_kind: str = ""

    @property
    def key(self) -> str:
        """Key of this moment in every evaluation of the same run."""
        return f"{self.kind}:{self.run}:{self.step}"


@dataclass(frozen=True, slots=True)
class LoopWarnings:
    """The loops of one run: steps *wasted* in those that did not end by themselves.

    By policy, how many of these steps a warning would have preceded (*saved*), and how many
    warnings were false.
    """

    instance_id: str
    wasted: int = 0
    saved: Mapping[str, int] = field(default_factory=dict)
    false_alarms: Mapping[str, int] = field(default_factory=dict)


class OrderSource(StrEnum):
    """Sources of the order of runs."""

    STARTED_AT = "started_at"
    INSTANCE_NUMBER = "instance_number"
    INPUT = "input"


def in_order(runs: Iterable[RawTrajectory]) -> tuple[Sequence[RawTrajectory], OrderSource]:
    """*runs* as they happened, and what that was taken from.

    By their start where all have one; else by the number in the instance id, within each repository
    (issues are numbered in order; the repositories take turns as they come in the input); else as
    they came.
    """
    given = list(runs)
    if given and all(raw.started_at for raw in given):
        return sorted(given, key=_started), OrderSource.STARTED_AT
    if given and all(number_of(raw.instance_id) is not None for raw in given):
        return _numbered(given), OrderSource.INSTANCE_NUMBER
    return given, OrderSource.INPUT


def number_of(instance_id: str) -> int | None:
    """The number that *instance_id* ends in; None where it ends otherwise."""
    match = _NUMBER.search(instance_id)
    return int(match[1]) if match else None


def is_later(run: RawTrajectory, other: RawTrajectory) -> bool:
    """True where *run* is known to have happened after *other* began."""
    if run.started_at and other.started_at:
        return run.started_at > other.started_at
    if not run.repo or run.repo != other.repo:
        return False
    number, other_number = number_of(run.instance_id), number_of(other.instance_id)
    return number is not None and other_number is not None and number > other_number


def _started(raw: RawTrajectory) -> datetime:
    assert raw.started_at is not None
    return raw.started_at


def _numbered(given: Sequence[RawTrajectory]) -> list[RawTrajectory]:
    """Each place of a repository in *given* taken by its runs in the order of their numbers."""
    by_repo: dict[str, list[RawTrajectory]] = {}
    for raw in given:
        by_repo.setdefault(raw.repo, []).append(raw)
    queues = {
        repo: iter(sorted(runs, key=lambda raw: number_of(raw.instance_id) or 0))
        for repo, runs in by_repo.items()
    }
    return [next(queues[raw.repo]) for raw in given]


@dataclass(frozen=True, slots=True)
class ReplayMoment:
    """Answer after *step* steps of a run: a *context*, or a *loop*."""

    raw: RawTrajectory
    step: int
    kind: MomentKind
    context: MemoryContext | None = None
    loop: LoopInfo | None = None
    escapes: tuple[EscapeSuggestion, ...] = ()

    @property
    def answered(self) -> bool:
        """True where anything would have been shown; of a loop there is always the warning."""
        return self.loop is not None or bool(self.context)


def _none_yet() -> Counter[MomentKind]:
    return Counter(dict.fromkeys((MomentKind.START, MomentKind.ERROR, MomentKind.LOOP), 0))


@dataclass(slots=True)
class ReplayCounts:
    """Counts of a replay, complete when it has ended."""

    order: OrderSource = OrderSource.INPUT
    runs: int = 0
    moments: Counter[MomentKind] = field(default_factory=_none_yet)
    answered: Counter[MomentKind] = field(default_factory=_none_yet)
    learned: Counter[LearnStatus] = field(default_factory=Counter)
    seconds: float = 0.0


class Replay:
    """Iterate over it for what *memory* has at each moment of *runs*; each run is then learned.

    The runs are taken in the order in which they happened, as far as that is known
    (`ReplayCounts.order`). At a run that is known already, what was learned from it or its instance
    is not seen. *counts* covers what was done so far.
    """

    def __init__(self, memory: AgentMemory, runs: Iterable[RawTrajectory]) -> None:
        self._memory = memory
        self._runs = runs
        self.counts = ReplayCounts()

    def __iter__(self) -> Iterator[ReplayMoment | LearnReceipt]:
        """Each moment, and after each run its receipt."""
        start = time.perf_counter()
        runs, self.counts.order = in_order(self._runs)
        for raw in runs:
            for moment in self._moments(raw):
                self.counts.moments[moment.kind] += 1
                self.counts.answered[moment.kind] += moment.answered
                yield moment
            receipt = self._memory.learn(raw)
            self.counts.learned[receipt.status] += 1
            self.counts.runs += 1
            self.counts.seconds = time.perf_counter() - start
            yield receipt

    def _moments(self, given: RawTrajectory) -> Iterator[ReplayMoment]:
        raw = masked(given)[0]
        tracker = LoopTracker()
        warned: LoopInfo | None = None
        hidden = frozenset({raw.instance_id})
        failed = [False, *(step.error is not None for step in read_steps(raw))]
        for count, (state, has_failed) in enumerate(zip(states_of(raw), failed, strict=True)):
            if not count or has_failed:
                kind = MomentKind.ERROR if count else MomentKind.START
                context = self._memory.query(
                    state, exclude_instances=hidden, as_of=raw.started_at, degrade=True
                )
                yield ReplayMoment(raw, count, kind, context)
            loop = tracker.push(state)
            if loop and _is_news(loop, warned):
                warned = loop
                escapes = self._memory.loop_detector.get_escape_suggestions(
                    state, exclude_instances=hidden
                )
                yield ReplayMoment(raw, count, MomentKind.LOOP, loop=loop, escapes=escapes)


def _is_news(loop: LoopInfo, warned: LoopInfo | None) -> bool:
    """True for a loop that was not warned of, or has got worse since."""
    if warned is None or loop.start > warned.end:
        return True
    return loop.severity is not warned.severity
