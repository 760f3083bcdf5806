"""Loops of a run, for people."""

from collections.abc import Sequence

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from contextgraph.cli.output import one_line, plain, screen
from contextgraph.model import LoopInfo, LoopSeverity

COMMAND_WIDTH = 90
WAY_WIDTH = 500
NAMED = 2


def show_loops(name: str, loops: Sequence[LoopInfo]) -> None:
    """Where the run *name* went round in circles, a row each, and the ways out that are known."""
    console = screen()
    if not loops:
        console.print(Text(f"{plain(name)}: no loop", style="dim"))
        return
    counted = "1 loop" if len(loops) == 1 else f"{len(loops)} loops"
    console.print(Text(f"{plain(name)}: {counted}", style="bold"))
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("steps", no_wrap=True)
    table.add_column("times", justify="right", no_wrap=True)
    for column in ("kind", "severity"):
        table.add_column(column, no_wrap=True)
    table.add_column("what is repeated", overflow="fold")
    for loop in loops:
        table.add_row(*_row(loop))
    console.print(table)
    for loop in loops:
        for way in loop.escape_suggestions:
            said = Text(f"way out: {one_line(way, WAY_WIDTH)}", style="green")
            console.print(Padding(Text(f"{loop.start}-{loop.end} ").append(said), (0, 0, 0, 2)))
    console.print()


def _row(loop: LoopInfo) -> tuple[Text, ...]:
    style = "bold red" if loop.severity is LoopSeverity.STUCK else "yellow"
    repeated = [one_line(signature, COMMAND_WIDTH) for signature in loop.signatures[:NAMED]]
    return (
        Text(f"{loop.start}-{loop.end}"),
        Text(str(loop.repetitions)),
        Text(loop.kind.replace("_", " ")),
        Text(loop.severity, style=style),
        Text("\n".join(repeated)),
    )
