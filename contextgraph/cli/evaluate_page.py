"""``contextgraph evaluate --html``: one page that needs no network and no scripts."""

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from contextgraph.cli.evaluate_tables import figure_rows
from contextgraph.cli.output import plain
from contextgraph.cli.page import TABLE_STYLE, html_table, write_html

if TYPE_CHECKING:
    from contextgraph.evaluation import Contrast, Measures, Report

_CONTRASTED = ("measure", "moments", "baseline", "contextgraph", "difference (95 %)", "p")


def write_report(path: Path, report: "Report") -> None:
    """Write *report* to the file *path*.

    Raises `SettingsError` where it cannot be written, `MissingExtraError` without matplotlib.
    """
    from contextgraph.evaluation import svg_figures

    write_html(path, TABLE_STYLE, _page(report, svg_figures(report)))


def _page(report: "Report", figures: dict[str, str]) -> Iterator[str]:
    yield f'<h1>Evaluation</h1>\n<p class="verdict">{_text(report.verdict)}</p>\n'
    for name, drawing in figures.items():
        yield f"<h2>{_text(name.replace('_', ' ').capitalize())}</h2>\n{drawing}\n"
    yield _measures("Measures (95 % interval)", report.measures)
    yield _measures("Clearance@3 by family of error", report.families)
    for baseline, contrasts in report.contrasts.items():
        if contrasts:
            yield f"<h2>Against {_text(baseline)}, on the same moments</h2>\n"
            yield html_table(_CONTRASTED, map(_contrast, contrasts))
    settings = " · ".join(f"{name}: {value}" for name, value in report.config.items())
    yield f'<p class="facts">{_text(settings)}</p>\n'


def _measures(title: str, measures: "Measures") -> str:
    titles, rows = figure_rows(measures)
    return f"<h2>{_text(title)}</h2>\n{html_table(titles, rows)}" if measures else ""


def _contrast(one: "Contrast") -> Sequence[str]:
    gap = one.difference
    shares = (f"{one.first:.3f}", f"{one.second:.3f}")
    interval = f"{gap.value:+.3f} ({gap.low:+.3f} to {gap.high:+.3f})"
    return one.measure, str(one.moments), *shares, interval, f"{one.p:.3f}"


def _text(text: str) -> str:
    return escape(plain(text))
