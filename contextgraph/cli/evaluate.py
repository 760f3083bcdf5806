"""``contextgraph evaluate``, ``replay`` and ``experiment``: the laboratory."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
from msgspec import Struct

from contextgraph.cli.commands import (
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
from contextgraph.cli.learn import Intake
from contextgraph.cli.output import (
    FAILED,
    PARTLY_DONE,
    Progress,
    console,
    emit,
    fail,
    print_table,
    print_text,
    warn,
)
from contextgraph.records import context_record, record_of
from contextgraph.text import number_of, one_line
from contextgraph.values import replace

if TYPE_CHECKING:
    from contextgraph.evaluation.evaluation import Evaluation
    from contextgraph.evaluation.experiment import Attempt, Experiment
    from contextgraph.evaluation.experiment_report import ExperimentReport, TaskChange
    from contextgraph.evaluation.measures import Contrast, Moment, ReplayCounts, ReplayMoment
    from contextgraph.evaluation.reports import Report
    from contextgraph.memory import AgentMemory
    from contextgraph.model import Json, RawTrajectory


_WIDTH = 108
# Fewer judged runs say little of what advice saves.
_FEW = 10


@common_options("configuration", "max_run_size", store=TemporaryStore)
def evaluate(  # noqa: PLR0913  (one parameter per flag)
    common: Common,
    paths: Annotated[
        list[str] | None, argument("PATH...", "Runs to learn and to judge by.")
    ] = None,
    *,
    online: Annotated[bool, flag("Judge by each run in order, then learn it.")] = False,
    share: Annotated[
        float,
        described(
            "--split", metavar="SHARE", min=0, max=1, help="Learn this share, by hash of instance."
        ),
    ] = 0.7,
    learn: Annotated[list[str] | None, option("PATH", "Runs to learn only (repeatable).")] = None,
    judge: Annotated[
        list[str] | None, option("PATH", "Runs to judge by only (repeatable).")
    ] = None,
    related: Annotated[
        Path | None, option("FOLDER", "Past tasks, new tasks, and links between them.")
    ] = None,
    judged: Annotated[Path | None, option("FILE", "Items that people have judged.")] = None,
    compare: Annotated[
        tuple[str, str] | None,
        option(
            "A B", "Compare two configurations on these runs; without runs, two files of --details."
        ),
    ] = None,
    seed: Annotated[int, described(metavar="N", help="The seed of all random draws.")] = 0,
    max_runs: Annotated[
        int | None, option("N", "Judge by at most N runs, drawn at random.")
    ] = None,
    min_runs: Annotated[
        int, described(metavar="N", min=1, help="Judge by repositories with at least N runs.")
    ] = 1,
    details: Annotated[
        Path | None, option("FILE", "Write the report with every judged moment.")
    ] = None,
    plot: Annotated[
        Path | None, option("FOLDER", "Draw the figures (needs the extra 'plot').")
    ] = None,
    html: Annotated[
        Path | None, option("FILE", "Write the report as an HTML page (needs the extra 'plot').")
    ] = None,
    figures: Annotated[
        bool, flag("Print every figure with its interval, and the configuration.")
    ] = False,
    follow_links: FollowLinks = False,
) -> None:
    """Measure the advice of a memory on recorded runs.

    Compares it with baselines, with 95 % intervals. Learns one part of the runs and judges by the
    other (--split, or --learn and --judge), or judges by each run before it learns it (--online).
    Ignores the judged run, its instance and later runs. Uses a temporary memory; one named by
    --store must be empty.

    \b
    Example:
      contextgraph evaluate runs.jsonl.gz --details before.json
      contextgraph evaluate --learn old/ --judge new/ --html report.html
      contextgraph evaluate runs.jsonl.gz --online --min-runs 3 --max-runs 200
      contextgraph evaluate --compare before.json after.json
      contextgraph evaluate runs.jsonl.gz --compare default no-semantic
    """
    from contextgraph.evaluation.measures import compare as compare_moments
    from contextgraph.evaluation.reports import moments_in, report_record

    if not (paths or learn or judge or related):
        if not compare:
            raise click.BadParameter("name runs to judge by, --related, or --compare")
        first, second = map(Path, compare)
        contrasts = compare_moments(moments_in(first), moments_in(second), seed)
        _show_contrasts(common, contrasts, first.name, second.name, {})
        return
    if paths and (learn or judge):
        raise click.BadParameter("give PATH, or --learn and --judge, not both")
    read = partial(Intake, settings=common.settings(), follow_links=follow_links)
    intakes = read(paths or []), read(learn or []), read(judge or [])
    taught, judged_by = _parts(intakes, 0.0 if online else share)
    judging = _selected(judged_by, min_runs, max_runs, seed)
    if not judging and related is None:
        fail("no run to judge by: give more runs, or a smaller --split or --min-runs")
    if judged and online:
        raise click.BadParameter("--judged needs a split: leave out --online")
    trial = Trial(common, None if online else taught, judging, related, seed, judged)
    if compare:
        if any((common.store, details, plot, html, common.flags["configuration"])):
            raise click.BadParameter(
                "--compare A B names the configurations; leave out --configuration, --store, "
                "--details, --plot and --html"
            )
        reports = {name: trial.run(name) for name in compare}
        before, after = (reports[name].moments for name in compare)
        configs: dict[str, Json] = {name: dict(report.config) for name, report in reports.items()}
        _show_contrasts(common, compare_moments(before, after, seed), *compare, configs)
    else:
        report = trial.run()
        _write(report, details, plot, html)
        show = _show_figures if figures else _show_summary
        record = report_record(report, with_moments=False)
        common.answer(record, partial(show, report))
    if any(intake.counts.unread for intake in intakes):
        raise click.exceptions.Exit(PARTLY_DONE)


def _show_summary(report: "Report") -> None:
    """Print what was judged, the steps that advice saved, and the verdict."""
    from contextgraph.evaluation.reports import saved_in_words

    config = report.config
    if "runs_judged" in config:
        judged, learned = (int(f"{config[name]}") for name in ("runs_judged", "runs_learned"))
        counted = f"{number_of(judged, 'run')} judged by a memory of {number_of(learned, 'run')}"
        print_text(f"{counted} ({config['mode']}).")
        if judged < _FEW and config["mode"] != "online":
            print_text(("Few to judge by: --online judges each run by those before it.", "bold"))
    for sentence in saved_in_words(report):
        print_text(sentence)
    print_text((report.verdict, "bold"))
    print_text(("--figures prints every figure, --html FILE draws them", "dim"))


def _show_figures(report: "Report") -> None:
    """Print the verdict, the configuration and the figures with 95 % intervals."""
    from contextgraph.evaluation.reports import (
        against_title,
        figure_rows,
        measures_by_title,
        settings_in_words,
    )

    print_text((report.verdict, "bold"))
    for name, value in settings_in_words(report).items():
        print_text((one_line(f"{name}: {value}", _WIDTH), "dim"))
    for title, measures in measures_by_title(report):
        columns, rows = figure_rows(measures)
        # An interval below its figure: the methods stand beside each other in 80 columns.
        lines = (line for row in rows for line in zip(*row, strict=True))
        print_table(title, columns, lines, columns[1:])
    for baseline, contrasts in report.contrasts.items():
        _show_contrast_table(contrasts, against_title(baseline))


def _show_contrast_table(contrasts: "Sequence[Contrast]", title: str) -> None:
    """Print how the second does against the first, with McNemar's p."""
    from contextgraph.evaluation.reports import CONTRASTS, contrast_row

    print_table(title, CONTRASTS, map(contrast_row, contrasts), CONTRASTS[1:])


def _write(report: "Report", details: Path | None, plot: Path | None, html: Path | None) -> None:
    from contextgraph.errors import SettingsError
    from contextgraph.evaluation.reports import draw_evaluation, report_record, write_evaluation

    if details:
        import orjson

        content = orjson.dumps(report_record(report, with_moments=True))
        try:
            details.write_bytes(content)
        except OSError as error:
            reason = error.strerror or error
            raise SettingsError(f"{details} cannot be written: {reason}") from error
    if plot:
        for path in draw_evaluation(report, plot):
            warn(f"wrote {path}")
    if html:
        write_evaluation(html, report)
        warn(f"wrote {html}")


def _show_contrasts(
    common: Common,
    contrasts: "Sequence[Contrast]",
    first: str,
    second: str,
    configs: "dict[str, Json]",
) -> None:
    records: list[Json] = [record_of(contrast) for contrast in contrasts]
    title = f"{second} against {first}, on the same moments"
    common.answer(
        {"contrasts": records, **({"configurations": configs} if configs else {})},
        partial(_show_contrast_table, contrasts, title),
    )


def _parts(
    intakes: "tuple[Intake, Intake, Intake]", share: float
) -> "tuple[list[RawTrajectory], list[RawTrajectory]]":
    """Divide runs into those to learn, about *share* of the first intake, and those to judge by.

    Exits where no record could be read.
    """
    from contextgraph.evaluation.evaluation import split

    runs, to_learn, to_judge = ([*intake] if intake.paths else [] for intake in intakes)
    learning, judging = split(runs, share)
    if not (runs or to_learn or to_judge) and any(intake.counts.unread for intake in intakes):
        raise click.exceptions.Exit(FAILED)  # each was reported
    return [*learning, *to_learn], [*judging, *to_judge]


def _selected(
    runs: "Sequence[RawTrajectory]", min_runs: int, max_runs: int | None, seed: int
) -> "Sequence[RawTrajectory]":
    """*runs* of repositories with *min_runs*; at most *max_runs*, drawn by *seed*."""
    from contextgraph.evaluation.evaluation import sampled

    sizes = Counter(raw.repo for raw in runs)
    selected = [raw for raw in runs if sizes[raw.repo] >= min_runs]
    return selected if max_runs is None else sampled(selected, max_runs, seed)


class Trial(Struct, frozen=True):
    """Runs to learn and to judge; *learning* None: each run is learned after it was judged.

    *related* is a folder of linked tasks, judged in a memory of their own, *judged* a file of
    judgements by hand.
    """

    common: Common
    learning: "Sequence[RawTrajectory] | None"
    judging: "Sequence[RawTrajectory]"
    related: Path | None
    seed: int
    judged: Path | None = None

    def run(self, configuration: str | None = None) -> "Report":
        """The report of an empty memory under *configuration*, or that of the options."""
        from contextgraph.codec import decoded_lines
        from contextgraph.evaluation.judging import JudgedMoment, judge_by_hand
        from contextgraph.evaluation.reports import report_of

        flags = {**self.common.flags, **({"configuration": configuration} if configuration else {})}
        linked = self._linked(flags) if self.related else ()
        with replace(self.common.or_temporary(), flags=flags).open() as memory:
            evaluation = self._evaluated(memory) if self.judging else None
            judged = decoded_lines(JudgedMoment, self.judged) if self.judged else []
            by_hand = judge_by_hand(memory, self.judging, judged, self.seed) if judged else None
            return report_of(evaluation, linked, _configuration_of(memory), self.seed, by_hand)

    def _linked(self, flags: "Mapping[str, Any]") -> "tuple[Moment, ...]":
        from contextgraph.evaluation.judging import judge_related

        assert self.related is not None
        with Common(flags=flags).or_temporary().open() as memory:
            return judge_related(memory, self.related, self.seed)

    def _evaluated(self, memory: "AgentMemory") -> "Evaluation":
        from contextgraph.evaluation.evaluation import evaluate, evaluate_online

        known = memory.get_stats().counts.nodes.get("Trajectory", 0)
        if known:
            raise click.BadParameter(
                f"--store has {number_of(known, 'run')}; an evaluation needs an empty memory"
            )
        passes = 2 if self.learning is None else 1
        progress = Progress(lambda: len(self.judging) * passes + len(self.learning or ()))

        def advance() -> None:
            progress.advance(1)

        with progress:
            if self.learning is None:
                return evaluate_online(memory, self.judging, seed=self.seed, advance=advance)
            return evaluate(memory, self.learning, self.judging, seed=self.seed, advance=advance)


def _configuration_of(memory: "AgentMemory") -> "dict[str, Json]":
    """Everything that affects the answers of *memory*."""
    from contextgraph.llm import MADE_BY

    space, model = memory.store.vectors.active_space(), memory.consolidator.model
    weights = memory.retriever.weights
    return {
        "configuration": memory.configuration,
        "version": version("contextgraph-memory"),
        "channels": list(memory.retriever.channels),
        "weights": {name: weights[name] for name in memory.retriever.channels if name in weights},
        "gate": record_of(memory.retriever.gate),
        "embedder": space.name if space else None,
        "summarizer": model.name if model else MADE_BY,
    }


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
    from contextgraph.cli.learn import Intake
    from contextgraph.evaluation.measures import Replay, ReplayMoment

    common = common.or_temporary()
    intake = Intake(paths, common.settings(), follow_links=follow_links)
    runs = list(intake)
    progress = Progress(lambda: len(runs), beside_output=not common.as_json)
    with common.open() as memory, progress:
        replayed = Replay(memory, runs)
        try:
            for item in replayed:
                if not isinstance(item, ReplayMoment):
                    progress.advance(1)
                    progress.count(replayed.counts.runs)
                elif common.as_json:
                    emit(_moment_record(item))
                elif item.answered:
                    _show_moment(item)
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
    items: dict[str, Json] = {}
    if moment.loop is not None:
        escapes: list[Json] = [suggestion.text for suggestion in moment.escapes]
        items = {"loop": record_of(moment.loop), "escapes": escapes}
    elif moment.context is not None:
        shown = ("suggestions", "error_solutions", "similar_cases", "warnings", "degraded")
        record = context_record(moment.context, "")
        items = {name: record[name] for name in shown}
    return {
        "instance_id": moment.raw.instance_id,
        "step": moment.step,
        "kind": str(moment.kind),
        "answered": moment.answered,
        "items": items,
    }


GROUPS = {"experiment": "Run an agent with and without a memory on the same tasks."}


@common_options(without=("store", "tenant"))
def run(  # noqa: PLR0913  (one parameter per flag)
    common: Common,
    *,
    tasks: Annotated[Path, option("FILE", "Tasks, as JSON lines.")],
    out: Annotated[Path, option("FOLDER", "The folder of the experiment.")],
    agent: Annotated[str, described(metavar="NAME", help="The agent.")] = "mini-swe-agent",
    model: Annotated[str | None, option("NAME", "The model, as the agent names it.")] = None,
    config: Annotated[
        list[str] | None, option("SPEC", "As for mini: a file or key=value (default: mini.yaml).")
    ] = None,
    arms: Annotated[str, described(metavar="LIST", help="What to compare.")] = _ALL_ARMS,
    attempts: Annotated[
        int, described(metavar="N", min=1, help="Attempts at each task in each arm.")
    ] = 3,
    share: Annotated[
        float,
        described(
            "--split", metavar="SHARE", min=0, max=1, help="Share of the tasks to learn from."
        ),
    ] = 0.5,
    seed: Annotated[int, described(metavar="N", help="The seed of all random draws.")] = 42,
    workers: Annotated[int, described(metavar="N", min=1, help="Attempts at the same time.")] = 1,
    retry_broken: Annotated[bool, flag("Retry broken attempts.")] = False,
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
    from contextgraph.evaluation.experiment import (
        Experiment,
        ExperimentFolder,
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
        settings={"config": list(config or []), "contextgraph": version("contextgraph-memory")},
    )
    work = Experiment(
        plan, agent_named(agent, model, config or []), ExperimentFolder(out), workers=workers
    )
    if _made(common, work, retry_broken=retry_broken):
        raise click.exceptions.Exit(PARTLY_DONE)


@common_options(without=("store", "tenant"))
def report(
    common: Common,
    folder: Annotated[Path, argument("FOLDER", "The folder that run has as --out.")],
    html: Annotated[
        Path | None, option("FILE", "Write an HTML page instead; it works offline.")
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
    from contextgraph.evaluation.experiment import ExperimentFolder
    from contextgraph.evaluation.experiment_report import report_on, write_report

    report = report_on(ExperimentFolder(folder))
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


def _show_report(report: "ExperimentReport") -> None:
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
