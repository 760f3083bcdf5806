"""The state of the agent at each moment of a run."""

import re
from collections.abc import Iterator
from itertools import islice

from contextgraph.lazy import regex, replace
from contextgraph.model import ErrorSignature, Family, Phase, RawTrajectory, State
from contextgraph.trace.errors.finding import plain, without_banners
from contextgraph.trace.errors.signature import signature_of
from contextgraph.trace.kinds import ActionKind
from contextgraph.trace.remedies.open_errors import OpenErrors, answers_nothing
from contextgraph.trace.steps import StepTrace, read_steps

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


class StateTracker:
    """The state of the agent in a growing run, at constant cost per step.

    *start* is the state before the first step. Without tools there, those used so far count.
    """

    def __init__(self, start: State) -> None:
        self._state = start
        self._has_tools = bool(start.tools)
        self._errors = OpenErrors()
        self._repository = _RepositorySummary()
        self._folder: str | None = None
        self._listings: set[str] = set()
        self._excerpt_step = -1
        self._excerpt = ""

    @property
    def state(self) -> State:
        """The state after the steps pushed so far."""
        return self._state

    def push(self, step: StepTrace) -> State:
        """The state after the next *step*."""
        self._errors.push(step)
        self._repository.push(step)
        before, observation = self._state, step.step.observation
        tool = step.step.action.tool
        failed = self._failed(before.failed_actions, step)
        adds_tool = not self._has_tools and tool and tool not in before.tools
        self._state = replace(
            before,
            tools=(*before.tools, tool) if adds_tool else before.tools,
            repo_summary=self._repository.text,
            current_error=self._current_error(),
            phase=step.phase,
            last_action=step.step.action.text,
            last_outcome=observation or "",
            # A log that ends before the answer does not show which file is open then.
            open_file=before.open_file if observation is None else step.step.open_file or "",
            failed_actions=failed,
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

    def _current_error(self) -> str:
        """The text of the current error, which is cut once and not at every step."""
        latest = self._errors.latest
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
    """The states before each step of *raw*, and last the one after all of them.

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


class _RepositorySummary:
    """A short text on the repository, from its README and the first listing of files."""

    def __init__(self) -> None:
        self._entries = ""
        self._readme = ""

    def push(self, step: StepTrace) -> None:
        """Add the next step."""
        if step.index >= _EARLY_STEPS or not step.succeeded:
            return
        shown = step.step.observation or ""
        if step.reading.kind is ActionKind.LIST and not self._entries:
            self._entries = _entries(shown)
        elif step.reading.kind is ActionKind.VIEW and not self._readme and _is_readme(step):
            self._readme = _opening(shown)

    @property
    def text(self) -> str:
        """At most 600 characters; empty as long as the run showed none."""
        return "\n".join(filter(None, (self._readme, self._entries)))[:SUMMARY_CHARS]


def _is_readme(step: StepTrace) -> bool:
    return any("readme" in target.lower() for target in step.reading.targets)


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
    """At most 2,000 characters of *observation* by which *error* is recognised, without banners."""
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
    yield _excerpt_of_parts(text, (_report_start(text), at - _EXCERPT_PART // 2, -_EXCERPT_PART))
    yield _excerpt_of_parts(text, (0, _EXCERPT_PART, 2 * _EXCERPT_PART))


def _report_start(text: str) -> int:
    """Where the first report of a test or traceback starts."""
    starts = (text.find(mark) for mark in _REPORT_STARTS)
    return min((start for start in starts if start >= 0), default=0)


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
