"""Judges memories by labels of people: linked tasks, and verdicts on items."""

import gzip
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import orjson

from contextgraph.advising.gate import UNGATED
from contextgraph.errors import ReadError
from contextgraph.evaluation.baselines import (
    PastTask,
    TaskBaselines,
    tasks_most_frequent,
)
from contextgraph.evaluation.measures import (
    Measures,
    Share,
    estimate,
    summed,
)
from contextgraph.evaluation.moments import (
    OURS,
    Moment,
    MomentKind,
    Verdict,
)
from contextgraph.learning import masked, trajectory_id
from contextgraph.memory import AgentMemory
from contextgraph.model import (
    MemoryContext,
    Outcome,
    RawTrajectory,
    RemedyPattern,
    State,
)
from contextgraph.trace import (
    Trace,
    states_of,
    trace,
)

LIMIT = 10
_QUERIES, _LINKS, _PAST = "queries.jsonl", "qrels.json", "experiences.jsonl"


def judge_related(memory: AgentMemory, folder: Path, seed: int = 0) -> tuple[Moment, ...]:
    """How *memory*, which should be empty, finds the past tasks linked to each query of *folder*.

    Raises `ReadError`.
    """
    tasks = TaskBaselines()
    past, queries = read_related(folder)
    with memory.batch():
        for raw in past:
            memory.learn(raw)
            tasks.add(raw)
    return tuple(_judged(memory, tasks, query, linked, seed) for query, linked in queries)


def read_related(
    folder: Path,
) -> tuple[Iterator[RawTrajectory], list[tuple[RawTrajectory, frozenset[str]]]]:
    """The past tasks of *folder*, and the new ones with the instances that are linked to each.

    It holds ``experiences.jsonl`` (past tasks: ``instance_id``, ``repo``, ``problem_statement``,
    ``patch``), ``queries.jsonl`` (new ones, the same keys) and ``qrels.json`` (query id -> ids of
    linked past tasks); the first two may be compressed (``.gz``). Raises `ReadError`.
    """
    links = _links(folder / _LINKS)
    queries = map(_fix, _rows(folder, _QUERIES))
    linked = [
        (query, frozenset(links[query.instance_id]))
        for query in queries
        if query.instance_id in links
    ]
    return map(_fix, _rows(folder, _PAST)), linked


def _judged(
    memory: AgentMemory,
    tasks: TaskBaselines,
    query: RawTrajectory,
    linked: frozenset[str],
    seed: int,
) -> Moment:
    hidden = frozenset({query.instance_id})
    state = State(task_description=query.task, repo=query.repo)
    retriever = memory.retriever
    gated, ungated = retriever.retrieve_under(
        (retriever.gate, UNGATED), state, LIMIT, exclude_instances=hidden
    )
    shown = [case for case in gated.similar_cases if case.is_shown]
    ranking = ungated.similar_cases
    ours = Verdict(
        bool(shown),
        _rank([case.instance_id for case in ranking], linked),
        _rank([case.instance_id for case in shown], linked),
        shown[0].score if shown else 0.0,
    )
    verdicts = {OURS: ours}
    for name, baseline in _baselines(tasks, query, hidden, seed).items():
        rank = _rank([task.instance_id for task in baseline[:LIMIT]], linked)
        verdicts[name] = Verdict(bool(baseline), rank, rank)
    run = query.instance_id
    return Moment(MomentKind.RELATED, run, run, query.repo, 0, "", verdicts)


def _baselines(
    tasks: TaskBaselines, query: RawTrajectory, hidden: frozenset[str], seed: int
) -> dict[str, list[PastTask]]:
    known = tasks.of(query.repo, hidden)
    chance = random.Random(f"{seed}:{query.instance_id}")
    arguments = (query.task, LIMIT, hidden, query.repo)
    return {
        "nothing": [],
        "random in scope": chance.sample(known, min(LIMIT, len(known))),
        "most frequent": tasks_most_frequent(known),
        "bm25 in scope": tasks.bm25(*arguments, in_scope=True)[0],
        "bm25": tasks.bm25(*arguments, in_scope=False)[0],
    }


def _rank(instances: Sequence[str], linked: frozenset[str]) -> int | None:
    return next((rank for rank, name in enumerate(instances, start=1) if name in linked), None)


def _fix(row: Mapping[str, str]) -> RawTrajectory:
    return RawTrajectory(
        source_format="related",
        instance_id=row["instance_id"],
        repo=row["repo"],
        task=row["problem_statement"],
        patch=row.get("patch"),
        outcome=Outcome.SOLVED,
    )


def _rows(folder: Path, name: str) -> Iterator[Mapping[str, str]]:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            packed = path.read_bytes()
            lines = gzip.decompress(packed) if path.suffix == ".gz" else packed
            for number, line in enumerate(lines.splitlines(), start=1):
                yield _row(line, path, number)
            return
    raise ReadError(str(folder), "", f"has neither {name} nor {name}.gz")


def _row(line: bytes, path: Path, number: int) -> Mapping[str, str]:
    try:
        row: Any = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ReadError(str(path), f"line {number}", str(error)) from error
    for key in ("instance_id", "repo", "problem_statement"):
        if not isinstance(row, dict) or not isinstance(row.get(key), str):
            raise ReadError(str(path), f"line {number}", f"has no text {key!r}")
    return {key: str(value) for key, value in row.items()}


def _links(path: Path) -> Mapping[str, Sequence[str]]:
    try:
        links: Any = orjson.loads(path.read_bytes())
    except OSError as error:
        raise ReadError(str(path), "", f"cannot be read: {error.strerror or error}") from error
    except orjson.JSONDecodeError as error:
        raise ReadError(str(path), "", str(error)) from error
    if not isinstance(links, dict) or not all(isinstance(ids, list) for ids in links.values()):
        raise ReadError(str(path), "", "is not an object of query id to a list of ids")
    return {str(query): [str(id_) for id_ in ids] for query, ids in links.items()}


# So many items stand in the text of an answer at most.
_SHOWN = 3


class HandVerdict(StrEnum):
    """Worth of an item at its moment (benchmarks/judged/README.md has the conventions)."""

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


def judge_by_hand(
    memory: AgentMemory, runs: Iterable[RawTrajectory], judged: Sequence[JudgedMoment], seed: int
) -> Measures:
    """Return what *memory* shows at the *judged* moments of *runs*.

    Runs of the same instance are not seen. Of an answer, the first three items count. Empty where
    no moment is of these runs.
    """
    by_run: dict[str, list[JudgedMoment]] = {}
    for moment in judged:
        by_run.setdefault(moment.run, []).append(moment)
    answers = [
        (raw.instance_id, answer)
        for raw in runs
        if (moments := by_run.get(trajectory_id(raw)))
        for answer in _answers(memory, trace(masked(raw)[0]), moments)
    ]
    estimates = {
        name: estimate(summed((instance, share(answer)) for instance, answer in answers), seed)
        for name, share in _MEASURES.items()
    }
    return {name: {OURS: estimate} for name, estimate in estimates.items() if estimate}


def _answers(
    memory: AgentMemory, read: Trace, moments: Iterable[JudgedMoment]
) -> Iterator[list[HandVerdict | None]]:
    """Return the worth of each shown item at each moment; None where it was not judged."""
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
        yield tuple(action.pattern for action in item.actions)


def _share_of_items(verdict: HandVerdict | None, answer: Sequence[HandVerdict | None]) -> Share:
    known = [hand_verdict for hand_verdict in answer if hand_verdict is not None or verdict is None]
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
