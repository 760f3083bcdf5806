"""What replay and evaluation bring, as records and as tables."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from rich.table import Table
from rich.text import Text

from contextgraph.cli.output import one_line, plain, screen
from contextgraph.cli.records import context_record, loop_records
from contextgraph.model import Json
from contextgraph.replay import Contrast, Estimate, Measures, MomentKind, Report, Spoken, Tally
from contextgraph.text import number_of

_WIDTH = 108
_SAID = 2
# It scores nothing by definition; the JSON has it.
_NOT_SHOWN = frozenset({"nothing"})


def spoken_record(spoken: Spoken) -> dict[str, Json]:
    """One moment of a replay."""
    return {
        "instance_id": spoken.raw.instance_id,
        "step": spoken.step,
        "kind": str(spoken.kind),
        "answered": spoken.answered,
        "items": _items(spoken),
    }


def _items(spoken: Spoken) -> dict[str, Json]:
    if spoken.loop is not None:
        (loop,) = loop_records([spoken.loop])
        return {"loop": loop, "escapes": list(spoken.escapes)}
    if spoken.context is None:
        return {}
    record = context_record(spoken.context, "")
    return {
        name: record[name]
        for name in ("suggestions", "error_solutions", "similar_cases", "warnings", "degraded")
    }


def tally_record(tally: Tally) -> dict[str, Json]:
    """The counts of a replay."""
    return {
        "order": str(tally.order),
        "runs": tally.runs,
        "moments": {str(kind): tally.moments[kind] for kind in _walked()},
        "answered": {str(kind): tally.answered[kind] for kind in _walked()},
        "learned": {str(status): count for status, count in sorted(tally.learned.items())},
        "seconds": round(tally.seconds, 3),
    }


def _walked() -> Sequence[MomentKind]:
    return (MomentKind.START, MomentKind.ERROR, MomentKind.LOOP)


def show_spoken(spoken: Spoken) -> None:
    """The first things that would have been said at a moment."""
    console = screen()
    head = f"{spoken.raw.instance_id} after step {spoken.step}, {spoken.kind}"
    console.print(Text(one_line(head, _WIDTH), style="bold"))
    for line in _lines(spoken)[:_SAID]:
        console.print(Text(one_line(f"  {line}", _WIDTH)))


def _lines(spoken: Spoken) -> list[str]:
    if spoken.loop is not None:
        name = spoken.loop.kind.replace("_", " ")
        first = f"{spoken.loop.severity}: {name}, {spoken.loop.repetitions} times"
        return [first, *spoken.escapes]
    if spoken.context is None:
        return []
    context = spoken.context
    lines = [suggestion.strategy for suggestion in context.suggestions]
    lines += [solution.description for solution in context.error_solutions]
    lines += [f"{case.instance_id}: {case.summary}" for case in context.similar_cases]
    return lines + [warning.text for warning in context.warnings]


def show_tally(tally: Tally) -> None:
    """How often memory would have spoken."""
    console = screen()
    ordered = tally.order.replace("_", " ")
    console.print(Text(f"{number_of(tally.runs, 'run')}, ordered by {ordered}", style="bold"))
    table = Table()
    for column in ("moment", "asked", "answered"):
        table.add_column(column, justify="left" if column == "moment" else "right")
    for kind in _walked():
        table.add_row(str(kind), str(tally.moments[kind]), str(tally.answered[kind]))
    console.print(table)


def show_report(report: Report) -> None:
    """Configuration and figures, with 95 % intervals."""
    console = screen()
    for name, value in report.config.items():
        console.print(Text(one_line(f"{name}: {value}", _WIDTH), style="dim"))
    loops = {name: by for name, by in report.measures.items() if not _is_by_method(by)}
    others = {name: by for name, by in report.measures.items() if name not in loops}
    console.print(_figures("Measures, with 95 % intervals", others))
    if report.topics:
        console.print(_figures("clearance@3 by family of error", report.topics))
    if loops:
        console.print(_figures("Loops", loops))
    for baseline, contrasts in report.contrasts.items():
        if contrasts:
            show_contrasts(contrasts, f"contextgraph against {baseline}, on the same moments")


def show_contrasts(contrasts: Sequence[Contrast], title: str) -> None:
    """How the second does against the first, with McNemar's p."""
    table = Table(title=Text(title), title_justify="left", box=None, pad_edge=False)
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
    screen().print(table)


def contrast_record(contrast: Contrast) -> dict[str, Json]:
    """One measure of two reports."""
    return asdict(contrast)


def _is_by_method(by: Mapping[str, Estimate]) -> bool:
    return "contextgraph" in by


def _figures(title: str, measures: Measures) -> Table:
    names = dict.fromkeys(name for by in measures.values() for name in by)
    methods = [name for name in names if name not in _NOT_SHOWN]
    table = Table(title=Text(title), title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    table.add_column("n", justify="right")
    for method in methods:
        table.add_column(Text(plain(method)), justify="right", overflow="fold")
    for name, by in measures.items():
        count = next(iter(by.values())).count  # of contextgraph: methods may answer less or more
        cells = [_figure(by[method]) if method in by else "" for method in methods]
        table.add_row(Text(plain(name)), str(count), *cells)
    return table


def _figure(figure: Estimate) -> str:
    if figure.high > 1:
        return f"{figure.value:.1f} {figure.low:.1f}–{figure.high:.1f}"
    return f"{figure.value:.3f} {figure.low:.2f}–{figure.high:.2f}"
