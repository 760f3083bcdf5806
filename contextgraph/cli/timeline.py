"""A run in the terminal, fragment by fragment."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from contextgraph.cli.output import console, print_box, print_text, styled
from contextgraph.console.page import error_line, loop_line, recovery_line
from contextgraph.text import number_of, one_line

if TYPE_CHECKING:
    from rich.text import Text

    from contextgraph.learning import Inspection
    from contextgraph.model import Fragment
    from contextgraph.trace import StepTrace

_PHASE_WIDTH = 15
# Of a loop, the first and the last steps are shown; `--json` has all.
_LOOP_HEAD, _LOOP_TAIL = 9, 2
_OUTCOME_STYLES = {"completed": "cyan", "recovered": "green", "failed": "red"}


def show_timeline(inspection: "Inspection") -> None:
    """Print the run fragment by fragment: steps with their errors, loops and recoveries."""
    screen, trace, raw = console(), inspection.trace, inspection.trace.raw
    errors = sum(1 for step in trace.steps if step.error)
    facts = [raw.repo or "no repository", trace.task_type, inspection.ending.text]
    facts += [f"change {raw.change}"] if raw.change != "unknown" else []
    counted = {
        "step": len(trace.steps),
        "fragment": len(inspection.fragments),
        "error": errors,
        "recovery": len(trace.recoveries),
        "loop": len(trace.loops),
    }
    facts += [number_of(count, name) for name, count in counted.items() if count]
    named = " · ".join(filter(None, (raw.instance_id, raw.source)))
    print_box(inspection.title, styled(f"{' · '.join(facts)}\n{named}"))
    for fragment in inspection.fragments:
        kind = fragment.fragment_type.replace("_", " ")
        border = styled(
            ("┌ ", "dim"),
            (f"{kind}, {fragment.outcome}", f"bold {_OUTCOME_STYLES[fragment.outcome]}"),
            (f"  {fragment.start}-{fragment.end}  ", "dim"),
            (one_line(fragment.description, 240), "italic"),
        )
        screen.print(border, no_wrap=True, overflow="ellipsis")
        folded = _folded(fragment)
        for step in trace.steps[fragment.start : fragment.end + 1]:
            if step.index == folded.start and folded:
                print_text((f"│       … {len(folded)} more steps of this loop", "dim"))
            if step.index not in folded:
                for line in _lines(step, inspection, screen.width):
                    screen.print(line, no_wrap=True, overflow="ellipsis")
    if raw.is_talk:
        for turn in raw.steps:
            print_text(("agent  ", "dim"), one_line(turn.thought, screen.width - 7))
            if turn.user_message:
                print_text(("person ", "dim"), one_line(turn.user_message, screen.width - 7))
    elif not inspection.fragments:
        print_text(("no steps", "dim"))
    print_text()


def _folded(fragment: "Fragment") -> range:
    """The steps in the middle of a long loop."""
    if fragment.fragment_type != "loop":
        return range(0)
    return range(fragment.start + _LOOP_HEAD, fragment.end + 1 - _LOOP_TAIL)


def _lines(step: "StepTrace", inspection: "Inspection", width: int) -> "Iterator[Text]":
    index = step.step.index
    spoken = step.step.thought or step.step.observation or ""
    for loop in inspection.trace.loops:
        if loop.start == index:
            yield styled(("│      ", "dim"), (f"↻ {loop_line(loop)}", "yellow"))
    yield styled(
        ("│ ", "dim"),
        f"{index:>4}  ",
        (f"{step.phase:<{_PHASE_WIDTH}}", "blue"),
        one_line(step.step.action.text or spoken, width) or "(no action)",
    )
    if step.error:
        yield styled(("│        ", "dim"), (f"✗ {error_line(step)}", "red"))
    for recovery in (*inspection.trace.recoveries, *inspection.trace.left_behind):
        if recovery.cleared_step == index:
            yield styled(("│        ", "dim"), (f"✓ {recovery_line(recovery)}", "green"))
    if said := step.step.user_message:
        yield styled(("│      person: ", "bold"), one_line(said, width))
