"""``contextgraph notes review``: what people said in learned sessions."""

from typing import TYPE_CHECKING, Annotated

import typer

from contextgraph.cli.options import FAILED, AsJson, Store, Tenant, open_memory, option
from contextgraph.cli.output import answer, emit, print_table, warn
from contextgraph.records import record_of
from contextgraph.text import number_of

if TYPE_CHECKING:
    from contextgraph.model import Note

_COLUMNS = ("when", "what people said", "where", "id")


def review(
    accept: Annotated[
        list[str] | None, option("--accept", "ID", "Remember it as a note (repeatable).")
    ] = None,
    reject: Annotated[
        list[str] | None, option("--reject", "ID", "Do not propose it again (repeatable).")
    ] = None,
    repo: Annotated[str | None, option("--repo", "OWNER/REPO", "Only what is about it.")] = None,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Show what people corrected, refused or decided in learned sessions.

    It is recalled once it is accepted here, or once a second session says it. Below are the notes
    that people had to repeat.

    \b
    With --json one line per candidate: as `notes`, "locator" (run#step) and
    "sessions" (how many said it), then one per repeated note; "kind" is
    candidate or note. With --accept or --reject one object: "accepted",
    "rejected" (how many).

    \b
    Example:
      contextgraph notes review --repo acme/shop
      contextgraph notes review --accept candidate_1f0c3a5b7d9e2468
    """
    if accept or reject:
        _decide(accept or [], reject or [], store, tenant, as_json=as_json)
        return
    with open_memory(store, tenant, read_only=True) as memory:
        waiting = [(note, len(note.links)) for note in memory.candidates.of(repo)]
        repeated = memory.candidates.repeated(repo)
    if as_json:
        for note, sessions in (*waiting, *repeated):
            emit(record_of(note, sessions=sessions))
        return
    print_table(number_of(len(waiting), "candidate"), _COLUMNS, [_row(one) for one, _ in waiting])
    print_table(
        "Repeated by people",
        ("sessions", *_COLUMNS),
        [(str(sessions), *_row(note)) for note, sessions in repeated],
        numeric=("sessions",),
    )
    if not waiting:
        print("nothing to review")


def _decide(
    accept: list[str], reject: list[str], store: str | None, tenant: str | None, *, as_json: bool
) -> None:
    with open_memory(store, tenant, create=False) as memory:
        accepted, rejected = memory.candidates.accept(accept), memory.candidates.reject(reject)
    if accepted + rejected < len({*accept}) + len({*reject}):
        warn("some of these candidates are not in the memory, or were reviewed before")
    text = f"{number_of(accepted, 'candidate')} accepted, {rejected} rejected"
    answer({"accepted": accepted, "rejected": rejected}, text, as_json=as_json)
    if not accepted + rejected:
        raise typer.Exit(FAILED)


def _row(note: "Note") -> tuple[str, ...]:
    return f"{note.created_at:%Y-%m-%d}", note.content, note.repo, note.id
