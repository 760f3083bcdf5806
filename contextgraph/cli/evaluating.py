"""``contextgraph evaluate``: a memory judged by recorded runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contextgraph.cli.options import AsJson, Configuration, Tenant
from contextgraph.cli.output import complain, emit
from contextgraph.cli.replaying import IN_MEMORY, OwnStore

FAILED = 1
PARTLY_DONE = 3

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contextgraph.cli.trial import Trial
    from contextgraph.model import Json
    from contextgraph.replay import Contrast, Report


def _option(flag: str, metavar: str, help_text: str) -> Any:
    """A flag without a default to show; typer itself types these Any."""
    return typer.Option(flag, metavar=metavar, help=help_text, show_default=False)


def evaluate(  # noqa: PLR0913  (one parameter per flag)
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH...", help="Runs to learn and to judge by.", show_default=False
        ),
    ] = None,
    *,
    online: Annotated[
        bool, typer.Option("--online", help="Judge by each run in order, then learn it.")
    ] = False,
    share: Annotated[
        float,
        typer.Option(
            "--split", metavar="SHARE", min=0, max=1, help="Learn this share, by hash of instance."
        ),
    ] = 0.7,
    learn: Annotated[
        list[str] | None, _option("--learn", "PATH", "Runs to learn only (repeatable).")
    ] = None,
    judge: Annotated[
        list[str] | None, _option("--judge", "PATH", "Runs to judge by only (repeatable).")
    ] = None,
    related: Annotated[
        Path | None,
        _option("--related", "FOLDER", "Past tasks, new tasks, and which people linked."),
    ] = None,
    compare: Annotated[
        tuple[str, str] | None,
        _option(
            "--compare",
            "A B",
            "Compare two configurations on these runs; without runs, two files of --details.",
        ),
    ] = None,
    configuration: Configuration = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="For every draw.")] = 0,
    max_runs: Annotated[
        int | None, _option("--max-runs", "N", "Judge by at most so many runs, drawn by the seed.")
    ] = None,
    min_runs: Annotated[
        int,
        typer.Option("--min-runs", metavar="N", min=1, help="Of repositories with so many runs."),
    ] = 1,
    details: Annotated[
        Path | None, _option("--details", "FILE", "Write the report with every judged moment.")
    ] = None,
    plot: Annotated[
        Path | None, _option("--plot", "FOLDER", "Draw the figures (needs the extra 'plot').")
    ] = None,
    as_json: AsJson = False,
    store: OwnStore = None,
    tenant: Tenant = None,
) -> None:
    """Judge what a memory says by recorded runs.

    Beside baselines, with 95 % intervals. Learns one part of the runs and judges by the other
    (--split, or --learn and --judge), or goes through them in order (--online). The judged run, its
    instance and later runs are not seen. Fills a memory that is forgotten at the end; one named by
    --store must be empty.

    \b
    With --json one object: "config", "measures" {measure: {method: {"value", "low", "high",
    "count", "runs"}}}, "clearance@3 by error family", "curves", "against" {baseline:
    contrasts}; with --compare {"contrasts": [{"measure", "moments", "first", "second",
    "only_first", "only_second", "difference", "p"}]}.

    \b
    Example:
      contextgraph evaluate runs.jsonl.gz --details before.json
      contextgraph evaluate --learn old/ --judge new/ --plot figures/
      contextgraph evaluate runs.jsonl.gz --online --min-runs 3 --max-runs 200
      contextgraph evaluate --compare before.json after.json
      contextgraph evaluate runs.jsonl.gz --compare default no-semantic
    """
    given = paths or learn or judge or related
    if compare and not given:
        _compare_files(Path(compare[0]), Path(compare[1]), seed, as_json=as_json)
        return
    if not given:
        raise typer.BadParameter("name runs to judge by, --related, or --compare")
    from contextgraph.cli.trial import Given, Trial, chosen

    runs = Given(paths, learn, judge)
    taught, judging = runs.parts(0.0 if online else share)
    judging = chosen(judging, min_runs, max_runs, seed)
    if runs.failed and not (taught or judging):
        raise typer.Exit(FAILED)  # each was reported
    if not judging and related is None:
        raise typer.BadParameter("none of these runs is to judge by")
    trial = Trial(None if online else taught, judging, related, seed)
    if compare:
        if store or details or plot or configuration:
            raise typer.BadParameter(
                "--compare A B says which configurations; leave out --configuration, --store, "
                "--details and --plot"
            )
        _compare_configurations(trial, *compare, as_json=as_json)
    else:
        report = trial.under(configuration, store or IN_MEMORY, tenant)
        _write(report, details, plot)
        _show(report, as_json=as_json)
    if runs.failed:
        raise typer.Exit(PARTLY_DONE)


def _show(report: "Report", *, as_json: bool) -> None:
    if as_json:
        from contextgraph.replay import report_record

        emit(report_record(report, with_moments=False))
    else:
        from contextgraph.cli.judged import show_report

        show_report(report)


def _write(report: "Report", details: Path | None, plot: Path | None) -> None:
    from contextgraph.errors import SettingsError
    from contextgraph.replay import draw, report_record

    if details:
        import orjson

        content = orjson.dumps(report_record(report, with_moments=True))
        try:
            details.write_bytes(content)
        except OSError as error:
            reason = error.strerror or error
            raise SettingsError(f"{details} cannot be written: {reason}") from error
    if plot:
        for path in draw(report, plot):
            complain(f"wrote {path}")


def _compare_files(first: Path, second: Path, seed: int, *, as_json: bool) -> None:
    from contextgraph.replay import compare, moments_in

    contrasts = compare(moments_in(first), moments_in(second), seed)
    _show_contrasts(contrasts, first.name, second.name, {}, as_json=as_json)


def _compare_configurations(trial: "Trial", first: str, second: str, *, as_json: bool) -> None:
    from contextgraph.replay import compare

    reports = {name: trial.under(name) for name in (first, second)}
    contrasts = compare(reports[first].moments, reports[second].moments, trial.seed)
    configs: dict[str, Json] = {name: dict(report.config) for name, report in reports.items()}
    _show_contrasts(contrasts, first, second, configs, as_json=as_json)


def _show_contrasts(
    contrasts: "Sequence[Contrast]",
    first: str,
    second: str,
    configs: "dict[str, Json]",
    *,
    as_json: bool,
) -> None:
    from contextgraph.cli.judged import contrast_record, show_contrasts

    if as_json:
        records: list[Json] = [contrast_record(one) for one in contrasts]
        emit({"contrasts": records, **({"configurations": configs} if configs else {})})
    else:
        show_contrasts(contrasts, f"{second} against {first}, on the same moments")
