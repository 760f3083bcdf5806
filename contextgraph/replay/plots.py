"""A report as pictures."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from contextgraph.errors import MissingExtraError
from contextgraph.replay.measures import Measures
from contextgraph.replay.reports import Curve, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BARS = {
    "clearance": "clearance@",
    "localisation": "localisation@",
    "related": "related@",
}


def draw(report: Report, folder: Path) -> list[Path]:
    """Draw *report* into *folder*, which is made; the files that were written.

    Raises MissingExtraError without matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(
            "plots need matplotlib: pip install 'contextgraph-memory[plot]'"
        ) from error
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for picture, start in _BARS.items():
        shown = {name: by for name, by in report.measures.items() if name.startswith(start)}
        if shown:
            figure = Figure(figsize=(9, 4.5), layout="constrained")
            _bars(figure.subplots(), shown)
            written.append(folder / f"{picture}.png")
            figure.savefig(written[-1])
    if report.curves:
        figure = Figure(figsize=(6, 4.5), layout="constrained")
        _curves(figure.subplots(), report.curves)
        written.append(folder / "coverage_precision.png")
        figure.savefig(written[-1])
    return written


def _bars(axes: "Axes", measures: Measures) -> None:
    """A group of bars for each measure, a bar for each method, its interval on it."""
    methods = list(dict.fromkeys(method for by in measures.values() for method in by))
    width = 0.8 / len(methods)
    for place, method in enumerate(methods):
        figures = [(at, by[method]) for at, by in enumerate(measures.values()) if method in by]
        values = [figure.value for _, figure in figures]
        below = [max(0.0, figure.value - figure.low) for _, figure in figures]
        above = [max(0.0, figure.high - figure.value) for _, figure in figures]
        axes.bar(
            [at + place * width for at, _ in figures],
            values,
            width,
            yerr=(below, above),
            label=method,
            capsize=2,
        )
    axes.set_xticks([at + 0.4 - width / 2 for at in range(len(measures))], list(measures))
    axes.tick_params(axis="x", labelsize=8, labelrotation=15)
    axes.legend(fontsize=8)


def _curves(axes: "Axes", curves: Sequence[Curve]) -> None:
    for curve in curves:
        axes.plot(
            [point.coverage for point in curve.points],
            [point.precision for point in curve.points],
            marker=".",
            label=f"{curve.method} by {curve.height}",
        )
    axes.set_xlabel("share of cleared errors answered")
    axes.set_ylabel("of those, the cure among the first three")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8)
