"""Search of everything that is known."""

from collections.abc import Iterable, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Annotated

from contextgraph.cli.commands import Common, Limit, Repo, argument, common_options, option
from contextgraph.cli.output import emit, warn
from contextgraph.model import Strategy
from contextgraph.model.values import replace
from contextgraph.service.records import record_of
from contextgraph.text import gives_instructions, neutral, number_of, one_line, plain

if TYPE_CHECKING:
    from contextgraph.model import Found

_FOUND_WIDTH, _TITLE_WIDTH = 160, 80
# Of 63 questions that nothing in a team's sessions answers one was above it, of 30 others 29.
_LIKELY = 0.3


_HIDDEN = "an instruction to the reader, never shown"


@common_options()
def search(
    common: Common,
    question: Annotated[str, argument("QUESTION", "What you want to know.")],
    *,
    repo: Repo = None,
    agent: Annotated[str, option("NAME", "Only sessions of this agent.")] = "",
    file: Annotated[str, option("PATH", "Only sessions that opened or changed this file.")] = "",
    limit: Limit = 10,
    strategy: Annotated[
        Strategy, option("NAME", "All; no entities and links; only those; only notes.")
    ] = Strategy.HYBRID,
) -> None:
    """Search all that was said, lessons, notes, pages and remedies.

    Sessions with the passage that answers best, and the command that opens it; what is less likely
    to answer stands apart. "Last week" or "since 2026-02" in the question bounds it, "what happened
    recently" gives the newest.

    \b
    Example:
      contextgraph search "why is the batch limited" --repo acme/shop
      contextgraph search "what did we decide about the importer last month"
      contextgraph search "what do we know about export.py" --file export.py
    """
    with common.open(read_only=True) as memory:
        found = opened_by(
            common,
            memory.search(question, repo, limit=limit, strategy=strategy, agent=agent, file=file),
        )
        waiting = 0 if memory.is_service else memory.spaces.waiting_passages()
    if waiting:
        found_by_words = number_of(waiting, "passage")
        warn(f"{found_by_words} found by words alone until `contextgraph call embed`")
    if common.as_json:
        for one in found:
            emit(record_of(one))
        return
    print_found(found)


def print_found(found: "Sequence[Found]") -> None:
    """Print what a search found: sessions with their passages, what is weak apart."""
    sessions: dict[str, list[Found]] = {}
    for one in found:
        sessions.setdefault(one.run or one.id, []).append(one)
    strong = [hits for hits in sessions.values() if hits[0].probability >= _LIKELY]
    weak = [hits for hits in sessions.values() if hits[0].probability < _LIKELY]
    if weak and not strong:
        print("probably nothing answers this; what comes nearest:")
    for place, (first, *others) in enumerate((*strong, *weak), start=1):
        if strong and place == len(strong) + 1:
            print("less likely:")
        hidden = f" · {_HIDDEN}" if gives_instructions(first.text) else ""
        title = f" · {_shown(first.title, _TITLE_WIDTH)}" if first.title != first.text else ""
        print(f"{place}. {first.kind} {first.time:%Y-%m-%d} {plain(first.repo)}{title}{hidden}")
        print(f"   {_shown(first.text, _FOUND_WIDTH)}\n   {plain(first.command)}")
        for other in others:
            print(f"   {_shown(other.text, _FOUND_WIDTH)}")
    if not found:
        print("nothing is known about it")


def _shown(text: str, width: int) -> str:
    # Agents read what commands print, too.
    return one_line(neutral(text), width)


def opened_by(common: Common, found: "Iterable[Found]") -> "list[Found]":
    """Return *found*, whose commands that read the memory have the one that was named."""
    given = (("--store", common.store), ("--tenant", common.tenant))
    named = [f"{name} {quote(value)}" for name, value in given if value]
    return [
        replace(one, command=" ".join((one.command, *named)))
        if one.command.startswith("contextgraph call ")
        else one
        for one in found
    ]
