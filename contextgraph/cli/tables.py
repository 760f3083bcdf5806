"""Counts and checks as tables, for people."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from contextgraph.cli.checkup import Checkup
from contextgraph.cli.output import one_line, plain, screen
from contextgraph.model import (
    ConsolidationReport,
    FailurePattern,
    LearnStatus,
    MemoryCounts,
    MistakePattern,
)
from contextgraph.stats import MemoryStats
from contextgraph.text import number_of

TEXT_WIDTH = 160
NEXT_SHOWN = 3
RARE = 0.01
CHANGES = ("examined", "created", "updated", "removed")
NUMERIC = {"count", "fragments", "runs", "never cleared", "failed", *CHANGES, *LearnStatus}


def show_learned(counts: Mapping[str, int], failed: int, seconds: float) -> None:
    """How many runs were learned, and how fast."""
    done = sum(counts.values())
    title = (
        f"{number_of(done, 'trajectory')} in {seconds:.1f} s, {done / max(seconds, 0.001):.0f}/s"
    )
    row = [f"{counts.get(status, 0):,}" for status in LearnStatus]
    _table(screen(), title, (*LearnStatus, "failed"), [[*row, f"{failed:,}"]])


def show_stats(stats: MemoryStats, top: int) -> None:
    """Counts, errors, transitions and failure patterns, *top* rows of each."""
    console = screen()
    _table(console, "In the memory", ("count", "what"), _count_rows(stats.counts))
    frequent = list(stats.error_frequency.items())[:top]
    _table(
        console,
        "Most frequent errors",
        ("fragments", "error", "usually followed by"),
        [(f"{count:,}", error, _followers(stats, error)) for error, count in frequent],
    )
    _show_patterns(console, "What goes wrong, and what prevented it", stats.failure_patterns[:top])
    rows = [
        (space, f"{used.requests:,}", f"{used.tokens:,}", f"${used.cost:.4f}")
        for space, used in stats.usage.items()
    ]
    if rows:
        columns = ("model", "requests", "tokens", "cost")
        _table(console, "What models took for it, from this machine", columns, rows)


def show_mistakes(
    where: str,
    mistakes: Sequence[MistakePattern],
    patterns: Sequence[FailurePattern],
    top: int,
) -> None:
    """What runs commonly meet *where*, and the failure patterns there, *top* rows of each."""
    console = screen()
    rows = [
        (f"{mistake.count:,}", f"{mistake.count - mistake.cleared:,}", mistake.description)
        for mistake in mistakes[:top]
    ]
    _table(console, f"Common mistakes {where}", ("runs", "never cleared", "error"), rows)
    _show_patterns(console, f"What goes wrong {where}, and what prevented it", patterns[:top])
    if not rows and not patterns:
        console.print(Text(plain(f"nothing known {where}"), style="dim"))


def _show_patterns(console: Console, title: str, patterns: Iterable[FailurePattern]) -> None:
    rows = [
        (f"{pattern.count:,}", pattern.condition, pattern.what, pattern.prevented)
        for pattern in patterns
    ]
    _table(console, title, ("runs", "when", "what goes wrong", "prevented by"), rows)


def show_consolidation(report: ConsolidationReport) -> None:
    """What each step did, or that there was nothing to do."""
    console = screen()
    title = f"{number_of(report.trajectories, 'trajectory')} consolidated in {report.seconds:.1f} s"
    rows = [
        (step.name, *(f"{n:,}" for n in (step.examined, step.created, step.updated, step.removed)))
        for step in report.steps
    ]
    _table(console, title, ("step", *CHANGES), rows)
    if report.usage.requests:
        used = report.usage
        requests, tokens = number_of(used.requests, "request"), number_of(used.tokens, "token")
        console.print(Text(f"the language model took {requests}, {tokens}, ${used.cost:.4f}"))
    if not report.changed:
        console.print(Text("nothing changed", style="dim"))


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
    of_status = sorted(counts.methodologies.items())
    rows += [(f"methodologies {status}", count) for status, count in of_status if count]
    rows += [(kind, counts.edges[kind]) for kind in sorted(counts.edges)]
    return [(f"{count:,}", name) for name, count in rows]


def _followers(stats: MemoryStats, error: str) -> str:
    following = stats.transitions.get(error, {})
    likely = sorted(following.items(), key=lambda item: (-item[1], item[0]))[:NEXT_SHOWN]
    return ", ".join(f"{name} {share:.0%}" for name, share in likely if share >= RARE)


def _table(
    console: Console, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in columns:
        justify: Literal["left", "right"] = "right" if column in NUMERIC else "left"
        table.add_column(column, justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(cell, TEXT_WIDTH)) for cell in row))
    if table.row_count:
        console.print(Text(plain(title), style="bold"))
        console.print(table)
        console.print()
