"""``contextgraph evaluate``: what the advice of a memory is worth, by recorded runs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
from msgspec import Struct

from contextgraph.cli.commands import (
    Common,
    FollowLinks,
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
    fail,
    print_table,
    print_text,
    warn,
)
from contextgraph.cli.stats import (
    DEFAULT_PERIOD,
    Since,
    Until,
    given_in,
    period_record,
    show_figures,
)
from contextgraph.model.values import replace
from contextgraph.service.records import advice_record, record_of
from contextgraph.text import number_of, one_line

if TYPE_CHECKING:
    from contextgraph.evaluation.evaluation import Evaluation
    from contextgraph.evaluation.measures import Contrast, Moment
    from contextgraph.evaluation.reports import Report
    from contextgraph.memory.agent_memory import AgentMemory
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
    since: Since = None,
    until: Until = None,
    follow_links: FollowLinks = False,
) -> None:
    """Measure the advice of a memory on recorded runs.

    Compares it with baselines, with 95 % intervals. Learns one part of the runs and judges by the
    other (--split, or --learn and --judge), or judges by each run before it learns it (--online).
    Ignores the judged run, its instance and later runs. Uses a temporary memory; one named by
    --store must be empty. Without runs, --since and --until: what agents were shown in a period,
    and what it saved, by the memory that has it, as `receipt` counts it.

    \b
    Example:
      contextgraph evaluate runs.jsonl.gz --details before.json
      contextgraph evaluate --learn old/ --judge new/ --html report.html
      contextgraph evaluate runs.jsonl.gz --online --min-runs 3 --max-runs 200
      contextgraph evaluate --compare before.json after.json
      contextgraph evaluate runs.jsonl.gz --compare default no-semantic
      contextgraph evaluate --since 4w --until 1w
    """
    from contextgraph.evaluation.measures import compare as compare_moments
    from contextgraph.evaluation.reports import moments_in, report_record

    has_runs = bool(paths or learn or judge or related)
    if since or until:
        _show_period(common, since, until, is_alone=not (has_runs or compare))
        return
    if not has_runs:
        if not compare:
            raise click.BadParameter("name runs to judge by, --related, --compare or --since")
        first, second = map(Path, compare)
        contrasts = compare_moments(moments_in(first), moments_in(second), seed)
        _show_contrasts(common, contrasts, first.name, second.name, {})
        return
    if paths and (learn or judge):
        raise click.BadParameter("give PATH, or --learn and --judge, not both")
    read = partial(Intake, settings=common.settings(), follow_links=follow_links, is_shown=True)
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
        _write(common, report, details, plot, html)
        show = _show_figures if figures else _show_summary
        record = report_record(report, with_moments=False)
        common.answer(record, partial(show, report))
    if any(intake.counts.unread for intake in intakes):
        raise click.exceptions.Exit(PARTLY_DONE)


def _show_period(
    common: Common, since: datetime | None, until: datetime | None, *, is_alone: bool
) -> None:
    """Print the figures of what the memory showed in a period, as `receipt` does."""
    if not is_alone:
        raise click.BadParameter("--since and --until measure what was shown: leave out runs")
    start = since or datetime.now(UTC) - DEFAULT_PERIOD
    _, figures = given_in(common, start, until)
    record = {**period_record(start, until), **advice_record(figures)}
    common.answer(record, partial(show_figures, figures, start, until))


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


def _write(
    common: Common, report: "Report", details: Path | None, plot: Path | None, html: Path | None
) -> None:
    from contextgraph.errors import SettingsError
    from contextgraph.evaluation.reports import draw_evaluation, report_record, write_evaluation

    if details:
        import orjson

        from contextgraph.system.processes import replacing

        content = orjson.dumps(report_record(report, with_moments=True))
        try:
            with replacing(details) as part:  # for its owner alone
                part.write_bytes(content)
        except OSError as error:
            reason = error.strerror or error
            raise SettingsError(f"{details} cannot be written: {reason}") from error
        common.exported(details)
    if plot:
        for path in draw_evaluation(report, plot):
            warn(f"wrote {path}")
    if html:
        write_evaluation(html, report)
        common.exported(html)
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
        """Return the report of an empty memory under *configuration*, or that of the options."""
        from contextgraph.evaluation.judging import JudgedMoment, judge_by_hand
        from contextgraph.evaluation.reports import report_of
        from contextgraph.model.codec import decoded_lines

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
    from contextgraph.inference.summarizer import MADE_BY, worded_by

    space, model = memory.store.vectors.active_space(), memory.consolidator.model
    weights = memory.retriever.weights
    return {
        "configuration": memory.configuration,
        "version": version("contextgraph-memory"),
        "channels": list(memory.retriever.channels),
        "weights": {name: weights[name] for name in memory.retriever.channels if name in weights},
        "gate": record_of(memory.retriever.gate),
        "embedder": space.name if space else None,
        "summarizer": worded_by(model.name) if model else MADE_BY,
    }
