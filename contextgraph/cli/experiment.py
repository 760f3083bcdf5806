"""``contextgraph experiment``: agents with and without a memory, on the same tasks."""

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contextgraph.cli.options import Common, common_options, flag, option
from contextgraph.cli.output import PARTLY_DONE, emit, print_table, say, warn
from contextgraph.page import (
    TABLE_STYLE,
    facts_line,
    heading,
    html_table,
    report_head,
    shown,
    write_html,
)
from contextgraph.records import record_of
from contextgraph.text import number_of, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contextgraph.evaluation import Difference, Estimate
    from contextgraph.experiment import Attempt, Comparison, Experiment, Report, TaskChange

_ALL_ARMS = "none,placebo,grep,memory"
_ERROR_WIDTH = 200
_CHANGES_SHOWN = 5
_COMPARED = ("", "solved, points", "p", "better", "worse", "steps")
_OF_ATTEMPTS = "Mean of an attempt (95 % interval)"
_OF_TASKS = "Differences on the same tasks (95 % interval)"
# Amounts of an attempt, as they are shown.
_MEANS = {
    "steps": ("steps", 1),
    "tokens": ("tokens, 1000", 0.001),
    "cost": ("cost, cents", 100),
    "advice tokens": ("advice tokens", 1),
}

experiment = typer.Typer(
    help="Run an agent with and without a memory on the same tasks.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@experiment.command()
@common_options(without=("store", "tenant"))
def run(  # noqa: PLR0913  (one parameter per flag)
    common: Common,
    *,
    tasks: Annotated[Path, option("--tasks", "FILE", "Tasks, as JSON lines.")],
    out: Annotated[Path, option("--out", "FOLDER", "The folder of the experiment.")],
    agent: Annotated[
        str, typer.Option("--agent", metavar="NAME", help="The agent.")
    ] = "mini-swe-agent",
    model: Annotated[
        str | None, option("--model", "NAME", "The model, as the agent names it.")
    ] = None,
    config: Annotated[
        list[str] | None,
        option("--config", "SPEC", "As for mini: a file or key=value (default: mini.yaml)."),
    ] = None,
    arms: Annotated[
        str, typer.Option("--arms", metavar="LIST", help="What to compare.")
    ] = _ALL_ARMS,
    attempts: Annotated[
        int,
        typer.Option("--attempts", metavar="N", min=1, help="Attempts at each task in each arm."),
    ] = 3,
    share: Annotated[
        float,
        typer.Option(
            "--split", metavar="SHARE", min=0, max=1, help="Share of the tasks to learn from."
        ),
    ] = 0.5,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="The seed of all random draws.")
    ] = 42,
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", min=1, help="Attempts at the same time.")
    ] = 1,
    retry_broken: Annotated[bool, flag("--retry-broken", "Retry broken attempts.")] = False,
) -> None:
    """Run an experiment, or the rest of one that was interrupted.

    A share of the tasks is attempted once, and learned into a memory in FOLDER. The other tasks are
    attempted in each arm: none (no advice), memory (advice), placebo (at the same moments, about as
    many tokens of advice for another repository), grep (the agent may search the learned logs). An
    attempt is stored when it is finished; repeat the command to continue. Commands of the agent run
    on this machine, unless a task names an image. See docs/experiments.md.

    \b
    With --json one line per attempt: "part", "arm", "instance_id", "number",
    "solved", "exit_status", "steps", "tokens", "cost", "seconds", "shown"
    [{"step", "text", "tokens"}], "error". Exit code 3: attempts are broken, each
    with its error.

    \b
    Example:
      contextgraph experiment run --tasks tasks.jsonl --model openai/gpt-5 --out t
      contextgraph experiment run --tasks tasks.jsonl --arms none,memory --out t
    """
    from contextgraph.cli.doctor import own_version
    from contextgraph.experiment import Experiment, Journal, Plan, agent_named, read_tasks

    plan = Plan(
        arms=_named_arms(arms),
        tasks=read_tasks(tasks),
        attempts=attempts,
        share=share,
        seed=seed,
        settings={"config": list(config or []), "contextgraph": own_version()},
    )
    work = Experiment(plan, agent_named(agent, model, config or []), Journal(out), workers=workers)
    if _made(common, work, retry_broken=retry_broken):
        raise typer.Exit(PARTLY_DONE)


@experiment.command()
@common_options(without=("store", "tenant"))
def report(
    common: Common,
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="The folder that run has as --out.", show_default=False
        ),
    ],
    html: Annotated[
        Path | None, option("--html", "FILE", "Write an HTML page instead; it works offline.")
    ] = None,
) -> None:
    """Show the results of an experiment so far.

    pass@k, steps, tokens and cost of each arm; how arms differ on the same tasks, with 95 %
    intervals (bootstrap by task) and McNemar's exact test; which tasks were rescued and regressed,
    and what the agent was shown there. Broken attempts do not count.

    \b
    With --json one object: "verdict", "settings", "arms" [{"arm", "tasks",
    "attempts", "broken", "pass_at" {k: {"value", "low", "high", …}}, "means"
    {"steps", "tokens", "cost", "advice tokens"}, "spent"}], "comparisons"
    [{"arm", "against", "tasks", "solved", "p", "rescues" [{"instance_id",
    "before", "after", "shown"}], "regressions", "means"}].

    \b
    Example:
      contextgraph experiment report trial
      contextgraph experiment report trial --html trial.html
    """
    from contextgraph.experiment import Journal, report_on

    found = report_on(Journal(folder))
    if html:
        _write_report(html, found)
        print(f"{html}: {found.verdict}")
    elif common.as_json:
        emit(record_of(found))
    else:
        _show_report(found)


def _made(common: Common, work: "Experiment", *, retry_broken: bool) -> int:
    """Make the attempts of *work* that are left, printing each; how many are broken."""
    total = sum(map(len, work.left(retry_broken=retry_broken).values()))
    broken, made, shown = 0, 0, sys.stdout
    try:
        # What an agent's package prints must not come between the attempts.
        with redirect_stdout(sys.stderr):
            for made, attempt in enumerate(work.run(retry_broken=retry_broken), start=1):
                broken += bool(attempt.error)
                with redirect_stdout(shown):
                    _show_attempt(common, attempt, f"{made}/{total}")
    except KeyboardInterrupt:
        warn(f"interrupted after {made} of {total}; the same command makes the rest")
        raise
    return broken


def _show_attempt(common: Common, attempt: "Attempt", progress: str) -> None:
    if common.as_json:
        emit(record_of(attempt))
        return
    result = "broken" if attempt.error else "solved" if attempt.solved else "failed"
    name = f"{attempt.part} {attempt.arm} {attempt.instance_id} #{attempt.number}"
    print(f"{progress} {name}: {result}, {number_of(attempt.steps, 'step')}", flush=True)
    if attempt.error:
        warn(one_line(attempt.error, _ERROR_WIDTH))


def _named_arms(text: str) -> "list[str]":
    from contextgraph.experiment import ARMS

    names = [name.strip() for name in text.split(",")]
    if unknown := sorted({*names} - {*ARMS}):
        raise typer.BadParameter(f"--arms: {', '.join(unknown)}; known: {', '.join(ARMS)}")
    return [arm for arm in ARMS if arm in names]


def _show_report(report: "Report") -> None:
    """Print the verdict, the figures of each arm, how arms differ, and the first tasks changed."""
    say((report.verdict, "bold"))
    say()
    names = [one.arm for one in report.arms]
    print_table(_OF_ATTEMPTS, ["", *names], _arm_rows(report), names)
    print_table(_OF_TASKS, _COMPARED, map(_comparison_row, report.comparisons), _COMPARED[1:])
    for title, changes in _changes(report):
        _show_changes(title, changes)


def _write_report(path: Path, report: "Report") -> None:
    """Write *report* as a page to the file *path*; raises `SettingsError` where it cannot be."""
    write_html(path, TABLE_STYLE, _experiment_page(report))


def _experiment_page(report: "Report") -> "Iterator[str]":
    yield report_head("Experiment", report.verdict) + facts_line(report.settings)
    titles = ["", *(one.arm for one in report.arms)]
    yield heading(_OF_ATTEMPTS) + html_table(titles, _arm_rows(report))
    yield heading(_OF_TASKS) + html_table(_COMPARED, map(_comparison_row, report.comparisons))
    for title, changes in _changes(report):
        yield heading(title)
        for change in changes:
            yield _opened(change)


def _opened(change: "TaskChange") -> str:
    """A task, opened by a click: what was shown to the agent."""
    texts = "".join(f"<pre>{shown(text)}</pre>\n" for text in change.shown)
    inside = texts or "<p>Nothing was shown.</p>\n"
    return f"<details><summary>{shown(_change_line(change))}</summary>\n{inside}</details>\n"


def _interval(
    value: "Estimate | Difference | None", scale: float = 1, *, signed: bool = False
) -> str:
    """*value* with its interval, in as few digits as matter; a dash where there is none."""
    if value is None:
        return "–"
    numbers = [one * scale for one in (value.value, value.low, value.high)]
    largest = max(map(abs, numbers))
    digits = 0 if largest >= 10 or not largest else 1 if largest >= 1 else 2
    middle, low, high = (f"{one:{'+' if signed else ''}.{digits}f}" for one in numbers)
    return f"{middle} ({low} to {high})" if signed else f"{middle} ({low}–{high})"


def _arm_rows(report: "Report") -> list[list[str]]:
    """The figures of all arms: a row for each measure, a column for each arm."""
    arms = report.arms
    most = max((k for one in arms for k in one.pass_at), default=1)
    rows = [
        ["tasks", *(str(one.tasks) for one in arms)],
        ["attempts", *(str(one.attempts) for one in arms)],
        ["broken", *(str(one.broken) for one in arms)],
    ]
    rows += [
        [f"pass@{k}, %", *(_interval(one.pass_at.get(k), 100) for one in arms)]
        for k in sorted({1, most})
    ]
    rows += [
        [title, *(_interval(one.means.get(name), scale) for one in arms)]
        for name, (title, scale) in _MEANS.items()
    ]
    return [*rows, ["cost of all, $", *(f"{one.spent:.2f}" for one in arms)]]


def _comparison_row(found: "Comparison") -> list[str]:
    return [
        f"{found.arm} − {found.against}",
        _interval(found.solved, 100, signed=True),
        f"{found.p:.3f}",
        str(len(found.rescues)),
        str(len(found.regressions)),
        _interval(found.means.get("steps"), signed=True),
    ]


def _changes(report: "Report") -> "Iterator[tuple[str, Sequence[TaskChange]]]":
    """The tasks that each arm rescued and regressed against none, with a title."""
    for found in report.comparisons:
        if found.against != report.comparisons[0].against:
            continue
        if found.rescues:
            yield f"Rescued by {found.arm}", found.rescues
        if found.regressions:
            yield f"Regressed by {found.arm}", found.regressions


def _change_line(change: "TaskChange") -> str:
    """A task, and in which share of attempts it was solved before and after."""
    return f"{change.instance_id}: solved in {change.before:.0%}, then in {change.after:.0%}"


def _show_changes(title: str, changes: "Sequence[TaskChange]") -> None:
    """Print the first *changes*, and all that was shown in the first."""
    say((f"{title}: {number_of(len(changes), 'task')}", "bold"))
    for number, change in enumerate(changes[:_CHANGES_SHOWN]):
        say(f"  {_change_line(change)}")
        for text in () if number else change.shown:
            say((text, "dim"), indent=4)
    if len(changes) > _CHANGES_SHOWN:
        more = len(changes) - _CHANGES_SHOWN
        say(f"  … and {more} more (--html, --json)")
    say()
