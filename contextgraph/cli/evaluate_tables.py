"""The tables that ``contextgraph evaluate`` prints."""

from typing import TYPE_CHECKING

from contextgraph.cli.output import console, one_line, styled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.table import Table

    from contextgraph.evaluation import Contrast, Estimate, Measures, Report

_WIDTH = 108
# It scores nothing by definition; the JSON has it.
_HIDDEN = frozenset({"nothing"})


def show_report(report: "Report") -> None:
    """Print the verdict, the configuration and the figures with 95 % intervals."""
    screen = console()
    screen.print(styled((report.verdict, "bold")))
    for name, value in report.config.items():
        screen.print(styled((one_line(f"{name}: {value}", _WIDTH), "dim")))
    loops = {name: by for name, by in report.measures.items() if not _is_by_method(by)}
    others = {name: by for name, by in report.measures.items() if name not in loops}
    screen.print(_figures("Measures, with 95 % intervals", others))
    if report.families:
        screen.print(_figures("clearance@3 by family of error", report.families))
    if loops:
        screen.print(_figures("Loops", loops))
    for baseline, contrasts in report.contrasts.items():
        if contrasts:
            show_contrasts(contrasts, f"contextgraph against {baseline}, on the same moments")


def show_contrasts(contrasts: "Sequence[Contrast]", title: str) -> None:
    """Print how the second does against the first, with McNemar's p."""
    from rich.table import Table

    table = Table(title=styled(title), title_justify="left", box=None, pad_edge=False)
    columns = ("measure", "moments", "first", "second", "only first", "only second")
    for column in (*columns, "difference", "p"):
        table.add_column(column, justify="left" if column == "measure" else "right")
    for one in contrasts:
        gap = one.difference
        table.add_row(
            *(one.measure, str(one.moments), f"{one.first:.3f}", f"{one.second:.3f}"),
            *(str(one.only_first), str(one.only_second)),
            f"{gap.value:+.3f} ({gap.low:+.3f} to {gap.high:+.3f})",
            f"{one.p:.3f}",
        )
    console().print(table)


def _is_by_method(by: "Mapping[str, Estimate]") -> bool:
    return "contextgraph" in by


def figure_rows(measures: "Measures") -> "tuple[list[str], list[list[str]]]":
    """The titles of a table of *measures*, and its rows: measure, count, a figure per method."""
    names = dict.fromkeys(name for by in measures.values() for name in by)
    methods = [name for name in names if name not in _HIDDEN]
    rows = []
    for name, by in measures.items():
        count = next(iter(by.values())).count  # of contextgraph: methods may answer less or more
        cells = [_figure(by[method]) if method in by else "" for method in methods]
        rows.append([name, str(count), *cells])
    return ["", "n", *methods], rows


def _figures(title: str, measures: "Measures") -> "Table":
    from rich.table import Table

    titles, rows = figure_rows(measures)
    table = Table(title=styled(title), title_justify="left", box=None, pad_edge=False)
    for number, one in enumerate(titles):
        table.add_column(styled(one), justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(styled, row))
    return table


def _figure(figure: "Estimate") -> str:
    if figure.high > 1:
        return f"{figure.value:.1f} {figure.low:.1f}–{figure.high:.1f}"
    return f"{figure.value:.3f} {figure.low:.2f}–{figure.high:.2f}"
