"""Where something comes from, for people."""

from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from contextgraph.cli.output import one_line, plain, screen
from contextgraph.model import Explanation, Relation

NAMED = 12
TEXT_WIDTH = 600
NAME_WIDTH = 100


def show_explanation(found: Explanation) -> None:
    """Print what is known of a node, then its edges by type."""
    console = screen()
    console.print(Text(plain(f"{found.label} {found.id}"), style="bold"))
    facts = Table.grid(padding=(0, 2, 0, 0))
    for name, value in found.facts.items():
        shown = f"{value:.2f}" if isinstance(value, float) else str(value)
        label = Text(name.replace("_", " "), style="dim")
        facts.add_row(label, Text(one_line(shown, TEXT_WIDTH)))
    console.print(facts)
    for (kind, outgoing), edges in groupby(found.relations, key=lambda e: (e.type, e.outgoing)):
        _show_edges(console, f"{kind} →" if outgoing else f"← {kind}", [*edges])


def _show_edges(console: Console, title: str, edges: list[Relation]) -> None:
    console.print()
    console.print(Text(f"{title} ({len(edges)})", style="bold"))
    for edge in edges[:NAMED]:
        told = ", ".join(f"{key} {value}" for key, value in edge.properties.items())
        line = f"{edge.id}  {edge.label}: {one_line(edge.name, NAME_WIDTH)}"
        console.print(Text(plain(f"  {line}{f'  ({told})' if told else ''}")))
    if len(edges) > NAMED:
        console.print(Text(f"  and {len(edges) - NAMED} more (--json has them all)", style="dim"))
