"""A run in progress: advice at its start, at new errors and in loops; learned at its end."""

import json
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Self

from contextgraph.advising.freshness import (
    is_struck_out,
    lessons_to_say,
    unread,
    with_content_hashes,
    without_files,
)
from contextgraph.advising.pipeline import TOLD_AT_START, lesson_key, settle
from contextgraph.advising.playbook import ABOVE, FILE
from contextgraph.agents.before import NextCall
from contextgraph.agents.shown import Session
from contextgraph.errors import ContextGraphError, NeedsStoreError, NeverLearnedError, StoreError
from contextgraph.knowledge.broken import broken_by, may_be_broken
from contextgraph.memory.agent_memory import WORKING_TOKENS, AgentMemory
from contextgraph.model import (
    INDEX_MOMENT,
    Action,
    ActionKind,
    Condition,
    Environment,
    ErrorSignature,
    Json,
    LearnReceipt,
    Lesson,
    LessonStatus,
    LoopInfo,
    MemoryContext,
    Note,
    Outcome,
    Phase,
    PipelineStep,
    RawTrajectory,
    Recollection,
    State,
    Step,
    new_context_id,
)
from contextgraph.model.values import checked, replace
from contextgraph.system.working_tree import WorkingTree
from contextgraph.text import (
    clip,
    clip_tokens,
    command_of,
    count_tokens,
    fence,
    folded,
    gives_instructions,
)
from contextgraph.text.strings import joined_lines
from contextgraph.trace.actions import command_in, command_use
from contextgraph.trace.loops import STUCK_AFTER, is_alarming
from contextgraph.trace.project import FOLDER_PATTERNS, FolderCauses
from contextgraph.trace.run import StateTracker, state_at
from contextgraph.trace.signature import error_of
from contextgraph.trace.steps import StepReader, StepTrace

START_TOKENS, STEP_TOKENS, INDEX_TOKENS = 800, 400, 500
INDEX = (
    "Lessons of earlier sessions by subject; read some with the tool `lessons` or "
    "`contextgraph lessons --about SUBJECT`: "
)
_FEWEST_INDEXED, _INDEXED = 5, "index of lessons"
_LIMIT = 3

# A running agent is compared with earlier runs after so many steps, and after each multiple.
_COMPARED_EVERY = 10

# Of 54 texts at prompts and edits of a team 22 were right; of 11 whose lessons one session had
# seen before, 2; of nine whose lessons more sessions had seen, none.
_MOST_COUNTED = 2

WHOLE_ROUNDS = 3
# The most that each part of the fixed zone takes of the budget.
_RULES_SHARE, _TRIGGER_SHARE, _STATE_SHARE = 0.4, 0.2, 0.15
# What is left for the last rounds where older ones have lines, too.
_ROUNDS_SHARE = 0.75
_FILES_NAMED = 8
_LINE_CHARS, _ERROR_CHARS = 160, 400
_EXIT_CODES = ("exit_code", "exit", "returncode")
_FILE_KINDS = frozenset({ActionKind.VIEW, ActionKind.EDIT, ActionKind.CREATE})


@checked
class WorkingMemory:
    """The run of one agent in at most *max_tokens* of prompt, at constant cost per call.

    Fixed parts are rules, trigger, focus, the open error and the files of the run, clipped only
    beyond their share. Sliding parts are the last three rounds, clipped in the middle, and one line
    for each older round, latest first.
    """

    def __init__(self, max_tokens: int = WORKING_TOKENS) -> None:
        self._max_tokens = max_tokens
        self._trigger = ""
        self._focus = ""
        self._rules: list[str] = []
        self._lines: list[str] = []
        self._recent: deque[str] = deque(maxlen=WHOLE_ROUNDS)
        self._thought = ""
        self._reader = StepReader()
        self.states = StateTracker(State(phase=Phase.UNDERSTANDING))
        self._changed: dict[str, None] = {}
        self._file = ""

    def add_trigger(
        self, trigger_type: str, payload: "Mapping[str, Json] | str", focus: str = ""
    ) -> None:
        """Set what started the run, for example an issue, and its focus."""
        text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
        self._trigger, self._focus = f"{trigger_type}: {text}", focus

    def inject(self, instruction: str) -> None:
        """Add a rule that stays in the prompt until the run ends."""
        self._rules.append(instruction)

    def add_llm_response(self, content: str) -> None:
        """Add a message of the model; it belongs to the call that follows."""
        self._thought = "\n".join(filter(None, (self._thought, content)))

    def add_function_call(
        self, name: str, args: "Mapping[str, Json]", result: "Mapping[str, Json] | str"
    ) -> None:
        """Add a call of the tool *name* with its *result*: text, or fields with an exit code."""
        fields = {"output": result} if isinstance(result, str) else dict(result)
        codes = [fields.pop(field) for field in _EXIT_CODES if isinstance(fields.get(field), int)]
        self.add_step(
            Step(
                index=len(self._lines),
                thought=self._thought,
                action=Action(name, _action_text(name, args), args),
                observation="\n".join(map(_field_text, fields.values())),
                exit_code=int(str(codes[0])) if codes else None,
            )
        )

    def add_step(self, step: Step) -> None:
        """Add a step of a run, as readers return it."""
        read = self._reader.push(step)
        self.states.push(read)
        self.add_read(read)

    def add_read(self, read: StepTrace, advice: str = "") -> None:
        """Add a traced step, and the *advice* that the agent was shown after it."""
        if read.reading.kind in _FILE_KINDS and read.reading.targets:
            self._file = read.reading.targets[0]
        if read.succeeded:
            for file in read.reading.changed:
                self._changed.pop(file, None)
                self._changed[file] = None
        self._lines.append(_line_of(read))
        parts = (read.step.thought.strip(), f"$ {read.step.action.text}", read.step.observation)
        self._recent.append("\n".join(filter(None, parts)) + advice)
        self._thought = ""

    def to_prompt_section(self) -> str:
        """Return the prompt text; empty if nothing was added."""
        fixed = self._fixed()
        left = self._max_tokens - _cost(fixed)
        older = self._lines[: -len(self._recent)] if self._recent else []
        rounds = _shared(self._recent, int(left * _ROUNDS_SHARE) if older else left)
        lines = _latest([f"- {line}" for line in older], left - _cost(rounds))
        return "\n".join((*fixed, *lines, *rounds))

    def _fixed(self) -> list[str]:
        """The lines of the fixed zone, each part within its share."""
        rules = [f"Rule: {rule}" for rule in self._rules]
        trigger = [f"Focus: {self._focus}"] if self._focus else []
        trigger += [self._trigger] if self._trigger else []
        return [
            *_shared(rules, self._share(_RULES_SHARE)),
            *_shared(trigger, self._share(_TRIGGER_SHARE)),
            *_shared(self._state_lines(), self._share(_STATE_SHARE)),
        ]

    def _state_lines(self) -> list[str]:
        error = error_of(self.states.state)
        files = [*self._changed][-_FILES_NAMED:]
        place = f" ({error.location})" if error and error.location else ""
        lines = (
            error and f"Open error: {error.error_type}: {clip(error.message, _ERROR_CHARS)}{place}",
            self._file and f"File at hand: {self._file}",
            files and f"Changed: {', '.join(files)}",
        )
        return [line for line in lines if line]

    def _share(self, share: float) -> int:
        return int(self._max_tokens * share)


def _action_text(name: str, args: "Mapping[str, Json]") -> str:
    command = command_in(args)
    if command is not None:
        return command
    return f"{name} {json.dumps(dict(args), ensure_ascii=False)}" if args else name


def _field_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _line_of(read: StepTrace) -> str:
    """Return the action and the end of a step, in one line."""
    did = joined_lines(read.step.action.text, _LINE_CHARS)
    if read.error:
        shown = f"{read.error.error_type}: {read.error.message}"
        return f"{did} -> {joined_lines(shown, _LINE_CHARS)}"
    last = (read.step.observation or "").strip().rpartition("\n")[2]
    return f"{did} -> {joined_lines(last, _LINE_CHARS) or 'no output'}"


def _cost(texts: Sequence[str]) -> int:
    """The tokens of *texts* with a line end after each: at most that many when they are joined."""
    return sum(count_tokens(f"{text}\n") for text in texts)


def _shared(texts: Sequence[str], tokens: int) -> list[str]:
    """*texts* within *tokens*: short ones whole, the others with equal parts, cut in the middle."""
    shown = dict.fromkeys(range(len(texts)), "")
    for done, index in enumerate(sorted(shown, key=lambda position: count_tokens(texts[position]))):
        part = tokens // (len(texts) - done)
        shown[index] = clip_tokens(texts[index], part - count_tokens("\n"))
        tokens -= _cost([shown[index]]) if shown[index] else 0
    return [text for text in shown.values() if text]


def _latest(lines: Sequence[str], tokens: int) -> list[str]:
    """As many of the last *lines* as fit into *tokens*, and how many do not."""
    fitting: list[str] = []
    left = tokens - _cost([_omitted(len(lines))])
    for line in reversed(lines):
        if (cost := _cost([line])) > left:
            break
        left -= cost
        fitting.append(line)
    if left >= 0 and len(fitting) < len(lines):
        fitting.append(_omitted(len(lines) - len(fitting)))
    return fitting[::-1]


def _without_said(context: MemoryContext, request: str) -> MemoryContext:
    """Return *context* without the lessons whose whole text *request* has."""
    said = folded(request)
    news = tuple(one for one in context.lessons if folded(one.note.content) not in said)
    return replace(context, lessons=news)


def _omitted(count: int) -> str:
    return f"({count} earlier ones omitted)"


def _action(given: str | Action) -> Action:
    return given if isinstance(given, Action) else Action("bash", given, {"command": given})


@checked
class LiveRun:
    """A run of an agent in progress; `AgentMemory.live` begins it.

    The memory is queried at the start, at each error that is new in this run, and once in each loop
    that is stuck. All other steps take constant time. Nothing is shown twice. If the store does not
    answer, the agent continues without advice and the failure is logged. *working* is the working
    memory of the run: its steps and advice, for a short prompt.

    Leaving the ``with`` block learns the run, with an unknown outcome unless `finish` was called.
    Use it from one thread at a time.
    """

    def __init__(
        self,
        memory: AgentMemory,
        raw: RawTrajectory,
        exclude_instances: frozenset[str] = frozenset(),
        workdir: Path | str | None = None,
        source: str = "",
        environment: Environment | None = None,
        session: str = "",
    ) -> None:
        self._memory = memory
        self._raw = raw
        self._source = source
        self._excluded = exclude_instances
        self._tree = WorkingTree.around(workdir) if workdir else None
        self._steps: list[Step] = []
        self._reader = StepReader()
        if workdir and environment is None:
            environment = Environment(sys.platform, str(Path(workdir).resolve()))
        self._states = StateTracker(replace(state_at(raw, 0), environment=environment))
        self.working = WorkingMemory()
        self.working.states = self._states  # which have each step already
        self.working.add_trigger("task", raw.task)
        self._errors: set[tuple[str, str]] = set()
        self._alarms: set[str] = set()
        self._alarmed_until = -1
        self.session = Session(memory, session, agent=raw.agent, repo=raw.repo)
        self._folders_shown = False
        self._commands: set[str] = set()
        self._turn: list[StepTrace] = []
        self._is_finished = False
        self._learned_as: Outcome | None = None

    def start(self, *, is_prompted: bool = False) -> str:
        """Return advice for the first prompt; empty if nothing is known.

        For a resumed run it includes what clears the error that is still open; see `resume`. Where
        the task of the run *is_prompted* later, what depends on it comes with that `prompt`.
        """
        text = self._opening(self._raw.task)
        if error_of(self._states.state):
            remedy = self._shown(lambda: self._query(self._states.state), STEP_TOKENS, "error")
            text = "\n".join(filter(None, (text, remedy)))
        try:
            keyed = self._memory.keyed.for_prompt() if self._memory.has_keyed else ""
            text = "\n".join(filter(None, (text, keyed)))
        except StoreError as error:
            self.session.fail("the agent starts without its keyed files", error)
        if not is_prompted:
            text = "\n".join(filter(None, (text, self._index(self._raw.task))))
        # Stripped before learning; its id says what this run was shown.
        self._raw = replace(self._raw, system_prompt=self._raw.system_prompt + text)
        return text

    def _opening(self, task: str, least: float = 0.0) -> str:
        """Return what is known about a *task* that begins, or without one about the repository.

        Of similar tasks those at *least* so probable.
        """
        state = replace(state_at(self._raw, 0), environment=self._states.state.environment)

        def search() -> MemoryContext:
            found = self._query(replace(state, task_description=task))
            similar = tuple(one for one in found.similar_cases if one.probability >= least)
            return replace(_without_said(found, task), similar_cases=similar)

        return self._shown(search, START_TOKENS, "start")

    def _index(self, request: str) -> str:
        """Return subjects of the lessons of the repository, once, for the agent to open some.

        Those nearest to *request* first. Empty if there are few.
        """
        try:
            if not self._raw.repo or _INDEXED in self.session.said():
                return ""
            named = self._memory.lessons.subjects(self._raw.repo, request, gone=self._gone)
        except StoreError as error:
            self.session.fail("the agent gets no index of lessons", error)
            return ""
        room, shown = INDEX_TOKENS - count_tokens(INDEX), dict[str, None]()
        for subject in dict.fromkeys(" ".join(one.split()) for one in named.values()):
            if gives_instructions(subject):
                continue
            room -= count_tokens(f"{subject}; ")
            if room < 0:
                break
            shown[subject] = None
        if len(shown) < _FEWEST_INDEXED:
            return ""
        text = fence(INDEX + "; ".join(shown), new_context_id())
        self.session.record(INDEX_MOMENT, {_INDEXED: text})
        return text

    def _gone(self, notes: Iterable[Note]) -> Collection[str]:
        """Return the ids of lessons whose files, or whose lines in a file, the checkout lost."""
        if not self._tree:
            return ()
        noted = {note.id: (note, note.lesson) for note in notes if note.lesson}
        struck_out = {
            id_
            for id_, (note, facts) in noted.items()
            if is_struck_out(note.content, facts, self._tree)
        }
        return struck_out | without_files((note for note, _ in noted.values()), self._tree)

    def observe(
        self,
        action: str | Action,
        observation: str | None,
        *,
        exit_code: int | None = None,
        thought: str = "",
    ) -> str | None:
        """Record a step, and return advice if it met a new error or is stuck in a loop, else None.

        *action* is a command line or a call of another tool. *observation* is None if the action
        got no answer. Append the advice unchanged to the observation that the agent sees.
        """
        step = Step(len(self._steps), thought, _action(action), observation, exit_code=exit_code)
        return self.take(step)

    def take(self, step: Step) -> str | None:
        """Record *step* as `observe` does; its index is the number of earlier steps.

        Raises `ValueError` once the run is finished.
        """
        if self._is_finished:
            raise ValueError("the run is finished: begin another one")
        state, read, loop = self._push(step)
        advice = self._advice(state, step, read.error, self._alarm(loop)) or self._failing()
        if advice:
            step = replace(step, observation=f"{step.observation or ''}{advice}")
        self._steps.append(step)
        self.working.add_read(read, advice)
        return advice or None

    def resume(self, steps: Iterable[Step]) -> None:
        """Record *steps* that the agent took earlier, without giving advice on them."""
        for step in steps:
            _, read, _ = self._push(step)
            self._steps.append(step)
            self.working.add_read(read)

    def _push(self, step: Step) -> tuple[State, StepTrace, LoopInfo | None]:
        """Return the state after *step*, the step as it is read, and the loop that it is in."""
        read = self._reader.push(step)
        state = self._states.push(read)
        # What a person wrote after a step begins a turn.
        self._turn = [] if (step.user_message or "").strip() else [*self._turn, read]
        use = command_use(step.action.text)
        if read.succeeded and use:
            self._commands.add(use.form)
        return state, read, self._states.loop

    def prompt(self, text: str, *, earlier: Callable[[], Iterable[Step]] = tuple) -> str | None:
        """Return what is known about the request *text* of a person; None if there is nothing new.

        This is what people decided about it, and what clears an error that is pasted into it. The
        first one is the task, where the run has none: with it comes what `start` knows of a task.
        Less is said to one who replies to an agent at work. Steps that the agent took *earlier* are
        looked up only where something may be said.
        """
        self._turn = []
        pasted = replace(self._states.state, current_error=text)
        remedy = ""
        if error_of(pasted):
            remedy = self._shown(lambda: self._query(pasted), STEP_TOKENS, "error")
        index = self._index(text)
        # The log is read for these alone; the name of a file brings facts, no similar tasks.
        opens = index or command_of(text) or ABOVE.search(text)
        may_open = not self._raw.task and (opens or FILE.search(text))
        if may_open and not (self._steps or any(True for _ in earlier())):
            close = self._memory.retriever.gate.close_case_precision
            known = self._opening(text, close if opens else inf)
        else:
            known = self._decided("prompt", request=text, earlier=earlier)
        return "\n".join(filter(None, (remedy, known, index))) or None

    def before(
        self, action: str | Action, *, earlier: Callable[[], Iterable[Step]] = tuple
    ) -> str | None:
        """Return a warning to show before *action* is taken; None if there is nothing new.

        It says what people decided about the edited file or about the command, or that no run of
        the repository got the command to run. A command that has run in this run is not warned
        about, no warning is given twice, and no decision that the agent has read. Steps that it
        took *earlier* are looked up only where something may be said.
        """
        action = _action(action)
        call = NextCall.of(action, self._tree)
        decided = partial(self._decided, "before", earlier=earlier)
        if call.names:
            return decided(names=call.names, written=call.written, request=call.request) or None
        known = warning = ""
        if call.command:
            known = decided(command=call.command)
        if call.use is not None and call.use.form not in self._commands:
            warning = self._shown(partial(self._warning, call.use.text), STEP_TOKENS, "before")
        return "\n".join(filter(None, (known, warning))) or None

    def check_submit(self) -> str | None:
        """Return what seems to be missing before the agent submits; None if there is nothing new.

        That is: no existing file was edited, nothing was run since the last edit, no test of an
        edited module was run, the last test failed, an error is open, or the run is stuck in a
        loop. Only where significantly fewer of the runs in this memory that ended so were solved
        than of the others.
        """
        ending = replace(self._states.state.progress, phase=Phase.SUBMITTING)
        return self._shown(lambda: self._query(ending), STEP_TOKENS, "submit") or None

    def broken(self) -> tuple[str, ...]:
        """Return the rules that the turn since the last message of a person broke, each once.

        They are for the person: commands that a rule rules out, and checks that were not run
        since what they cover was changed.
        """
        try:
            said = self.session.said()
            broken = {
                f"broken {one.lesson.id}": str(one)
                for one in broken_by(self._turn, self.rules)
                if not (self._tree and is_struck_out(one.lesson.text, one.lesson, self._tree))
            }
            lines = {key: line for key, line in broken.items() if key not in said}
            self.session.record("end", lines)
        except StoreError as error:
            self.session.fail("rules that were broken are not shown", error)
            return ()
        return tuple(lines.values())

    @cached_property
    def rules(self) -> tuple[Lesson, ...]:
        """The active lessons of the repository that a turn can break. Raises `StoreError`."""
        repo = self._raw.repo
        listed = self._memory.lessons.of(repo, status=[LessonStatus.ACTIVE]) if repo else ()
        return tuple(filter(may_be_broken, listed))

    def finish(
        self,
        outcome: Outcome = Outcome.UNKNOWN,
        *,
        exit_status: str | None = None,
        patch: str | None = None,
    ) -> LearnReceipt | None:
        """Learn the run and return its receipt; None if it has no steps or is excluded.

        The setting *never_learn* excludes runs. Consolidation runs in the background. Raises the
        errors of `AgentMemory.learn`, and `ValueError` where the run was learned with another
        *outcome*.
        """
        if self._learned_as not in (None, outcome):
            raise ValueError(f"the run was learned as {self._learned_as}: call set_outcome")
        raw = self.end(outcome, exit_status=exit_status, patch=patch)
        if not raw.steps:
            return None
        try:
            receipt = self._memory.learn(raw, source=self._source, background=True)
        except NeverLearnedError:
            return None
        self._learned_as = outcome
        return receipt

    def end(
        self,
        outcome: Outcome = Outcome.UNKNOWN,
        *,
        exit_status: str | None = None,
        patch: str | None = None,
    ) -> RawTrajectory:
        """Return the finished run, for a caller that learns it by other means than `finish`."""
        self._is_finished = True
        raw = replace(self.raw, outcome=outcome, exit_status=exit_status, patch=patch)
        return with_content_hashes(raw, self._tree) if self._tree else raw

    @property
    def raw(self) -> RawTrajectory:
        """The run so far, including the advice that was given."""
        return replace(self._raw, steps=tuple(self._steps))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._is_finished:
            return
        try:
            self.finish()
        except ContextGraphError as failure:
            if error is None:
                raise
            error.add_note(f"the run was not learned: {failure}")

    def _advice(
        self, state: State, step: Step, error: ErrorSignature | None, alarm: LoopInfo | None
    ) -> str:
        """Return advice on a new *error* or an *alarm*; empty for neither."""
        is_new = error is not None and (error.error_type, error.template) not in self._errors
        if not (is_new or alarm):
            return ""

        def search() -> MemoryContext:
            context = MemoryContext(new_context_id(), error=error)
            if is_new:
                context = self._query(state)
            if error is not None and self._folders_shown and self._was_shown_at_start(step, error):
                others = (
                    one.silenced(PipelineStep.NEW, TOLD_AT_START) if one.silence is None else one
                    for one in context.remedies
                )
                context = replace(context, remedies=tuple(others))
            if error is not None:
                self._errors.add((error.error_type, error.template))
            return replace(context, loop=alarm)

        return self._shown(search, STEP_TOKENS, "error")

    def _warning(self, command: str) -> MemoryContext:
        """Return that *command* does not run here, and what does, where runs agree on it."""
        return self._memory.warning_before(
            self._states.state,
            command,
            exclude_instances=self._excluded,
            workdir=self._tree.root if self._tree else None,
        )

    def _was_shown_at_start(self, step: Step, error: ErrorSignature) -> bool:
        """Return whether the start named the folder as what *error* of *step* comes of."""
        folders = FolderCauses(replace(self._raw, steps=(*self._steps, step)))
        lesson = folders.lesson(step.index, error.error_type, error.message)
        return lesson is not None and lesson_key(lesson) in self.session.said()

    def _query(self, state: State) -> MemoryContext:
        # Each comparison with earlier runs may warn falsely: `_failing` compares now and then.
        state = replace(state, steps=0) if state.current_error else state
        found = self._memory.query(
            state,
            _LIMIT,
            exclude_instances=self._excluded,
            workdir=self._tree.root if self._tree else None,
            unasked=True,
        )
        # The session is asked, maybe of a service, only where there is something to say.
        if not found or not (said := self.session.said()):
            return found
        withheld = self._memory.withholds(found)
        return settle(found, _LIMIT, already_shown=said, unasked=True, withheld=withheld)

    def _alarm(self, loop: LoopInfo | None) -> LoopInfo | None:
        """*loop* where a warning pays and the agent has not been warned of it."""
        if loop is None or not is_alarming(loop) or loop.repetitions < self._alarm_after:
            return None
        attempt, continues = loop.signatures[0], loop.start <= self._alarmed_until
        self._alarmed_until = loop.end
        if continues or attempt in self._alarms:
            return None
        self._alarms.add(attempt)
        return loop

    @cached_property
    def _alarm_after(self) -> int:
        """The repetitions after which loops of this agent lasted; six where that is not known."""
        try:
            return self._memory.loop_detector.alarm_after(self._raw.agent)
        except (StoreError, NeedsStoreError) as error:  # also of a service that does not know it
            self.session.fail("the agent is warned late", error)
            return STUCK_AFTER

    def _decided(
        self,
        moment: str,
        *,
        request: str = "",
        names: Sequence[str] = (),
        written: str | None = None,
        command: str = "",
        earlier: Callable[[], Iterable[Step]],
    ) -> str:
        """Return what people decided about these; steps *earlier* in the run are read last."""

        # A session that is resumed may be learned by then; who answers in it has heard all of it.
        own = self.session.name.partition("/")[0] if moment == "prompt" else ""

        def decided(*, is_reply: bool) -> MemoryContext:
            found = self._memory.decided(
                request,
                repo=self._raw.repo,
                names=names,
                written=written,
                command=command,
                is_reply=is_reply,
                exclude_instances={*self._excluded, self._raw.instance_id, own} - {""},
            )
            return _without_said(found, request)

        def search() -> MemoryContext:
            context = decided(is_reply=moment == "before")
            said = self.session.said() if context.lessons else set()
            if said.issuperset(one.note.id for one in context.lessons):
                return context  # nothing of it is shown again
            steps = self._steps or [*earlier()]
            if moment == "before":
                return replace(context, lessons=unread(context.lessons, self._raw.task, steps))
            return decided(is_reply=True) if steps else context

        return self._shown(search, STEP_TOKENS, moment)

    def _failing(self) -> str:
        """Return a warning where hardly any run that was where this one is was solved."""
        state = self._states.state
        is_at_fault = Condition.NO_EDIT in state.conditions or state.looped_steps
        if state.steps % _COMPARED_EVERY or not is_at_fault:
            return ""

        return self._shown(lambda: self._query(state.progress), STEP_TOKENS, "failing")

    def _still_likely(
        self, lessons: Sequence[Recollection], least: float
    ) -> tuple[Recollection, ...]:
        """Return the *lessons* at *least* so probable although earlier sessions were shown them.

        The odds that one helps fall with the number of these sessions, at most to a third: where
        it was needed, a person says it again. Raises `StoreError`.
        """
        unsure = [one.note.id for one in lessons if one.probability < 1]
        if not (unsure and self.session.name):
            return tuple(lessons)
        sessions: Mapping[str, int] = {}
        try:
            sessions = self._memory.store.exposures.sessions_shown(unsure)
        except NeedsStoreError as error:  # of a service that does not know it
            self.session.fail("lessons that sessions were shown are said as if new", error)

        def helps(one: Recollection) -> float:
            does_not = (1 - one.probability) * (
                1 + min(_MOST_COUNTED, sessions.get(one.note.id, 0))
            )
            return one.probability / (one.probability + does_not)

        return tuple(one for one in lessons if helps(one) >= least)

    def _shown(self, search: Callable[[], MemoryContext], max_tokens: int, moment: str) -> str:
        """The text of what *search* finds without what the agent was shown before."""
        try:
            context = search()
            if self._tree and context.lessons:
                here = lessons_to_say(context.lessons, self._tree, at_start=moment == "start")
                context = replace(context, lessons=here)
            if context.lessons:
                gate = self._memory.retriever.gate
                is_written = moment == "before"
                least = gate.min_written_precision if is_written else gate.min_lesson_precision
                context = replace(context, lessons=self._still_likely(context.lessons, least))
            text = self.session.show(context, max_tokens, moment)
        except StoreError as error:
            self.session.fail("the agent goes on without advice", error)
            return ""
        facts = context.playbook.facts if context.playbook and text else ()
        self._folders_shown |= any(fact.cause in FOLDER_PATTERNS for fact in facts)
        return text
