"""Recorded runs replayed as if live: queries, loop warnings, learning, one run after the other."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from contextgraph.evaluation.moments import (
    MomentKind,
    RunOrder,
    in_order,
)
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

    order: RunOrder = RunOrder.INPUT
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
