"""Judging a memory by one recorded run: what it says at each moment, against what happened."""

import posixpath
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from contextgraph.model import MemoryContext, RawTrajectory, State, Why
from contextgraph.replay.baselines import (
    Answer,
    Lessons,
    PastTasks,
    files_at_random,
    files_in,
    files_most_frequent,
)
from contextgraph.replay.circles import Circles, circles_of
from contextgraph.replay.clearance import first_match
from contextgraph.replay.cures import Cure, cure_in
from contextgraph.replay.moments import Memory, Moment, MomentKind, Verdict
from contextgraph.replay.strategies import cures_of_strategy
from contextgraph.trace import Recovery, Trace, files_changed, signature_of, states_of, trace
from contextgraph.writing import masked, trajectory_id

LIMIT = 5
OURS = "contextgraph"
BASELINES = ("nothing", "random in scope", "most frequent", "bm25 in scope", "bm25")
METHODS = (OURS, *BASELINES)
_QUOTED_FILE = re.compile(r"`([^`\s]+\.\w+)`")


@dataclass(frozen=True, slots=True)
class Judged:
    """What judging one run brought."""

    run: str
    moments: tuple[Moment, ...]
    circles: Circles


class Judge:
    """Asks *memory* and the baselines at the moments of a run.

    *lessons* and *tasks* hold what the memory has learned, and nothing else.
    """

    def __init__(self, memory: Memory, lessons: Lessons, tasks: PastTasks, seed: int) -> None:
        self._memory = memory
        self._lessons = lessons
        self._tasks = tasks
        self._seed = seed

    def judge(self, raw: RawTrajectory, hidden: frozenset[str]) -> Judged:
        """What is said at the start and at the errors of *raw*; runs of *hidden* are not seen.

        A state holds what came before it, so neither later steps nor patch nor outcome are told.
        """
        read = trace(masked(raw)[0])
        states = list(states_of(read.raw))
        hidden |= {raw.instance_id}
        # Of the run as it came: masking is no part of what names it.
        run = trajectory_id(raw)
        moments = [self._at_start(run, read.raw, states[0], hidden)]
        moments += self._at_errors(run, read, states, hidden)
        return Judged(run, tuple(moments), circles_of(read, states))

    def _ask(self, raw: RawTrajectory, state: State, hidden: frozenset[str]) -> MemoryContext:
        return self._memory.query(
            state, LIMIT, exclude_instances=hidden, as_of=raw.started_at, degrade=True
        )

    def _at_start(
        self, run: str, raw: RawTrajectory, state: State, hidden: frozenset[str]
    ) -> Moment:
        context = self._ask(raw, state, hidden)
        known = self._tasks.of(raw.repo, hidden)
        wanted = _unseen_files(raw) if known else frozenset()
        verdicts = {OURS: Verdict(bool(context))}
        if wanted:
            answers = {OURS: _files_answer(context), **self._files(raw, hidden)}
            verdicts = {name: _file_verdict(answer, wanted) for name, answer in answers.items()}
        start = (MomentKind.START, run, raw.instance_id, raw.repo, 0, "")
        told = not wanted.isdisjoint(files_in(known))
        return Moment(*start, verdicts, has_answer=bool(wanted), reachable=told)

    def _files(self, raw: RawTrajectory, hidden: frozenset[str]) -> dict[str, Answer[str]]:
        known = self._tasks.of(raw.repo, hidden)
        chance = random.Random(f"{self._seed}:{raw.instance_id}")
        here, sure = self._tasks.bm25(raw.task, LIMIT, hidden, raw.repo)
        anywhere, sure_anywhere = self._tasks.bm25(raw.task, LIMIT, hidden, None)
        return {
            "nothing": Answer(),
            "random in scope": files_at_random(known, chance),
            "most frequent": files_most_frequent(known),
            "bm25 in scope": Answer(files_in(here), sure),
            "bm25": Answer(files_in(anywhere), sure_anywhere),
        }

    def _at_errors(
        self, run: str, read: Trace, states: Sequence[State], hidden: frozenset[str]
    ) -> Iterator[Moment]:
        raw, cleared = read.raw, dict(_judgeable(read))
        showing = {step.index: step.error for step in read.steps if step.error}
        for step in sorted(cleared.keys() | _first_showings(read)):
            after = states[step - read.steps[0].index + 1]
            context = self._ask(raw, after, hidden)
            error = showing.get(step)
            topic = error.family if error else ""
            moment = (MomentKind.ERROR, run, raw.instance_id, raw.repo, step, topic)
            if step not in cleared:
                yield Moment(*moment, {OURS: _said(context)}, has_answer=False)
                continue
            recovery, cure = cleared[step]
            message = recovery.error.message
            ours = _cures_answer(context, message, raw.repo)
            answers = {OURS: ours, **self._cures(raw, after, step, hidden)}
            yield Moment(
                *moment,
                {name: _cure_verdict(answer, cure, message) for name, answer in answers.items()},
                steps_left=recovery.cleared_step - step,
                reachable=self._lessons.tell(cure, message, hidden),
            )

    def _cures(
        self, raw: RawTrajectory, state: State, step: int, hidden: frozenset[str]
    ) -> dict[str, Answer[Cure]]:
        """What the baselines say; they are told what the memory is told."""
        signature = signature_of(state.current_error)
        text = signature.message if signature else state.current_error
        chance = random.Random(f"{self._seed}:{raw.instance_id}:{step}")
        here = self._lessons.bm25(text, LIMIT, hidden, raw.repo)
        anywhere = self._lessons.bm25(text, LIMIT, hidden, None)
        kind = signature.error_type if signature else ""
        return {
            "nothing": Answer(),
            "random in scope": self._lessons.at_random(raw.repo, LIMIT, hidden, chance),
            "most frequent": self._lessons.most_frequent(kind, LIMIT, hidden),
            "bm25 in scope": here if here.items else anywhere,
            "bm25": anywhere,
        }


def _judgeable(read: Trace) -> Iterator[tuple[int, tuple[Recovery, Cure]]]:
    """The errors that were verifiably solved by something done, each cure of an error once."""
    seen: set[tuple[str, str, Cure]] = set()
    steps: set[int] = set()
    for recovery in read.recoveries:
        if not recovery.verified or recovery.workaround or recovery.error_step in steps:
            continue
        cure = cure_in(recovery.what, recovery.actions, read.raw.repo)
        known = (recovery.error.error_type, recovery.error.message, cure)
        if cure and known not in seen:
            seen.add(known)
            steps.add(recovery.error_step)
            yield recovery.error_step, (recovery, cure)


def _first_showings(read: Trace) -> set[int]:
    first: dict[tuple[str, str], int] = {}
    for step in read.steps:
        if step.error:
            first.setdefault((step.error.error_type, step.error.message), step.index)
    return set(first.values())


def _unseen_files(raw: RawTrajectory) -> frozenset[str]:
    """Files that the final patch changes and the task does not name."""
    created = _created(raw.patch or "")
    return frozenset(
        file
        for file in files_changed(raw.patch or "")
        if file not in created and posixpath.basename(file) not in raw.task
    )


def _created(patch: str) -> set[str]:
    """The files that *patch* makes, such as a script that reproduces the issue."""
    lines = patch.splitlines()
    return {
        new[4:].split("\t")[0].removeprefix("b/")
        for old, new in pairwise(lines)
        if old.startswith("--- /dev/null") and new.startswith("+++ ")
    }


def _cures_answer(context: MemoryContext, message: str, repo: str) -> Answer[Cure]:
    """The advice of *context* in the order in which it is shown, for an error of *message*."""
    # Each way that a suggestion offers is an advice of its own: naming many must not pay.
    suggested = (cures_of_strategy(s.strategy, message, repo) for s in context.suggestions)
    cures = list(chain.from_iterable(suggested))
    cures += [cure_in(s.description, s.actions, s.repo) for s in context.error_solutions]
    scores = [s.score for s in context.suggestions] + [s.score for s in context.error_solutions]
    whys = [s.why for s in context.suggestions] + [s.why for s in context.error_solutions]
    return Answer(tuple(cures), scores[0] if scores else 0.0, _evidence(whys))


def _files_answer(context: MemoryContext) -> Answer[str]:
    """The files of *context* in the order in which it names them."""
    cases, suggested = context.similar_cases, context.suggestions
    files = [file for one in suggested for file in _QUOTED_FILE.findall(one.strategy)]
    files += [file for case in cases for file in case.files]
    naming = [one for one in suggested if _QUOTED_FILE.search(one.strategy)]
    scores = [one.score for one in naming] + [case.score for case in cases]
    whys = [one.why for one in naming] + [case.why for case in cases]
    return Answer(tuple(dict.fromkeys(files)), scores[0] if scores else 0.0, _evidence(whys))


def _evidence(whys: Sequence[Why]) -> float:
    """The best evidence that any channel has for the first item."""
    return max((rank.score for rank in whys[0].channels), default=0.0) if whys else 0.0


def _said(context: MemoryContext) -> Verdict:
    answer = _cures_answer(context, "", "")
    return Verdict(bool(answer.items), None, answer.score, answer.evidence)


def _cure_verdict(answer: Answer[Cure], cure: Cure, message: str) -> Verdict:
    rank = first_match(cure, answer.items[:LIMIT], message)
    return Verdict(bool(answer.items), rank, answer.score, answer.evidence)


def _file_verdict(answer: Answer[str], wanted: frozenset[str]) -> Verdict:
    named = enumerate(answer.items, start=1)
    rank = next((rank for rank, file in named if file in wanted), None)
    return Verdict(bool(answer.items), rank, answer.score, answer.evidence)
