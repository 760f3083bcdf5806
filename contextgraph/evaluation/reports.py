"""A report of an evaluation: a verdict, figures, its record, page and pictures."""

from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import orjson
from markupsafe import Markup
from msgspec import Struct

from contextgraph.console.page import ReportPart, write_report
from contextgraph.errors import ReadError
from contextgraph.evaluation.evaluation import Evaluation
from contextgraph.evaluation.measures import (
    BASELINES,
    OURS,
    Contrast,
    CurvePoint,
    Estimate,
    Measures,
    Moment,
    MomentKind,
    ReliabilityPoint,
    against,
    clearance_by_family,
    curve,
    measures_of,
    reliability,
)
from contextgraph.evaluation.saving import ALL, CEILING, saved_measures
from contextgraph.learning.statistics import new_figure, save_figures
from contextgraph.model import Json
from contextgraph.model.codec import COMPLETE, decoded, encoded

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


CURVE_AT = 3
FAMILIES_AT = 3
_CURVES = (OURS, "bm25")
# The measure by which a verdict compares, and what it is about, most important first.
_JUDGED_BY = {
    "clearance@3": "the remedy of an error among its first three items",
    "localisation@5": "a file to change among its first five",
    "related@5": "a linked task among its first five",
}

_BASELINES = {"bm25": "text search, BM25", "bm25 in scope": "text search in the repository, BM25"}
# Fewer moments than this differ by chance whatever the methods.
_FEWEST = 50


class Curve(Struct, frozen=True):
    """The trade of coverage for precision of *method*, by the score of its first item."""

    method: str
    points: tuple[CurvePoint, ...]


class Report(Struct, frozen=True):
    """The results of an evaluation; *config* records what was evaluated, and on which runs.

    *verdict* is one sentence; *contrasts* are with each baseline, the baseline first. *saving* has
    the net steps saved and the tokens of a run, by moment.
    """

    verdict: str
    config: Mapping[str, Json]
    measures: Measures
    families: Measures
    curves: tuple[Curve, ...]
    contrasts: Mapping[str, tuple[Contrast, ...]]
    moments: tuple[Moment, ...]
    saving: Mapping[str, Measures]


def report_of(
    evaluation: Evaluation | None,
    related: Sequence[Moment],
    config: Mapping[str, Json],
    seed: int,
    by_hand: Measures | None = None,
) -> Report:
    """Return the report of an evaluation by runs, of related tasks, or of both.

    *by_hand* are measures by judgements that were made by hand.
    """
    moments = (*(evaluation.moments if evaluation else ()), *related)
    warnings = evaluation.loop_warnings if evaluation else ()
    measures = {**measures_of(moments, warnings, seed), **(by_hand or {})}
    contrasts = {name: against(moments, name, seed) for name in BASELINES if name != "nothing"}
    curves = (Curve(method, curve(moments, method, CURVE_AT)) for method in _CURVES)
    return Report(
        verdict=_verdict_of(measures, contrasts),
        config={**config, **(_described(evaluation) if evaluation else {}), "seed": seed},
        measures=measures,
        families=clearance_by_family(moments, FAMILIES_AT, seed),
        curves=tuple(curve for curve in curves if curve.points),
        contrasts=contrasts,
        moments=moments,
        saving=saved_measures(evaluation.replays, seed) if evaluation else {},
    )


def report_record(report: Report, *, with_moments: bool) -> dict[str, Json]:
    """Return *report* as JSON; its moments are needed to compare it."""
    record: dict[str, Json] = {
        "verdict": report.verdict,
        "config": dict(report.config),
        "measures": encoded(report.measures, COMPLETE),
        f"clearance@{FAMILIES_AT} by error family": encoded(report.families, COMPLETE),
        "curves": encoded(report.curves, COMPLETE),
        "against": encoded(report.contrasts, COMPLETE),
        **{name: encoded(measures, COMPLETE) for name, measures in report.saving.items()},
    }
    if with_moments:
        record["moments"] = encoded(report.moments, COMPLETE)
    return record


def moments_in(path: Path) -> tuple[Moment, ...]:
    """Return the moments of a report that was written with them; raises `ReadError`."""
    try:
        record = orjson.loads(path.read_bytes())
        rows = record["moments"]
        return tuple(decoded(Moment, row) for row in rows)
    except OSError as error:
        raise ReadError(str(path), "", f"cannot be read: {error.strerror or error}") from error
    except (ReadError, orjson.JSONDecodeError, TypeError, KeyError) as error:
        reason = "is not a report with moments; write one with evaluate --details FILE"
        raise ReadError(str(path), "", reason) from error


def _verdict_of(measures: Measures, contrasts: Mapping[str, Sequence[Contrast]]) -> str:
    """Return one sentence: the result, and how much better than the best baseline it is."""
    measure = next((name for name in _JUDGED_BY if name in measures), None)
    if measure is None:
        return "Nothing could be judged by these runs."
    sentence = f"It ranks {_JUDGED_BY[measure]} in {_percent(measures[measure][OURS].value)}"
    if precision := measures.get("precision@3"):
        coverage = measures["answered: cleared errors"][OURS].value
        sentence = (
            f"At errors it is right in {_percent(precision[OURS].value)} where it speaks (first "
            f"three items) and speaks at {_percent(coverage)}; it ranks "
            f"{_JUDGED_BY[measure]} in {_percent(measures[measure][OURS].value)}"
        )
    best = max(
        (
            (contrast.first, name, contrast)
            for name, of_baseline in contrasts.items()
            for contrast in of_baseline
            if contrast.measure == measure
        ),
        key=lambda entry: entry[0],
    )
    few = measures[measure][OURS].count
    caution = f" {few} moments are too few to compare methods." if few < _FEWEST else ""
    return f"{sentence}, {_compared(best[1], best[2])}.{caution}"


def saved_in_words(report: Report) -> Iterator[str]:
    """Yield the steps that advice saved in a run, beside the most that it could, and its tokens."""
    saved, tokens = report.saving.get("steps saved", {}), report.saving.get("tokens a run", {})
    for name, measured in saved.items():
        if not name.startswith(ALL) or OURS not in measured:
            continue
        ours, most = measured[OURS], measured.get(CEILING)
        text = f"Steps saved in a run{name.removeprefix(ALL)}: {ours.value:z.1f}"
        text += f" (95 %: {ours.low:z.1f} to {ours.high:z.1f})"
        text += f"; a perfect memory of the same runs: {most.value:.1f}" if most else ""
        yield f"{text}; {tokens[name][OURS].value:.0f} tokens shown."


def _compared(baseline: str, contrast: Contrast) -> str:
    gap = contrast.difference
    points = f"{100 * gap.low:+.0f} to {100 * gap.high:+.0f} points"
    by = f"the best baseline ({_BASELINES.get(baseline, baseline)}, {_percent(contrast.first)})"
    if gap.low > 0:
        return f"better than {by} by {100 * gap.value:.0f} points ({points})"
    if gap.high < 0:
        return f"worse than {by} by {-100 * gap.value:.0f} points ({points})"
    return f"no different from {by} beyond chance ({points})"


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def _described(evaluation: Evaluation) -> dict[str, Json]:
    kinds = [moment.kind for moment in evaluation.moments]
    return {
        "mode": str(evaluation.mode),
        "order": str(evaluation.order),
        "data": evaluation.fingerprint,
        "runs_learned": evaluation.learned,
        "runs_judged": evaluation.judged,
        "moments": {str(kind): kinds.count(kind) for kind in (MomentKind.START, MomentKind.ERROR)},
        "seconds": {
            "learning": round(evaluation.learning_seconds, 1),
            "judging": round(evaluation.judging_seconds, 1),
        },
    }


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
    """Yield measures by method, of steps saved, of families and of loops, with titles."""
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
    """Return the title of contrasts with *baseline*."""
    return f"contextgraph against {baseline}, on the same moments"


def figure_rows(measures: Measures) -> tuple[list[str], list[list[tuple[str, str]]]]:
    """Return titles of a table of *measures*, and rows: measure, count, a figure per method.

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
    """Return the cells of a row of `CONTRASTS`."""
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
    for one in curves:
        coverage = [point.coverage for point in one.points]
        precision = [point.precision for point in one.points]
        axes.plot(coverage, precision, marker=".", label=one.method)
    axes.set_xlabel("share of cleared errors answered")
    axes.set_ylabel(f"of those, the remedy among the first {CURVE_AT}")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper right", fontsize=8)
