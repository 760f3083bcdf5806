"""Advice at errors against judgements made by hand: did each item help, or mislead?"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import orjson

from contextgraph.codec import decoded
from contextgraph.errors import ReadError
from contextgraph.evaluation.measures import Measures, Share, estimate, summed
from contextgraph.evaluation.moments import OURS
from contextgraph.learning import masked, trajectory_id
from contextgraph.memory import AgentMemory
from contextgraph.model import MemoryContext, RawTrajectory, RemedyPattern, Suggestion
from contextgraph.trace import Trace, states_of, trace

# So many items stand in the text of an answer at most.
_SHOWN = 3


class HandVerdict(StrEnum):
    """What an item was worth at its moment (benchmarks/judged/README.md has the conventions)."""

    HELPED = "H"
    HARMLESS = "O"
    MISLED = "M"


@dataclass(frozen=True, slots=True)
class JudgedItem:
    """A remedy, by its patterns, and what it was worth."""

    patterns: tuple[RemedyPattern, ...]
    verdict: HandVerdict


@dataclass(frozen=True, slots=True)
class JudgedMoment:
    """The items that were judged at the error of one *step* of a *run* (its id)."""

    run: str
    instance: str
    step: int
    items: tuple[JudgedItem, ...]


def read_judged(path: Path) -> tuple[JudgedMoment, ...]:
    """The moments in the file *path*, JSON lines. Raises `ReadError`."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ReadError(str(path), "", f"cannot be read: {error.strerror or error}") from error
    return tuple(_moment(line, path, number) for number, line in enumerate(lines, start=1))


def _moment(line: bytes, path: Path, number: int) -> JudgedMoment:
    try:
        return decoded(JudgedMoment, orjson.loads(line))
    except (ReadError, orjson.JSONDecodeError) as error:
        raise ReadError(str(path), f"line {number}", str(error)) from error


def judge_by_hand(
    memory: AgentMemory, runs: Iterable[RawTrajectory], judged: Sequence[JudgedMoment], seed: int
) -> Measures:
    """What *memory* shows at those of the *judged* moments that are of *runs*.

    Runs of the same instance are not seen. Of an answer, the first three items count. Empty where
    no moment is of these runs.
    """
    by_run: dict[str, list[JudgedMoment]] = {}
    for one in judged:
        by_run.setdefault(one.run, []).append(one)
    answers = [
        (raw.instance_id, answer)
        for raw in runs
        if (moments := by_run.get(trajectory_id(raw)))
        for answer in _answers(memory, trace(masked(raw)[0]), moments)
    ]
    found = {
        name: estimate(summed((instance, share(answer)) for instance, answer in answers), seed)
        for name, share in _MEASURES.items()
    }
    return {name: {OURS: one} for name, one in found.items() if one}


def _answers(
    memory: AgentMemory, read: Trace, moments: Iterable[JudgedMoment]
) -> Iterator[list[HandVerdict | None]]:
    """What each shown item was worth at each moment; None for an item that was not judged."""
    states, raw = list(states_of(read.raw)), read.raw
    for moment in moments:
        state = states[moment.step - read.steps[0].index + 1]
        context = memory.retriever.retrieve(
            state, exclude_instances=frozenset({raw.instance_id}), as_of=raw.started_at
        )
        known = {item.patterns: item.verdict for item in reversed(moment.items)}
        yield [known.get(patterns) for patterns in _patterns_of(context)]


def _patterns_of(context: MemoryContext) -> Iterator[tuple[RemedyPattern, ...]]:
    for item in context.ranked[:_SHOWN]:
        actions = item.remedies if isinstance(item, Suggestion) else item.actions
        yield tuple(action.pattern for action in actions)


def _share_of_items(verdict: HandVerdict | None, answer: Sequence[HandVerdict | None]) -> Share:
    known = [one for one in answer if one is not None or verdict is None]
    return Share(known.count(verdict), len(known))


_MEASURES: Mapping[str, Callable[[Sequence[HandVerdict | None]], Share]] = {
    "by hand: answered": lambda answer: Share(bool(answer), 1),
    "by hand: answers that helped": lambda answer: Share(
        HandVerdict.HELPED in answer, bool(answer)
    ),
    "by hand: first items that helped": lambda answer: Share(
        answer[:1] == [HandVerdict.HELPED], bool(answer)
    ),
    "by hand: items that helped": lambda answer: _share_of_items(HandVerdict.HELPED, answer),
    "by hand: items that misled": lambda answer: _share_of_items(HandVerdict.MISLED, answer),
    "by hand: items not judged": lambda answer: _share_of_items(None, answer),
}
