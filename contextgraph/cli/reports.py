"""Evaluations as tables, pages of HTML and pictures; statistics as pictures."""

from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from itertools import accumulate
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from contextgraph.cli.output import print_table, say
from contextgraph.page import TABLE_STYLE, facts_line, heading, html_table, report_head, write_html
from contextgraph.text import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from contextgraph.evaluation import (
        Contrast,
        Curve,
        Estimate,
        Measures,
        ReliabilityPoint,
        Report,
    )
    from contextgraph.stats import OutcomePeriod, StatisticsEngine

_WIDTH = 108
_LABEL_WIDTH = 18
_CONTRASTS = ("measure", "n", "first", "second", "only\nfirst", "only\nsecond", "difference", "p")
# It scores nothing by definition; the JSON has it.
_HIDDEN = frozenset({"nothing"})
TOP = 15
TOP_TRANSITIONS = 12
LABEL_WIDTH = 34
LEAST_SHOWN = 0.01
DOTS_PER_INCH = 120
_BARS = ("clearance", "localisation", "related")
COLOURS = {"solved": "#2a9d4a", "failed": "#c8553d", "unknown": "#b8b8b8"}


def show_evaluation(report: "Report") -> None:
    """Print the verdict, the configuration and the figures with 95 % intervals."""
    say((report.verdict, "bold"))
    for name, value in _settings(report).items():
        say((one_line(f"{name}: {value}", _WIDTH), "dim"))
    for title, measures in _measures(report):
        columns, rows = _figure_rows(measures)
        # An interval below its figure: the methods stand beside each other in 80 columns.
        lines = (line for row in rows for line in zip(*row, strict=True))
        print_table(title, columns, lines, columns[1:])
    for baseline, contrasts in report.contrasts.items():
        show_contrasts(contrasts, _against(baseline))


def show_contrasts(contrasts: "Sequence[Contrast]", title: str) -> None:
    """Print how the second does against the first, with McNemar's p."""
    print_table(title, _CONTRASTS, map(_contrast_row, contrasts), _CONTRASTS[1:])


def write_evaluation(path: Path, report: "Report") -> None:
    """Write *report* as a page to the file *path*.

    Raises `SettingsError` where it cannot be written, `MissingExtraError` without matplotlib.
    """
    write_html(path, TABLE_STYLE, _evaluation_page(report, svg_figures(report)))


def _evaluation_page(report: "Report", figures: dict[str, str]) -> Iterator[str]:
    yield report_head("Evaluation", report.verdict)
    for name, drawing in figures.items():
        yield heading(name.replace("_", " ").capitalize()) + drawing + "\n"
    for title, measures in _measures(report):
        columns, rows = _figure_rows(measures)
        yield heading(title) + html_table(columns, ([*map(" ".join, row)] for row in rows))
    for baseline, contrasts in report.contrasts.items():
        if contrasts:
            yield heading(_against(baseline))
            yield html_table(_CONTRASTS, map(_contrast_row, contrasts))
    yield facts_line(_settings(report))


def _settings(report: "Report") -> dict[str, str]:
    """What the figures depend on, in words."""
    return {name: _listed(value) for name, value in report.config.items()}


def _listed(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {one}" for name, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _measures(report: "Report") -> "Iterator[tuple[str, Measures]]":
    """The measures by method, those of families of errors, and those of loops, with titles."""
    loops = {name: by for name, by in report.measures.items() if "contextgraph" not in by}
    others = {name: by for name, by in report.measures.items() if name not in loops}
    for title, measures in (
        ("Measures, with 95 % intervals", others),
        ("Clearance@3 by family of error", report.families),
        ("Loops", loops),
    ):
        if measures:
            yield title, measures


def _against(baseline: str) -> str:
    return f"contextgraph against {baseline}, on the same moments"


def _figure_rows(measures: "Measures") -> tuple[list[str], list[list[tuple[str, str]]]]:
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


def _estimate(figure: "Estimate") -> tuple[str, str]:
    if figure.high > 1:
        return f"{figure.value:.1f}", f"{figure.low:.1f}–{figure.high:.1f}"
    return f"{figure.value:.3f}", f"{figure.low:.2f}–{figure.high:.2f}"


def _contrast_row(one: "Contrast") -> Sequence[str]:
    gap = one.difference
    shares = (f"{one.first:.3f}", f"{one.second:.3f}")
    only = (str(one.only_first), str(one.only_second))
    interval = f"{gap.value:+.3f} ({gap.low:+.2f}, {gap.high:+.2f})"
    return one.measure, str(one.moments), *shares, *only, interval, f"{one.p:.3f}"


def draw_statistics(statistics: "StatisticsEngine", folder: Path) -> list[Path]:
    """Draw errors, transitions and outcomes over time into *folder*, which is made where absent.

    Returns the files. Raises `MissingExtraError` without matplotlib.
    """
    frequency = statistics.get_error_frequency()
    figures = {
        "error_frequency": _frequency(frequency),
        "error_transitions": _transitions(list(frequency), statistics.get_error_transitions()),
        "outcomes": _outcomes(statistics.get_outcomes_over_time()),
    }
    return _saved(figures, folder)


def draw_evaluation(report: "Report", folder: Path) -> list[Path]:
    """Draw *report* into *folder*, as `draw_statistics` does."""
    return _saved(_of_evaluation(report), folder)


def svg_figures(report: "Report") -> dict[str, str]:
    """The figures of *report* by name, as SVG for a page. Raises as `draw_statistics`."""
    figures = _of_evaluation(report)
    from matplotlib import rc_context

    found = {}
    # The same report gives the same text.
    with rc_context({"svg.hashsalt": "contextgraph"}):
        for name, figure in figures.items():
            text = StringIO()
            figure.savefig(text, format="svg", metadata={"Date": None})
            found[name] = text.getvalue()[text.getvalue().index("<svg") :]
    return found


def _saved(figures: "Mapping[str, Figure]", folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{name}.png" for name in figures]
    for file, figure in zip(files, figures.values(), strict=True):
        figure.savefig(file, dpi=DOTS_PER_INCH)
    return files


def _of_evaluation(report: "Report") -> "dict[str, Figure]":
    from contextgraph.evaluation import reliability

    found = {}
    for name in _BARS:
        drawn = {of: by for of, by in report.measures.items() if of.startswith(f"{name}@")}
        if drawn:
            found[name], axes = _figure(9, 4.5)
            _draw_bars(axes, drawn)
    if report.curves:
        found["coverage_precision"], axes = _figure(6, 4.5)
        _draw_curves(axes, report.curves)
    if points := reliability(report.moments):
        found["reliability"], axes = _figure(5, 4.5)
        _draw_reliability(axes, points)
    return found


def _frequency(frequency: Mapping[str, int]) -> "Figure":
    shown = list(frequency.items())[:TOP]
    figure, axes = _figure(8, 1.2 + 0.32 * max(4, len(shown)))
    if not shown:
        return _nothing_in(figure)
    bars = axes.barh([_label(name) for name, _ in shown], [count for _, count in shown])
    axes.bar_label(bars, padding=3, fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.1)
    axes.set_xlabel("fragments that met it")
    axes.set_title(f"Most frequent errors ({len(shown)} of {len(frequency)} types)")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _transitions(
    frequent: Sequence[str], transitions: Mapping[str, Mapping[str, float]]
) -> "Figure":
    names = [name for name in frequent if name in transitions][:TOP_TRANSITIONS]
    figure, axes = _figure(9.5, 7.5)
    shares = [[transitions[name].get(other, 0.0) for other in names] for name in names]
    axes.set_title("After an error (row), how often which error comes next (column)")
    if not names:
        return _nothing_in(figure)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    ticks, labels = range(len(names)), [_label(name) for name in names]
    axes.set_xticks(ticks, labels, rotation=40, ha="right", rotation_mode="anchor", fontsize=8)
    axes.set_yticks(ticks, labels, fontsize=8)
    for row, column in ((row, column) for row in ticks for column in ticks):
        share = shares[row][column]
        if share >= LEAST_SHOWN:
            colour = "white" if share > 0.55 else "black"
            axes.text(
                column, row, f"{share:.0%}", ha="center", va="center", fontsize=8, color=colour
            )
    return figure


def _outcomes(periods: Sequence["OutcomePeriod"]) -> "Figure":
    figure, axes = _figure(9, 4.2)
    if not periods:
        return _nothing_in(figure)
    places, below = range(len(periods)), [0] * len(periods)
    for outcome, colour in COLOURS.items():
        counts = [period.outcomes[outcome] for period in periods]
        if any(counts):
            axes.bar(places, counts, bottom=below, color=colour, label=outcome, width=0.85)
        below = [low + count for low, count in zip(below, counts, strict=True)]
    every = max(1, -(-len(periods) // 8))
    axes.set_xticks(places[::every], _moments(periods, below)[::every], fontsize=8)
    axes.set_ylabel("runs")
    axes.locator_params("y", integer=True)
    axes.set_ylim(0, 1.05 * max(below))
    axes.set_title("How runs ended, oldest first")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return figure


def _moments(periods: Sequence["OutcomePeriod"], runs: Sequence[int]) -> list[str]:
    """Dates; of runs that all have the same date, which of them by number."""
    if periods[0].start.date() != periods[-1].end.date():
        return [f"{period.start:%Y-%m-%d}" for period in periods]
    return [f"run {before + 1:,}" for before in accumulate(runs, initial=0)][: len(periods)]


def _figure(width: float, height: float) -> "tuple[Figure, Axes]":
    from contextgraph.errors import MissingExtraError

    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(
            "plots need matplotlib: pip install 'contextgraph-memory[plot]'"
        ) from error
    # A figure of its own, without pyplot, needs no display and leaves nothing open.
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def _nothing_in(figure: "Figure") -> "Figure":
    """*figure* without axes, saying so."""
    figure.clear()
    figure.text(0.5, 0.5, "nothing to draw yet", ha="center", va="center")
    return figure


def _label(name: str) -> str:
    return name if len(name) <= LABEL_WIDTH else f"{name[: LABEL_WIDTH - 1]}…"


def _draw_bars(axes: "Axes", measures: "Measures") -> None:
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
    axes.legend(fontsize=8)


def _draw_reliability(axes: "Axes", points: "Sequence[ReliabilityPoint]") -> None:
    axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
    axes.plot([one.stated for one in points], [one.right for one in points], marker="o")
    axes.set_xlabel("probability of the first item shown")
    axes.set_ylabel("share in which it was the remedy")


def _draw_curves(axes: "Axes", curves: "Sequence[Curve]") -> None:
    from contextgraph.evaluation import CURVE_AT

    for one in curves:
        coverage = [point.coverage for point in one.points]
        precision = [point.precision for point in one.points]
        axes.plot(coverage, precision, marker=".", label=one.method)
    axes.set_xlabel("share of cleared errors answered")
    axes.set_ylabel(f"of those, the remedy among the first {CURVE_AT}")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8)
