"""A run as it goes on: open errors, conditions of failure, states, the type of its task."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct

from contextgraph.model import (
    EXCEPTIONS,
    ActionKind,
    Condition,
    Course,
    ErrorSignature,
    Family,
    LoopInfo,
    LoopSeverity,
    Phase,
    RawTrajectory,
    State,
    TaskType,
)
from contextgraph.model.values import replace
from contextgraph.text import compiled, regex
from contextgraph.trace.actions import ActionReading
from contextgraph.trace.loops import LoopTracker, is_alarming, steady
from contextgraph.trace.programs import plain, without_banners
from contextgraph.trace.signature import signature_of
from contextgraph.trace.steps import (
    StepTrace,
    answers_nothing,
    is_edit,
    is_installing,
    is_typed_again,
    is_version_query,
    ran_no_test,
    read_steps,
    runs_by_hand,
    runs_program,
    runs_tests,
    same_goal,
    same_run,
)

SUMMARY_CHARS = 600
_EARLY_STEPS = 8
_MAX_ENTRIES = 40
_README_LINES = 6
EXCERPT_CHARS = 2_000
_EXCERPT_PART = 640
_CUT = "\n[…]\n"
_SCATTERED = frozenset({Family.TEST_FAILURE, Family.BUILD, Family.ENVIRONMENT})
_REPORT_STARTS = ("Traceback (most recent call last)", "\n____", "\n=====", "\nFAIL", "\nERROR")
_DOCUMENTED = regex(r"^([a-z]\w*):\n\s+docstring:", re.MULTILINE)
_SHELL_ONLY = "mini-swe"
# Failed actions and searches of a run that its state keeps, and how much of each.
_FAILED_ACTIONS = 30
_ACTION_CHARS = 300


# Older errors than the newest 12 open ones are dropped: what clears them later is chance.
_FOLLOWED = 12

# After another error took its place, so many steps may pass until the goal is reached in full.
PATIENCE = 8

# What is reached so long after the last failure is reached for other reasons.
_PATIENCE_WITHRUNS = 80
_PATIENCE_WITH_SLIPS = 20

# A mistyped command that was not repeated for so many steps no longer concerns the agent.
_SLIP_STEPS = 8
_SLIPS = frozenset({Family.EDIT_REJECTED, Family.SHELL, Family.TOOL_USAGE, Family.NOT_FOUND})

RUNS = frozenset({*EXCEPTIONS, Family.BUILD})

# What an installation clears, and within how many steps after it.
MISSING_PROGRAM = ("python -m: No module named", "bash: command not found")
_MISSING = ("ModuleNotFoundError", *MISSING_PROGRAM)
_STEPS_AFTER_INSTALLING = 4
# Agents write another program rather than run the same one again, within so many steps.
_STEPS_TO_REPLACE = 12
_OF_PROJECT = regex(r"(?:install|develop|sync)\b.* -(?:e|r)\b|setup\.py|\bsync\b| \.(?:\[|\s|$)")

_INTERPRETER = regex(r"(?:^|[;&|]\s*|/|\s)(python[\d.]*)\s")

_ELSEWHERE = frozenset({Family.TIMEOUT, Family.ENVIRONMENT})

_NEAR_LINES = 20

_NOT_STARTED = -1
_EARLY = {
    "SyntaxError": 0,
    "IndentationError": 0,
    "TabError": 0,
    "ModuleNotFoundError": 1,
    "ImportError": 1,
}
_LATE = 2


class OpenError(Struct):
    """An error from its *first* to its *last* showing; *gone* is where another took its place.

    *installed* is where what it misses was installed. *changed*: files were changed after its last
    showing; *replaced* is where another program then ended well.
    """

    error: ErrorSignature
    first: StepTrace
    last: StepTrace
    gone: StepTrace | None = None
    installed: StepTrace | None = None
    changed: bool = False
    replaced: StepTrace | None = None


class Cleared(Struct, frozen=True):
    """An open error that ended: the goal was reached at *by*, or (*moved*) failed further on."""

    opened: OpenError
    by: StepTrace
    moved: bool = False

    @property
    def verified(self) -> bool:
        """True where the answer at *by* shows the error gone, rather than perhaps hidden."""
        return not self.moved or (
            self.by.error is not None and _is_later(self.opened.error, self.by.error)
        )


class OpenErrors:
    """The errors that are open after the steps pushed so far."""

    def __init__(self) -> None:
        self._open: list[OpenError] = []
        self._now = -1

    def push(self, step: StepTrace) -> tuple[Cleared, ...]:
        """Take *step* in; the errors that it clears, oldest first."""
        self._now = step.index
        ends, still_open = list[Cleared](), list[OpenError]()
        changes = bool(self._open) and _changes(step.reading)
        for opened in self._open:
            _follow(opened, step, changes)
            is_stale = _is_stale(opened, step)
            if end := _ended(opened, step, is_stale):
                ends.append(end)
            elif not is_stale:
                still_open.append(opened)
        self._open = still_open
        if step.error is not None:
            self._meet(step, step.error)
        elif step.reading.kind is ActionKind.INSTALL:
            for opened in self._open:
                if installs_missing(step.reading.command, opened.error):
                    opened.installed = step
        return tuple(ends)

    def finish(self) -> tuple[Cleared, ...]:
        """Settle errors at the end of the run that gave way to others."""
        return tuple(end for opened in self._open if (end := _given_up(opened)) is not None)

    @property
    def latest(self) -> OpenError | None:
        """The error met last that still stands in the way."""
        standing = [
            opened
            for opened in self._open
            if opened.gone is None
            and (opened.error.family not in _SLIPS or self._now - opened.last.index <= _SLIP_STEPS)
        ]
        return max(standing, key=lambda opened: opened.last.index, default=None)

    def _meet(self, step: StepTrace, error: ErrorSignature) -> None:
        for number, opened in enumerate(self._open):
            if _same_error(opened.error, error) and same_goal(opened.last, step):
                self._open[number] = OpenError(opened.error, opened.first, step)
                return
        for opened in self._open:
            if same_run(opened.last.reading, step.reading) and _further(opened.error, error):
                opened.gone = opened.gone or step
        self._open = [*self._open, OpenError(error, step, step)][-_FOLLOWED:]


def _ended(opened: OpenError, step: StepTrace, is_stale: bool) -> Cleared | None:
    if step.succeeded and _reaches(opened, step):
        return Cleared(opened, step)
    if _has_started(opened, step):
        return Cleared(opened, step, moved=True)
    if opened.installed is not None and _uses(opened, opened.installed, step):
        return Cleared(opened, step, moved=True)
    if opened.gone is not None and step.index - opened.gone.index > PATIENCE:
        return Cleared(opened, opened.gone, moved=True)
    return _given_up(opened) if is_stale else None


def _reaches(opened: OpenError, step: StepTrace) -> bool:
    """True for the goal of the last attempt, or of the first program that showed the error."""
    if same_goal(opened.last, step):
        return True
    if opened.first is opened.last:
        return False
    return opened.first.reading.kind.runs and same_goal(opened.first, step)


def _given_up(opened: OpenError) -> Cleared | None:
    """Where an error, whose goal was not reached as long as it was followed, was left behind."""
    by = opened.gone or opened.replaced
    return Cleared(opened, by, moved=True) if by is not None else None


def _changes(reading: ActionReading) -> bool:
    """True for a step that changes files or installs."""
    return bool(reading.changed or reading.scripted) or (
        reading.kind is ActionKind.INSTALL and is_installing(reading.command)
    )


def _follow(opened: OpenError, step: StepTrace, changes: bool) -> None:
    """Note in *opened* that *step* *changes* files, or what replaces the program that failed."""
    opened.changed = opened.changed or changes
    if opened.replaced is None and _replaces(opened, step):
        opened.replaced = step


def _replaces(opened: OpenError, step: StepTrace) -> bool:
    """True for another program of the run's own that ends well where the first one did not."""
    failed, reading = opened.last, step.reading
    if not step.succeeded or reading.kind is not ActionKind.RUN:
        return False
    if reading.scripted or is_version_query(reading):
        return False
    if failed.reading.kind is ActionKind.TEST:
        return runs_by_hand(failed, step)
    if opened.error.family not in RUNS or opened.error.error_type in _MISSING:
        return False
    if failed.reading.kind is not ActionKind.RUN:
        return False
    soon = step.index - failed.index <= _STEPS_TO_REPLACE
    return soon and (opened.changed or is_typed_again(failed, step))


def _has_started(opened: OpenError, step: StepTrace) -> bool:
    """True where what could not be started, or not by that interpreter, fails in its own code."""
    failed, error = opened.last, step.error
    if error is None or error.family not in RUNS or opened.error.family in _ELSEWHERE:
        return False
    if error.error_type in _MISSING or ran_no_test(step):
        return False
    if not same_run(failed.reading, step.reading):
        return False
    if opened.error.family in _SLIPS or ran_no_test(failed):
        return True
    return _interpreter(failed) != _interpreter(step) and not _same_error(opened.error, error)


def _interpreter(step: StepTrace) -> str:
    match = _INTERPRETER.search(step.step.action.text)
    return match[1] if match else ""


def installs_missing(command: str, error: ErrorSignature) -> bool:
    """True where *command* installs what *error* misses, or the project with all that it needs."""
    if error.error_type not in _MISSING:
        return False
    return (
        any(word in command for word in error.keywords) or _OF_PROJECT.search(command) is not None
    )


def _uses(opened: OpenError, installed: StepTrace, step: StepTrace) -> bool:
    """True where *step* runs something after the installation, and nothing is missing there."""
    if step.index - installed.index > _STEPS_AFTER_INSTALLING:
        return False
    if step.error and (step.error.family not in RUNS or step.error.error_type in _MISSING):
        return False
    named = any(word in step.step.action.text for word in opened.error.keywords)
    if named or opened.last.reading.kind is not ActionKind.TEST:
        return step.reading.kind.runs or (named and step.reading.kind is ActionKind.OTHER)
    return step.reading.verb == opened.last.reading.verb


def _is_stale(opened: OpenError, step: StepTrace) -> bool:
    patience = _PATIENCE_WITHRUNS if opened.error.family in RUNS else _PATIENCE_WITH_SLIPS
    return step.index - opened.last.index > patience


def _same_error(error: ErrorSignature, other: ErrorSignature) -> bool:
    """True for one message; a template is shared by errors that are cleared one by one."""
    kinds = (error.family, error.error_type) == (other.family, other.error_type)
    if kinds and error.family is Family.SYNTAX_ERROR and not _is_near(error, other):
        return False
    if not kinds or error.message == other.message:
        return kinds
    return steady(error.message) == steady(other.message)


def _is_near(error: ErrorSignature, other: ErrorSignature) -> bool:
    """True for places within some lines, which an edit may move, or that are not known."""
    place, again = _place(error), _place(other)
    if place is None or again is None:
        return True
    return place[0] == again[0] and abs(place[1] - again[1]) <= _NEAR_LINES


def _further(before: ErrorSignature, now: ErrorSignature) -> bool:
    """True where *now* may show that the run got past *before*."""
    if before.family in _ELSEWHERE or now.family not in RUNS or _rank(now) < _rank(before):
        return False
    if before.error_type == now.error_type and before.location == now.location:
        # The same kind of failure at the same line: another wrong value, most likely.
        return before.location is None and before.template != now.template
    old, new = _place(before), _place(now)
    return old is None or new is None or old[0] != new[0] or new[1] >= old[1]


def _is_later(before: ErrorSignature, now: ErrorSignature) -> bool:
    """True where *now* comes up at a point that *before* kept the run from reaching."""
    if _rank(now) != _rank(before):
        return _rank(now) > _rank(before)
    old, new = _place(before), _place(now)
    return old is not None and new is not None and old[0] == new[0] and new[1] >= old[1]


def _place(error: ErrorSignature) -> tuple[str, int] | None:
    file, _, line = (error.location or "").rpartition(":")
    return (file, int(line)) if file and line.isdecimal() else None


def _rank(error: ErrorSignature) -> int:
    if error.family not in RUNS:
        return _NOT_STARTED
    return _EARLY.get(error.error_type, _LATE)


# How harnesses name the end of a run that has used up its context, money, time or turns.
_EXHAUSTED = regex(r"context|cost|limit|budget|exceeded|max_|timeout|too_many", re.IGNORECASE)

# Actions that change no file that was there, unless one was read before: what they write, such as
# `git diff > patch.txt`, the run made itself.
_KEEPING = frozenset({ActionKind.CREATE, ActionKind.VCS, ActionKind.VIEW, ActionKind.SEARCH})


class CourseTracker:
    """The course of a growing run, at constant cost per step."""

    def __init__(self) -> None:
        self.errors = OpenErrors()
        self._created: set[str] = set()
        self._read: set[str] = set()
        self._is_tested = False
        self._is_red = False
        self._passed = -1
        self._loops: dict[int, int] = {}
        self._steps = 0
        self._first_edit: int | None = None
        self._is_reproduced = False
        self._is_unrun = False
        self._is_stuck = False
        self._was_stuck = False

    def push(self, step: StepTrace, loop: LoopInfo | None) -> tuple[Cleared, ...]:
        """Add the next step, and the loop that it continues; return the errors that it clears."""
        self._steps += 1
        cleared = self.errors.push(step)
        if step.reading.kind is ActionKind.SUBMIT:  # which shows nothing itself
            return cleared
        self._is_stuck = False
        if loop is not None and is_alarming(loop):
            # A loop that turns out to reach further takes the place of those that it overlaps.
            before = {start: end for start, end in self._loops.items() if end < loop.start}
            self._loops = before | {loop.start: loop.end}
            self._is_stuck = loop.severity is LoopSeverity.STUCK
        self._was_stuck |= self._is_stuck
        reading = step.reading
        if step.succeeded:
            self._change(step)
            if reading.kind is ActionKind.VIEW:
                self._read.update(reading.targets)
        # A program follows the edit on its line; a script that makes an edit is that edit.
        if runs_program(step) and not reading.scripted:
            self._is_unrun = False
            self._is_reproduced |= self._first_edit is None
        if runs_tests(step):
            self._is_tested = True
            self._is_red = not step.succeeded
            self._passed = step.index if step.succeeded else self._passed
        return cleared

    def _change(self, step: StepTrace) -> None:
        """Note the files that *step* changed."""
        reading = step.reading
        if reading.kind in _KEEPING:
            self._created.update(file for file in reading.changed if file not in self._read)
        # A file that was read before exists, whatever writes into it.
        existing = self._read.difference(self._created).intersection(reading.changed)
        if not (is_edit(step) or reading.scripted or existing):
            return
        files = reading.scripted or reading.changed or reading.targets
        self._is_unrun = True
        if existing or not (files and self._created.issuperset(files)):
            self._first_edit = step.index if self._first_edit is None else self._first_edit
            self._is_tested = False

    def course(self, exit_status: str | None = None) -> Course:
        """Return the course after the steps pushed so far, of a run that ended so.

        Its error is the one met last that still stands in the way: no passing test came after it.
        """
        has_edit = self._first_edit is not None
        latest = self.errors.latest
        error = latest if latest and latest.last.index > self._passed else None
        shown = {
            Condition.NO_EDIT: not has_edit,
            Condition.NOT_REPRODUCED: has_edit and not self._is_reproduced,
            Condition.NOT_RUN: self._is_unrun,
            Condition.NOT_TESTED: has_edit and not self._is_tested,
            Condition.TESTS_RED: self._is_red,
            Condition.ERROR_OPEN: error is not None,
            Condition.LOOPED: self._was_stuck,
            Condition.STUCK: self._is_stuck,
            Condition.EXHAUSTED: bool(exit_status and _EXHAUSTED.search(exit_status)),
        }
        return Course(
            self._steps,
            tuple(sorted(condition for condition, is_shown in shown.items() if is_shown)),
            self._first_edit,
            tuple(self._loops.items()),
            error.error.error_type if error else "",
        )


def followed(
    raw: RawTrajectory, steps: Iterable[StepTrace], loops: Sequence[LoopInfo]
) -> tuple[Course, list[Cleared]]:
    """Return the course of a whole run, whose *loops* are in order, and the errors that ended."""
    tracker, waiting, ends = CourseTracker(), deque(loops), list[Cleared]()
    for step in steps:
        while waiting and waiting[0].end < step.index:
            waiting.popleft()
        is_in = waiting and waiting[0].start <= step.index
        ends += tracker.push(step, waiting[0] if is_in else None)
    return tracker.course(raw.exit_status), [*ends, *tracker.errors.finish()]


class StateTracker:
    """The state of the agent in a growing run, at constant cost per step.

    *start* is the state before the first step. Without tools there, those used so far count. *loop*
    is the one that the last step is in.
    """

    def __init__(self, start: State) -> None:
        self._state = start
        self._has_tools = bool(start.tools)
        self._loops = LoopTracker()
        self._course = CourseTracker()
        self.loop: LoopInfo | None = None
        self._readme = self._entries = ""
        self._folder: str | None = None
        self._listings: set[str] = set()
        self._excerpt_step = -1
        self._excerpt = ""

    @property
    def state(self) -> State:
        """The state after the steps pushed so far."""
        return self._state

    def push(self, step: StepTrace) -> State:
        """Return the state after the next *step*."""
        self.loop = self._loops.push(step)
        self._course.push(step, self.loop)
        course = self._course.course()
        before, observation = self._state, step.step.observation
        tool = step.step.action.tool
        failed = self._failed(before.failed_actions, step)
        adds_tool = not self._has_tools and tool and tool not in before.tools
        self._state = replace(
            before,
            tools=(*before.tools, tool) if adds_tool else before.tools,
            repo_summary=self._repo_summary(step),
            current_error=self._current_error(),
            phase=step.phase,
            last_action=step.step.action.text,
            last_outcome=observation or "",
            # A log that ends before the answer does not show which file is open then.
            open_file=before.open_file if observation is None else step.step.open_file or "",
            failed_actions=failed,
            steps=course.steps,
            looped_steps=course.looped(course.steps),
            conditions=course.conditions,
        )
        return self._state

    def _failed(self, before: tuple[str, ...], step: StepTrace) -> tuple[str, ...]:
        """*before* with *step*, where it failed or looked for something.

        Listings are left out once the shell is in another folder.
        """
        if step.step.cwd != self._folder:
            before = tuple(action for action in before if action not in self._listings)
            self._folder, self._listings = step.step.cwd, set()
        text = step.step.action.text[:_ACTION_CHARS]
        failed = step.error is not None or answers_nothing(step)
        if step.reading.kind is ActionKind.LIST and not failed:
            self._listings.add(text)
        elif not (failed or step.reading.kind is ActionKind.SEARCH):
            return before
        return (*before, text)[-_FAILED_ACTIONS:]

    def _repo_summary(self, step: StepTrace) -> str:
        """A short text on the repository, from its README and the first listing of files."""
        if step.index < _EARLY_STEPS and step.succeeded:
            kind, shown = step.reading.kind, step.step.observation or ""
            if kind is ActionKind.LIST and not self._entries:
                self._entries = _entries(shown)
            is_readme = any("readme" in target.lower() for target in step.reading.targets)
            if kind is ActionKind.VIEW and is_readme and not self._readme:
                self._readme = _opening(shown)
        return "\n".join(filter(None, (self._readme, self._entries)))[:SUMMARY_CHARS]

    def _current_error(self) -> str:
        """The text of the current error, which is cut once and not at every step."""
        latest = self._course.errors.latest
        if latest is None:
            return ""
        if latest.last.index != self._excerpt_step:
            self._excerpt_step = latest.last.index
            self._excerpt = excerpt_of(latest.last.step.observation or "", latest.error)
        return self._excerpt


def state_at(raw: RawTrajectory, step: int) -> State:
    """Return the state just before *step* (0 to the number of steps) of *raw*.

    Raises IndexError for a step that the run does not have.
    """
    if not 0 <= step <= len(raw.steps):
        raise IndexError(f"no state before step {step}: the run has {len(raw.steps)} steps")
    return next(islice(states_of(raw), step, None))


def states_of(raw: RawTrajectory) -> Iterator[State]:
    """Yield the states before each step of *raw*, and last the one after all of them.

    Each knows only what came before it; the whole is read once, in linear time.
    """
    tracker = StateTracker(
        State(
            tools=_tools(raw),
            repo=raw.repo,
            task_description=raw.task,
            phase=Phase.UNDERSTANDING,
            instance_id=raw.instance_id or None,
            agent=raw.agent,
        )
    )
    yield tracker.state
    for step in read_steps(raw):
        yield tracker.push(step)


def _tools(raw: RawTrajectory) -> tuple[str, ...]:
    """The tools that the system prompt describes; empty where it names none."""
    if documented := _DOCUMENTED.findall(raw.system_prompt):
        return tuple(dict.fromkeys(documented))
    return ("bash",) if raw.source_format.startswith(_SHELL_ONLY) else ()


def _entries(listing: str) -> str:
    lines = [line.split()[-1] for line in listing.splitlines() if line.strip()]
    names = [name for name in lines if name not in (".", "..") and not name.isdecimal()]
    return f"files: {', '.join(names[:_MAX_ENTRIES])}"[: SUMMARY_CHARS // 2] if names else ""


def _opening(view: str) -> str:
    """The first lines of text in a README, without line numbers, headings' marks and badges."""
    lines = (line.partition(":")[2] if line[:1].isdecimal() else line for line in view.splitlines())
    bare = (line.strip().strip("#=-*").strip() for line in lines)
    text = [line for line in bare if line and line[0] not in "[(<!.|" and "://" not in line]
    return f"README: {' '.join(text[:_README_LINES])}"[: SUMMARY_CHARS // 2] if text else ""


def excerpt_of(observation: str, error: ErrorSignature) -> str:
    """Return at most 2,000 characters of *observation* around *error*, without banners."""
    text = without_banners(plain(observation)).strip()
    if len(text) <= EXCERPT_CHARS:
        return text
    cuts = (cut for cut in _cuts(text, error) if _shows(cut, error))
    return next(cuts, _excerpt_of_parts(text, (0, -_EXCERPT_PART)))


def _cuts(text: str, error: ErrorSignature) -> Iterator[str]:
    """Cuts of *text*, from what most errors need to what few do."""
    at = text.rfind(error.message.partition("\n")[0][:80])
    if at < 0 or error.family is Family.EDIT_REJECTED:
        yield text[:EXCERPT_CHARS]
    yield _excerpt_of_parts(text, (at - 2 * _EXCERPT_PART, at - _EXCERPT_PART, at))
    yield _excerpt_of_parts(text, (-3 * _EXCERPT_PART, -2 * _EXCERPT_PART, -_EXCERPT_PART))
    yield _excerpt_of_parts(text, (0, at - _EXCERPT_PART // 2, -_EXCERPT_PART))
    reports = filter(lambda start: start >= 0, map(text.find, _REPORT_STARTS))
    report = min(reports, default=0)
    yield _excerpt_of_parts(text, (report, at - _EXCERPT_PART // 2, -_EXCERPT_PART))
    yield _excerpt_of_parts(text, (0, _EXCERPT_PART, 2 * _EXCERPT_PART))


def _excerpt_of_parts(text: str, starts: tuple[int, ...]) -> str:
    """The parts of *text* from *starts* on, each to the end of its last line, marked where cut."""
    shown, done = "", 0
    for start in sorted(max(0, len(text) + at if at < 0 else at) for at in starts):
        begin = max(done, text.rfind("\n", 0, start) + 1, start - _EXCERPT_PART // 4)
        part = text[begin : begin + _EXCERPT_PART]
        shown += part if begin == done else _CUT + part
        done = begin + _EXCERPT_PART
    return shown[:EXCERPT_CHARS]


def _shows(shown: str, error: ErrorSignature) -> bool:
    if error.family not in _SCATTERED and error.message[:80] in shown:
        # Recognising costs more than cutting, and what is shown in one place survives the cut.
        return True
    signature = signature_of(shown)
    if signature is None:
        return False
    return (signature.family, signature.error_type, signature.template) == (
        error.family,
        error.error_type,
        error.template,
    )


_READ = 6000
# Most issues report a bug; evidence of another type must outweigh this.
_PRIOR = {TaskType.BUG_FIX: 1.0}


class _Indicator(Struct, frozen=True):
    """Words that indicate a task type with a *weight*; *leads*: where they are the first ones.

    Of the *words*, patterns of lower-case text, blanks separate one from the next; ``_`` stands for
    a blank in one.
    """

    task_type: TaskType
    weight: float
    words: str
    leads: bool = False

    def is_in(self, text: str) -> bool:
        """Return True if one of the words begins a word of *text*.

        With `\\b` at the start of the pattern, `re` could not skip to possible first letters, which
        is three times as fast.
        """
        pattern, start = _pattern(self.words, self.leads), 0
        while match := pattern.search(text, start):
            at = match.start()
            if at == 0 or not (_is_in_word(text[at - 1]) and _is_in_word(text[at])):
                return True
            start = at + 1
        return False


def _pattern(words: str, leads: bool) -> re.Pattern[str]:
    lead = r"\A\W*(?:(?:please|we should|let'?s|can we|could you) )?" if leads else ""
    any_word = "|".join(words.split()).replace("_", " ")
    return compiled(rf"{lead}(?:{any_word})\b")


def _is_in_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


_IN_TITLE = (
    _Indicator(
        TaskType.BUG_FIX,
        3,
        r"\w*(?:error|exception) traceback crash\w* bugs? fail(?:s|ing|ed|ure)? broken breaks? "
        r"wrong\w* incorrect\w* regress\w* regr unexpected\w* inconsisten\w* invalid "
        r"mistaken\w* problems? issue_with corrupt\w* leak\w* hangs? stuck raises? throws? "
        r"drops? loses? lost confus\w* "
        r"ignor(?:es|ed|ing) misses vulnerab\w* security deadlock incompatib\w*",
    ),
    _Indicator(
        TaskType.BUG_FIX,
        3,
        r"does_?n[o']t do(?:es)?_not is_?n[o']t are_?n[o']t can_?n[o']t cannot won'?t not "
        r"no_longer unable_to never should_?n[o']t",
    ),
    _Indicator(TaskType.BUG_FIX, 6, r"bug", leads=True),
    _Indicator(
        TaskType.FEATURE, 4, r"\[?(?:feature|enhancement|feat|request|rfe|proposal)", leads=True
    ),
    _Indicator(
        TaskType.FEATURE,
        4,
        r"add allow support implement enable provide expose introduce include make let accept "
        r"create extend offer report preserve automatically ability option new do_not don'?t",
        leads=True,
    ),
    _Indicator(
        TaskType.FEATURE,
        3,
        r"add(?:ing|ition)? support(?:ing)? feature ability options?_(?:to|for) allow(?:ing)? "
        r"enhancement implement\w* compliance would_be flag configurable customi[sz]\w* suggest\w* "
        r"hardcode\w* fallback possib\w* should",
    ),
    _Indicator(
        TaskType.REFACTOR,
        5,
        r"refactor\w* clean_?-?up renam\w* deprecat\w* simplif\w* remov(?:e|al|ing) drop_support "
        r"speed_?up slow\w* performance optimi[sz]\w* replace migrate reorgani[sz]e move unify",
    ),
    _Indicator(
        TaskType.REFACTOR,
        4,
        r"remove rename refactor deprecate clean_?up simplify drop",
        leads=True,
    ),
    _Indicator(
        TaskType.TEST,
        5,
        r"tests?_(?:fail\w*|suite|coverage|cases?|are|is|errors?) "
        r"(?:failing|flaky|missing|unit)_tests? coverage",
    ),
    _Indicator(TaskType.DOCS, 6, r"documentation docs? docstrings? readme typos? tutorial"),
    _Indicator(
        TaskType.OTHER,
        5,
        r"packag(?:e|ing)_(?:for|on) release upgrade bump pin "
        r"update_(?:port|dependenc\w*|version\w*|requirements?) github_actions? ci wheels? pypi",
    ),
)
_IN_BODY = (
    _Indicator(
        TaskType.BUG_FIX,
        3,
        r"most_recent_call_last [a-z]\w{1,80}(?:error|exception):_\S",
    ),
    _Indicator(
        TaskType.BUG_FIX,
        2,
        r"(?:actual|current|observed|expected)_(?:behaviou?r|result|output) "
        r"to_reproduce describe_the_bug minimal_(?:reproduc\w*|example) what_happened",
    ),
    _Indicator(
        TaskType.BUG_FIX,
        1.5,
        r"bug regression broke breaks broken crash\w* wrong incorrect\w* fails? error exception "
        r"unexpected\w* instead_of used_to_work no_longer",
    ),
    _Indicator(
        TaskType.FEATURE,
        4,
        r"your_feature_request_related the_solution_you'?d_like feature_request "
        r"describe_the_feature proposed_(?:feature|solution|change)",
    ),
    _Indicator(
        TaskType.FEATURE,
        2,
        r"would_(?:be_)?(?:\w+_){0,3}(?:nice|great|useful|good|helpful|cool|convenient|awesome) "
        r"it'?d_be nice[_-]to[_-]haves?",
    ),
    _Indicator(
        TaskType.FEATURE,
        1.5,
        r"i(?:'d|_would)_like_(?:to|for) we_(?:should|could|need_to) (?:could|can)_(?:we|you) "
        r"should_(?:also_)?(?:support|allow|provide|be_able|accept|have) ability_to "
        r"add_(?:a|an|support|the) implement proposal would_like is_missing currently",
    ),
    _Indicator(
        TaskType.REFACTOR, 1.5, r"refactor\w* clean(?:ed)?_?up rename deprecat\w* simplify slow"
    ),
)


def task_type_of(issue_text: str) -> TaskType:
    """Return the type of work that an issue requests; `OTHER` where there is no text."""
    text = issue_text.strip()[:_READ].lower()
    if not text:
        return TaskType.OTHER
    title, _, body = text.partition("\n")
    scores = {task_type: _PRIOR.get(task_type, 0.0) for task_type in TaskType}
    for part, indicators in ((title[:300], _IN_TITLE), (body, _IN_BODY)):
        for indicator in indicators:
            if indicator.is_in(part):
                scores[indicator.task_type] += indicator.weight
    return max(scores, key=lambda task_type: scores[task_type])
