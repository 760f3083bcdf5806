"""``contextgraph evaluate``: a memory judged by recorded runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contextgraph.cli.options import AsJson, Tenant, open_memory
from contextgraph.cli.output import complain, emit
from contextgraph.cli.replaying import IN_MEMORY, OwnStore

PARTLY_DONE = 3

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contextgraph.memory import AgentMemory
    from contextgraph.model import Json, RawTrajectory
    from contextgraph.replay import Evaluation, Moment, Report


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
        tuple[Path, Path] | None,
        _option("--compare", "FILE FILE", "Compare two reports written by --details."),
    ] = None,
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
    """Judge what a memory says by recorded runs, beside baselines, with 95 % intervals.

    Learns one part of the runs and judges by the other (--split, or --learn and --judge), or goes
    through them in order (--online). The judged run, its instance and later runs are not seen.
    Fills a memory that is forgotten at the end; one named by --store must be empty.

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
    """
    if compare:
        _compare(*compare, seed, as_json=as_json)
        return
    given = _Given(paths, learn, judge)
    taught, judging = given.parts(0.0 if online else share)
    judging = _chosen(judging, min_runs, max_runs, seed)
    if not judging and related is None:
        raise typer.BadParameter("name runs to judge by, --related, or --compare")
    linked = _related(related, seed) if related else ()
    with open_memory(store or IN_MEMORY, tenant) as memory:
        found = _evaluated(memory, None if online else taught, judging, seed) if judging else None
        report = _report(memory, found, linked, seed)
    _write(report, details, plot)
    if as_json:
        from contextgraph.replay import report_record

        emit(report_record(report, with_moments=False))
    else:
        from contextgraph.cli.judged import show_report

        show_report(report)
    if given.failed:
        raise typer.Exit(PARTLY_DONE)


class _Given:
    """The runs that the options name."""

    def __init__(
        self, paths: list[str] | None, learn: list[str] | None, judge: list[str] | None
    ) -> None:
        if paths and (learn or judge):
            raise typer.BadParameter("give PATH, or --learn and --judge, not both")
        self._paths, self._learn, self._judge = paths, learn, judge
        self.failed = 0

    def parts(self, share: float) -> "tuple[Sequence[RawTrajectory], Sequence[RawTrajectory]]":
        """Those to learn, about *share* of what stands for both, and those to judge by."""
        from contextgraph.replay import split

        taught, judging = split(self._read(self._paths), share)
        return [*taught, *self._read(self._learn)], [*judging, *self._read(self._judge)]

    def _read(self, paths: list[str] | None) -> "list[RawTrajectory]":
        from contextgraph.cli.intake import Intake

        intake = Intake(paths or [])
        found = list(intake) if paths else []
        self.failed += intake.failed
        return found


def _chosen(
    runs: "Sequence[RawTrajectory]", min_runs: int, max_runs: int | None, seed: int
) -> "Sequence[RawTrajectory]":
    from collections import Counter

    from contextgraph.replay import sampled

    sizes = Counter(raw.repo for raw in runs)
    kept = [raw for raw in runs if sizes[raw.repo] >= min_runs]
    return kept if max_runs is None else sampled(kept, max_runs, seed)


def _evaluated(
    memory: "AgentMemory",
    taught: "Sequence[RawTrajectory] | None",
    judging: "Sequence[RawTrajectory]",
    seed: int,
) -> "Evaluation":
    from contextgraph.cli.progress import Progress

    known = memory.get_stats().counts.nodes.get("Trajectory", 0)
    if known:
        raise typer.BadParameter(f"--store has {known} runs; an evaluation needs an empty memory")
    progress = Progress(lambda: len(judging) * (2 if taught is None else 1) + len(taught or ()))
    with progress:
        if taught is None:
            return memory.evaluate_online(judging, seed=seed, advance=lambda: progress.advance(1))
        return memory.evaluate(taught, judging, seed=seed, advance=lambda: progress.advance(1))


def _related(folder: Path, seed: int) -> "tuple[Moment, ...]":
    """Judged in a memory of their own: past tasks would help or hinder the runs."""
    with open_memory(IN_MEMORY, None) as memory:
        return memory.evaluate_related(folder, seed=seed)


def _report(
    memory: "AgentMemory", found: "Evaluation | None", related: "tuple[Moment, ...]", seed: int
) -> "Report":
    from contextgraph.replay import report_of

    return report_of(found, related, _configuration(memory), seed)


def _configuration(memory: "AgentMemory") -> "dict[str, Json]":
    from dataclasses import asdict

    from contextgraph.cli.checkup import own_version
    from contextgraph.config import load_settings
    from contextgraph.retrieval import CONSERVATIVE
    from contextgraph.retrieval.fuse import WEIGHTS

    return {
        "version": own_version(),
        "embedder": load_settings().embedder or "tfidf",
        "channels": list(memory.retriever.channels),
        "weights": dict(WEIGHTS),
        "gate": asdict(CONSERVATIVE),
    }


def _write(report: "Report", details: Path | None, plot: Path | None) -> None:
    from contextgraph.replay import draw, report_record

    if details:
        import orjson

        details.write_bytes(orjson.dumps(report_record(report, with_moments=True)))
    if plot:
        for path in draw(report, plot):
            complain(f"wrote {path}")


def _compare(first: Path, second: Path, seed: int, *, as_json: bool) -> None:
    from contextgraph.cli.judged import contrast_record, show_contrasts
    from contextgraph.replay import compare, moments_in

    contrasts = compare(moments_in(first), moments_in(second), seed)
    if as_json:
        emit({"contrasts": [contrast_record(one) for one in contrasts]})
    else:
        show_contrasts(contrasts, f"{second.name} against {first.name}, on the same moments")
