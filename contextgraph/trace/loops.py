"""Going round in circles: the same predicament again and again."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from contextgraph.model import LoopInfo, LoopKind, LoopSeverity, Phase, State
from contextgraph.trace.actions.kinds import ActionKind
from contextgraph.trace.edits import Span
from contextgraph.trace.predicament import Predicament, predicament_in, predicament_of
from contextgraph.trace.steps import StepTrace

REPETITIONS = 3

# Of the 652 loops in 1,496 runs, all of 3 repetitions or more, 34 % ended by themselves (the run
# went on for four steps or more); of those that reached 4, 23 %; 5: 14 %; 6: 10 %; 8: 5 %; 10: 4 %
# (`python -m benchmarks.loops`).
STUCK_AFTER = 6

# Between two attempts of a loop lie at most so many steps: a cycle of six, and views.
_GAP_OF_ERRORS = 16
_GAP = 10
_REMEMBERED = 64
_SERIES = 8
_SAME_PLACE = 3
_SAME_SIZE = 4
_OTHER_OUTCOMES = {1: 2, 2: 0}

_LOOKING = frozenset({ActionKind.VIEW, ActionKind.SEARCH, ActionKind.LIST, ActionKind.THINK})
_WRITING = frozenset({ActionKind.EDIT, ActionKind.CREATE})
_RUNNING = frozenset({ActionKind.RUN, ActionKind.TEST})
_BEFORE_FIXES = frozenset({Phase.UNDERSTANDING, Phase.LOCATING, Phase.REPRODUCING})


class LoopTracker:
    """Loops in a growing history, at constant cost per step."""

    def __init__(self, repetitions: int = REPETITIONS) -> None:
        self._repetitions = repetitions
        self._steps = 0
        self._tells_outcomes = False
        self._chains: dict[str, _Chain] = {}
        self._refused: tuple[_Refused, ...] = ()
        self._news = _News()
        self._closed: list[LoopInfo] = []
        self._open: _Circle | None = None

    @property
    def loops(self) -> tuple[LoopInfo, ...]:
        """The loops so far, in order, none overlapping."""
        return (*self._closed, self._open.info()) if self._open else tuple(self._closed)

    def push(self, what: StepTrace | State) -> LoopInfo | None:
        """Take the next step in; the loop that it continues, None where it goes on freely.

        Steps are numbered from 0 in the order they are pushed; a state without a last action is
        the start of a run and none of them.
        """
        return self._open.info() if self.follow(what) and self._open else None

    def follow(self, what: StepTrace | State) -> bool:
        """Take the next step in; true where it continues a loop."""
        spot = self._spot(what) if isinstance(what, State) else predicament_of(what)
        if spot is None:
            return False
        at = self._steps
        self._steps += 1
        key = self._key(spot, at)
        chain = self._next_chain(key, spot, at)
        self._remember(key, chain)
        if chain.count < self._repetitions:
            return False
        self._circle(key, chain, at)
        return True

    def _spot(self, state: State) -> Predicament | None:
        self._tells_outcomes = self._tells_outcomes or bool(state.last_outcome)
        return predicament_in(state, tells_outcomes=self._tells_outcomes)

    def _key(self, spot: Predicament, at: int) -> str:
        """What two equal attempts share; of refused edits the series they belong to."""
        if spot.kind not in _WRITING:
            return f"{spot.goal if spot.wanting else spot.attempt}|{spot.outcome}"
        if spot.error is None:
            self._refused = tuple(one for one in self._refused if not one.is_solved_by(spot))
            return f"{spot.attempt}|{spot.outcome}"
        series = next((one for one in reversed(self._refused) if one.goes_on_with(spot)), None)
        if series is None:
            series = _Refused(f"refused {at}", spot)
            self._refused = (*self._refused, series)[-_SERIES:]
        series.last = spot
        return series.key

    def _next_chain(self, key: str, spot: Predicament, at: int) -> "_Chain":
        chain = self._chains.get(key)
        goes_on = chain is not None and self._goes_on(chain, spot, at)
        known = self._news.seen_from(spot)
        self._news.note(spot, at)
        if chain is None or not goes_on:
            chain = _Chain(spot, at)
        elif chain.count == 2 and chain.varied and self._is_next_try(spot, chain):
            chain.start, chain.varied = chain.last, False
        else:
            chain.varied = chain.count == 1 and known > chain.news
            chain.count += 1
        chain.last = at
        chain.news = self._news.seen_from(spot)
        chain.tries = self._news.tries[spot.goal]
        return chain

    def _is_next_try(self, spot: Predicament, chain: "_Chain") -> bool:
        """True where nothing else was tried for the goal since; refused edits are one series."""
        refused = spot.error is not None and spot.kind in _WRITING
        return not refused and self._news.tries[spot.goal] == chain.tries + 1

    def _goes_on(self, chain: "_Chain", spot: Predicament, at: int) -> bool:
        """True where nothing new lies between the chain's last attempt and this one."""
        if at - chain.last > (_GAP_OF_ERRORS if spot.wanting else _GAP):
            return False
        if spot.error is not None and spot.kind in _WRITING:
            return True
        news = self._news.seen_from(spot) - chain.news
        if not spot.wanting:
            # The other steps of a cycle are new in its first round.
            return chain.count == 1 or news == 0
        if spot.error is not None and self._news.reached.get(spot.goal, -1) > chain.last:
            return False
        if chain.count < self._repetitions and _is_first_after_fix(chain.first, spot):
            return False
        # A second outcome is news, unless it turns out that the two alternate, or that the agent
        # falls back into a loop it has been in before.
        return news <= _OTHER_OUTCOMES.get(chain.count, 1)

    def _remember(self, key: str, chain: "_Chain") -> None:
        self._chains.pop(key, None)
        self._chains[key] = chain
        if len(self._chains) > _REMEMBERED:
            del self._chains[next(iter(self._chains))]

    def _circle(self, key: str, chain: "_Chain", at: int) -> None:
        if self._open is None or chain.start > self._open.end:
            if self._open is not None:
                self._closed.append(self._open.info())
            self._open = _Circle(self._closed[-1].end + 1 if self._closed else 0, at)
        self._open.end = at
        self._open.members[key] = chain


def loops_of(steps: Iterable[StepTrace]) -> tuple[LoopInfo, ...]:
    """The loops of a run, in order, none overlapping."""
    tracker = LoopTracker()
    for step in steps:
        tracker.follow(step)
    return tracker.loops


def loop_in(states: Sequence[State]) -> LoopInfo | None:
    """The loop that the last of *states* (a history in order) is in; None for none.

    Its start and end count the steps that the states tell of, from 0.
    """
    tracker = LoopTracker()
    is_caught = False
    for state in states:
        is_caught = tracker.follow(state)
    return tracker.loops[-1] if is_caught else None


@dataclass(slots=True)
class _Chain:
    """Attempts that came to the same, from *start* to *last*; *news* is what was known then."""

    first: Predicament
    start: int
    last: int = 0
    count: int = 1
    news: int = 0
    tries: int = 0
    varied: bool = False


@dataclass(slots=True)
class _Refused:
    """A series of refused edits, at the same place or with the same text."""

    key: str
    last: Predicament

    def goes_on_with(self, spot: Predicament) -> bool:
        last = self.last
        if last.outcome != spot.outcome:
            return False
        if last.text == spot.text:
            return True
        return last.goal == spot.goal and _near(last.span, spot.span)

    def is_solved_by(self, spot: Predicament) -> bool:
        if self.last.goal != spot.goal:
            return False
        return self.last.text == spot.text or _overlap(self.last.span, spot.span)


@dataclass(slots=True)
class _News:
    """How much a run has shown that it had not shown before."""

    steps: int = 0
    work: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    tries: Counter[str] = field(default_factory=Counter)
    reached: dict[str, int] = field(default_factory=dict)
    known: dict[str, None] = field(default_factory=dict)

    def note(self, spot: Predicament, at: int) -> None:
        self.tries[spot.goal] += 1
        if spot.error is None:
            self.reached[spot.goal] = at
        if self._is_new(spot):
            self.steps += 1
            self.work += spot.kind not in _LOOKING
            self.outcomes[spot.goal] += 1

    def _is_new(self, spot: Predicament) -> bool:
        what = f"{spot.goal if spot.wanting else spot.attempt}|{spot.outcome}"
        was_known = what in self.known
        self.known.pop(what, None)
        self.known[what] = None
        if len(self.known) > _REMEMBERED:
            del self.known[next(iter(self.known))]
        return not was_known

    def seen_from(self, spot: Predicament) -> int:
        """The news that count for an attempt like *spot*."""
        if spot.wanting:
            return self.outcomes[spot.goal]
        return self.steps if spot.kind in _LOOKING else self.work


@dataclass(slots=True)
class _Circle:
    """A loop that may still grow; what lies before *floor* belongs to others."""

    floor: int
    end: int
    members: dict[str, _Chain] = field(default_factory=dict)

    @property
    def start(self) -> int:
        """Where the repeated attempts start; views that go with them may be older."""
        chains = self.members.values()
        attempts = [chain.start for chain in chains if chain.first.kind not in _LOOKING]
        return max(self.floor, min(attempts or (chain.start for chain in chains)))

    def info(self) -> LoopInfo:
        chains = sorted(self.members.values(), key=lambda chain: (-chain.count, chain.start))
        repetitions = chains[0].count
        return LoopInfo(
            kind=_kind([chain.first for chain in chains]),
            start=self.start,
            end=self.end,
            repetitions=repetitions,
            signatures=tuple(dict.fromkeys(chain.first.name for chain in chains))[:6],
            severity=LoopSeverity.STUCK if repetitions >= STUCK_AFTER else LoopSeverity.REPEATING,
        )


def _kind(spots: Sequence[Predicament]) -> LoopKind:
    failing = [spot for spot in spots if spot.error is not None]
    if not failing:
        return LoopKind.REPEAT_NO_ERROR
    runs = Counter(spot.goal for spot in failing if spot.kind in _RUNNING)
    if runs and max(runs.values()) > 1:
        return LoopKind.OSCILLATION
    refused = failing[0].kind in _WRITING
    return LoopKind.SAME_EDIT_REJECTED if refused else LoopKind.SAME_COMMAND_SAME_ERROR


def _is_first_after_fix(before: Predicament, now: Predicament) -> bool:
    """True for the first run after the first fix: what ran before it reproduced the error."""
    return before.phase in _BEFORE_FIXES and now.phase is Phase.TESTING


def _near(one: Span | None, other: Span | None) -> bool:
    """True for places of like size that overlap, or that start close to one another."""
    if one is None or other is None:
        return one is other
    shared = min(one[1], other[1]) - max(one[0], other[0]) + 1
    wider = max(one[1] - one[0], other[1] - other[0]) + 1
    return _SAME_SIZE * shared >= wider or abs(one[0] - other[0]) <= _SAME_PLACE


def _overlap(one: Span | None, other: Span | None) -> bool:
    return bool(one and other and one[0] <= other[1] and other[0] <= one[1])
