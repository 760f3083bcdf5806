"""Plots of statistics, by matplotlib."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from contextgraph.errors import MissingExtraError
from contextgraph.text import cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from contextgraph.learning.statistics import OutcomePeriod, StatisticsEngine


_TOP, _TOP_TRANSITIONS, _LABEL_WIDTH = 15, 12, 34
_LEAST_SHOWN = 0.01
_DOTS_PER_INCH = 120
_COLOURS = {"solved": "#2a9d4a", "failed": "#c8553d", "unknown": "#b8b8b8"}


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
    return save_figures(figures, folder)


def save_figures(figures: "Mapping[str, Figure]", folder: Path) -> list[Path]:
    """Write *figures* as NAME.png into *folder*, which is made where absent; the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{name}.png" for name in figures]
    for file, figure in zip(files, figures.values(), strict=True):
        figure.savefig(file, dpi=_DOTS_PER_INCH)
    return files


def _frequency(frequency: Mapping[str, int]) -> "Figure":
    shown = list(frequency.items())[:_TOP]
    figure, axes = new_figure(8, 1.2 + 0.32 * max(4, len(shown)))
    if not shown:
        return _nothing_in(figure)
    bars = axes.barh([cut(name, _LABEL_WIDTH) for name, _ in shown], [count for _, count in shown])
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
    names = [name for name in frequent if name in transitions][:_TOP_TRANSITIONS]
    figure, axes = new_figure(9.5, 7.5)
    shares = [[transitions[name].get(other, 0.0) for other in names] for name in names]
    axes.set_title("After an error (row), how often which error comes next (column)")
    if not names:
        return _nothing_in(figure)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    ticks, labels = range(len(names)), [cut(name, _LABEL_WIDTH) for name in names]
    axes.set_xticks(ticks, labels, rotation=40, ha="right", rotation_mode="anchor", fontsize=8)
    axes.set_yticks(ticks, labels, fontsize=8)
    for row, column in ((row, column) for row in ticks for column in ticks):
        share = shares[row][column]
        if share >= _LEAST_SHOWN:
            colour = "white" if share > 0.55 else "black"
            axes.text(
                column, row, f"{share:.0%}", ha="center", va="center", fontsize=8, color=colour
            )
    return figure


def _outcomes(periods: Sequence["OutcomePeriod"]) -> "Figure":
    figure, axes = new_figure(9, 4.2)
    if not periods:
        return _nothing_in(figure)
    places, below = range(len(periods)), [0] * len(periods)
    for outcome, colour in _COLOURS.items():
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


def new_figure(width: float, height: float) -> "tuple[Figure, Axes]":
    """An empty figure, in inches. Raises `MissingExtraError` without matplotlib."""
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
