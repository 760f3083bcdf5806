"""``contextgraph experiment``: agents with and without a memory, on the same tasks."""

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contextgraph.cli.options import PARTLY_DONE, AsJson, option
from contextgraph.cli.output import emit, warn
from contextgraph.cli.reports import show_experiment, write_experiment
from contextgraph.records import record_of
from contextgraph.text import number_of, one_line

if TYPE_CHECKING:
    from contextgraph.experiment import Attempt, Experiment

_ALL_ARMS = "none,placebo,grep,memory"
_ERROR_WIDTH = 200

experiment = typer.Typer(
    help="Run an agent with and without a memory on the same tasks.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@experiment.command()
def run(  # noqa: PLR0913  (one parameter per flag)
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
    retry_broken: Annotated[
        bool, typer.Option("--retry-broken", help="Retry broken attempts.")
    ] = False,
    as_json: AsJson = False,
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
    if _made(work, retry_broken=retry_broken, as_json=as_json):
        raise typer.Exit(PARTLY_DONE)


@experiment.command()
def report(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="The folder that run has as --out.", show_default=False
        ),
    ],
    html: Annotated[
        Path | None, option("--html", "FILE", "Write an HTML page instead; it works offline.")
    ] = None,
    as_json: AsJson = False,
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
        write_experiment(html, found)
        print(f"{html}: {found.verdict}")
    elif as_json:
        emit(record_of(found))
    else:
        show_experiment(found)


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
    if as_json:
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
