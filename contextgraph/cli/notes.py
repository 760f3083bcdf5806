"""Search of everything that is known."""

from shlex import quote
from typing import Annotated

from contextgraph.cli.commands import Common, Limit, Repo, argument, common_options, option
from contextgraph.cli.output import emit
from contextgraph.model import Strategy
from contextgraph.records import record_of
from contextgraph.text import gives_instructions, one_line, plain
from contextgraph.values import replace

_FOUND_WIDTH = 160
# Below it were 7 of 12 questions that nothing in a team's sessions answers, and none of 25 others.
_LIKELY = 0.3


_HIDDEN = "an instruction to the reader, never shown"


@common_options()
def search(
    common: Common,
    question: Annotated[str, argument("QUESTION", "What you want to know.")],
    *,
    repo: Repo = None,
    limit: Limit = 10,
    strategy: Annotated[
        Strategy, option("NAME", "All; no entities and links; only those; only notes.")
    ] = Strategy.HYBRID,
) -> None:
    """Search past sessions, lessons, notes and remedies.

    One list, the best first, with the command that opens each. "what happened recently" gives the
    newest, "why did we …" prefers lessons, the name of a file what is about it.

    \b
    Example:
      contextgraph search "why is the batch limited" --repo acme/shop
      contextgraph search "what happened recently"
      contextgraph search "what do we know about export.py"
    """
    with common.open(read_only=True) as memory:
        found = [
            replace(one, command=_opening(common, one.command))
            for one in memory.search(question, repo, limit=limit, strategy=strategy)
        ]
    if common.as_json:
        for one in found:
            emit(record_of(one))
        return
    if found and max(one.probability for one in found) < _LIKELY:
        print("probably nothing answers this; what comes nearest:")
    for place, one in enumerate(found, start=1):
        hidden = f" · {_HIDDEN}" if gives_instructions(one.text) else ""
        print(f"{place}. {one.kind} {one.time:%Y-%m-%d} {plain(one.repo)}{hidden}")
        print(f"   {one_line(one.text, _FOUND_WIDTH)}\n   {plain(one.command)}")
    if not found:
        print("nothing is known about it")


def _opening(common: Common, command: str) -> str:
    """*command*, where it reads the memory, with the one that was named."""
    if not command.startswith("contextgraph call "):
        return command
    named = (("--store", common.store), ("--tenant", common.tenant))
    return " ".join((command, *(f"{name} {quote(value)}" for name, value in named if value)))
