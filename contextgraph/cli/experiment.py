"""``contextgraph experiment``: agents with and without a memory, on the same tasks."""

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contextgraph.cli.options import PARTLY_DONE, AsJson, option
from contextgraph.cli.output import console, emit, one_line, print_table, styled, warn
from contextgraph.text import number_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contextgraph.evaluation import Difference, Estimate
    from contextgraph.experiment import Attempt, Comparison, Experiment, Report, TaskChange

_ALL_ARMS = "none,placebo,grep,memory"
_ERROR_WIDTH = 200
_CHANGES_SHOWN = 5

COMPARED = ("", "solved, points", "p", "better", "worse", "steps")
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
def run(  # noqa: PLR0913  (one parameter per flag)
    *,
    tasks: Annotated[Path, option("--tasks", "FILE", "Tasks, as JSON lines.")],
    out: Annotated[Path, option("--out", "FOLDER", "Where all of the experiment is kept.")],
    agent: Annotated[
        str, typer.Option("--agent", metavar="NAME", help="The agent.")
    ] = "mini-swe-agent",
    model: Annotated[
        str | None, option("--model", "NAME", "The model, as the agent names it.")
    ] = None,
    config: Annotated[
        list[str] | None,
        option("--config", "SPEC", "As of mini: a file or key=value (default: mini.yaml)."),
    ] = None,
    arms: Annotated[
        str, typer.Option("--arms", metavar="LIST", help="What to compare.")
    ] = _ALL_ARMS,
    attempts: Annotated[
        int, typer.Option("--attempts", metavar="N", min=1, help="Of each task under each arm.")
    ] = 3,
    share: Annotated[
        float,
        typer.Option("--split", metavar="SHARE", min=0, max=1, help="Tasks to learn from."),
    ] = 0.5,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="The seed of all random draws.")
    ] = 42,
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", min=1, help="Attempts made at once.")
    ] = 1,
    retry_broken: Annotated[
        bool, typer.Option("--retry-broken", help="Make broken attempts again.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run an experiment, or the rest of one that was interrupted.

    A share of the tasks is attempted once, and learned into a memory in FOLDER. The other tasks are
    attempted under each arm: none (no advice), memory (advice), placebo (at the same moments
    about as many tokens of advice for another repository), grep (the agent may search the learned
    logs). Every finished attempt is stored at once; the same command does the rest. Commands of the
    agent run on this machine, unless a task names an image. See docs/experiments.md.

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
    if _made(work, retry_broken=retry_broken, as_json=as_json):
        raise typer.Exit(PARTLY_DONE)


@experiment.command()
def report(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="As --out of run.", show_default=False)
    ],
    html: Annotated[
        Path | None, option("--html", "FILE", "Write one page instead; it needs no network.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what an experiment has found, as far as it has come.

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
    from contextgraph.codec import encoded
    from contextgraph.experiment import Journal, report_on

    found = report_on(Journal(folder))
    if html:
        from contextgraph.cli.experiment_page import write_report

        write_report(html, found)
        print(f"{html}: {found.verdict}")
    elif as_json:
        record = encoded(found, complete=True)
        assert isinstance(record, dict)
        emit(record)
    else:
        _show_report(found)


def figure(value: "Estimate | Difference | None", scale: float = 1, *, signed: bool = False) -> str:
    """*value* with its interval, in as few digits as matter; a dash where there is none."""
    if value is None:
        return "–"
    numbers = [one * scale for one in (value.value, value.low, value.high)]
    largest = max(map(abs, numbers))
    digits = 0 if largest >= 10 or not largest else 1 if largest >= 1 else 2
    middle, low, high = (f"{one:{'+' if signed else ''}.{digits}f}" for one in numbers)
    return f"{middle} ({low} to {high})" if signed else f"{middle} ({low}–{high})"


def arm_rows(report: "Report") -> list[list[str]]:
    """The figures of all arms: a row for each measure, a column for each arm."""
    arms = report.arms
    most = max((k for one in arms for k in one.pass_at), default=1)
    rows = [
        ["tasks", *(str(one.tasks) for one in arms)],
        ["attempts", *(str(one.attempts) for one in arms)],
        ["broken", *(str(one.broken) for one in arms)],
    ]
    rows += [
        [f"pass@{k}, %", *(figure(one.pass_at.get(k), 100) for one in arms)]
        for k in sorted({1, most})
    ]
    rows += [
        [title, *(figure(one.means.get(name), scale) for one in arms)]
        for name, (title, scale) in _MEANS.items()
    ]
    return [*rows, ["cost of all, $", *(f"{one.spent:.2f}" for one in arms)]]


def comparison_row(found: "Comparison") -> list[str]:
    """What the columns `COMPARED` have for a comparison."""
    return [
        f"{found.arm} − {found.against}",
        figure(found.solved, 100, signed=True),
        f"{found.p:.3f}",
        str(len(found.rescues)),
        str(len(found.regressions)),
        figure(found.means.get("steps"), signed=True),
    ]


def change_line(change: "TaskChange") -> str:
    """A task, and in which share of attempts it was solved before and after."""
    return f"{change.instance_id}: solved in {change.before:.0%}, then in {change.after:.0%}"


def _show_report(report: "Report") -> None:
    screen = console()
    screen.print(styled((report.verdict, "bold")))
    screen.print()
    names = [one.arm for one in report.arms]
    print_table("Mean of an attempt (95 % interval)", ["", *names], arm_rows(report), names)
    rows = [comparison_row(one) for one in report.comparisons]
    print_table("Differences on the same tasks (95 % interval)", COMPARED, rows, COMPARED[1:])
    for title, changes in changes_of(report):
        _show_changes(title, changes)


def changes_of(report: "Report") -> "Iterator[tuple[str, Sequence[TaskChange]]]":
    """The tasks that each arm rescued and regressed against none, with a title."""
    for found in report.comparisons:
        if found.against == report.comparisons[0].against:
            yield f"Rescued by {found.arm}", found.rescues
            yield f"Regressed by {found.arm}", found.regressions


def _show_changes(title: str, changes: "Sequence[TaskChange]") -> None:
    """Print the first *changes*, and all that was shown in the first."""
    if not changes:
        return
    from rich.padding import Padding

    screen = console()
    screen.print(styled((f"{title}: {number_of(len(changes), 'task')}", "bold")))
    for number, change in enumerate(changes[:_CHANGES_SHOWN]):
        screen.print(styled(f"  {change_line(change)}"))
        for text in () if number else change.shown:
            screen.print(Padding(styled((text, "dim")), (0, 0, 0, 4)))
    if len(changes) > _CHANGES_SHOWN:
        more = len(changes) - _CHANGES_SHOWN
        screen.print(styled(f"  … and {more} more (--html, --json)"))
    screen.print()


def _made(work: "Experiment", *, retry_broken: bool, as_json: bool) -> int:
    """Make the attempts of *work* that are left, printing each; how many are broken."""
    total = sum(map(len, work.left(retry_broken=retry_broken).values()))
    broken, made, shown = 0, 0, sys.stdout
    try:
        # What an agent's package prints must not come between the attempts.
        with redirect_stdout(sys.stderr):
            for made, attempt in enumerate(work.run(retry_broken=retry_broken), start=1):
                broken += bool(attempt.error)
                with redirect_stdout(shown):
                    _show_attempt(attempt, f"{made}/{total}", as_json=as_json)
    except KeyboardInterrupt:
        warn(f"interrupted after {made} of {total}; the same command makes the rest")
        raise
    return broken


def _show_attempt(attempt: "Attempt", progress: str, *, as_json: bool) -> None:
    from contextgraph.codec import encoded

    if as_json:
        record = encoded(attempt, complete=True)
        assert isinstance(record, dict)
        emit(record)
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
