"""The short forms in which a remedy tells steps."""

from collections.abc import Sequence
from dataclasses import dataclass

from contextgraph.trace.edits import change_of, edited_file, is_edit, new_lines
from contextgraph.trace.recoveries.shell_lines import line_of
from contextgraph.trace.steps import StepTrace
from contextgraph.trace.wording import code, one_line

ACTION_CHARS = 200
_ACTIONS = 6


@dataclass(frozen=True, slots=True)
class Remedy:
    """The *actions* that bear on a clearance, *what* they come to, and whether it was a detour."""

    what: str
    actions: tuple[str, ...]
    workaround: bool = False


def steps_between(
    steps: Sequence[StepTrace], failed: StepTrace, until: StepTrace
) -> Sequence[StepTrace]:
    first = steps[0].index if steps else 0
    return steps[failed.index + 1 - first : until.index - first]


def command(step: StepTrace) -> str:
    return code(step.step.action.text)


def ran(step: StepTrace) -> str:
    return code(run_of(step))


def run_of(step: StepTrace) -> str:
    """What a line runs, without what it changes first."""
    return line_of(step).runs or step.step.action.text


def action(step: StepTrace, steps: Sequence[StepTrace]) -> str:
    """One action in at most 200 characters; of an edit, what it changes."""
    span = step.reading.span
    if not is_edit(step) or (span is None and not new_lines(step)):
        return one_line(step.step.action.text, ACTION_CHARS)
    change = change_of(steps, step.index - steps[0].index)
    text = "\n".join(change.added or new_lines(step)) or "(nothing: lines deleted)"
    lines = f" {span[0]}:{span[1]}" if span else ""
    return one_line(f"edit {edited_file(step)}{lines}: {text}", ACTION_CHARS)


def typed(*steps: StepTrace) -> tuple[str, ...]:
    return limited([one_line(step.step.action.text, ACTION_CHARS) for step in steps])


def limited(actions: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(told for told in actions if told))[-_ACTIONS:]
