"""The predicament of an agent after a step: what it tried and the outcome."""

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

from msgspec import Struct, field

from contextgraph.model import (
    Action,
    ActionKind,
    ErrorSignature,
    LoopInfo,
    LoopKind,
    LoopSeverity,
    Phase,
    State,
    Step,
)
from contextgraph.model.values import replace
from contextgraph.text import regex
from contextgraph.text.strings import joined_lines
from contextgraph.trace.actions import SHELL_TOOLS, canonical, imported_names, read_action
from contextgraph.trace.signature import action_in, error_of, recognise
from contextgraph.trace.steps import (
    SILENCE,
    Span,
    StepTrace,
    edited_file,
    is_edit,
    new_lines,
    overlap,
)

# What changes from run to run without meaning anything: addresses, places, durations, hashes.
# By their first character, as `re` then goes from one to the next: half of the time.
_VOLATILE = regex(
    r"[0-9a-fl/\d](?:(?<=0)x[0-9a-f]+|(?<=l)ine \d+|(?<=/)tmp/[\w./-]+"
    r"|(?<=\d)(?<!\d\d)\d*+\.\d+ ?s(?:ec\w*)?\b"
    r"|(?<=\b[0-9a-f])(?:(?<=\d)|(?=[a-f]*\d))[0-9a-f]{6,39}\b)"
)
_COMPARED = 4_000
# The file that a command puts back as it was, from git or from a copy that was made before.
_RESTORED = regex(
    r"git (?:checkout|restore)\b(?: \S+)*? (?P<file>[\w./+-]+\.[A-Za-z]\w{0,4}|\.)(?: |$)"
    r"|(?:cp|mv)(?: -\w+)* (?P<copy>\S+?)[._~-](?:bak|backup|orig|original|save|old)\w*"
    r" (?P=copy)(?: |$)"
)
_SCRIPT_FOLDER = regex(r"(?<= )[\w./-]*/(?=[\w-]+\.(?:py|sh|js)(?: |$))")
_JUST_FAILED = frozenset({"error", "failed", "failure", "fail", "exception"})
# What a program prints when nothing is wrong.
# Of text in lower case, and by its first character as well.
_SUCCESS = regex(
    r"[pon✓✅](?:(?<=[✓✅])|(?<=\bp)assed\b|(?<=\bo)k\b"
    r"|(?<=\bn)o (?:\w+ )?(?:issues|errors|problems)\b)"
)
_INTERPRETERS = frozenset("python node deno bash sh zsh ruby perl php java ts-node tsx".split())


class Predicament(Struct, frozen=True):
    """An attempt and its outcome, in forms that are equal where nothing is new.

    *goal* is what stays the same while an agent tries in several ways: the command, or the file
    that is edited. *attempt* is the exact action, *outcome* the error or a digest of the answer.
    *written* is the action of a step that changes files, as typed. *inconclusive*: an error, or a
    run whose answer does not show that all is well. *is_hidden*: an edit of which the log shows
    only the file, which cannot be known to equal another one.
    """

    action_type: ActionKind
    goal: str
    attempt: str
    outcome: str
    inconclusive: bool = False
    error: ErrorSignature | None = None
    span: tuple[int, int] | None = None
    text: str = ""
    phase: Phase | None = None
    command: str = ""
    written: str = ""
    is_hidden: bool = False

    @property
    def error_category(self) -> str:
        """The type of its error, such as ``ImportError``; empty without one."""
        return self.error.error_type if self.error else ""

    @property
    def error_keywords(self) -> tuple[str, ...]:
        """The keywords of the error message."""
        return self.error.keywords if self.error else ()

    @property
    def is_rejected_edit(self) -> bool:
        """True for an edit that failed."""
        return self.error is not None and self.action_type.writes

    @property
    def is_typed(self) -> bool:
        """True for a program that is typed on the line, mostly to look at something."""
        return self.command.startswith("python -c ")

    @property
    def restored(self) -> str:
        """The file that it puts back as it was; empty for anything else."""
        match = _RESTORED.match(self.command) if self.error is None else None
        return (match["file"] or match["copy"]) if match else ""

    @property
    def name(self) -> str:
        """A few words that name the attempt and its outcome for a reader."""
        what = joined_lines(self.command, 80)
        if self.text:
            what = f"{what} in {self.goal.partition(':')[2]}"
        return f"{what} → {self.error.error_type}" if self.error else what


def predicament_of(step: StepTrace) -> Predicament:
    """Return the predicament that *step* ends in."""
    reading, error = step.reading, step.error
    writes = is_edit(step)
    file = edited_file(step) if writes else ""
    changes = bool(writes or reading.changed or reading.scripted)
    attempt = canonical(step.step.action, file or None)
    is_run = reading.kind.runs or reading.kind is ActionKind.OTHER
    goal = file if writes else _program(step) if is_run else attempt
    return Predicament(
        action_type=reading.kind,
        goal=reading.kind + ":" + goal,
        attempt=_digest(attempt),
        outcome=_outcome(step),
        inconclusive=error is not None or (is_run and _is_inconclusive(step)),
        error=error,
        span=reading.span,
        text=_digest("\n".join(filter(None, map(str.strip, new_lines(step))))) if writes else "",
        phase=step.phase,
        command=reading.command,
        written=" ".join((step.step.action.text, *reading.scripted)) if changes else "",
        is_hidden=writes and error is None and _is_hidden(step.step.action),
    )


def _is_hidden(action: Action) -> bool:
    """True for the call of an editing tool that names nothing but a file."""
    is_shell = action.tool.lower() in SHELL_TOOLS or action.text.startswith("create ")
    return not is_shell and "\n" not in action.text and " --" not in action.text


def _program(step: StepTrace) -> str:
    """The command of a run, a script without its folder; of what is typed what it imports."""
    command = step.reading.command
    if command.startswith("python -c "):
        names = imported_names(command)
        return f"python -c import {', '.join(sorted(names))}" if names else command
    return _SCRIPT_FOLDER.sub("", command) if step.reading.kind is ActionKind.RUN else command


def predicament_in(state: State, *, has_outcomes: bool = True) -> Predicament | None:
    """Return the predicament of *state* by its last action, or its type; None without either.

    Without outcomes its current error is taken for the outcome of the last action.
    """
    if not state.last_action.strip():
        return _described(state, state.action_type) if state.action_type else None
    answer = state.last_outcome if has_outcomes else state.current_error
    if state.last_outcome.strip().lower() in _JUST_FAILED:
        answer = state.current_error
    return predicament_of(_step_in(state, answer))


def _described(state: State, kind: ActionKind) -> Predicament:
    """The predicament of an agent that names the kind of its action, and its error."""
    error = error_of(state) if state.current_error else None
    category = state.error_category or (error.error_type if error else "")
    keywords = state.error_keywords or (error.keywords if error else ())
    return Predicament(
        action_type=kind,
        goal=f"{kind}:",
        attempt=_digest(kind),
        outcome=f"{category}: {' '.join(sorted(keywords))}",
        inconclusive=bool(category),
        error=error,
        phase=state.phase,
        command=kind.value,
    )


def _step_in(state: State, answer: str) -> StepTrace:
    """The last step as *state* shows it."""
    action = action_in(state)
    reading = read_action(action, None, state.open_file or None)
    error = recognise(action, answer, reading=reading)
    return StepTrace(Step(0, "", action, answer), reading, state.phase or Phase.FIXING, error)


def is_same_predicament(state1: State, state2: State) -> bool:
    """Return True if two states are the same trouble.

    Same kind of action, same category of error and a keyword in common; without an error, the
    same action with the same outcome.
    """
    predicament, other = _last_predicament(state1), _last_predicament(state2)
    if (predicament.action_type if predicament else None) != (other.action_type if other else None):
        return False
    error, other_error = _error_of(state1, predicament), _error_of(state2, other)
    if error is not None and other_error is not None:
        same = (error.family, error.error_type) == (other_error.family, other_error.error_type)
        if not error.keywords and not other_error.keywords:
            return same and error.template == other_error.template
        return same and not set(error.keywords).isdisjoint(other_error.keywords)
    if error is not other_error or predicament is None or other is None:
        return False
    return (predicament.attempt, predicament.outcome) == (other.attempt, other.outcome)


def _last_predicament(state: State) -> Predicament | None:
    return predicament_in(state, has_outcomes=bool(state.last_outcome))


def steady(text: str) -> str:
    """Return the first 4,000 characters of *text* without what changes from run to run."""
    return _steady(text[:_COMPARED])


# A run shows three of four of these texts again: while an error is open, and in loops.
@lru_cache(512)
def _steady(text: str) -> str:
    return _VOLATILE.sub("", text)


def _error_of(state: State, predicament: Predicament | None) -> ErrorSignature | None:
    if state.current_error:
        return error_of(state)
    return predicament.error if predicament else None


def _outcome(step: StepTrace) -> str:
    if step.error is not None:
        return f"{step.error.error_type}: {steady(step.error.message)}"
    if is_edit(step):
        # The view that follows an accepted edit differs with every line; the attempt says it all.
        return "accepted"
    shown = step.step.observation or ""
    if len(shown) > _COMPARED:
        shown = f"{shown[: _COMPARED // 2]}{shown[-_COMPARED // 2 :]}{len(shown)}"
    return _digest(shown if step.reading.kind.reads else steady(shown))


def _is_inconclusive(step: StepTrace) -> bool:
    """True where an answer without an error leaves open whether all is well."""
    shown = step.step.observation
    verb = step.reading.verb.partition(" ")[0]
    if step.step.exit_code == 0 and verb not in _INTERPRETERS:
        return False  # a build or a check that ended well; of a script the output counts
    if shown is None or _SUCCESS.search(shown[-_COMPARED:].lower()):
        return False
    # Programs are run for their output; `cd` and the like have none.
    return step.reading.kind.runs or shown.strip() not in ("", SILENCE)


def _digest(text: str) -> str:
    """A short digest of *text*, for comparisons within one process."""
    return f"{hash(text):x}"


_Value = TypeVar("_Value")

MIN_REPEAT = 3

# Of the 652 loops in 1,496 runs, all of 3 repetitions or more, 34 % ended by themselves (the run
# went on for four steps or more); of those that reached 4, 23 %; 5: 14 %; 6: 10 %; 8: 5 %; 10: 4 %
# (`python -m benchmarks.loops`).
STUCK_AFTER = 6

# At most so many steps lie between two attempts of a loop: a cycle of six, and views.
_MAX_GAP_WITH_ERRORS = 16
_MAX_GAP = 10
_CAPACITY = 64
_MAX_REJECTED = 8
_SAME_PLACE_LINES = 3
_SAME_SIZE = 4
# How many other outcomes may lie between the first attempts of a loop, by their number.
_OTHER_OUTCOMES = {1: 2, 2: 0}
_MAX_SIGNATURES = 6

_BEFORE_FIXES = frozenset({Phase.UNDERSTANDING, Phase.LOCATING, Phase.REPRODUCING})


class LoopTracker:
    """Loops in a growing run, at constant cost per step.

    *min_repeat* attempts make a loop; at least two.
    """

    def __init__(self, min_repeat: int = MIN_REPEAT) -> None:
        if min_repeat < 2:
            raise ValueError(f"min_repeat must be at least 2, is {min_repeat}")
        self._min_repeat = min_repeat
        self._steps = 0
        self._has_outcomes = False
        self._series: dict[str, _Series] = {}
        self._rejected: tuple[_RejectedEdits, ...] = ()
        self._restored: dict[str, _Series] = {}
        self._written: deque[tuple[int, str]] = deque(maxlen=_MAX_GAP)
        self._undone = ""
        self._fixed = -1
        self._is_original = False
        self._novelty = _Novelty()
        self._closed: list[LoopInfo] = []
        self._current: _Loop | None = None

    @property
    def loops(self) -> tuple[LoopInfo, ...]:
        """The loops so far, in order, none overlapping."""
        return (*self._closed, self._current.info()) if self._current else tuple(self._closed)

    def push(self, step: StepTrace | State) -> LoopInfo | None:
        """Add the next step, or the state after it; the loop that it continues, None for none.

        Steps are numbered from 0 in the order they are pushed. A state without a last action
        and its type is the start of a run and not a step.
        """
        loop = self._advance(step)
        return loop.info() if loop else None

    def _advance(self, step: StepTrace | State) -> "_Loop | None":
        if isinstance(step, State):
            self._has_outcomes = self._has_outcomes or bool(step.last_outcome)
            now = predicament_in(step, has_outcomes=self._has_outcomes)
        elif step.step.denied or not (step.step.action.text or step.step.observation is not None):
            # A call that a person refused, or words to a person: not an attempt.
            self._steps += 1
            return None
        else:
            now = predicament_of(step)
        if now is None:
            return None
        index = self._steps
        self._steps += 1
        if now.is_hidden:
            now = replace(now, attempt=f"{now.attempt} {index}")
        undone = self._extend_undone(now, index)
        if self._is_original and now.action_type.runs and now.error is None:
            # How it was before, to compare: not another attempt.
            self._novelty.add(now, index)
            return None
        key = self._key(now, index)
        series = self._extend_series(key, now, index)
        if undone is not None and undone.count >= self._min_repeat:
            return self._loop_with(f"undone {undone.start}", undone, index)
        if series.count < self._min_repeat:
            return None
        return self._loop_with(key, series, index)

    def _extend_undone(self, now: Predicament, index: int) -> "_Series | None":
        """The series of changes that were undone one after another, where *now* is part of one.

        It counts the attempts: the first change of a file after it was restored is a new one.
        """
        if file := now.restored:
            self._is_original = True
            series = self._restored.pop(file, None)
            if series is None or index - series.last > _MAX_GAP_WITH_ERRORS:
                changed = (at for at, text in reversed(self._written) if _names(text, file))
                if (start := next(changed, None)) is None:
                    return None
                series = _Series(now, start)
            series.last = index
            self._undone = file
            _add_to_cache(self._restored, file, series)
            return series
        if now.written:
            self._is_original = False
            self._written.append((index, now.written))
        if self._undone and now.written and _names(now.written, self._undone):
            series, self._undone = self._restored[self._undone], ""
            series.count += 1
            return series
        if now.action_type.runs and not now.is_typed:
            self._undone = ""  # to see what the file does as it was
        return None

    def _key(self, now: Predicament, index: int) -> str:
        """Key of equal attempts; of rejected edits the series they belong to."""
        if not now.action_type.writes:
            return f"{now.goal if now.inconclusive else now.attempt}|{now.outcome}"
        if now.error is None:
            self._rejected = tuple(edits for edits in self._rejected if not edits.is_solved_by(now))
            return f"{now.attempt}|{now.outcome}"
        edits = next((edits for edits in reversed(self._rejected) if edits.includes(now)), None)
        if edits is None:
            edits = _RejectedEdits(f"rejected {index}", now)
            self._rejected = (*self._rejected, edits)[-_MAX_REJECTED:]
        edits.last = now
        return edits.key

    def _extend_series(self, key: str, now: Predicament, index: int) -> "_Series":
        """The series of equal attempts that *now* continues or starts."""
        series = self._series.pop(key, None)
        if series is not None and self._is_check(series, now):
            series.last = index
            _add_to_cache(self._series, key, series)
            return series
        continues = series is not None and self._continues(series, now, index)
        known = self._novelty.relevant_to(now)
        self._novelty.add(now, index)
        if series is None or not continues:
            series = _Series(now, index)
        elif series.count == 2 and series.varied and self._is_next_try(now, series):
            series.start, series.varied = series.last, False
        else:
            series.varied = series.count == 1 and known > series.novelty
            series.count += 1
        series.last = index
        self._fixed = index if now.written and now.phase is Phase.FIXING else self._fixed
        series.novelty = self._novelty.relevant_to(now)
        series.tries = self._novelty.tries[now.goal]
        series.work = self._novelty.work
        _add_to_cache(self._series, key, series)
        return series

    def _is_check(self, series: "_Series", now: Predicament) -> bool:
        """True for a program that shows the same without a fix since, but after other work."""
        if now.error is not None or not now.inconclusive:
            return False
        return self._fixed < series.last and self._novelty.work > series.work

    def _is_next_try(self, now: Predicament, series: "_Series") -> bool:
        """True where nothing else was tried for the goal since, and what was done remains."""
        return not now.is_rejected_edit and self._novelty.tries[now.goal] == series.tries + 1

    def _continues(self, series: "_Series", now: Predicament, index: int) -> bool:
        """True where nothing new lies between the last attempt of the series and this one."""
        if index - series.last > (_MAX_GAP_WITH_ERRORS if now.inconclusive else _MAX_GAP):
            return False
        if now.is_rejected_edit:
            return True
        new = self._novelty.relevant_to(now) - series.novelty
        if not now.inconclusive:
            # The other steps of a cycle are new in its first round.
            return series.count == 1 or new == 0
        if now.error is not None and self._novelty.reached.get(now.goal, -1) > series.last:
            return False
        before_fixes = series.first.phase in _BEFORE_FIXES and now.phase is Phase.TESTING
        if series.count < self._min_repeat and before_fixes:
            return False  # what ran before the first fix reproduced the error
        # A second outcome is new, unless the two turn out to alternate, or the agent falls back
        # into a loop it has been in before.
        return new <= _OTHER_OUTCOMES.get(series.count, 1)

    def _loop_with(self, key: str, series: "_Series", index: int) -> "_Loop":
        """The current loop, which *series* continues, or else starts."""
        loop = self._current
        if loop is None or series.start > loop.end:
            if loop is not None:
                self._closed.append(loop.info())
            loop = _Loop(self._closed[-1].end + 1 if self._closed else 0, index)
            self._current = loop
        loop.end = index
        loop.members[key] = series
        return loop


def loops_of(steps: Iterable[StepTrace]) -> tuple[LoopInfo, ...]:
    """Return the loops of a run, in order, none overlapping."""
    tracker = LoopTracker()
    for step in steps:
        tracker._advance(step)
    return tracker.loops


def loop_in(states: Sequence[State], min_repeat: int = MIN_REPEAT) -> LoopInfo | None:
    """Return the loop that the last of *states* (a history in order) is in; None for none.

    Its start and end count the steps that the states show, from 0; *min_repeat* attempts make a
    loop. This reads the whole history; use a `LoopTracker` to go step by step.
    """
    tracker = LoopTracker(min_repeat)
    loop = None
    for state in states:
        loop = tracker._advance(state)
    return replace(loop.info(), repo=states[-1].repo) if loop else None


class _Series(Struct):
    """Attempts with the same outcome, from *start* to *last*.

    *novelty*, *work* and *tries* are what the run had shown and tried by the last of them; *varied*
    is true where something new lies between the first two.
    """

    first: Predicament
    start: int
    last: int = 0
    count: int = 1
    novelty: int = 0
    work: int = 0
    tries: int = 0
    varied: bool = False


class _RejectedEdits(Struct):
    """A series of rejected edits, at the same place or with the same text."""

    key: str
    last: Predicament

    def includes(self, now: Predicament) -> bool:
        last = self.last
        if last.outcome != now.outcome:
            return False
        if last.text == now.text:
            return True
        return last.goal == now.goal and _is_near(last.span, now.span)

    def is_solved_by(self, now: Predicament) -> bool:
        if self.last.goal != now.goal:
            return False
        return self.last.text == now.text or overlap(self.last.span, now.span)


class _Novelty(Struct):
    """Counts of what a run has shown for the first time.

    *steps* counts all steps with a new outcome, *work* those that did more than look, *outcomes*
    those of each goal; *tries* counts all attempts, *reached* is the last success of each goal.
    """

    steps: int = 0
    work: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    tries: Counter[str] = field(default_factory=Counter)
    reached: dict[str, int] = field(default_factory=dict)
    known: dict[str, None] = field(default_factory=dict)

    def add(self, now: Predicament, index: int) -> None:
        self.tries[now.goal] += 1
        if now.error is None:
            self.reached[now.goal] = index
        result = f"{now.goal if now.inconclusive else now.attempt}|{now.outcome}"
        if result not in self.known:
            self.steps += 1
            self.work += not now.action_type.is_passive
            self.outcomes[now.goal] += 1
        self.known.pop(result, None)
        _add_to_cache(self.known, result, None)

    def relevant_to(self, now: Predicament) -> int:
        """Return the count that matters for an attempt like *now*."""
        if now.inconclusive:
            return self.outcomes[now.goal]
        return self.steps if now.action_type.is_passive else self.work


class _Loop(Struct):
    """A loop that may still grow; what lies before *first_free* belongs to earlier ones."""

    first_free: int
    end: int
    members: dict[str, _Series] = field(default_factory=dict)

    def info(self) -> LoopInfo:
        series = sorted(self.members.values(), key=lambda part: (-part.count, part.start))
        repetitions = series[0].count
        lead = next((part.first for part in series if part.first.error), series[0].first)
        # Views that go with the repeated attempts may be older than those.
        attempts = [part.start for part in series if not part.first.action_type.is_passive]
        start = min(attempts or (part.start for part in series))
        return LoopInfo(
            kind=_kind([part.first for part in series]),
            start=max(self.first_free, start),
            end=self.end,
            repetitions=repetitions,
            signatures=tuple(dict.fromkeys(part.first.name for part in series))[:_MAX_SIGNATURES],
            severity=LoopSeverity.STUCK if repetitions >= STUCK_AFTER else LoopSeverity.REPEATING,
            command=next(iter(lead.command.split()), ""),
            failing=lead.name if lead.error else "",
            error_types=tuple(
                dict.fromkeys(part.first.error.error_type for part in series if part.first.error)
            ),
            message=next((part.first.error.message for part in series if part.first.error), ""),
        )


def is_alarming(loop: LoopInfo) -> bool:
    """Return False where a file is put back between trials that fail in no way: that is work."""
    return loop.kind is not LoopKind.OSCILLATION or bool(loop.error_types)


def _kind(attempts: Sequence[Predicament]) -> LoopKind:
    if any(attempt.restored for attempt in attempts):
        return LoopKind.OSCILLATION
    failing = [attempt for attempt in attempts if attempt.error is not None]
    if not failing:
        return LoopKind.REPEAT_NO_ERROR
    runs = Counter(attempt.goal for attempt in failing if attempt.action_type.runs)
    if runs and max(runs.values()) > 1:
        return LoopKind.OSCILLATION
    # Moving a file fails as a command does.
    is_edit = failing[0].action_type in (ActionKind.EDIT, ActionKind.CREATE)
    return LoopKind.SAME_EDIT_REJECTED if is_edit else LoopKind.SAME_COMMAND_SAME_ERROR


def _add_to_cache(cache: dict[str, _Value], key: str, value: _Value) -> None:
    """Add the newest entry, and drop the oldest where there are too many."""
    cache[key] = value
    if len(cache) > _CAPACITY:
        del cache[next(iter(cache))]


def _names(text: str, file: str) -> bool:
    """True for an action that names *file*, or for any where all files were restored."""
    return file.rpartition("/")[2].strip(".") in text


def _is_near(span: Span | None, other: Span | None) -> bool:
    """True for places of similar size that overlap, or that start close to one another."""
    if span is None or other is None:
        return span is other
    shared = min(span[1], other[1]) - max(span[0], other[0]) + 1
    wider = max(span[1] - span[0], other[1] - other[0]) + 1
    return _SAME_SIZE * shared >= wider or abs(span[0] - other[0]) <= _SAME_PLACE_LINES
