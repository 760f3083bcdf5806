"""``contextgraph inspect``, ``loops`` and ``formats``: how runs are read; nothing is learned."""

from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from contextgraph.cli.options import (
    Common,
    FollowLinks,
    Git,
    Paths,
    common_options,
    option,
)
from contextgraph.cli.output import (
    FAILED,
    console,
    emit,
    fail,
    print_box,
    print_text,
    styled,
    warn,
)
from contextgraph.page import (
    error_line,
    loop_line,
    recovery_line,
)
from contextgraph.records import (
    fragment_record,
    loop_records,
    record_of,
)
from contextgraph.text import (
    number_of,
    one_line,
    plain,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.text import Text

    from contextgraph.cli.intake import Intake
    from contextgraph.learning import Inspection
    from contextgraph.model import (
        Fragment,
        Json,
        LoopInfo,
    )
    from contextgraph.readers import Format
    from contextgraph.trace import Recovery, StepTrace

_PHASE_WIDTH = 15
# Of a loop, the first and the last steps are shown; `--json` has all.
_LOOP_HEAD, _LOOP_TAIL = 9, 2
_OUTCOME_STYLES = {"completed": "cyan", "recovered": "green", "failed": "red"}
_REPEATED_WIDTH, _SUGGESTION_WIDTH, _SIGNATURES_SHOWN = 90, 500, 2

SuggestingStore = Annotated[
    str | None, option("--store", "ADDRESS", "A memory that suggests how to leave each loop.")
]
Instances = Annotated[
    list[str] | None, option("--instance", "ID", "Only runs of this instance (repeatable).")
]


@common_options("max_run_size", without=("store", "tenant"))
def inspect(
    common: Common,
    paths: Paths,
    instance: Instances = None,
    step: Annotated[
        int | None,
        option("--step", "N", "Show step N in full.", min=0),
    ] = None,
    html: Annotated[
        Path | None,
        option(
            "--html",
            "FILE",
            "Write an HTML page with a timeline instead; it works offline.",
            dir_okay=False,
        ),
    ] = None,
    git: Git = False,
    follow_links: FollowLinks = False,
) -> None:
    """Show how runs are read: phases, errors, loops, recoveries.

    Learns nothing and needs no memory.

    \b
    Example:
      contextgraph inspect runs/owner__repo-12.traj
      contextgraph inspect runs.jsonl.gz --instance owner__repo-12 --step 7
      contextgraph inspect runs.jsonl.gz --instance owner__repo-12 --html run.html
    """
    from contextgraph.cli.intake import Intake

    intake = Intake(paths, common.settings(), git=git, follow_links=follow_links)
    if html:
        from contextgraph.page import run_view, write_page

        runs = count()  # zip takes no number after the last run
        views = (
            run_view(inspection)
            for inspection, _ in zip(_inspected(intake, instance), runs, strict=False)
        )
        write_page(html, "run.html", views=views, comparing=False)
        print(f"{html}: {number_of(next(runs), 'run')}")
        raise click.exceptions.Exit(intake.exit_code)
    is_shown = common.as_json or step is None
    for inspection in _inspected(intake, instance):
        if common.as_json:
            emit(inspection_record(inspection))
        elif step is not None:
            is_shown |= _show_step(inspection, step)
        else:
            _show_timeline(inspection)
    raise click.exceptions.Exit(intake.exit_code if is_shown else FAILED)


@common_options("max_run_size", store=SuggestingStore)
def loops(
    common: Common, paths: Paths, instance: Instances = None, follow_links: FollowLinks = False
) -> None:
    """Show the loops of runs: repeated attempts without progress.

    Learns nothing. With a memory, shows what ended such loops in runs of other instances.

    \b
    Example:
      contextgraph loops runs/
      contextgraph loops runs/ --store team.db
    """
    from contextgraph.cli.intake import Intake

    intake = Intake(paths, common.settings(), follow_links=follow_links)
    loops: list[Sequence[LoopInfo]] = []
    with ExitStack() as stack:
        memory = None
        if common.store is not None:
            memory = stack.enter_context(common.open(read_only=True))
        for inspection in _inspected(intake, instance):
            trace = inspection.trace
            loops.append(memory.loop_detector.detect_all(trace) if memory else trace.loops)
            raw, records = trace.raw, loop_records(loops[-1])
            common.answer(
                {"source": raw.source, "instance_id": raw.instance_id, "loops": records},
                partial(_show_loops, raw.instance_id, loops[-1]),
            )
    if loops and not common.as_json:
        _show_loop_counts(loops)
    raise click.exceptions.Exit(intake.exit_code)


def _inspected(intake: "Intake", instances: list[str] | None) -> "Iterator[Inspection]":
    """Each run of *intake*, or of these *instances*; exits where there is none of them."""
    from contextgraph.memory import AgentMemory

    matched = False
    for raw in intake:
        if not instances or raw.instance_id in instances:
            matched = True
            yield AgentMemory.inspect(raw)
    if instances and intake.counts.runs and not matched:
        runs = number_of(intake.counts.runs, "run")
        fail(f"no run of {', '.join(instances)} among {runs}")


def _show_loop_counts(loops_of_runs: "Sequence[Sequence[LoopInfo]]") -> None:
    """Print in one line how many loops all runs have."""
    loops = [loop for of_run in loops_of_runs for loop in of_run]
    stuck = sum(loop.severity == "stuck" for loop in loops)
    affected = sum(map(bool, loops_of_runs))
    total = f"{number_of(len(loops), 'loop')} ({stuck} stuck)"
    print(f"{total} in {affected} of {number_of(len(loops_of_runs), 'run')}")


def _show_timeline(inspection: "Inspection") -> None:
    """Print the run fragment by fragment: steps with their errors, loops and recoveries."""
    screen = console()
    _show_title(inspection)
    for fragment in inspection.fragments:
        screen.print(_border(fragment), no_wrap=True, overflow="ellipsis")
        folded = _folded(fragment)
        for step in inspection.trace.steps[fragment.start : fragment.end + 1]:
            if step.index == folded.start and folded:
                print_text((f"│       … {len(folded)} more steps of this loop", "dim"))
            if step.index not in folded:
                for line in _lines(step, inspection, screen.width):
                    screen.print(line, no_wrap=True, overflow="ellipsis")
    if not inspection.fragments:
        print_text(("no steps", "dim"))
    print_text()


def _show_step(inspection: "Inspection", index: int) -> bool:
    """Print a step in full: thought, action, observation, error; false where there is no such."""
    screen, instance = console(), inspection.trace.raw.instance_id
    steps = [step for step in inspection.trace.steps if step.step.index == index]
    for step in steps:
        screen.rule(plain(f"{instance} step {index}, {step.phase}"))
        for name, text in (
            ("thought", step.step.thought),
            ("action", step.step.action.text),
            ("observation", step.step.observation or ""),
            ("error", error_line(step)),
        ):
            print_text((name, "bold"))
            print_text(text.strip() or "none")
    if not steps:
        last = len(inspection.trace.steps) - 1
        warn(f"{instance}: no step {index}; the last is {last}")
    return bool(steps)


def _show_title(inspection: "Inspection") -> None:
    trace, raw = inspection.trace, inspection.trace.raw
    task = next((line for line in raw.task.splitlines() if line.strip()), "no task text")
    errors = sum(1 for step in trace.steps if step.error)
    facts = [raw.repo or "no repository", trace.task_type, f"outcome {raw.outcome}"]
    facts += [f"change {raw.change}"] if raw.change != "unknown" else []
    facts += [number_of(len(trace.steps), "step"), number_of(len(inspection.fragments), "fragment")]
    facts += [number_of(errors, "error"), number_of(len(trace.recoveries), "recovery")]
    facts += [number_of(len(trace.loops), "loop")]
    body = styled(f"{one_line(task, 200)}\n{' · '.join(facts)}\n{raw.source}")
    print_box(raw.instance_id, body)


def _border(fragment: "Fragment") -> "Text":
    kind = fragment.fragment_type.replace("_", " ")
    return styled(
        ("┌ ", "dim"),
        (f"{kind}, {fragment.outcome}", f"bold {_OUTCOME_STYLES[fragment.outcome]}"),
        (f"  {fragment.start}-{fragment.end}  ", "dim"),
        (one_line(fragment.description, 240), "italic"),
    )


def _folded(fragment: "Fragment") -> range:
    """The steps in the middle of a long loop."""
    if fragment.fragment_type != "loop":
        return range(0)
    return range(fragment.start + _LOOP_HEAD, fragment.end + 1 - _LOOP_TAIL)


def _lines(step: "StepTrace", inspection: "Inspection", width: int) -> "Iterator[Text]":
    index = step.step.index
    for loop in inspection.trace.loops:
        if loop.start == index:
            yield styled(("│      ", "dim"), (f"↻ {loop_line(loop)}", "yellow"))
    yield styled(
        ("│ ", "dim"),
        f"{index:>4}  ",
        (f"{step.phase:<{_PHASE_WIDTH}}", "blue"),
        one_line(step.step.action.text, width) or "(no action)",
    )
    if step.error:
        yield styled(("│        ", "dim"), (f"✗ {error_line(step)}", "red"))
    for recovery in (*inspection.trace.recoveries, *inspection.trace.left_behind):
        if recovery.cleared_step == index:
            yield styled(("│        ", "dim"), (f"✓ {recovery_line(recovery)}", "green"))


def _show_loops(instance: str, loops: "Sequence[LoopInfo]") -> None:
    """Print each loop: where it is, what was repeated, and the escape suggestions."""
    if not loops:
        print_text((f"{instance}: no loop", "dim"))
        return
    print_text((f"{instance}: {number_of(len(loops), 'loop')}", "bold"))
    for loop in loops:
        print_text(f"  {loop_line(loop)}")
        for signature in loop.signatures[:_SIGNATURES_SHOWN]:
            print_text((one_line(signature, _REPEATED_WIDTH), "dim"), indent=4)
        for escape in loop.escape_suggestions:
            text = f"suggestion: {one_line(escape.text, _SUGGESTION_WIDTH)}"
            print_text((text, "green"), indent=4)


def inspection_record(inspection: "Inspection") -> "dict[str, Json]":
    """The JSON object of a run as it is read."""
    trace, raw = inspection.trace, inspection.trace.raw
    return {
        "source": raw.source,
        "source_format": raw.source_format,
        "instance_id": raw.instance_id,
        "repo": raw.repo,
        "task_type": str(trace.task_type),
        "outcome": str(raw.outcome),
        "change": str(raw.change),
        "total_steps": len(trace.steps),
        "steps": [_step_record(step) for step in trace.steps],
        "fragments": [fragment_record(fragment) for fragment in inspection.fragments],
        "loops": loop_records(trace.loops),
        "recoveries": [_recovery_record(recovery) for recovery in trace.recoveries],
    }


def _step_record(step: "StepTrace") -> "dict[str, Json]":
    action, error = step.step.action, step.error
    return {
        "index": step.step.index,
        "phase": str(step.phase),
        "action": {"tool": action.tool, "text": action.text},
        "error": record_of(error, "error_type", "message", type=error.error_type)
        if error
        else None,
    }


def _recovery_record(recovery: "Recovery") -> "dict[str, Json]":
    from contextgraph.trace import command_lines, describe_remedy

    return record_of(
        recovery,
        "cleared_step",
        "error",
        "circumstances",
        recovered_step=recovery.cleared_step,
        type=recovery.error.error_type,
        what=describe_remedy(recovery.actions),
        actions=[*command_lines(recovery.actions)],
    )


@common_options(without=("store", "tenant"))
def formats(common: Common) -> None:
    """List the log formats that can be read.

    Shows how each is recognised and what is read from it. A format is recognised by content, not
    by file name. Experimental ones follow published descriptions and were not tested on logs of
    real runs.

    \b
    Example:
      contextgraph formats
    """
    from contextgraph.readers import all_formats

    for log_format in all_formats().values():
        common.answer(
            {
                "name": log_format.name,
                "recognised_by": log_format.description,
                "keeps": log_format.keeps,
                "experimental": log_format.experimental,
            },
            partial(_show_format, log_format),
        )


def _show_format(log_format: "Format") -> None:
    mark = (" (experimental)", "yellow") if log_format.experimental else ""
    print_text((log_format.name, "bold"), mark)
    for label, text in (("recognised by", log_format.description), ("keeps", log_format.keeps)):
        print_text((f"{label}: ", "dim"), text, indent=2)
