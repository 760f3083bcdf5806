"""``contextgraph replay``: recorded runs as if live, with the advice at each moment.

``contextgraph experiment``: agents with and without a memory, on the same tasks.
"""

import sys
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from contextgraph.cli.options import (
    Common,
    FollowLinks,
    Paths,
    TemporaryStore,
    argument,
    common_options,
    described,
    flag,
    option,
)
from contextgraph.cli.output import (
    PARTLY_DONE,
    Progress,
    console,
    emit,
    print_table,
    print_text,
    warn,
)
from contextgraph.records import (
    context_record,
    loop_records,
    record_of,
)
from contextgraph.text import number_of, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contextgraph.evaluation import (
        Replay,
        ReplayCounts,
        ReplayMoment,
    )
    from contextgraph.evaluation.experiment import Attempt, Experiment
    from contextgraph.evaluation.experiment_report import Report, TaskChange
    from contextgraph.model import Json

_ALL_ARMS = "none,placebo,grep,memory"
_ERROR_WIDTH = 200
_CHANGES_SHOWN = 5
_LINES_SHOWN = 2


@common_options("configuration", "max_run_size", store=TemporaryStore)
def replay(common: Common, paths: Paths, follow_links: FollowLinks = False) -> None:
    """Replay recorded runs as if live, and show the advice.

    Queries at each start and error, warns about loops, then learns the run. Without --store it
    fills a memory that is dropped at the end; a named one learns the runs, so an interrupted
    command continues when it is repeated. Runs are ordered by their start time where all have one,
    else by the number in the instance id within each repository, else as given.

    \b
    Example:
      contextgraph replay runs.jsonl.gz
      contextgraph replay runs/ --store team.db --json
    """
    from contextgraph.cli.intake import Intake
    from contextgraph.evaluation import Replay

    common = common.or_temporary()
    intake = Intake(paths, common.settings(), follow_links=follow_links)
    runs = list(intake)
    progress = Progress(lambda: len(runs), beside_output=not common.as_json)
    with common.open() as memory, progress:
        replayed = Replay(memory, runs)
        try:
            _show_all(common, replayed, progress)
        except KeyboardInterrupt:
            warn(f"interrupted after {replayed.counts.runs} of {number_of(len(runs), 'run')}")
            raise
        finally:
            counts, unread = replayed.counts, intake.counts
            seconds = round(counts.seconds, 3)
            summary = record_of(
                counts, seconds=seconds, failed=unread.failed, skipped=unread.skipped
            )
            if common.as_json or counts.runs:
                common.answer({"summary": summary}, partial(_show_counts, counts))
    raise click.exceptions.Exit(intake.exit_code)


def _show_all(common: Common, replayed: "Replay", progress: Progress) -> None:
    from contextgraph.evaluation import ReplayMoment

    for item in replayed:
        if not isinstance(item, ReplayMoment):
            progress.advance(1)
            progress.count(replayed.counts.runs)
        elif common.as_json:
            emit(_moment_record(item))
        elif item.answered:
            _show_moment(item)


def _show_moment(moment: "ReplayMoment") -> None:
    """Print the first lines of the advice at a moment."""
    head = f"{moment.raw.instance_id} after step {moment.step}, {moment.kind}"
    screen = console()
    print_text((one_line(head, screen.width), "bold"))
    for line in _advice_lines(moment)[:_LINES_SHOWN]:
        print_text(f"  {one_line(line, screen.width - 2)}")


def _advice_lines(moment: "ReplayMoment") -> list[str]:
    if moment.loop is not None:
        name = moment.loop.kind.replace("_", " ")
        first = f"{moment.loop.severity}: {name}, {moment.loop.repetitions} times"
        return [first, *(suggestion.text for suggestion in moment.escapes)]
    if moment.context is None:
        return []
    context = moment.context
    lines = [remedy.description for remedy in context.ranked]
    return lines + [f"{case.instance_id}: {case.summary}" for case in context.similar_cases]


def _show_counts(counts: "ReplayCounts") -> None:
    title = f"{number_of(counts.runs, 'run')}, ordered by {counts.order.replace('_', ' ')}"
    columns = ("moment", "queries", "answered")
    rows = [
        (str(kind), str(count), str(counts.answered[kind]))
        for kind, count in counts.moments.items()
    ]
    print_table(title, columns, rows, numeric=columns[1:])


def _moment_record(moment: "ReplayMoment") -> "dict[str, Json]":
    return {
        "instance_id": moment.raw.instance_id,
        "step": moment.step,
        "kind": str(moment.kind),
        "answered": moment.answered,
        "items": _items_record(moment),
    }


def _items_record(moment: "ReplayMoment") -> "dict[str, Json]":
    if moment.loop is not None:
        (loop,) = loop_records([moment.loop])
        return {"loop": loop, "escapes": [suggestion.text for suggestion in moment.escapes]}
    if moment.context is None:
        return {}
    shown = ("suggestions", "error_solutions", "similar_cases", "warnings", "degraded")
    record = context_record(moment.context, "")
    return {name: record[name] for name in shown}


GROUPS = {"experiment": "Run an agent with and without a memory on the same tasks."}


@common_options(without=("store", "tenant"))
def run(  # noqa: PLR0913  (one parameter per flag)
    common: Common,
    *,
    tasks: Annotated[Path, option("--tasks", "FILE", "Tasks, as JSON lines.")],
    out: Annotated[Path, option("--out", "FOLDER", "The folder of the experiment.")],
    agent: Annotated[
        str, described("--agent", metavar="NAME", help="The agent.")
    ] = "mini-swe-agent",
    model: Annotated[
        str | None, option("--model", "NAME", "The model, as the agent names it.")
    ] = None,
    config: Annotated[
        list[str] | None,
        option("--config", "SPEC", "As for mini: a file or key=value (default: mini.yaml)."),
    ] = None,
    arms: Annotated[str, described("--arms", metavar="LIST", help="What to compare.")] = _ALL_ARMS,
    attempts: Annotated[
        int,
        described("--attempts", metavar="N", min=1, help="Attempts at each task in each arm."),
    ] = 3,
    share: Annotated[
        float,
        described(
            "--split", metavar="SHARE", min=0, max=1, help="Share of the tasks to learn from."
        ),
    ] = 0.5,
    seed: Annotated[
        int, described("--seed", metavar="N", help="The seed of all random draws.")
    ] = 42,
    workers: Annotated[
        int, described("--workers", metavar="N", min=1, help="Attempts at the same time.")
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
    Example:
      contextgraph experiment run --tasks tasks.jsonl --model openai/gpt-5 --out t
      contextgraph experiment run --tasks tasks.jsonl --arms none,memory --out t
    """
    from contextgraph.cli.installation import own_version
    from contextgraph.evaluation.experiment import (
        Experiment,
        Journal,
        Plan,
        agent_named,
        read_tasks,
    )

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
        raise click.exceptions.Exit(PARTLY_DONE)


@common_options(without=("store", "tenant"))
def report(
    common: Common,
    folder: Annotated[
        Path,
        argument(metavar="FOLDER", help="The folder that run has as --out.", show_default=False),
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
    Example:
      contextgraph experiment report trial
      contextgraph experiment report trial --html trial.html
    """
    from contextgraph.evaluation.experiment import Journal
    from contextgraph.evaluation.experiment_report import report_on, write_report

    report = report_on(Journal(folder))
    if html:
        write_report(html, report)
        print(f"{html}: {report.verdict}")
    else:
        common.answer(record_of(report), partial(_show_report, report))


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
    result = "broken" if attempt.error else "solved" if attempt.solved else "failed"
    name = f"{attempt.part} {attempt.arm} {attempt.instance_id} #{attempt.number}"
    text = f"{progress} {name}: {result}, {number_of(attempt.steps, 'step')}"
    common.answer(record_of(attempt), partial(print, text, flush=True))
    if attempt.error and not common.as_json:
        warn(one_line(attempt.error, _ERROR_WIDTH))


def _named_arms(text: str) -> "list[str]":
    from contextgraph.evaluation.experiment import ARMS

    names = [name.strip() for name in text.split(",")]
    if unknown := sorted({*names} - {*ARMS}):
        raise click.BadParameter(f"--arms: {', '.join(unknown)}; known: {', '.join(ARMS)}")
    return [arm for arm in ARMS if arm in names]


def _show_report(report: "Report") -> None:
    """Print the verdict, the figures of each arm, how arms differ, and the first tasks changed."""
    from contextgraph.evaluation.experiment_report import (
        COMPARED,
        OF_ATTEMPTS,
        OF_TASKS,
        arm_rows,
        changed_tasks,
        comparison_row,
    )

    print_text((report.verdict, "bold"))
    print_text()
    names = [arm.arm for arm in report.arms]
    print_table(OF_ATTEMPTS, ["", *names], arm_rows(report), names)
    print_table(OF_TASKS, COMPARED, map(comparison_row, report.comparisons), COMPARED[1:])
    for title, changes in changed_tasks(report):
        _show_changes(title, changes)


def _show_changes(title: str, changes: "Sequence[TaskChange]") -> None:
    """Print the first *changes*, and all that was shown in the first."""
    from contextgraph.evaluation.experiment_report import change_line

    print_text((f"{title}: {number_of(len(changes), 'task')}", "bold"))
    for number, change in enumerate(changes[:_CHANGES_SHOWN]):
        print_text(f"  {change_line(change)}")
        for text in () if number else change.shown:
            print_text((text, "dim"), indent=4)
    if len(changes) > _CHANGES_SHOWN:
        more = len(changes) - _CHANGES_SHOWN
        print_text(f"  … and {more} more (--html, --json)")
    print_text()
