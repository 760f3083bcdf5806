"""Replays recorded runs as if live, and counts the steps that the advice would have saved.

docs/evaluation.md states the convention. Changing it changes every figure.
"""

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from contextgraph.advising.gate import MOST_OF_LOOP, TOKENS_OF_A_STEP, is_open, remedy_of
from contextgraph.advising.wording import WARNING
from contextgraph.agents.live import LiveRun
from contextgraph.evaluation.baselines import RecoveryBaselines
from contextgraph.evaluation.measures import (
    OURS,
    Estimate,
    Measures,
    MomentKind,
    Share,
    estimate,
    summed,
)
from contextgraph.learning import masked, trajectory_id
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import (
    TESTS,
    ActionKind,
    Cause,
    LoopInfo,
    Outcome,
    RawTrajectory,
    RemedyKind,
    RemedyPattern,
    ShownItem,
)
from contextgraph.model.values import replace
from contextgraph.text import count_tokens, strip_fenced
from contextgraph.trace import (
    FOLDER_PATTERNS,
    FolderCauses,
    MachineLesson,
    Names,
    Recovery,
    StepTrace,
    Trace,
    names_in,
    remedy_key,
    trace,
)
from contextgraph.trace.actions import command_use
from contextgraph.trace.loops import is_alarming

MOMENTS = (
    MomentKind.START,
    MomentKind.BEFORE,
    MomentKind.ERROR,
    MomentKind.LOOP,
    MomentKind.SUBMIT,
)
CEILING, ALL = "ceiling", "all"
# A command that a text quotes, with its tasks.
_COUNTED = re.compile(r"`([^`\n]+)` \((\d+) of (\d+)")


class Said(Struct, frozen=True):
    """A text that a run would have been shown at *step* (-1: its start), and what it is worth.

    *saved* are the steps that it makes superfluous, *wrong* counts the items that the run
    contradicts.
    """

    kind: MomentKind
    step: int
    text: str
    tokens: int
    saved: frozenset[int] = frozenset()
    wrong: int = 0

    @property
    def net(self) -> float:
        """The steps it saves, less what is wrong and what it costs to read."""
        return len(self.saved) - self.wrong - self.tokens / TOKENS_OF_A_STEP


class LiveReplay(Struct, frozen=True):
    """Answers that a run would have got; *ceiling*: steps that a perfect memory saves.

    By moment, and at `ALL` of them each step once: those of errors for which other instances have
    what cleared them, and of loops. *wasted* are all steps that failed or lay between an error and
    its clearance.
    """

    run: str
    instance_id: str
    agent: str
    steps: int
    wasted: int
    said: tuple[Said, ...]
    ceiling: Mapping[str, int]

    def net(self, kind: MomentKind | None = None) -> float:
        """Return the net steps saved by texts of *kind*, or by all; a step is saved once."""
        counted = [said for said in self.said if kind in (None, said.kind)]
        cost = sum(said.wrong + said.tokens / TOKENS_OF_A_STEP for said in counted)
        return len(_saved(counted)) - cost


def _saved(said: Iterable[Said]) -> set[int]:
    return {step for one in said for step in one.saved}


class LiveReplays:
    """Replays runs through `LiveRun` with *memory*; *known* holds what it has learned."""

    def __init__(self, memory: AgentMemory, known: RecoveryBaselines) -> None:
        self._memory = memory
        self._known = known
        self._replayed: list[tuple[Trace, str, list[Said], dict[str, set[int]]]] = []

    def replay(self, raw: RawTrajectory, hidden: frozenset[str]) -> None:
        """Take the steps of *raw* one by one; runs of *hidden* and of its instance are not seen."""
        hidden |= {raw.instance_id}
        read = trace(masked(raw)[0])
        said = list(_texts(self._memory, read, hidden))
        self._replayed.append((read, trajectory_id(raw), said, self._ceiling(read, hidden)))
        self._memory.note_exposures()

    def results(self) -> list[LiveReplay]:
        """Return the worth of each text, in the order of the runs."""
        exposures = self._memory.store.exposures.all()
        shown = {exposure.context_id: exposure.items for exposure in exposures}
        replays = []
        for read, run, said, reachable in self._replayed:
            judged = tuple(judged_texts(read, said, shown))
            # What is saved beyond what others show is in reach of a perfect memory, too.
            ceiling = {
                kind: len(steps | _saved(one for one in judged if kind in (ALL, one.kind)))
                for kind, steps in reachable.items()
            }
            size = len(read.steps), len(_wasted(read))
            replay = LiveReplay(run, read.raw.instance_id, read.raw.agent, *size, judged, ceiling)
            replays.append(replay)
        return replays

    def _ceiling(self, read: Trace, hidden: frozenset[str]) -> dict[str, set[int]]:
        at_start, at_errors, in_loops = set[int](), set[int](), set[int]()
        for loop in filter(is_alarming, read.loops):  # the first repetition shows it
            in_loops.update(_rest_of_loop(loop, loop.start + 1))
        met = set[RemedyPattern]()
        for recovery in _cleared(read):
            done = remedy_of(recovery.actions, read.raw.repo)
            if self._known.reaches(done, _names(recovery), hidden):
                again = not met.isdisjoint(action.pattern for action in done.actions)
                met.update(action.pattern for action in done.actions)
                at_start.update(range(recovery.error_step, recovery.cleared_step))
                at_errors.update([recovery.error_step] if again else ())
                at_errors.update(_detour(recovery, recovery.error_step))
        return {
            ALL: at_start | in_loops,
            MomentKind.START: at_start,
            MomentKind.BEFORE: at_start,
            MomentKind.ERROR: at_errors,
            MomentKind.LOOP: in_loops,
        }


def _texts(memory: AgentMemory, read: Trace, hidden: frozenset[str]) -> Iterator[Said]:
    """All that the run *read* would have been shown."""
    unfinished = replace(
        read.raw, steps=(), outcome=Outcome.UNKNOWN, exit_status=None, patch=None, content_hashes={}
    )
    run = LiveRun(memory, unfinished, hidden)
    yield from _said(MomentKind.START, -1, run.start())
    errors = set[tuple[str, str]]()
    for step in read.steps:
        if step.reading.kind is ActionKind.SUBMIT:
            yield from _said(MomentKind.SUBMIT, step.index, run.check_submit())
            return
        taken = step.step
        yield from _said(MomentKind.BEFORE, step.index, run.before(taken.action))
        failed = 1 if taken.is_error and taken.exit_code is None else taken.exit_code
        advice = run.observe(
            taken.action, taken.observation or "", exit_code=failed, thought=taken.thought
        )
        kind = MomentKind.LOOP
        if step.error and (step.error.error_type, step.error.template) not in errors:
            errors.add((step.error.error_type, step.error.template))
            kind = MomentKind.ERROR
        yield from _said(kind, step.index, advice)
    yield from _said(MomentKind.SUBMIT, len(read.steps), run.check_submit())


def _said(kind: MomentKind, step: int, text: str | None) -> Iterator[Said]:
    if text:
        yield Said(kind, step, text, count_tokens(text))


def _cleared(read: Trace) -> Iterator[Recovery]:
    """The errors of a run that were verifiably cleared by something that could help again."""
    for recovery in read.recoveries:
        is_cure = recovery.verified and not recovery.workaround
        if is_cure and remedy_of(recovery.actions, read.raw.repo):
            yield recovery


def _rest_of_loop(loop: LoopInfo, at: int) -> range:
    """Return the steps of *loop* that an alarm at step *at* saves."""
    return range(at + 1, min(loop.end, at + MOST_OF_LOOP) + 1)


def _detour(recovery: Recovery, at: int) -> range:
    """Return the steps after *at*, where the error was, that doing at once what cleared it saves.

    They are as many as the remedy itself does not need.
    """
    return range(at + 1, recovery.error_step + 1 + recovery.detour)


def _wasted(read: Trace) -> set[int]:
    failed = {step.index for step in read.steps if step.error}
    spans = (range(recovery.error_step, recovery.cleared_step) for recovery in read.recoveries)
    return failed.union(*spans)


def _names(recovery: Recovery) -> Names:
    return names_in(recovery.error.error_type, recovery.error.message)


def judged_texts(
    read: Trace, said: Iterable[Said], shown: Mapping[str, Sequence[ShownItem]]
) -> Iterator[Said]:
    """Yield *said* with its worth; a step counts for the first text that saves it."""
    run = _Run(read)
    saved = set[int]()
    for text in said:
        if text.step in saved:
            continue  # the step that it answers would not have been taken
        items = [item for name in strip_fenced(text.text)[1] for item in shown.get(name, ())]
        steps, wrong = run.worth(text, items)
        yield replace(text, saved=frozenset(steps - saved), wrong=wrong)
        saved |= steps


class _Run:
    """A recorded run, by which a text is judged."""

    def __init__(self, read: Trace) -> None:
        self._read = read
        self._folders = FolderCauses(read.raw)
        self._cleared = list(_cleared(read))
        self._first = read.steps[0].index if read.steps else 0

    def worth(self, said: Said, items: Sequence[ShownItem]) -> tuple[set[int], int]:
        """Return the steps that *said* with its *items* saves, and the number of wrong items."""
        match said.kind:
            case MomentKind.START:
                steps = self._later(said.text, items, said.step) | self._spared(said.text)
                return steps, self._contradicted(said.text)
            case MomentKind.BEFORE:
                return self._before(said)
            case MomentKind.ERROR:
                return self._at_error(said, items)
            case MomentKind.LOOP:
                return self._in_loop(said)
            case _:
                return set(), self._read.raw.outcome is Outcome.SOLVED

    def _later(self, text: str, items: Sequence[ShownItem], after: int) -> set[int]:
        """Return the steps from each later error up to its clearance, where *text* names it."""
        steps = set[int]()
        for recovery in self._cleared:
            if recovery.error_step > after and self._is_named(recovery, text, items):
                steps.update(self._until_cleared(recovery))
        return steps

    def _until_cleared(self, recovery: Recovery) -> Iterator[int]:
        """The steps from an error to its clearance; of what was not cloned yet those in vain."""
        steps = range(recovery.error_step, recovery.cleared_step)
        lesson = self._lesson(recovery)
        if lesson is None or lesson.cause is not Cause.CHECKOUT:
            yield from steps
            return
        for step in map(self._step, steps):
            if step.error or step.reading.kind.searches:
                yield step.index

    def _lesson(self, recovery: Recovery) -> MachineLesson | None:
        error = recovery.error
        return self._folders.lesson(recovery.error_step, error.error_type, error.message)

    def _before(self, said: Said) -> tuple[set[int], int]:
        if self._step(said.step).error is None:
            # What people decided about a file says nothing of a command.
            return set(), any(name.startswith(WARNING) for name in strip_fenced(said.text)[1])
        steps = {said.step}
        for recovery in self._cleared:
            if recovery.error_step <= said.step < recovery.cleared_step and self._is_named(
                recovery, said.text, ()
            ):
                steps.update(range(said.step, recovery.cleared_step))
        return steps, 0

    def _at_error(self, said: Said, items: Sequence[ShownItem]) -> tuple[set[int], int]:
        error = self._step(said.step).error
        ends = [
            recovery
            for recovery in self._cleared
            if recovery.error_step <= said.step < recovery.cleared_step
            and error
            and recovery.error.error_type == error.error_type
        ]
        named = [end for end in ends if self._is_named(end, said.text, items)]
        steps = self._later(said.text, items, said.step)
        for end in named:
            steps.update(_detour(end, said.step))
        return steps, len(items) if ends and not named and not steps else 0

    def _in_loop(self, said: Said) -> tuple[set[int], int]:
        loop = next((it for it in self._read.loops if it.start <= said.step <= it.end), None)
        if loop is None or loop.end == said.step:
            return set(), 1
        return set(_rest_of_loop(loop, said.step)), 0

    def _is_named(self, recovery: Recovery, text: str, items: Sequence[ShownItem]) -> bool:
        """Return whether *text* says what cleared an error, and names what that was about.

        As an item, or as a command that it quotes. What it is about is a folder, a file, a program
        or a package; an edit that was refused is known to who sent it.
        """
        names = _names(recovery)
        lesson = self._lesson(recovery)
        said = {pattern for item in items for pattern in item.patterns}
        if lesson and FOLDER_PATTERNS[lesson.cause] in said and _has(text, lesson.fails):
            return True
        patterns = {remedy_key([pattern], names): pattern for pattern in said}
        for action in remedy_of(recovery.actions, self._read.raw.repo).actions:
            if pattern := patterns.get(remedy_key([action.pattern], names)):
                about = [n for n in names.names if names.role_of(n) in action.pattern.target]
                is_closed = not is_open(pattern) or pattern.kind is RemedyKind.EDIT
                if about and is_closed and all(_has(text, name) for name in about):
                    return True
                target = action.target.strip().split("\n")[0].strip()
                objects = {target, posixpath.basename(target), action.pattern.target}
                if not about and any(_has(text, named) for named in objects):
                    return True
                if pattern.kind is RemedyKind.RESEND and not is_open(pattern):
                    return True
            if action.kind is RemedyKind.INSTALL and _installs(text, action.target):
                return True
        failed, worked = (
            command_use(self._step(at).step.action.text)
            for at in (recovery.error_step, recovery.cleared_step)
        )
        if failed is None or worked is None or failed.runner == worked.runner:
            return False
        return worked.runner in _quoted(text) or f"`{worked.runner} " in text

    def _tests(self, text: str) -> Iterator[tuple[bool, list[tuple[int, bool]]]]:
        """Yield, for each way to run tests that *text* counts, whether *text* says that it runs.

        With it the steps that took this way, each with whether it ran.
        """
        uses: dict[str, list[tuple[int, bool]]] = {}
        for step in self._read.steps:
            use = command_use(step.step.action.text)
            if use and use.kind is ActionKind.TEST and step.step.observation is not None:
                ran = step.error is None or "test" in step.error.family
                uses.setdefault(use.runner, []).append((step.index, ran))
        for command, worked, tried in _COUNTED.findall(text):
            runner, runs = command.removesuffix(f" {TESTS}"), 2 * int(worked) >= int(tried)
            # A program that does not run fails with any options.
            ways = [
                way for way in uses if way == runner or (not runs and way.startswith(f"{runner} -"))
            ]
            if ways:
                yield runs, [taken for way in ways for taken in uses[way]]

    def _contradicted(self, text: str) -> int:
        """Count the ways to run tests that went otherwise in this run than *text* says."""
        return sum(any(ran for _, ran in taken) != runs for runs, taken in self._tests(text))

    def _spared(self, text: str) -> set[int]:
        """Return the failed steps that took a way to run tests which *text* says does not run."""
        ways = [taken for runs, taken in self._tests(text) if not runs]
        return {step for taken in ways for step, ran in taken if not ran}

    def _step(self, index: int) -> StepTrace:
        return self._read.steps[index - self._first]


def _has(text: str, name: str) -> bool:
    """Return whether *text* names *name*: as a whole word, not as a part of another."""
    is_word = any(map(str.isalnum, name))
    return is_word and bool(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text))


def _quoted(text: str) -> Collection[str]:
    """Return the texts between backquotes."""
    return text.split("`")[1::2]


def _installs(text: str, packages: str) -> bool:
    """Return whether a command that *text* quotes installs all of *packages*."""
    return any(
        "install" in command and {*packages.split()} <= {*command.replace(",", " ").split()}
        for command in _quoted(text)
    )


def saved_measures(replays: Sequence[LiveReplay], seed: int) -> dict[str, Measures]:
    """Net steps saved, tokens and texts of a run by moment; beside them the ceiling."""

    def figure(of: Iterable[tuple[str, float]]) -> Estimate | None:
        return estimate(summed((instance, Share(amount, 1)) for instance, amount in of), seed)

    agents = sorted({replay.agent for replay in replays})
    groups = [("", replays)]
    if len(agents) > 1:
        groups += [(f" ({a})", [r for r in replays if r.agent == a]) for a in agents]
    saved: dict[str, dict[str, Estimate]] = {}
    tokens: dict[str, dict[str, Estimate]] = {}
    for suffix, some in groups:
        for kind in (None, *MOMENTS):
            name = f"{kind or ALL}{suffix}"
            rows = {OURS: figure((r.instance_id, r.net(kind)) for r in some)}
            if kind is not MomentKind.SUBMIT:
                rows[CEILING] = figure((r.instance_id, r.ceiling[kind or ALL]) for r in some)
            saved[name] = {method: row for method, row in rows.items() if row}
            shown_tokens = figure(
                (r.instance_id, sum(s.tokens for s in r.said if kind in (None, s.kind)))
                for r in some
            )
            tokens[name] = {OURS: shown_tokens} if shown_tokens else {}
    return {"steps saved": saved, "tokens a run": tokens}
