"""``contextgraph remember``, ``recall`` and ``notes``: what people and agents say."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from contextgraph.cli.options import FAILED, AsJson, Store, Tenant, open_memory, option
from contextgraph.cli.output import emit, print_table, warn
from contextgraph.text import number_of, plain

if TYPE_CHECKING:
    from contextgraph.model import Json, Note

Repo = Annotated[str | None, option("--repo", "OWNER/REPO", "The repository it is about.")]
Tags = Annotated[list[str] | None, option("--tag", "TAG", "A tag (repeatable).")]

app = typer.Typer(name="notes", invoke_without_command=True)


def remember(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The note; - for standard input.")],
    repo: Repo = None,
    source: Annotated[
        str, option("--source", "KIND[:NAME]", "user (default), file, tool, system, agent or web.")
    ] = "user",
    tag: Tags = None,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Store a note: what people or agents say.

    The same statement is confirmed. One that says otherwise about the same subject is superseded if
    it is older and of the same source, or clearly less credible; else both are marked. Nothing is
    deleted. Secrets are masked.

    \b
    With --json one object: "id", "status" (created, same, supersedes,
    contradicts), "others" [ids], "confidence".

    \b
    Example:
      contextgraph remember "CI uses Python 3.11" --repo acme/shop
      contextgraph remember - --source file:tox.ini --tag ci < note.txt
    """
    content = sys.stdin.read() if text == "-" else text
    with open_memory(store, tenant) as memory:
        receipt = memory.notes.remember(content, repo=repo or "", source=source, tags=tag or ())
    if as_json:
        emit(
            {
                "id": receipt.id,
                "status": receipt.status.value,
                "others": [*receipt.others],
                "confidence": round(receipt.confidence, 4),
            }
        )
    else:
        others = [one for one in receipt.others if one != receipt.id]
        print(" ".join((f"{receipt.id}: {receipt.status}", *others)))


def recall(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What to look for.")],
    repo: Annotated[
        str | None, option("--repo", "OWNER/REPO", "Only notes about it, or about anything.")
    ] = None,
    tag: Annotated[
        list[str] | None, option("--tag", "TAG", "Only notes with it (repeatable).")
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="At most N.")] = 5,
    min_probability: Annotated[
        float, option("--min-probability", "P", "Only what answers at least as probably.")
    ] = 0.0,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Show the notes that answer a question best.

    \b
    With --json one line per note: as `notes`, and "score" (0 to 1),
    "probability" (0 to 1, that it answers), "why" {"words", "meaning",
    "neighbours", "recency", "credibility"}.

    \b
    Example:
      contextgraph recall "which python does CI use" --repo acme/shop
    """
    with open_memory(store, tenant, read_only=True) as memory:
        found = memory.notes.recall(
            question, repo=repo, limit=limit, tags=tag or (), min_probability=min_probability
        )
    for one in found if as_json else ():
        why: dict[str, Json] = {name: round(value, 4) for name, value in one.why.items()}
        scores: dict[str, Json] = {
            "score": round(one.score, 4),
            "probability": round(one.probability, 4),
            "why": why,
        }
        emit({**note_record(one.note), **scores})
    if not as_json:
        rows = [(f"{one.score:.2f}", *_row(one.note)) for one in found]
        print_table("Notes", ("score", *_COLUMNS), rows, numeric=("score",))
        if not found:
            print("no such note")


@app.callback()
def notes(
    context: typer.Context,
    archive: Annotated[
        list[str] | None, option("--archive", "ID", "Recall it no more (repeatable).")
    ] = None,
    forget: Annotated[list[str] | None, option("--forget", "ID", "Delete it (repeatable).")] = None,
    repo: Annotated[str | None, option("--repo", "OWNER/REPO", "Only notes about it.")] = None,
    archived: Annotated[
        bool, typer.Option("--archived", help="Those that are archived or superseded.")
    ] = False,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """List notes, the newest first; or archive or delete some.

    `contextgraph notes review` shows what may be worth a note.

    \b
    With --json one line per note: "id", "content", "repo", "source", "tags",
    "created_at", "credibility", "confirmed", "contradicts", "superseded_by",
    "archived_at"; with --archive or --forget one object: "archived",
    "forgotten" (how many).

    \b
    Example:
      contextgraph notes --repo acme/shop
      contextgraph notes --archive note_1f0c3a5b7d9e2468
    """
    if context.invoked_subcommand:
        if archive or forget or repo or archived or as_json or store or tenant:
            raise typer.BadParameter(f"give options after {context.invoked_subcommand}")
        return
    if archive or forget:
        _remove(archive or [], forget or [], store, tenant, as_json=as_json)
        return
    with open_memory(store, tenant, read_only=True) as memory:
        found = memory.notes.of(repo, archived=archived)
    for note in found if as_json else ():
        emit(note_record(note))
    if not as_json:
        print_table(number_of(len(found), "note"), _COLUMNS, map(_row, found))
        if not found:
            print("no notes")


_COLUMNS = ("when", "note", "source", "id")


def _row(note: "Note") -> tuple[str, ...]:
    mark = " (contradicted)" if note.contradicts else ""
    return f"{note.created_at:%Y-%m-%d}", note.content + mark, note.source, note.id


def note_record(note: "Note") -> "dict[str, Json]":
    """The JSON object of a note."""
    from contextgraph.codec import encoded

    record = encoded(note, complete=True)
    assert isinstance(record, dict)
    return record


def _remove(
    archive: list[str], forget: list[str], store: str | None, tenant: str | None, *, as_json: bool
) -> None:
    with open_memory(store, tenant, create=False) as memory:
        archived, forgotten = memory.notes.archive(archive), memory.notes.forget(forget)
    if archived + forgotten < len({*archive}) + len({*forget}):
        warn("some of these notes are not in the memory, or were archived before")
    if as_json:
        emit({"archived": archived, "forgotten": forgotten})
    else:
        print(plain(f"{number_of(archived, 'note')} archived, {forgotten} forgotten"))
    if not archived + forgotten:
        raise typer.Exit(FAILED)
