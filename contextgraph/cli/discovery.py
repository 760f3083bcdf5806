"""``contextgraph learn --discover``: the histories of agents on this machine."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from contextgraph.cli.options import FAILED
from contextgraph.cli.output import print_table, warn
from contextgraph.text import number_of

if TYPE_CHECKING:
    from contextgraph.readers import History

_UNITS = ("B", "kB", "MB", "GB")


def discovered_paths(exclude: Sequence[str], *, yes: bool, address: str) -> list[str]:
    """The files of the histories on this machine, after the user agreed to learn them.

    Exits where there are none, or the user declines. *yes* answers the question.
    """
    from contextgraph.readers import discover

    histories = discover(exclude=exclude)
    if not histories:
        warn("no history of a coding agent found on this machine")
        raise typer.Exit(FAILED)
    rows = [_row(history) for history in histories]
    columns = ("agent", "runs", "size", "folder")
    print_table(
        "Histories on this machine", columns, rows, numeric=("runs", "size"), on_stderr=True
    )
    if not yes:
        _confirm(sum(history.runs for history in histories), address)
    return [str(file) for history in histories for file in history.files]


def _row(history: "History") -> tuple[str, ...]:
    agent = f"{history.agent} (experimental)" if history.experimental else history.agent
    return agent, f"{history.runs:,}", size_text(history.bytes), str(history.folder)


def size_text(size: float) -> str:
    """*size* in bytes as people write it, such as ``1.2 MB``."""
    for unit in _UNITS[:-1]:
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == _UNITS[0] else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} {_UNITS[-1]}"


def _confirm(runs: int, address: str) -> None:
    remedy = ""
    try:
        question = f"Learn about {number_of(runs, 'run')} into {address}?"
        confirmed = typer.confirm(question, err=True)
    except typer.Abort:  # standard input has ended, or Ctrl-C
        typer.echo(err=True)
        confirmed, remedy = False, "; without a terminal, use --yes"
    if not confirmed:
        warn(f"nothing was learned{remedy}")
        raise typer.Exit(FAILED)
