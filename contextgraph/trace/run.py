"""Traces a whole run, and the signs that it would be submitted too early."""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import PurePosixPath

from contextgraph.lazy import dataclass
from contextgraph.model import LoopInfo, LoopSeverity, RawTrajectory, TaskType
from contextgraph.text import compiled
from contextgraph.trace.files import is_edit
from contextgraph.trace.kinds import ActionKind
from contextgraph.trace.loops import LoopTracker, loops_of
from contextgraph.trace.remedies.recovery import Recovery, recoveries_of
from contextgraph.trace.steps import StepTrace, read_steps


class SubmissionSign(StrEnum):
    """Signs that something is missing at the end of a run."""

    NO_EDIT = "no_edit"
    NOT_RUN = "not_run"
    NOT_TESTED = "not_tested"
    STUCK = "stuck"


class SubmissionTracker:
    """The signs that a growing run shows, at constant cost per step."""

    def __init__(self) -> None:
        self._created: set[str] = set()
        self._edited: set[str] = set()
        self._tests: list[StepTrace] = []
        self._has_edit = False
        self._is_unrun = False
        self._is_stuck = False

    def push(self, step: StepTrace, loop: LoopInfo | None) -> None:
        """Add the next step, and the loop that it continues; a submission itself shows nothing."""
        if step.reading.kind is ActionKind.SUBMIT:
            return
        self._is_stuck = loop is not None and loop.severity is LoopSeverity.STUCK
        if step.reading.kind.runs:
            self._is_unrun = False
        if step.reading.kind is ActionKind.TEST:
            self._tests.append(step)
        if step.succeeded and (is_edit(step) or step.reading.scripted):
            self._add_edit(step)

    def _add_edit(self, step: StepTrace) -> None:
        files = step.reading.scripted or step.reading.changed or step.reading.targets
        self._is_unrun = True
        if step.reading.kind is ActionKind.CREATE:
            self._created.update(files)
        elif not files or not self._created.issuperset(files):
            self._has_edit = True
            self._edited.update(PurePosixPath(file).stem for file in files)

    def _is_tested(self) -> bool:
        """Whether a test command chose no tests, or some that name a module that was edited."""
        return any(
            not step.reading.targets
            or any(module in step.step.action.text for module in self._edited)
            for step in self._tests
        )

    @property
    def signs(self) -> frozenset[SubmissionSign]:
        """The signs after the steps pushed so far.

        No edit: no file was changed that the run did not create itself. Not run: no program ran
        since the last edit. Not tested: no test of the files that were edited ran. Stuck: the last
        step continues a loop that rarely ends by itself.
        """
        shown = {
            SubmissionSign.NO_EDIT: not self._has_edit,
            SubmissionSign.NOT_RUN: self._is_unrun,
            SubmissionSign.NOT_TESTED: self._has_edit and not self._is_tested(),
            SubmissionSign.STUCK: self._is_stuck,
        }
        return frozenset(sign for sign, is_shown in shown.items() if is_shown)


def submission_signs(steps: Iterable[StepTrace]) -> frozenset[SubmissionSign]:
    """The signs at the end of a run."""
    tracker, loops = SubmissionTracker(), LoopTracker()
    for step in steps:
        tracker.push(step, loops.push(step))
    return tracker.signs


@dataclass(frozen=True, slots=True)
class Trace:
    """Trace of a run, in the order it happened; ends are inclusive.

    *left_behind* are errors of programs that were not run again: another one ended well.
    """

    raw: RawTrajectory
    steps: tuple[StepTrace, ...]
    loops: tuple[LoopInfo, ...]
    recoveries: tuple[Recovery, ...]
    task_type: TaskType
    left_behind: tuple[Recovery, ...] = ()


def trace(raw: RawTrajectory) -> Trace:
    """The trace of *raw*."""
    steps = tuple(read_steps(raw))
    if raw.is_talk:
        return Trace(raw, steps, (), (), task_type_of(raw.task))
    ends = recoveries_of(steps, raw.repo)
    return Trace(
        raw,
        steps,
        loops_of(steps),
        recoveries=tuple(end for end in ends if end.actions),
        task_type=task_type_of(raw.task),
        left_behind=tuple(end for end in ends if not end.actions),
    )


_READ = 6000
# Most issues report a bug; evidence of another type must outweigh this.
_PRIOR = {TaskType.BUG_FIX: 1.0}


@dataclass(frozen=True, slots=True)
class _Indicator:
    """A pattern of lower-case text that indicates a task type, with a *weight*."""

    pattern: str
    task_type: TaskType
    weight: float

    def is_in(self, text: str) -> bool:
        """True where the pattern matches from the start of a word.

        With `\\b` at the start of the pattern, `re` could not skip to possible first letters, which
        is three times as fast.
        """
        start = 0
        while match := compiled(self.pattern).search(text, start):
            at = match.start()
            if at == 0 or not (_is_in_word(text[at - 1]) and _is_in_word(text[at])):
                return True
            start = at + 1
        return False


def _is_in_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def _words(task_type: TaskType, weight: float, words: str) -> _Indicator:
    """An indicator for any of *words*, separated by blanks; ``_`` stands for a blank."""
    pattern = "|".join(words.split()).replace("_", " ")
    return _Indicator(rf"(?:{pattern})\b", task_type, weight)


def _start(task_type: TaskType, weight: float, words: str) -> _Indicator:
    """An indicator for any of *words* at the very start."""
    pattern = "|".join(words.split()).replace("_", " ")
    lead = r"\W*(?:(?:please|we should|let'?s|can we|could you) )?"
    return _Indicator(rf"\A{lead}(?:{pattern})\b", task_type, weight)


_IN_TITLE = (
    _words(
        TaskType.BUG_FIX,
        3,
        r"\w*(?:error|exception) traceback crash\w* bugs? fail(?:s|ing|ed|ure)? broken breaks? "
        r"wrong\w* incorrect\w* regress\w* regr unexpected\w* inconsisten\w* invalid "
        r"mistaken\w* problems? issue_with corrupt\w* leak\w* hangs? stuck raises? throws? "
        r"drops? loses? lost confus\w* "
        r"ignor(?:es|ed|ing) misses vulnerab\w* security deadlock incompatib\w*",
    ),
    _words(
        TaskType.BUG_FIX,
        3,
        r"does_?n[o']t do(?:es)?_not is_?n[o']t are_?n[o']t can_?n[o']t cannot won'?t not "
        r"no_longer unable_to never should_?n[o']t",
    ),
    _start(TaskType.BUG_FIX, 6, r"bug"),
    _start(TaskType.FEATURE, 4, r"\[?(?:feature|enhancement|feat|request|rfe|proposal)"),
    _start(
        TaskType.FEATURE,
        4,
        r"add allow support implement enable provide expose introduce include make let accept "
        r"create extend offer report preserve automatically ability option new do_not don'?t",
    ),
    _words(
        TaskType.FEATURE,
        3,
        r"add(?:ing|ition)? support(?:ing)? feature ability options?_(?:to|for) allow(?:ing)? "
        r"enhancement implement\w* compliance would_be flag configurable customi[sz]\w* suggest\w* "
        r"hardcode\w* fallback possib\w* should",
    ),
    _words(
        TaskType.REFACTOR,
        5,
        r"refactor\w* clean_?-?up renam\w* deprecat\w* simplif\w* remov(?:e|al|ing) drop_support "
        r"speed_?up slow\w* performance optimi[sz]\w* replace migrate reorgani[sz]e move unify",
    ),
    _start(TaskType.REFACTOR, 4, r"remove rename refactor deprecate clean_?up simplify drop"),
    _words(
        TaskType.TEST,
        5,
        r"tests?_(?:fail\w*|suite|coverage|cases?|are|is|errors?) "
        r"(?:failing|flaky|missing|unit)_tests? coverage",
    ),
    _words(TaskType.DOCS, 6, r"documentation docs? docstrings? readme typos? tutorial"),
    _words(
        TaskType.OTHER,
        5,
        r"packag(?:e|ing)_(?:for|on) release upgrade bump pin "
        r"update_(?:port|dependenc\w*|version\w*|requirements?) github_actions? ci wheels? pypi",
    ),
)
_IN_BODY = (
    _words(
        TaskType.BUG_FIX,
        3,
        r"most_recent_call_last [a-z]\w{1,80}(?:error|exception):_\S",
    ),
    _words(
        TaskType.BUG_FIX,
        2,
        r"(?:actual|current|observed|expected)_(?:behaviou?r|result|output) "
        r"to_reproduce describe_the_bug minimal_(?:reproduc\w*|example) what_happened",
    ),
    _words(
        TaskType.BUG_FIX,
        1.5,
        r"bug regression broke breaks broken crash\w* wrong incorrect\w* fails? error exception "
        r"unexpected\w* instead_of used_to_work no_longer",
    ),
    _words(
        TaskType.FEATURE,
        4,
        r"your_feature_request_related the_solution_you'?d_like feature_request "
        r"describe_the_feature proposed_(?:feature|solution|change)",
    ),
    _words(
        TaskType.FEATURE,
        2,
        r"would_(?:be_)?(?:\w+_){0,3}(?:nice|great|useful|good|helpful|cool|convenient|awesome) "
        r"it'?d_be nice[_-]to[_-]haves?",
    ),
    _words(
        TaskType.FEATURE,
        1.5,
        r"i(?:'d|_would)_like_(?:to|for) we_(?:should|could|need_to) (?:could|can)_(?:we|you) "
        r"should_(?:also_)?(?:support|allow|provide|be_able|accept|have) ability_to "
        r"add_(?:a|an|support|the) implement proposal would_like is_missing currently",
    ),
    _words(
        TaskType.REFACTOR, 1.5, r"refactor\w* clean(?:ed)?_?up rename deprecat\w* simplify slow"
    ),
)


def task_type_of(issue_text: str) -> TaskType:
    """The type of work that an issue requests; `OTHER` where there is no text."""
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
