"""Judges a memory by a recorded run, and by what people judged or linked."""

import posixpath
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct

from contextgraph import model
from contextgraph.advising.cases import files_shown
from contextgraph.advising.gate import (
    UNGATED,
    RepoRemedy,
    first_match,
    kind_of_command,
    kinds_of_commands,
    remedy_of,
)
from contextgraph.advising.wording import render
from contextgraph.errors import ReadError
from contextgraph.evaluation import measures
from contextgraph.evaluation.baselines import (
    Answer,
    PastTask,
    RecoveryBaselines,
    TaskBaselines,
    files_at_random,
    files_in,
    files_most_frequent,
    tasks_most_frequent,
)
from contextgraph.evaluation.measures import estimate, summed
from contextgraph.learning import masked, trajectory_id
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model.codec import from_bytes
from contextgraph.model.values import replace
from contextgraph.readers.conversation import time_in
from contextgraph.system.intake import lines
from contextgraph.text import count_tokens
from contextgraph.trace import (
    LoopTracker,
    Names,
    Recovery,
    StepTrace,
    Trace,
    error_of,
    files_changed,
    files_created,
    names_in,
    states_of,
    trace,
)

LIMIT = 5

# A run that goes on for so many steps after a loop got out of it by itself.
_FREE_STEPS = 4
_SAME_ACTIONS = 3
_NOTHING, _NO_NAMES = RepoRemedy("", ()), Names()


class JudgedRun(Struct, frozen=True):
    """Result of judging one run."""

    run: str
    moments: tuple[measures.Moment, ...]
    warnings: measures.LoopWarnings


class Judge:
    """Asks *memory* and the baselines at the moments of a run.

    *recoveries* and *tasks* hold what the memory has learned, and nothing else.
    """

    def __init__(
        self, memory: AgentMemory, recoveries: RecoveryBaselines, tasks: TaskBaselines, seed: int
    ) -> None:
        self._memory = memory
        self._recoveries = recoveries
        self._tasks = tasks
        self._seed = seed

    def judge(self, raw: model.RawTrajectory, hidden: frozenset[str]) -> JudgedRun:
        """Return the advice at the start and at the errors of *raw*; runs of *hidden* are not seen.

        A state holds what came before it: no later step, neither patch nor outcome.
        """
        read = trace(masked(raw)[0])
        states = list(states_of(read.raw))
        hidden |= {raw.instance_id}
        # Of the run as it was read: masking is not part of its identity.
        run = trajectory_id(raw)
        moments = [self._at_start(run, read.raw, states[0], hidden)]
        moments += self._at_errors(run, read, states, hidden)
        return JudgedRun(run, tuple(moments), loop_warnings(read, states))

    def _query(
        self, raw: model.RawTrajectory, state: model.State, hidden: frozenset[str], *, ranked: bool
    ) -> tuple[model.MemoryContext, model.MemoryContext]:
        """Return what is shown and, for judged moments, the ranking before the gate."""
        retriever = self._memory.retriever
        gates = (retriever.gate, UNGATED) if ranked else (retriever.gate,)
        contexts = retriever.retrieve_under(
            gates, state, LIMIT, exclude_instances=hidden, as_of=raw.started_at
        )
        return contexts[0], contexts[-1]

    def _at_start(
        self, run: str, raw: model.RawTrajectory, state: model.State, hidden: frozenset[str]
    ) -> measures.Moment:
        known = self._tasks.of(raw.repo, hidden)
        files = files_to_find(raw) if known else frozenset()
        shown, _ = self._query(raw, state, hidden, ranked=False)
        tokens = count_tokens(render(shown))
        # The ranking of files itself: an answer has none where it has nothing to say.
        playbooks = self._memory.retriever.playbooks
        ranked = playbooks.of(raw.repo, state.task_description, hidden, raw.started_at).files
        ranking = [file.path for file in ranked]
        verdicts = {measures.OURS: measures.MomentVerdict(tokens > 0, tokens=tokens)}
        if files:
            verdicts[measures.OURS] = replace(
                verdicts[measures.OURS],
                rank=_rank(ranking, files),
                shown=_rank(_files_shown(shown), files),
                score=_score(shown.suggestions, shown.similar_cases),
            )
            for name, answer in self._files(raw, hidden).items():
                rank = _rank(answer.items, files)
                verdicts[name] = measures.MomentVerdict(
                    bool(answer.items), rank, rank, answer.score
                )
        reachable = not files.isdisjoint((*files_in(known), *ranking))
        moment = (measures.MomentKind.START, run, raw.instance_id, raw.repo, 0, "")
        return measures.Moment(*moment, verdicts, has_answer=bool(files), reachable=reachable)

    def _files(self, raw: model.RawTrajectory, hidden: frozenset[str]) -> dict[str, Answer[str]]:
        tasks, known = self._tasks, self._tasks.of(raw.repo, hidden)
        chance = random.Random(f"{self._seed}:{raw.instance_id}")
        here, score_here = tasks.bm25(raw.task, LIMIT, hidden, raw.repo, in_scope=True)
        anywhere, score = tasks.bm25(raw.task, LIMIT, hidden, raw.repo, in_scope=False)
        return {
            "nothing": Answer(),
            "random in scope": files_at_random(known, chance),
            "most frequent": files_most_frequent(known),
            "bm25 in scope": Answer(files_in(here), score_here),
            "bm25": Answer(files_in(anywhere), score),
        }

    def _at_errors(
        self, run: str, read: Trace, states: Sequence[model.State], hidden: frozenset[str]
    ) -> Iterator[measures.Moment]:
        raw, cleared = read.raw, dict(_judgeable(read))
        errors = {step.index: step.error for step in read.steps if step.error}
        for step in sorted(cleared.keys() | _first_occurrences(read)):
            at = step - read.steps[0].index
            # What clears the error is judged, not how the run goes.
            state = replace(states[at + 1], steps=0)
            topic = errors[step].family if step in errors else ""
            recovery, done = cleared.get(step, (None, _NOTHING))
            names = (
                names_in(recovery.error.error_type, recovery.error.message)
                if recovery
                else _NO_NAMES
            )
            kind = _next_kind(read.steps[at:])
            ours = self._ours(raw, state, hidden, done, names, kind)
            answers = self._remedies(raw, state, step, hidden)
            others = {name: _verdict(answer, done, names, kind) for name, answer in answers.items()}
            moment = (measures.MomentKind.ERROR, run, raw.instance_id, raw.repo, step, topic)
            yield measures.Moment(
                *moment,
                {measures.OURS: ours, **others},
                has_answer=recovery is not None,
                steps_left=recovery.cleared_step - step if recovery else 0,
                reachable=bool(done) and self._recoveries.reaches(done, names, hidden),
                next_kind=kind,
            )

    def _ours(
        self,
        raw: model.RawTrajectory,
        state: model.State,
        hidden: frozenset[str],
        done: RepoRemedy,
        names: Names,
        kind: str,
    ) -> measures.MomentVerdict:
        """The verdict on what the memory advises, by what was *done* about the error."""
        shown, ranking = self._query(raw, state, hidden, ranked=True)
        return replace(
            _verdict(Answer(tuple(_remedies_of(ranking))), done, names, kind),
            answered=bool(shown.ranked),
            shown=first_match(done, _remedies_of(shown)[:LIMIT], names),
            score=_score(shown.ranked),
            tokens=count_tokens(render(shown)),
        )

    def _remedies(
        self, raw: model.RawTrajectory, state: model.State, step: int, hidden: frozenset[str]
    ) -> dict[str, Answer[RepoRemedy]]:
        """Return the advice of the baselines; they see the state that the memory sees."""
        signature = error_of(state)
        text = signature.message if signature else state.current_error
        kind = signature.error_type if signature else ""
        chance = random.Random(f"{self._seed}:{raw.instance_id}:{step}")
        known, repo = self._recoveries, raw.repo
        return {
            "nothing": Answer(),
            "random in scope": known.at_random(repo, LIMIT, hidden, chance),
            "most frequent": known.most_frequent(kind, LIMIT, hidden),
            "bm25 in scope": known.bm25(text, LIMIT, hidden, repo, in_scope=True),
            "bm25": known.bm25(text, LIMIT, hidden, repo, in_scope=False),
        }


def loop_warnings(read: Trace, states: Sequence[model.State]) -> measures.LoopWarnings:
    """Return the loops of a run, and the warnings that its *states* would have brought."""
    ended = [loop for loop in read.loops if len(read.steps) - 1 - loop.end >= _FREE_STEPS]
    lasting = [loop for loop in read.loops if loop not in ended]
    alarms = _alarms(read, states)
    return measures.LoopWarnings(
        read.raw.instance_id,
        sum(loop.length for loop in lasting),
        {policy: sum(_saved(loop, at) for loop in lasting) for policy, at in alarms.items()},
        {policy: _false_alarms(at, lasting, ended) for policy, at in alarms.items()},
    )


def _judgeable(read: Trace) -> Iterator[tuple[int, tuple[Recovery, RepoRemedy]]]:
    """The errors that were verifiably cleared by something done, each remedy of an error once."""
    seen: set[tuple[object, ...]] = set()
    steps: set[int] = set()
    for recovery in read.recoveries:
        if not recovery.verified or recovery.workaround or recovery.error_step in steps:
            continue
        done = remedy_of(recovery.actions, read.raw.repo)
        known = (recovery.error.error_type, recovery.error.message, done)
        if done and known not in seen:
            seen.add(known)
            steps.add(recovery.error_step)
            yield recovery.error_step, (recovery, done)


def _first_occurrences(read: Trace) -> set[int]:
    first: dict[tuple[str, str], int] = {}
    for step in read.steps:
        if step.error:
            first.setdefault((step.error.error_type, step.error.message), step.index)
    return set(first.values())


def files_to_find(raw: model.RawTrajectory) -> frozenset[str]:
    """Files that the final patch changes and the task does not name."""
    patch = raw.patch or ""
    # Files that the patch makes, such as a script that reproduces the issue, do not count.
    created = files_created(patch)
    return frozenset(
        file
        for file in files_changed(patch)
        if file not in created and posixpath.basename(file) not in raw.task
    )


def _remedies_of(context: model.MemoryContext) -> list[RepoRemedy]:
    """The advice of *context* in the order in which it is shown."""
    return [remedy_of(advice.actions, advice.repo) for advice in context.ranked]


def _files_shown(context: model.MemoryContext) -> list[str]:
    """The files that the text of *context* names, in order."""
    files = [file.path for file in files_shown(context.playbook)] if context.playbook else []
    cases = (case.files for case in context.similar_cases if case.is_shown)
    return [*files, *chain.from_iterable(cases)]


def _score(*items: Sequence[model.Remedy | model.SimilarCase]) -> float:
    """The score of the first of all *items*, 0 where there are none."""
    return next((item.score for item in chain.from_iterable(items)), 0.0)


def _verdict(
    answer: Answer[RepoRemedy], done: RepoRemedy, names: Names, kind: str
) -> measures.MomentVerdict:
    items = answer.items[:LIMIT]
    rank = first_match(done, items, names)
    kinds = enumerate(map(kinds_of_commands, items), start=1)
    same_kind = next((place for place, known in kinds if kind in known), None)
    return measures.MomentVerdict(bool(items), rank, rank, answer.score, same_kind=same_kind)


def _next_kind(steps: Sequence[StepTrace]) -> str:
    """The kind of the command that next succeeded after the first of *steps*, empty for none.

    Looking around only counts where the first was a look.
    """
    for step in steps[1:]:
        did = step.reading.kind
        if step.succeeded and (not did.is_passive or (did.reads and steps[0].reading.kind.reads)):
            return kind_of_command(step.reading)
    return ""


def _rank(names: Sequence[str], right: frozenset[str]) -> int | None:
    """Return the place, from 1, of the first of *names* that is *right*."""
    return next((rank for rank, name in enumerate(names, start=1) if name in right), None)


def _alarms(read: Trace, states: Sequence[model.State]) -> dict[str, list[int]]:
    """By policy, the steps after which it warns."""
    tracker = LoopTracker()
    pushed = list(enumerate(tracker.push(state) for state in states[1:]))
    return {
        measures.STUCK: [
            at for at, loop in pushed if loop and loop.severity is model.LoopSeverity.STUCK
        ],
        measures.REPEATING: [at for at, loop in pushed if loop],
        measures.SAME_ACTION: list(_same_actions([step.step.action.text for step in read.steps])),
    }


def _same_actions(actions: Sequence[str]) -> Iterator[int]:
    row = 0
    for at, action in enumerate(actions):
        row = row + 1 if at and action == actions[at - 1] else 1
        if row >= _SAME_ACTIONS:
            yield at


def _saved(loop: model.LoopInfo, alarms: Sequence[int]) -> int:
    """The steps of *loop* after the first warning in it."""
    first = next((at for at in alarms if loop.start <= at <= loop.end), None)
    return loop.end - first if first is not None else 0


def _false_alarms(
    alarms: Sequence[int], lasting: Sequence[model.LoopInfo], ended: Sequence[model.LoopInfo]
) -> int:
    """Return the number of warnings of loops that did not last; one for each loop that ended."""
    outside = [at for at in alarms if not any(loop.start <= at <= loop.end for loop in lasting)]
    in_ended = sum(any(loop.start <= at <= loop.end for at in outside) for loop in ended)
    stray = [at for at in outside if not any(loop.start <= at <= loop.end for loop in ended)]
    return in_ended + sum(1 for at in stray if at - 1 not in stray)


RELATED_LIMIT = 10
_QUERIES, _LINKS, _PAST = "queries.jsonl", "qrels.json", "experiences.jsonl"


def judge_related(memory: AgentMemory, folder: Path, seed: int = 0) -> tuple[measures.Moment, ...]:
    """Judge how *memory*, which should be empty, finds tasks linked to each query of *folder*.

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
) -> tuple[Iterator[model.RawTrajectory], list[tuple[model.RawTrajectory, frozenset[str]]]]:
    """Return the past tasks of *folder*, and the new ones with the instances linked to each.

    It holds ``experiences.jsonl`` (past tasks: ``instance_id``, ``repo``, ``problem_statement``,
    ``patch``), ``queries.jsonl`` (new ones, the same keys) and ``qrels.json`` (query id -> ids of
    linked past tasks); the first two may be compressed (``.gz``). Raises `ReadError`.
    """
    links = _links(folder / _LINKS)
    linked = [
        (query, frozenset(links[query.instance_id]))
        for query in _fixes(folder, _QUERIES)
        if query.instance_id in links
    ]
    return _fixes(folder, _PAST), linked


def _judged(
    memory: AgentMemory,
    tasks: TaskBaselines,
    query: model.RawTrajectory,
    linked: frozenset[str],
    seed: int,
) -> measures.Moment:
    hidden = frozenset({query.instance_id})
    state = model.State(task_description=query.task, repo=query.repo)
    retriever = memory.retriever
    gated, ungated = retriever.retrieve_under(
        (retriever.gate, UNGATED),
        state,
        RELATED_LIMIT,
        exclude_instances=hidden,
        asked_at=query.started_at,
    )
    shown = [case for case in gated.similar_cases if case.is_shown]
    ranking = ungated.similar_cases
    ours = measures.MomentVerdict(
        bool(shown),
        _rank([case.instance_id for case in ranking], linked),
        _rank([case.instance_id for case in shown], linked),
        shown[0].score if shown else 0.0,
    )
    verdicts = {measures.OURS: ours}
    for name, baseline in _baselines(tasks, query, hidden, seed).items():
        rank = _rank([task.instance_id for task in baseline[:RELATED_LIMIT]], linked)
        verdicts[name] = measures.MomentVerdict(bool(baseline), rank, rank)
    run = query.instance_id
    return measures.Moment(measures.MomentKind.RELATED, run, run, query.repo, 0, "", verdicts)


def _baselines(
    tasks: TaskBaselines, query: model.RawTrajectory, hidden: frozenset[str], seed: int
) -> dict[str, list[PastTask]]:
    known = tasks.of(query.repo, hidden)
    chance = random.Random(f"{seed}:{query.instance_id}")
    arguments = (query.task, RELATED_LIMIT, hidden, query.repo)
    return {
        "nothing": [],
        "random in scope": chance.sample(known, min(RELATED_LIMIT, len(known))),
        "most frequent": tasks_most_frequent(known),
        "bm25 in scope": tasks.bm25(*arguments, in_scope=True)[0],
        "bm25": tasks.bm25(*arguments, in_scope=False)[0],
    }


class _Fix(Struct, frozen=True):
    """A task that was solved, as a row of a file."""

    instance_id: str
    repo: str
    problem_statement: str
    patch: str | None = None
    created_at: str | float | None = None

    def run(self) -> model.RawTrajectory:
        """Return it as a run without steps."""
        return model.RawTrajectory(
            source_format="related",
            instance_id=self.instance_id,
            repo=self.repo,
            task=self.problem_statement,
            patch=self.patch,
            outcome=model.Outcome.SOLVED,
            started_at=time_in({"created_at": self.created_at}, "created_at"),
        )


def _fixes(folder: Path, name: str) -> Iterator[model.RawTrajectory]:
    path = next((p for p in (folder / name, folder / f"{name}.gz") if p.is_file()), None)
    if path is None:
        raise ReadError(str(folder), "", f"has neither {name} nor {name}.gz")
    for number, line in enumerate(lines(path), start=1):
        try:
            yield from_bytes(_Fix, line).run()
        except ReadError as error:
            raise ReadError(str(path), f"line {number}", error.reason) from error


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


class JudgedItem(Struct, frozen=True, omit_defaults=True):
    """A remedy, by its patterns, and what it was worth."""

    patterns: tuple[model.RemedyPattern, ...]
    verdict: HandVerdict


class JudgedMoment(Struct, frozen=True, omit_defaults=True):
    """The items that were judged at the error of one *step* of a *run* (its id)."""

    run: str
    instance: str
    step: int
    items: tuple[JudgedItem, ...]


def judge_by_hand(
    memory: AgentMemory,
    runs: Iterable[model.RawTrajectory],
    judged: Sequence[JudgedMoment],
    seed: int,
) -> measures.Measures:
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
    return {name: {measures.OURS: estimate} for name, estimate in estimates.items() if estimate}


def _answers(
    memory: AgentMemory, read: Trace, moments: Iterable[JudgedMoment]
) -> Iterator[list[HandVerdict | None]]:
    """Yield the worth of each shown item at each moment; None where it was not judged."""
    states, raw = list(states_of(read.raw)), read.raw
    for moment in moments:
        state = states[moment.step - read.steps[0].index + 1]
        context = memory.retriever.retrieve(
            state, exclude_instances=frozenset({raw.instance_id}), as_of=raw.started_at
        )
        known = {item.patterns: item.verdict for item in reversed(moment.items)}
        shown = context.ranked[:_SHOWN]
        yield [known.get(tuple(action.pattern for action in item.actions)) for item in shown]


def _share_of_items(
    verdict: HandVerdict | None, answer: Sequence[HandVerdict | None]
) -> measures.Share:
    known = [hand_verdict for hand_verdict in answer if hand_verdict is not None or verdict is None]
    return measures.Share(known.count(verdict), len(known))


_MEASURES: Mapping[str, Callable[[Sequence[HandVerdict | None]], measures.Share]] = {
    "by hand: answered": lambda answer: measures.Share(bool(answer), 1),
    "by hand: answers that helped": lambda answer: measures.Share(
        HandVerdict.HELPED in answer, bool(answer)
    ),
    "by hand: first items that helped": lambda answer: measures.Share(
        answer[:1] == [HandVerdict.HELPED], bool(answer)
    ),
    "by hand: items that helped": lambda answer: _share_of_items(HandVerdict.HELPED, answer),
    "by hand: items that misled": lambda answer: _share_of_items(HandVerdict.MISLED, answer),
    "by hand: items not judged": lambda answer: _share_of_items(None, answer),
}
