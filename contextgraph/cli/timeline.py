"""A run as a readable timeline."""

from collections.abc import Iterator

from rich.panel import Panel
from rich.text import Text

from contextgraph.cli.output import one_line, plain, screen
from contextgraph.model import Fragment, FragmentOutcome, FragmentType, LoopInfo
from contextgraph.text import number_of
from contextgraph.trace import Recovery, StepTrace
from contextgraph.writing import Inspection

PHASE_WIDTH = 15
# Of a loop, the first steps and the last are shown; `--json` has all.
LOOP_HEAD, LOOP_TAIL = 9, 2
OUTCOME_STYLES = {
    FragmentOutcome.COMPLETED: "cyan",
    FragmentOutcome.RECOVERED: "green",
    FragmentOutcome.FAILED: "red",
}


def show_timeline(inspection: Inspection) -> None:
    """The run, fragment by fragment: steps with their errors, loops, recoveries."""
    console = screen()
    console.print(_title(inspection))
    for fragment in inspection.fragments:
        console.print(_border(fragment), no_wrap=True, overflow="ellipsis")
        folded = _folded(fragment)
        for step in inspection.trace.steps[fragment.start : fragment.end + 1]:
            if step.index == folded.start and folded:
                console.print(f"│       … {len(folded)} more steps of this loop", style="dim")
            if step.index not in folded:
                for line in _lines(step, inspection, console.width):
                    console.print(line, no_wrap=True, overflow="ellipsis")
    if not inspection.fragments:
        console.print("no steps", style="dim")
    console.print()


def show_step(inspection: Inspection, index: int) -> None:
    """One step in full: thought, action, observation, and how it is read."""
    console = screen()
    found = [step for step in inspection.trace.steps if step.step.index == index]
    for step in found:
        taken = step.step
        console.rule(f"{inspection.trace.raw.instance_id} step {index}, {step.phase}")
        for name, text in (
            ("thought", taken.thought),
            ("action", taken.action.text),
            ("observation", taken.observation or ""),
            ("error", _error_line(step)),
        ):
            console.print(Text(name, style="bold"))
            console.print(Text(plain(text).strip() or "none"))
    if not found:
        last = len(inspection.trace.steps) - 1
        console.print(f"{inspection.trace.raw.instance_id}: no step {index}; the last is {last}")


def _title(inspection: Inspection) -> Panel:
    trace, raw = inspection.trace, inspection.trace.raw
    task = next((line for line in raw.task.splitlines() if line.strip()), "no task text")
    facts = [raw.repo or "no repository", trace.task_type, f"outcome {raw.outcome}"]
    facts += [number_of(len(trace.steps), "step"), number_of(len(inspection.fragments), "fragment")]
    facts += [number_of(sum(1 for step in trace.steps if step.error), "error")]
    facts += [f"{len(trace.recoveries)} recoveries", f"{len(trace.loops)} loops"]
    body = f"{one_line(task, 200)}\n{plain(' · '.join(facts))}\n{plain(raw.source)}"
    return Panel(Text(body), title=Text(plain(raw.instance_id)), title_align="left")


def _border(fragment: Fragment) -> Text:
    kind = fragment.fragment_type.replace("_", " ")
    return Text.assemble(
        ("┌ ", "dim"),
        (f"{kind}, {fragment.outcome}", f"bold {OUTCOME_STYLES[fragment.outcome]}"),
        (f"  {fragment.start}-{fragment.end}  ", "dim"),
        (one_line(fragment.description, 240), "italic"),
    )


def _folded(fragment: Fragment) -> range:
    """The steps of a long loop that say nothing new."""
    if fragment.fragment_type is not FragmentType.LOOP:
        return range(0)
    return range(fragment.start + LOOP_HEAD, fragment.end + 1 - LOOP_TAIL)


def _lines(step: StepTrace, inspection: Inspection, width: int) -> Iterator[Text]:
    index = step.step.index
    for loop in inspection.trace.loops:
        if loop.start == index:
            yield Text.assemble(("│      ", "dim"), (f"↻ {_loop_line(loop)}", "yellow"))
    yield Text.assemble(
        ("│ ", "dim"),
        f"{index:>4}  ",
        (f"{step.phase:<{PHASE_WIDTH}}", "blue"),
        one_line(step.step.action.text, width) or "(no action)",
    )
    if step.error:
        yield Text.assemble(("│        ", "dim"), (f"✗ {_error_line(step)}", "red"))
    for recovery in inspection.trace.recoveries:
        if recovery.cleared_step == index:
            yield Text.assemble(("│        ", "dim"), (f"✓ {_recovery_line(recovery)}", "green"))


def _error_line(step: StepTrace) -> str:
    if not step.error:
        return ""
    place = f" ({step.error.location})" if step.error.location else ""
    return f"{step.error.error_type}{place}: {one_line(step.error.message, 200)}"


def _loop_line(loop: LoopInfo) -> str:
    return (
        f"{loop.kind.replace('_', ' ')}, steps {loop.start}-{loop.end},"
        f" {loop.repetitions} times, {loop.severity}"
    )


def _recovery_line(recovery: Recovery) -> str:
    how = "avoided" if recovery.workaround else "cleared"
    doubt = "" if recovery.verified else ", not verified"
    what = one_line(recovery.what, 200)
    return f"{how} {recovery.error.error_type} of step {recovery.error_step}{doubt}: {what}"
