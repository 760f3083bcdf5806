"""The reports of ``contextgraph evaluate`` and ``experiment``, as tables and as pages of HTML.

A page needs no network and no scripts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from contextgraph.cli.output import print_table, say
from contextgraph.page import TABLE_STYLE, html_table, shown, write_html
from contextgraph.text import number_of, one_line

if TYPE_CHECKING:
    from contextgraph.evaluation import Contrast, Difference, Estimate, Measures, Report
    from contextgraph.experiment import Comparison, Report as Trial, TaskChange

_WIDTH = 108
_CHANGES_SHOWN = 5
_CONTRASTS = (
    *("measure", "moments", "first", "second"),
    *("only first", "only second", "difference", "p"),
)
_COMPARED = ("", "solved, points", "p", "better", "worse", "steps")
_OF_ATTEMPTS = "Mean of an attempt (95 % interval)"
_OF_TASKS = "Differences on the same tasks (95 % interval)"
# It scores nothing by definition; the JSON has it.
_HIDDEN = frozenset({"nothing"})
# Amounts of an attempt, as they are shown.
_MEANS = {
    "steps": ("steps", 1),
    "tokens": ("tokens, 1000", 0.001),
    "cost": ("cost, cents", 100),
    "advice tokens": ("advice tokens", 1),
}


def show_evaluation(report: "Report") -> None:
    """Print the verdict, the configuration and the figures with 95 % intervals."""
    say((report.verdict, "bold"))
    for name, value in report.config.items():
        say((one_line(f"{name}: {value}", _WIDTH), "dim"))
    for title, measures in _measures(report):
        columns, rows = _figure_rows(measures)
        print_table(title, columns, rows, columns[1:])
    for baseline, contrasts in report.contrasts.items():
        show_contrasts(contrasts, _against(baseline))


def show_contrasts(contrasts: "Sequence[Contrast]", title: str) -> None:
    """Print how the second does against the first, with McNemar's p."""
    print_table(title, _CONTRASTS, map(_contrast_row, contrasts), _CONTRASTS[1:])


def write_evaluation(path: Path, report: "Report") -> None:
    """Write *report* as a page to the file *path*.

    Raises `SettingsError` where it cannot be written, `MissingExtraError` without matplotlib.
    """
    from contextgraph.cli.plots import svg_figures

    write_html(path, TABLE_STYLE, _evaluation_page(report, svg_figures(report)))


def _evaluation_page(report: "Report", figures: dict[str, str]) -> Iterator[str]:
    yield _verdict("Evaluation", report.verdict)
    for name, drawing in figures.items():
        yield _heading(name.replace("_", " ").capitalize()) + drawing + "\n"
    for title, measures in _measures(report):
        yield _heading(title) + html_table(*_figure_rows(measures))
    for baseline, contrasts in report.contrasts.items():
        if contrasts:
            yield _heading(_against(baseline))
            yield html_table(_CONTRASTS, map(_contrast_row, contrasts))
    yield _facts(report.config)


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


def _figure_rows(measures: "Measures") -> tuple[list[str], list[list[str]]]:
    """The titles of a table of *measures*, and its rows: measure, count, a figure per method."""
    names = dict.fromkeys(name for by in measures.values() for name in by)
    methods = [name for name in names if name not in _HIDDEN]
    rows = []
    for name, by in measures.items():
        count = next(iter(by.values())).count  # of contextgraph: methods may answer less or more
        cells = [_estimate(by[method]) if method in by else "" for method in methods]
        rows.append([name, str(count), *cells])
    return ["", "n", *methods], rows


def _estimate(figure: "Estimate") -> str:
    if figure.high > 1:
        return f"{figure.value:.1f} {figure.low:.1f}–{figure.high:.1f}"
    return f"{figure.value:.3f} {figure.low:.2f}–{figure.high:.2f}"


def _contrast_row(one: "Contrast") -> Sequence[str]:
    gap = one.difference
    shares = (f"{one.first:.3f}", f"{one.second:.3f}")
    only = (str(one.only_first), str(one.only_second))
    interval = f"{gap.value:+.3f} ({gap.low:+.3f} to {gap.high:+.3f})"
    return one.measure, str(one.moments), *shares, *only, interval, f"{one.p:.3f}"


def show_experiment(report: "Trial") -> None:
    """Print the verdict, the figures of each arm, how arms differ, and the first tasks changed."""
    say((report.verdict, "bold"))
    say()
    names = [one.arm for one in report.arms]
    print_table(_OF_ATTEMPTS, ["", *names], _arm_rows(report), names)
    print_table(_OF_TASKS, _COMPARED, map(_comparison_row, report.comparisons), _COMPARED[1:])
    for title, changes in _changes(report):
        _show_changes(title, changes)


def write_experiment(path: Path, report: "Trial") -> None:
    """Write *report* as a page to the file *path*; raises `SettingsError` where it cannot be."""
    write_html(path, TABLE_STYLE, _experiment_page(report))


def _experiment_page(report: "Trial") -> Iterator[str]:
    yield _verdict("Experiment", report.verdict) + _facts(report.settings)
    titles = ["", *(one.arm for one in report.arms)]
    yield _heading(_OF_ATTEMPTS) + html_table(titles, _arm_rows(report))
    yield _heading(_OF_TASKS) + html_table(_COMPARED, map(_comparison_row, report.comparisons))
    for title, changes in _changes(report):
        yield _heading(title)
        for change in changes:
            yield _opened(change)


def _opened(change: "TaskChange") -> str:
    """A task, opened by a click: what was shown to the agent."""
    texts = "".join(f"<pre>{shown(text)}</pre>\n" for text in change.shown)
    inside = texts or "<p>Nothing was shown.</p>\n"
    return f"<details><summary>{shown(_change_line(change))}</summary>\n{inside}</details>\n"


def _interval(
    value: "Estimate | Difference | None", scale: float = 1, *, signed: bool = False
) -> str:
    """*value* with its interval, in as few digits as matter; a dash where there is none."""
    if value is None:
        return "–"
    numbers = [one * scale for one in (value.value, value.low, value.high)]
    largest = max(map(abs, numbers))
    digits = 0 if largest >= 10 or not largest else 1 if largest >= 1 else 2
    middle, low, high = (f"{one:{'+' if signed else ''}.{digits}f}" for one in numbers)
    return f"{middle} ({low} to {high})" if signed else f"{middle} ({low}–{high})"


def _arm_rows(report: "Trial") -> list[list[str]]:
    """The figures of all arms: a row for each measure, a column for each arm."""
    arms = report.arms
    most = max((k for one in arms for k in one.pass_at), default=1)
    rows = [
        ["tasks", *(str(one.tasks) for one in arms)],
        ["attempts", *(str(one.attempts) for one in arms)],
        ["broken", *(str(one.broken) for one in arms)],
    ]
    rows += [
        [f"pass@{k}, %", *(_interval(one.pass_at.get(k), 100) for one in arms)]
        for k in sorted({1, most})
    ]
    rows += [
        [title, *(_interval(one.means.get(name), scale) for one in arms)]
        for name, (title, scale) in _MEANS.items()
    ]
    return [*rows, ["cost of all, $", *(f"{one.spent:.2f}" for one in arms)]]


def _comparison_row(found: "Comparison") -> list[str]:
    return [
        f"{found.arm} − {found.against}",
        _interval(found.solved, 100, signed=True),
        f"{found.p:.3f}",
        str(len(found.rescues)),
        str(len(found.regressions)),
        _interval(found.means.get("steps"), signed=True),
    ]


def _changes(report: "Trial") -> "Iterator[tuple[str, Sequence[TaskChange]]]":
    """The tasks that each arm rescued and regressed against none, with a title."""
    for found in report.comparisons:
        if found.against != report.comparisons[0].against:
            continue
        if found.rescues:
            yield f"Rescued by {found.arm}", found.rescues
        if found.regressions:
            yield f"Regressed by {found.arm}", found.regressions


def _change_line(change: "TaskChange") -> str:
    """A task, and in which share of attempts it was solved before and after."""
    return f"{change.instance_id}: solved in {change.before:.0%}, then in {change.after:.0%}"


def _show_changes(title: str, changes: "Sequence[TaskChange]") -> None:
    """Print the first *changes*, and all that was shown in the first."""
    say((f"{title}: {number_of(len(changes), 'task')}", "bold"))
    for number, change in enumerate(changes[:_CHANGES_SHOWN]):
        say(f"  {_change_line(change)}")
        for text in () if number else change.shown:
            say((text, "dim"), indent=4)
    if len(changes) > _CHANGES_SHOWN:
        more = len(changes) - _CHANGES_SHOWN
        say(f"  … and {more} more (--html, --json)")
    say()


def _verdict(title: str, verdict: str) -> str:
    return f'<h1>{title}</h1>\n<p class="verdict">{shown(verdict)}</p>\n'


def _heading(title: str) -> str:
    return f"<h2>{shown(title)}</h2>\n"


def _facts(settings: "Mapping[str, object]") -> str:
    listed: Iterable[str] = (f"{name}: {value}" for name, value in settings.items())
    return f'<p class="facts">{shown(" · ".join(listed))}</p>\n'
