"""``contextgraph experiment report --html``: one page that needs no network and no scripts."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from contextgraph.cli.experiment import COMPARED, arm_rows, change_line, changes_of, comparison_row
from contextgraph.page import write_html
from contextgraph.text import plain

if TYPE_CHECKING:
    from contextgraph.experiment import Report, TaskChange

_STYLE = """
table { border-collapse: collapse; margin: .5rem 0 1.5rem }
th, td { text-align: right; padding: .25rem .8rem; border-bottom: 1px solid #ddd }
th:first-child, td:first-child { text-align: left }
.verdict { font-size: 1.2rem; max-width: 50rem }
"""


def write_report(path: Path, report: "Report") -> None:
    """Write *report* to the file *path*. Raises `SettingsError` where it cannot be written."""
    write_html(path, _STYLE, _page(report))


def _page(report: "Report") -> Iterator[str]:
    yield f'<h1>Experiment</h1>\n<p class="verdict">{_text(report.verdict)}</p>\n'
    settings = " · ".join(f"{name}: {value}" for name, value in report.settings.items())
    yield f'<p class="facts">{_text(settings)}</p>\n'
    yield "<h2>Mean of an attempt (95 % interval)</h2>\n"
    yield _table(["", *(one.arm for one in report.arms)], arm_rows(report))
    yield "<h2>Differences on the same tasks (95 % interval)</h2>\n"
    yield _table(COMPARED, map(comparison_row, report.comparisons))
    for title, changes in changes_of(report):
        yield from _changes(title, changes)


def _table(titles: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{_text(title)}</th>" for title in titles)
    lines = ("".join(f"<td>{_text(cell)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    return f"<table>\n<tr>{head}</tr>\n{body}</table>\n"


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
