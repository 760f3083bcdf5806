"""``contextgraph experiment report --html``: one page that needs no network and no scripts."""

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from contextgraph.cli.experiment import COMPARED, arm_rows, change_line, changes_of, comparison_row
from contextgraph.cli.output import plain
from contextgraph.cli.page import TABLE_STYLE, html_table, write_html

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contextgraph.experiment import Report, TaskChange


def write_report(path: Path, report: "Report") -> None:
    """Write *report* to the file *path*. Raises `SettingsError` where it cannot be written."""
    write_html(path, TABLE_STYLE, _page(report))


def _page(report: "Report") -> Iterator[str]:
    yield f'<h1>Experiment</h1>\n<p class="verdict">{_text(report.verdict)}</p>\n'
    settings = " · ".join(f"{name}: {value}" for name, value in report.settings.items())
    yield f'<p class="facts">{_text(settings)}</p>\n'
    yield "<h2>Mean of an attempt (95 % interval)</h2>\n"
    yield html_table(["", *(one.arm for one in report.arms)], arm_rows(report))
    yield "<h2>Differences on the same tasks (95 % interval)</h2>\n"
    yield html_table(COMPARED, map(comparison_row, report.comparisons))
    for title, changes in changes_of(report):
        yield from _changes(title, changes)


def _changes(title: str, changes: "Sequence[TaskChange]") -> Iterator[str]:
    """Each task of *changes*, opened by a click: what was shown to the agent."""
    if changes:
        yield f"<h2>{_text(title)}</h2>\n"
    for change in changes:
        texts = "".join(f"<pre>{_text(text)}</pre>\n" for text in change.shown)
        shown = texts or "<p>Nothing was shown.</p>\n"
        yield f"<details><summary>{_text(change_line(change))}</summary>\n{shown}</details>\n"


def _text(text: str) -> str:
    return escape(plain(text))
