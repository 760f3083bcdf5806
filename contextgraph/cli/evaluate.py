"""``contextgraph evaluate``: the advice of a memory measured on recorded runs."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from contextgraph.cli.installation import own_version
from contextgraph.cli.intake import Intake
from contextgraph.cli.options import (
    Common,
    FollowLinks,
    TemporaryStore,
    argument,
    common_options,
    described,
    flag,
    option,
)
from contextgraph.cli.output import (
    FAILED,
    PARTLY_DONE,
    Progress,
    fail,
    print_table,
    print_text,
    warn,
)
from contextgraph.records import record_of
from contextgraph.text import number_of, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contextgraph.evaluation import (
        Contrast,
        Evaluation,
        Moment,
        Report,
    )
    from contextgraph.memory import AgentMemory
    from contextgraph.model import Json, RawTrajectory

_WIDTH = 108


@common_options("configuration", "max_run_size", store=TemporaryStore)
def evaluate(  # noqa: PLR0913  (one parameter per flag)
    common: Common,
    paths: Annotated[
        list[str] | None,
        argument(metavar="PATH...", help="Runs to learn and to judge by.", show_default=False),
    ] = None,
    *,
    online: Annotated[bool, flag("--online", "Judge by each run in order, then learn it.")] = False,
    share: Annotated[
        float,
        described(
            "--split", metavar="SHARE", min=0, max=1, help="Learn this share, by hash of instance."
        ),
    ] = 0.7,
    learn: Annotated[
        list[str] | None, option("--learn", "PATH", "Runs to learn only (repeatable).")
    ] = None,
    judge: Annotated[
        list[str] | None, option("--judge", "PATH", "Runs to judge by only (repeatable).")
    ] = None,
    related: Annotated[
        Path | None,
        option("--related", "FOLDER", "Past tasks, new tasks, and links between them."),
    ] = None,
    judged: Annotated[
        Path | None,
        option("--judged", "FILE", "Items that people have judged."),
    ] = None,
    compare: Annotated[
        tuple[str, str] | None,
        option(
            "--compare",
            "A B",
            "Compare two configurations on these runs; without runs, two files of --details.",
        ),
    ] = None,
    seed: Annotated[
        int, described("--seed", metavar="N", help="The seed of all random draws.")
    ] = 0,
    max_runs: Annotated[
        int | None, option("--max-runs", "N", "Judge by at most N runs, drawn at random.")
    ] = None,
    min_runs: Annotated[
        int,
        described(
            "--min-runs", metavar="N", min=1, help="Judge by repositories with at least N runs."
        ),
    ] = 1,
    details: Annotated[
        Path | None, option("--details", "FILE", "Write the report with every judged moment.")
    ] = None,
    plot: Annotated[
        Path | None, option("--plot", "FOLDER", "Draw the figures (needs the extra 'plot').")
    ] = None,
    html: Annotated[
        Path | None,
        option("--html", "FILE", "Write the report as an HTML page (needs the extra 'plot')."),
    ] = None,
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
    if not (paths or learn or judge or related):
        if not compare:
            raise click.BadParameter("name runs to judge by, --related, or --compare")
        _compare_files(common, Path(compare[0]), Path(compare[1]), seed)
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
        _refuse_with_compare(common.store, details, plot, html, common.flags["configuration"])
        _compare_configurations(trial, *compare)
    else:
        report = trial.run()
        _write(report, details, plot, html)
        _show(common, report)
    if any(intake.counts.failed for intake in intakes):
        raise click.exceptions.Exit(PARTLY_DONE)


def _refuse_with_compare(*given: object) -> None:
    if any(given):
        raise click.BadParameter(
            "--compare A B names the configurations; leave out --configuration, --store, "
            "--details, --plot and --html"
        )


def _show(common: Common, report: "Report") -> None:
    from contextgraph.evaluation import report_record

    common.answer(report_record(report, with_moments=False), partial(_show_figures, report))


def _show_figures(report: "Report") -> None:
    """Print the verdict, the configuration and the figures with 95 % intervals."""
    from contextgraph.evaluation import (
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
    from contextgraph.evaluation import CONTRASTS, contrast_row

    print_table(title, CONTRASTS, map(contrast_row, contrasts), CONTRASTS[1:])


def _write(report: "Report", details: Path | None, plot: Path | None, html: Path | None) -> None:
    from contextgraph.errors import SettingsError
    from contextgraph.evaluation import (
        draw_evaluation,
        report_record,
        write_evaluation,
    )

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


def _compare_files(common: Common, first: Path, second: Path, seed: int) -> None:
    from contextgraph.evaluation import compare, moments_in

    contrasts = compare(moments_in(first), moments_in(second), seed)
    _show_contrasts(common, contrasts, first.name, second.name, {})


def _compare_configurations(trial: "Trial", first: str, second: str) -> None:
    from contextgraph.evaluation import compare

    reports = {name: trial.run(name) for name in (first, second)}
    contrasts = compare(reports[first].moments, reports[second].moments, trial.seed)
    configs: dict[str, Json] = {name: dict(report.config) for name, report in reports.items()}
    _show_contrasts(trial.common, contrasts, first, second, configs)


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
    """Those to learn and those to judge by: about *share* of the first intake, and the others.

    Exits where no record could be read.
    """
    from contextgraph.evaluation import split

    runs, to_learn, to_judge = ([*intake] if intake.paths else [] for intake in intakes)
    learning, judging = split(runs, share)
    if not (runs or to_learn or to_judge) and any(intake.counts.failed for intake in intakes):
        raise click.exceptions.Exit(FAILED)  # each was reported
    return [*learning, *to_learn], [*judging, *to_judge]


def _selected(
    runs: "Sequence[RawTrajectory]", min_runs: int, max_runs: int | None, seed: int
) -> "Sequence[RawTrajectory]":
    """*runs* of repositories with *min_runs*; at most *max_runs*, drawn by *seed*."""
    from contextgraph.evaluation import sampled

    sizes = Counter(raw.repo for raw in runs)
    selected = [raw for raw in runs if sizes[raw.repo] >= min_runs]
    return selected if max_runs is None else sampled(selected, max_runs, seed)


@dataclass(frozen=True, slots=True)
class Trial:
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
        from contextgraph.evaluation import (
            JudgedMoment,
            judge_by_hand,
            report_of,
        )

        flags = {**self.common.flags, **({"configuration": configuration} if configuration else {})}
        linked = self._linked(flags) if self.related else ()
        with replace(self.common.or_temporary(), flags=flags).open() as memory:
            evaluation = self._evaluated(memory) if self.judging else None
            judged = decoded_lines(JudgedMoment, self.judged) if self.judged else []
            by_hand = judge_by_hand(memory, self.judging, judged, self.seed) if judged else None
            return report_of(evaluation, linked, _configuration_of(memory), self.seed, by_hand)

    def _linked(self, flags: "Mapping[str, Any]") -> "tuple[Moment, ...]":
        from contextgraph.evaluation import judge_related

        assert self.related is not None
        with Common(flags=flags).or_temporary().open() as memory:
            return judge_related(memory, self.related, self.seed)

    def _evaluated(self, memory: "AgentMemory") -> "Evaluation":
        from contextgraph.evaluation import evaluate, evaluate_online

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
        "version": own_version(),
        "channels": list(memory.retriever.channels),
        "weights": {name: weights[name] for name in memory.retriever.channels if name in weights},
        "gate": record_of(memory.retriever.gate),
        "embedder": space.name if space else None,
        "summarizer": model.name if model else MADE_BY,
    }
