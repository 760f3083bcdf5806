"""Where the agent stood at each moment of a recorded run."""

import re
from collections.abc import Iterator
from itertools import islice

from contextgraph.model import Phase, RawTrajectory, State
from contextgraph.trace.excerpt import excerpt_of
from contextgraph.trace.recoveries.open_errors import OpenError, OpenErrors
from contextgraph.trace.repository import RepositorySummary
from contextgraph.trace.steps import StepTrace, read_steps

_DOCUMENTED = re.compile(r"^([a-z]\w*):\n\s+docstring:", re.MULTILINE)
_SHELL_ONLY = "mini-swe"


def state_at(raw: RawTrajectory, step: int) -> State:
    """What the agent of *raw* knew just before it acted at *step*, from 0 to the number of steps.

    Raises IndexError for a step that the run does not have.
    """
    if not 0 <= step <= len(raw.steps):
        raise IndexError(f"no state before step {step}: the run has {len(raw.steps)} steps")
    return next(islice(states_of(raw), step, None))


def states_of(raw: RawTrajectory) -> Iterator[State]:
    """The states before each step of *raw*, and last the one after all of them.

    Each knows only what came before it; the whole is read once.
    """
    tools = _tools(raw)
    seen: dict[str, None] = {}
    errors, repository = OpenErrors(), RepositorySummary()
    excerpt = _Excerpt()
    before: StepTrace | None = None
    open_file = ""
    steps = read_steps(raw)
    while True:
        yield State(
            tools=tools or tuple(seen),
            repo=raw.repo,
            repo_summary=repository.text,
            task_description=raw.task,
            current_error=excerpt.of(errors.latest),
            phase=before.phase if before else Phase.UNDERSTANDING,
            last_action=before.step.action.text if before else "",
            last_outcome=(before.step.observation or "") if before else "",
            open_file=open_file,
            instance_id=raw.instance_id or None,
        )
        before = next(steps, None)
        if before is None:
            return
        errors.push(before)
        repository.push(before)
        if before.step.observation is not None:
            # A log that ends before the answer does not say what is open then.
            open_file = before.step.open_file or ""
        if tool := before.step.action.tool:
            seen[tool] = None


class _Excerpt:
    """The text of the current error, cut once and not at every step."""

    def __init__(self) -> None:
        self._step = -1
        self._text = ""

    def of(self, opened: OpenError | None) -> str:
        if opened is None:
            return ""
        if opened.last.index != self._step:
            self._step = opened.last.index
            observation = opened.last.step.observation or ""
            self._text = excerpt_of(observation, opened.error)
        return self._text


def _tools(raw: RawTrajectory) -> tuple[str, ...]:
    """The tools that the system prompt describes; empty where it names none."""
    if documented := _DOCUMENTED.findall(raw.system_prompt):
        return tuple(dict.fromkeys(documented))
    return ("bash",) if raw.source_format.startswith(_SHELL_ONLY) else ()
