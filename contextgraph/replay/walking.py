"""Recorded runs walked as if live: asked, warned, learned, one after the other."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from contextgraph.model import (
    LearnReceipt,
    LearnStatus,
    LoopInfo,
    MemoryContext,
    RawTrajectory,
    State,
)
from contextgraph.replay.moments import Memory, MomentKind
from contextgraph.replay.order import RunOrder, in_order
from contextgraph.trace import LoopTracker, read_steps, states_of
from contextgraph.writing import masked


class LoopAdvice(Protocol):
    """Knows ways out of a loop."""

    def get_escape_suggestions(
        self, state: State, /, *, exclude_instances: frozenset[str] = frozenset()
    ) -> tuple[str, ...]:
        """What led out of the predicament of *state* before, in other instances."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """What memory would have said after *step* steps of a run: a *context*, or of a *loop*."""

    raw: RawTrajectory
    step: int
    kind: MomentKind
    context: MemoryContext | None = None
    loop: LoopInfo | None = None
    escapes: tuple[str, ...] = ()

    @property
    def answered(self) -> bool:
        """True where there was anything to say; of a loop there is always the warning."""
        return self.loop is not None or bool(self.context)


@dataclass(slots=True)
class Tally:
    """Counts of a walk, complete when it has ended."""

    order: RunOrder = RunOrder.INPUT
    runs: int = 0
    moments: Counter[MomentKind] = field(default_factory=Counter)
    answered: Counter[MomentKind] = field(default_factory=Counter)
    learned: Counter[LearnStatus] = field(default_factory=Counter)
    seconds: float = 0.0


class Walk:
    """Iterate over it for what *memory* says at each moment of *runs*; each is learned after it.

    The runs are walked in the order they happened, as far as that can be told (`Tally.order`). A
    run that is known already is asked about again, without what was learned from it or its
    instance. *tally* counts what was done so far.
    """

    def __init__(self, memory: Memory, loops: LoopAdvice, runs: Iterable[RawTrajectory]) -> None:
        self._memory = memory
        self._loops = loops
        self._runs = runs
        self.tally = Tally()

    def __iter__(self) -> Iterator[Spoken | LearnReceipt]:
        """Each moment, and after each run its receipt."""
        begun = time.perf_counter()
        runs, self.tally.order = in_order(self._runs)
        for raw in runs:
            for spoken in self._through(raw):
                self.tally.moments[spoken.kind] += 1
                self.tally.answered[spoken.kind] += spoken.answered
                yield spoken
            receipt = self._memory.learn(raw)
            self.tally.learned[receipt.status] += 1
            self.tally.runs += 1
            self.tally.seconds = time.perf_counter() - begun
            yield receipt

    def _through(self, given: RawTrajectory) -> Iterator[Spoken]:
        raw = masked(given)[0]
        tracker = LoopTracker()
        warned: LoopInfo | None = None
        failed = [False, *(step.error is not None for step in read_steps(raw))]
        for count, (state, has_failed) in enumerate(zip(states_of(raw), failed, strict=True)):
            if not count or has_failed:
                kind = MomentKind.ERROR if count else MomentKind.START
                yield Spoken(raw, count, kind, self._ask(raw, state))
            loop = tracker.push(state)
            if loop and _is_news(loop, warned):
                warned = loop
                escapes = self._loops.get_escape_suggestions(
                    state, exclude_instances=frozenset({raw.instance_id})
                )
                yield Spoken(raw, count, MomentKind.LOOP, loop=loop, escapes=escapes)

    def _ask(self, raw: RawTrajectory, state: State) -> MemoryContext:
        hidden = frozenset({raw.instance_id})
        return self._memory.query(
            state, exclude_instances=hidden, as_of=raw.started_at, degrade=True
        )


def _is_news(loop: LoopInfo, warned: LoopInfo | None) -> bool:
    """True for a loop that was not warned of, or has got worse since."""
    if warned is None or loop.start > warned.end:
        return True
    return loop.severity is not warned.severity
