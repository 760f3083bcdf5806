"""What warnings of loops would have saved, and how often they would have been false."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from contextgraph.model import LoopInfo, LoopSeverity, State
from contextgraph.trace import LoopTracker, Trace

# A run that goes on for so many steps after a loop got out of it by itself.
_FREE_STEPS = 4
_SAME_ACTIONS = 3

STUCK, REPEATING, SAME_ACTION = "contextgraph stuck", "contextgraph repeating", "same action 3x"
POLICIES = (STUCK, REPEATING, SAME_ACTION)


@dataclass(frozen=True, slots=True)
class Circles:
    """The loops of one run: steps *wasted* in those that did not end by themselves.

    By policy, how many of them a warning would have preceded, and how many warnings were false.
    """

    instance_id: str
    wasted: int = 0
    saved: Mapping[str, int] = field(default_factory=dict)
    false_alarms: Mapping[str, int] = field(default_factory=dict)


def circles_of(read: Trace, states: Sequence[State]) -> Circles:
    """The loops of a run, and the warnings that its *states* would have brought."""
    ended = [loop for loop in read.loops if len(read.steps) - 1 - loop.end >= _FREE_STEPS]
    lasting = [loop for loop in read.loops if loop not in ended]
    alarms = {policy: list(found) for policy, found in _alarms(read, states).items()}
    return Circles(
        read.raw.instance_id,
        sum(loop.length for loop in lasting),
        {policy: sum(_saved(loop, at) for loop in lasting) for policy, at in alarms.items()},
        {policy: _false(at, lasting, ended) for policy, at in alarms.items()},
    )


def _alarms(read: Trace, states: Sequence[State]) -> dict[str, Iterator[int]]:
    """By policy, the steps after which it warns."""
    tracker = LoopTracker()
    pushed = list(enumerate(tracker.push(state) for state in states[1:]))
    return {
        STUCK: (at for at, loop in pushed if loop and loop.severity is LoopSeverity.STUCK),
        REPEATING: (at for at, loop in pushed if loop),
        SAME_ACTION: _same_actions([step.step.action.text for step in read.steps]),
    }


def _same_actions(actions: Sequence[str]) -> Iterator[int]:
    row = 0
    for at, action in enumerate(actions):
        row = row + 1 if at and action == actions[at - 1] else 1
        if row >= _SAME_ACTIONS:
            yield at


def _saved(loop: LoopInfo, alarms: Sequence[int]) -> int:
    """The steps of *loop* after the first warning in it."""
    first = next((at for at in alarms if loop.start <= at <= loop.end), None)
    return loop.end - first if first is not None else 0


def _false(alarms: Sequence[int], lasting: Sequence[LoopInfo], ended: Sequence[LoopInfo]) -> int:
    """How many stretches of warnings were of no loop that lasted; one for each loop that ended."""
    outside = [at for at in alarms if not any(loop.start <= at <= loop.end for loop in lasting)]
    in_ended = sum(any(loop.start <= at <= loop.end for at in outside) for loop in ended)
    stray = [at for at in outside if not any(loop.start <= at <= loop.end for loop in ended)]
    return in_ended + sum(1 for at in stray if at - 1 not in stray)
