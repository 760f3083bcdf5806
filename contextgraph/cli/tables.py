"""Counts and checks as tables, for people."""

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from contextgraph.cli.checkup import Checkup
from contextgraph.cli.output import one_line, plain, screen
from contextgraph.model import LearnStatus, MemoryCounts
from contextgraph.stats import MemoryStats

TEXT_WIDTH = 100
NEXT_SHOWN = 3


def show_learned(counts: Mapping[str, int], failed: int, seconds: float) -> None:
    """How many runs were learned, and how fast."""
    done = sum(counts.values())
    rate = f"{done / seconds:.1f}/s" if seconds else ""
    rows = [(str(status), str(counts.get(status, 0))) for status in LearnStatus]
    rows += [("failed", str(failed)), ("seconds", f"{seconds:.1f}"), ("trajectories", rate)]
    _table(screen(), "Learned", ("", ""), rows)


def show_stats(stats: MemoryStats, top: int) -> None:
    """Counts, errors, transitions and failure patterns, *top* rows of each."""
    console = screen()
    _table(console, "In the memory", ("what", "count"), _count_rows(stats.counts))
    frequent = list(stats.error_frequency.items())[:top]
    _table(
        console,
        "Most frequent errors",
        ("error", "fragments", "usually followed by"),
        [(error, str(count), _followers(stats, error)) for error, count in frequent],
    )
    _table(
        console,
        "What goes wrong",
        ("when", "what", "runs", "prevented"),
        [
            (pattern.condition, pattern.what, str(pattern.count), pattern.prevented)
            for pattern in stats.failure_patterns[:top]
        ],
    )


def show_checkup(checkup: Checkup) -> None:
    """Every check, with its remedy where it failed."""
    console = screen()
    rows = [
        ("ok" if check.ok else "ILL", check.name, check.detail, "" if check.ok else check.remedy)
        for check in checkup.checks
    ]
    _table(console, f"Memory {checkup.store}", ("", "check", "found", "what to do"), rows)
    versions = " · ".join(f"{name} {version}" for name, version in checkup.versions.items())
    extras = " · ".join(
        f"{name}: {'installed' if there else 'not installed'}"
        for name, there in checkup.extras.items()
    )
    console.print(Text(f"versions: {versions}\nextras: {extras}", style="dim"))
    if not checkup.ok:
        console.print(Text("something is ill", style="bold red"))


def _count_rows(counts: MemoryCounts) -> list[tuple[str, str]]:
    rows = [("repositories", counts.repositories)]
    rows += [(label, counts.nodes[label]) for label in sorted(counts.nodes)]
    rows += [(f"runs {outcome}", counts.outcomes[outcome]) for outcome in sorted(counts.outcomes)]
    rows += [(kind, counts.edges[kind]) for kind in sorted(counts.edges)]
    return [(name, f"{count:,}") for name, count in rows]


def _followers(stats: MemoryStats, error: str) -> str:
    following = sorted(
        stats.transitions.get(error, {}).items(), key=lambda item: (-item[1], item[0])
    )
    return ", ".join(f"{name} {share:.0%}" for name, share in following[:NEXT_SHOWN])


def _table(
    console: Console, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    table = Table(title=Text(plain(title)), title_justify="left", title_style="bold")
    for column in columns:
        numeric = column in ("count", "fragments", "runs")
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(cell, TEXT_WIDTH)) for cell in row))
    if table.row_count:
        console.print(table)
