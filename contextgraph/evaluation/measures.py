"""Moments of recorded runs, their replay, and measures with intervals from judged ones."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct, field

from contextgraph.learning import masked
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import (
    EscapeSuggestion,
    LearnReceipt,
    LearnStatus,
    LoopInfo,
    MemoryContext,
    RawTrajectory,
)
from contextgraph.text import regex
from contextgraph.trace import LoopTracker, read_steps, states_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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


class MomentVerdict(Struct, frozen=True, omit_defaults=True):
    """Ranks of one method at a moment.

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


class Moment(Struct, frozen=True, omit_defaults=True):
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


class LoopWarnings(Struct, frozen=True):
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
    """Return *runs* as they happened, and what that was taken from.

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
    """Return the number that *instance_id* ends in; None where it ends otherwise."""
    match = _NUMBER.search(instance_id)
    return int(match[1]) if match else None


def is_later(run: RawTrajectory, other: RawTrajectory) -> bool:
    """Return True if *run* is known to have happened after *other* began."""
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


class ReplayMoment(Struct, frozen=True):
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


class ReplayCounts(Struct):
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
                context = self._memory.query(state, exclude_instances=hidden, as_of=raw.started_at)
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


RESAMPLES = 1_000
CONFIDENCE = 0.95
_PARTS = 10
_POINTS = 20
_COMPARED = {
    **{f"clearance@{k}": (MomentKind.ERROR, k) for k in (1, 3, 5)},
    **{f"localisation@{k}": (MomentKind.START, k) for k in (1, 5)},
    **{f"related@{k}": (MomentKind.RELATED, k) for k in (1, 5, 10)},
}


class Estimate(Struct, frozen=True):
    """A figure with its 95 % interval; *count* moments of *runs* instances are behind it."""

    value: float
    low: float
    high: float
    count: int
    runs: int


class Difference(Struct, frozen=True):
    """One figure minus another, with its 95 % interval."""

    value: float
    low: float
    high: float


class Share(Struct, frozen=True):
    """Contribution of one instance to a figure: *amount* in *of*."""

    amount: float
    of: float


class Contrast(Struct, frozen=True):
    """Difference of the second from the first in one measure, on the moments of both.

    *difference* is second minus first, *p* the exact McNemar test of the moments that only one of
    them got.
    """

    measure: str
    moments: int
    first: float
    second: float
    only_first: int
    only_second: int
    difference: Difference
    p: float


class CurvePoint(Struct, frozen=True):
    """Answering only from *threshold* on: the share of moments answered, how often right."""

    threshold: float
    coverage: float
    precision: float


class ReliabilityPoint(Struct, frozen=True):
    """The first items of *count* answers: their mean *stated* probability, the share *right*."""

    stated: float
    right: float
    count: int


# Measure -> method -> figure, in the order in which they are shown.
Measures = Mapping[str, Mapping[str, Estimate]]
ShareOf = Callable[[Moment, MomentVerdict], Share | None]
# Measure -> the moments that count, the share that one adds, and the methods compared.
_Definitions = dict[str, tuple[Sequence[Moment], ShareOf, Sequence[str]]]
# Where the run does not show what was right, only the memory is queried.
_OURS = (OURS,)


def measures_of(moments: Sequence[Moment], warnings: Sequence[LoopWarnings], seed: int) -> Measures:
    """Return all measures that have something behind them."""
    figures = {
        name: _by_method(*definition, seed) for name, definition in _definitions(moments).items()
    }
    figures["wasted steps saved"] = _by_policy(warnings, _saved, seed)
    figures["false alarms per 100 runs"] = _by_policy(warnings, _false_alarms, seed)
    return {name: estimates for name, estimates in figures.items() if estimates}


def _definitions(moments: Sequence[Moment]) -> _Definitions:
    starts = [moment for moment in moments if moment.kind is MomentKind.START]
    named = [moment for moment in starts if moment.has_answer]
    related = [moment for moment in moments if moment.kind is MomentKind.RELATED]
    return {
        **_at_errors([moment for moment in moments if moment.kind is MomentKind.ERROR]),
        "answered: starts": (starts, _answered, _OURS),
        "tokens per answer at starts": (starts, _tokens, _OURS),
        **{f"localisation@{k}": (named, _ranked(k), METHODS) for k in (1, 5)},
        **{f"localisation@{k} shown": (named, _shown(k), METHODS) for k in (1, 5)},
        "localisation reachable": (named, _reachable, _OURS),
        **{f"related@{k}": (related, _ranked(k), METHODS) for k in (1, 5, 10)},
        "related MRR": (related, _reciprocal, METHODS),
        "answered: related": (related, _answered, METHODS),
    }


def _at_errors(errors: Sequence[Moment]) -> _Definitions:
    cleared = [moment for moment in errors if moment.has_answer]
    answered = [moment for moment in cleared if moment.verdicts[OURS].answered]
    acted = [moment for moment in errors if moment.next_kind]
    return {
        **{f"clearance@{k}": (cleared, _ranked(k), METHODS) for k in (1, 3, 5)},
        "clearance reachable": (cleared, _reachable, _OURS),
        **{f"clearance@{k} shown": (cleared, _shown(k), METHODS) for k in (1, 3, 5)},
        **{f"precision@{k}": (answered, _shown(k), METHODS) for k in (1, 3, 5)},
        **{f"kind of next command@{k}": (acted, _same_kind(k), METHODS) for k in (1, 3)},
        "answered: cleared errors": (cleared, _answered, METHODS),
        "answered: all errors": (errors, _answered, _OURS),
        "tokens per answer": (errors, _tokens, _OURS),
        "tokens per right answer": (cleared, _tokens_of_right, _OURS),
        "steps earlier": (cleared, _earlier, METHODS),
    }


def clearance_by_family(moments: Iterable[Moment], k: int, seed: int) -> Measures:
    """Clearance@k by the family of the error, the most frequent first."""
    families: dict[str, list[Moment]] = {}
    for moment in moments:
        if moment.kind is MomentKind.ERROR and moment.has_answer:
            families.setdefault(moment.topic, []).append(moment)
    largest = sorted(families, key=lambda family: (-len(families[family]), family))
    return {family: _by_method(families[family], _ranked(k), METHODS, seed) for family in largest}


def curve(moments: Iterable[Moment], method: str, k: int) -> tuple[CurvePoint, ...]:
    """Coverage and precision@k of what *method* shows as its least score rises."""
    verdicts = [
        moment.verdicts[method]
        for moment in moments
        if moment.kind is MomentKind.ERROR and moment.has_answer and method in moment.verdicts
    ]
    answered = sorted((v for v in verdicts if v.answered), key=lambda v: v.score, reverse=True)
    hits, points = 0, []
    for count, verdict in enumerate(answered, start=1):
        hits += _within(verdict.shown, k)
        if count == len(answered) or answered[count].score < verdict.score:
            points.append(CurvePoint(verdict.score, count / len(verdicts), hits / count))
    step = max(1, len(points) // _POINTS)
    return tuple(points[::-1][::step][::-1])


def reliability(moments: Iterable[Moment]) -> tuple[ReliabilityPoint, ...]:
    """Return how often the first item at a cleared error was right, in ten parts by its score.

    The parts have the same number of answers; fewer than ten answers give none.
    """
    answered = sorted(
        (verdict.score, _within(verdict.shown, 1))
        for moment in moments
        if moment.kind is MomentKind.ERROR and moment.has_answer
        for verdict in [moment.verdicts[OURS]]
        if verdict.answered
    )
    if len(answered) < _PARTS:
        return ()
    bounds = [len(answered) * part // _PARTS for part in range(_PARTS + 1)]
    parts = [answered[start:end] for start, end in pairwise(bounds)]
    return tuple(
        ReliabilityPoint(
            sum(score for score, _ in part) / len(part),
            sum(is_right for _, is_right in part) / len(part),
            len(part),
        )
        for part in parts
    )


def compare(
    first: Sequence[Moment], second: Sequence[Moment], seed: int = 0
) -> tuple[Contrast, ...]:
    """Return the contrast of the memory in two reports, in every measure of both."""
    return _contrasts(first, OURS, second, seed)


def against(moments: Sequence[Moment], baseline: str, seed: int = 0) -> tuple[Contrast, ...]:
    """Return the contrast of the memory (second) with a *baseline* (first) in one report."""
    return _contrasts(moments, baseline, moments, seed)


def estimate(by_instance: Mapping[str, Share], seed: int) -> Estimate | None:
    """Return the sum of amounts over the sum of bases; None where nothing is behind it.

    Whole instances are drawn again, as the moments of one are not independent.
    """
    import numpy as np

    shares = [by_instance[instance] for instance in sorted(by_instance)]
    amounts = np.array([share.amount for share in shares])
    bases = np.array([share.of for share in shares])
    if not bases.sum():
        return None
    drawn = _drawn(len(shares), seed)
    below = drawn @ bases
    low, high = _interval((drawn @ amounts)[below > 0] / below[below > 0])
    value = float(amounts.sum() / bases.sum())
    return Estimate(value, low, high, round(float(bases.sum())), int((bases > 0).sum()))


def difference(by_instance: Mapping[str, tuple[Share, Share]], seed: int) -> Difference:
    """Return the second figure minus the first, over the same instances. Needs one."""
    import numpy as np

    pairs = [by_instance[instance] for instance in sorted(by_instance)]
    columns = np.array([[a.amount, a.of, b.amount, b.of] for a, b in pairs])
    sums = _drawn(len(pairs), seed) @ columns
    sums = sums[(sums[:, 1] > 0) & (sums[:, 3] > 0)]
    low, high = _interval(sums[:, 2] / sums[:, 3] - sums[:, 0] / sums[:, 1])
    total = columns.sum(axis=0)
    return Difference(float(total[2] / total[3] - total[0] / total[1]), low, high)


def mcnemar(pairs: Sequence[tuple[bool, bool]]) -> float:
    """Return the exact two-sided p-value of pairs (first hit, second hit): 1 where none differ."""
    from scipy.stats import binomtest

    only_first = sum(first and not second for first, second in pairs)
    differing = sum(first != second for first, second in pairs)
    return float(binomtest(only_first, differing).pvalue) if differing else 1.0


def _contrasts(
    first: Sequence[Moment], method: str, second: Sequence[Moment], seed: int
) -> tuple[Contrast, ...]:
    """Return the contrast of the memory in *second* with *method* in *first*."""
    contrasts = []
    for name, (kind, k) in _COMPARED.items():
        moments, two = _judged(first, kind, method), _judged(second, kind, OURS)
        keys = sorted(moments.keys() & two.keys())
        if not keys:
            continue
        pairs = [
            (
                _within(moments[key].verdicts[method].rank, k),
                _within(two[key].verdicts[OURS].rank, k),
            )
            for key in keys
        ]
        before = _shares((moments[key] for key in keys), method, _ranked(k))
        after = _shares((two[key] for key in keys), OURS, _ranked(k))
        gap = difference({run: (before[run], after[run]) for run in before}, seed)
        contrasts.append(
            Contrast(
                measure=name,
                moments=len(pairs),
                first=sum(hit for hit, _ in pairs) / len(pairs),
                second=sum(hit for _, hit in pairs) / len(pairs),
                only_first=sum(hit and not then for hit, then in pairs),
                only_second=sum(then and not hit for hit, then in pairs),
                difference=gap,
                p=mcnemar(pairs),
            )
        )
    return tuple(contrasts)


def _judged(moments: Sequence[Moment], kind: MomentKind, method: str) -> dict[str, Moment]:
    return {
        moment.key: moment
        for moment in moments
        if moment.kind is kind and moment.has_answer and method in moment.verdicts
    }


def _by_method(
    moments: Sequence[Moment], share: ShareOf, methods: Sequence[str], seed: int
) -> dict[str, Estimate]:
    estimates = {name: estimate(_shares(moments, name, share), seed) for name in methods}
    return {name: figure for name, figure in estimates.items() if figure}


def _shares(moments: Iterable[Moment], method: str, share: ShareOf) -> dict[str, Share]:
    """Instance -> what its moments add to a figure of *method*."""
    return summed(
        (moment.instance_id, share(moment, moment.verdicts[method]))
        for moment in moments
        if method in moment.verdicts
    )


def summed(shares: Iterable[tuple[str, Share | None]]) -> dict[str, Share]:
    """Instance -> the sum of its *shares*, pairs of an instance and what a moment of it adds."""
    by_instance: dict[str, Share] = {}
    for instance, share in shares:
        if share:
            before = by_instance.get(instance, Share(0, 0))
            by_instance[instance] = Share(before.amount + share.amount, before.of + share.of)
    return by_instance


def _within(rank: int | None, k: int) -> bool:
    return rank is not None and rank <= k


def _ranked(k: int) -> ShareOf:
    """Return a measure: what helps is among the first *k* of the ranking."""
    return lambda _, verdict: Share(_within(verdict.rank, k), 1)


def _shown(k: int) -> ShareOf:
    """Return a measure: what helps is among the first *k* that are shown."""
    return lambda _, verdict: Share(_within(verdict.shown, k), 1)


def _same_kind(k: int) -> ShareOf:
    return lambda _, verdict: Share(_within(verdict.same_kind, k), 1)


def _reachable(moment: Moment, _verdict: MomentVerdict) -> Share:
    return Share(moment.reachable, 1)


def _answered(_moment: Moment, verdict: MomentVerdict) -> Share:
    return Share(verdict.answered, 1)


def _tokens(_moment: Moment, verdict: MomentVerdict) -> Share | None:
    return Share(verdict.tokens, 1) if verdict.tokens else None


def _tokens_of_right(_moment: Moment, verdict: MomentVerdict) -> Share:
    return Share(verdict.tokens, verdict.shown is not None)


def _earlier(moment: Moment, verdict: MomentVerdict) -> Share | None:
    return Share(moment.steps_left, 1) if verdict.shown is not None else None


def _reciprocal(_moment: Moment, verdict: MomentVerdict) -> Share:
    return Share(1 / verdict.rank if verdict.rank else 0.0, 1)


def _by_policy(
    warnings: Sequence[LoopWarnings], share: Callable[[LoopWarnings, str], Share], seed: int
) -> dict[str, Estimate]:
    estimates = {
        policy: estimate(
            summed((loops.instance_id, share(loops, policy)) for loops in warnings), seed
        )
        for policy in POLICIES
    }
    return {policy: figure for policy, figure in estimates.items() if figure}


def _saved(warnings: LoopWarnings, policy: str) -> Share:
    return Share(warnings.saved[policy], warnings.wasted)


def _false_alarms(warnings: LoopWarnings, policy: str) -> Share:
    return Share(100 * warnings.false_alarms[policy], 1)


def _drawn(instances: int, seed: int) -> "NDArray[np.int64]":
    """Return how often each instance is drawn, shape (resamples, instances)."""
    import numpy as np

    chance = np.random.default_rng(seed)
    return chance.multinomial(instances, np.full(instances, 1 / instances), size=RESAMPLES)


def _interval(values: "NDArray[np.float64]") -> tuple[float, float]:
    import numpy as np

    low, high = np.quantile(values, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)
