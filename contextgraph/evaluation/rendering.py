"""An evaluation as rows of tables, as a page of HTML, and as pictures drawn by matplotlib."""

from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from markupsafe import Markup

from contextgraph.evaluation.measures import (
    Contrast,
    Estimate,
    Measures,
    ReliabilityPoint,
    reliability,
)
from contextgraph.evaluation.reports import (
    CURVE_AT,
    Curve,
    Report,
)
from contextgraph.learning.figures import new_figure, save_figures
from contextgraph.page import ReportPart, write_report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LABEL_WIDTH = 18
CONTRASTS = ("measure", "n", "first", "second", "only\nfirst", "only\nsecond", "difference", "p")
# It scores nothing by definition; the JSON has it.
_HIDDEN = frozenset({"nothing"})
_BARS = ("clearance", "localisation", "related")


def write_evaluation(path: Path, report: Report) -> None:
    """Write *report* as a page to the file *path*.

    Raises `SettingsError` where it cannot be written, `MissingExtraError` without matplotlib.
    """
    write_report(path, "Evaluation", report.verdict, _parts(report), settings_in_words(report))


def _parts(report: Report) -> Iterator[ReportPart]:
    for name, drawing in _svg_figures(report).items():
        yield ReportPart(name.replace("_", " ").capitalize(), drawing=drawing)
    for title, measures in measures_by_title(report):
        columns, rows = figure_rows(measures)
        yield ReportPart(title, columns, [[" ".join(cell) for cell in row] for row in rows])
    for baseline, contrasts in report.contrasts.items():
        if contrasts:
            yield ReportPart(against_title(baseline), CONTRASTS, [*map(contrast_row, contrasts)])


def settings_in_words(report: Report) -> dict[str, str]:
    """Describe the settings that the figures depend on."""
    return {name: _listed(value) for name, value in report.config.items()}


def _listed(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {part}" for name, part in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def measures_by_title(report: Report) -> Iterator[tuple[str, Measures]]:
    """The measures by method, of steps saved, of families of errors and of loops, with titles."""
    loops = {name: by for name, by in report.measures.items() if "contextgraph" not in by}
    others = {name: by for name, by in report.measures.items() if name not in loops}
    for title, measures in (
        *((f"{name.capitalize()}, by moment", by) for name, by in report.saving.items()),
        ("Measures, with 95 % intervals", others),
        ("Clearance@3 by family of error", report.families),
        ("Loops", loops),
    ):
        if measures:
            yield title, measures


def against_title(baseline: str) -> str:
    """The title of contrasts with *baseline*."""
    return f"contextgraph against {baseline}, on the same moments"


def figure_rows(measures: Measures) -> tuple[list[str], list[list[tuple[str, str]]]]:
    """The titles of a table of *measures*, and its rows: measure, count, a figure per method.

    Each cell has two parts: a figure and its interval.
    """
    names = dict.fromkeys(name for by in measures.values() for name in by)
    methods = [name for name in names if name not in _HIDDEN]
    rows = []
    for name, by in measures.items():
        count = next(iter(by.values())).count  # of contextgraph: methods may answer less or more
        cells = [_estimate(by[method]) if method in by else ("", "") for method in methods]
        first, *more = wrap(name, _LABEL_WIDTH)
        rows.append([(first, " ".join(more)), (str(count), ""), *cells])
    return ["", "n", *(name.replace(" ", "\n", 1) for name in methods)], rows


def _estimate(figure: Estimate) -> tuple[str, str]:
    if figure.high > 1:
        return f"{figure.value:.1f}", f"{figure.low:.1f}–{figure.high:.1f}"
    return f"{figure.value:.3f}", f"{figure.low:.2f}–{figure.high:.2f}"


def contrast_row(contrast: Contrast) -> Sequence[str]:
    """The cells of a row of `CONTRASTS`."""
    gap = contrast.difference
    shares = (f"{contrast.first:.3f}", f"{contrast.second:.3f}")
    only = (str(contrast.only_first), str(contrast.only_second))
    interval = f"{gap.value:+.3f} ({gap.low:+.2f}, {gap.high:+.2f})"
    return contrast.measure, str(contrast.moments), *shares, *only, interval, f"{contrast.p:.3f}"


def draw_evaluation(report: Report, folder: Path) -> list[Path]:
    """Draw *report* into *folder*, which is made where absent; the files.

    Raises `MissingExtraError` without matplotlib.
    """
    return save_figures(_figures_of(report), folder)


def _svg_figures(report: Report) -> dict[str, Markup]:
    """The figures of *report* by name, as SVG for a page."""
    figures = _figures_of(report)
    from matplotlib import rc_context

    svg = {}
    # The same report gives the same text.
    with rc_context({"svg.hashsalt": "contextgraph"}):
        for name, figure in figures.items():
            text = StringIO()
            figure.savefig(text, format="svg", metadata={"Date": None})
            svg[name] = Markup(text.getvalue()[text.getvalue().index("<svg") :])
    return svg


def _figures_of(report: Report) -> "dict[str, Figure]":
    figures = {}
    for name in _BARS:
        drawn = {of: by for of, by in report.measures.items() if of.startswith(f"{name}@")}
        if drawn:
            figures[name], axes = new_figure(9, 4.5)
            _draw_bars(axes, drawn)
    if report.curves:
        figures["coverage_precision"], axes = new_figure(6, 4.5)
        _draw_curves(axes, report.curves)
    if points := reliability(report.moments):
        figures["reliability"], axes = new_figure(5, 4.5)
        _draw_reliability(axes, points)
    return figures


def _draw_bars(axes: "Axes", measures: Measures) -> None:
    """A group of bars for each measure, a bar for each method, its interval on it."""
    methods = list(dict.fromkeys(method for by in measures.values() for method in by))
    width = 0.8 / len(methods)
    for place, method in enumerate(methods):
        figures = [(at, by[method]) for at, by in enumerate(measures.values()) if method in by]
        below = [max(0.0, figure.value - figure.low) for _, figure in figures]
        above = [max(0.0, figure.high - figure.value) for _, figure in figures]
        axes.bar(
            [at + place * width for at, _ in figures],
            [figure.value for _, figure in figures],
            width,
            yerr=(below, above),
            label=method,
            capsize=2,
        )
    axes.set_xticks([at + 0.4 - width / 2 for at in range(len(measures))], list(measures))
    axes.tick_params(axis="x", labelsize=8, labelrotation=15)
    axes.legend(loc="upper left", fontsize=8)


def _draw_reliability(axes: "Axes", points: Sequence[ReliabilityPoint]) -> None:
    axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
    axes.plot([point.stated for point in points], [point.right for point in points], marker="o")
    axes.set_xlabel("probability of the first item shown")
    axes.set_ylabel("share in which it was the remedy")


def _draw_curves(axes: "Axes", curves: Sequence[Curve]) -> None:
    for curve in curves:
        coverage = [point.coverage for point in curve.points]
        precision = [point.precision for point in curve.points]
        axes.plot(coverage, precision, marker=".", label=curve.method)
    axes.set_xlabel("share of cleared errors answered")
    axes.set_ylabel(f"of those, the remedy among the first {CURVE_AT}")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper right", fontsize=8)
