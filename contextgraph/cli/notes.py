"""``contextgraph remember``, ``recall`` and ``notes``; ``set``, ``brief`` and ``compact``."""

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from contextgraph.cli.options import FAILED, AsJson, Store, Tenant, open_memory, option, settings_of
from contextgraph.cli.output import answer, emit, print_table, warn
from contextgraph.records import recalled_record, record_of
from contextgraph.text import number_of, plain

if TYPE_CHECKING:
    from contextgraph.keyed import KeyedMemory
    from contextgraph.model import Json, Note


Repo = Annotated[str | None, option("--repo", "OWNER/REPO", "The repository it is about.")]
Tags = Annotated[list[str] | None, option("--tag", "TAG", "A tag (repeatable).")]

app = typer.Typer(name="notes", invoke_without_command=True)


def remember(  # noqa: PLR0913, PLR0917  (one parameter per option)
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The note; - for standard input.")],
    repo: Repo = None,
    source: Annotated[
        str, option("--source", "KIND[:NAME]", "user (default), file, tool, system, agent or web.")
    ] = "user",
    tag: Tags = None,
    locator: Annotated[
        str, option("--locator", "TEXT", "Where the source says it; the web needs one.")
    ] = "",
    pin: Annotated[bool, typer.Option("--pin", help="Keep it in every snapshot.")] = False,
    security: Annotated[
        str, option("--security", "LEVEL", "public, internal, confidential or restricted.")
    ] = "internal",
    until: Annotated[
        datetime | None, option("--until", "TIME", "Recall it until then (UTC).")
    ] = None,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Store a note: what people or agents say.

    A known note with the same statement is confirmed. One that contradicts it is superseded if it
    is older and from the same source, or clearly less credible; otherwise both are marked. Nothing
    is deleted. Secrets are masked.

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
        receipt = memory.notes.remember(
            content,
            repo=repo or "",
            source=source,
            tags=tag or (),
            locator=locator,
            pinned=pin,
            security=security,
            valid_until=until and until.replace(tzinfo=UTC),
        )
    others = [one for one in receipt.others if one != receipt.id]
    text = " ".join((f"{receipt.id}: {receipt.status}", *others))
    record = record_of(receipt, confidence=round(receipt.confidence, 4))
    answer(record, text, as_json=as_json)


def recall(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What to look for.")],
    repo: Annotated[
        str | None,
        option("--repo", "OWNER/REPO", "Only notes about this repository, or about none."),
    ] = None,
    tag: Annotated[
        list[str] | None, option("--tag", "TAG", "Only notes with this tag (repeatable).")
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
    if as_json:
        for one in found:
            emit(recalled_record(one))
        return
    rows = [(f"{one.score:.2f}", *_row(one.note)) for one in found]
    print_table("Notes", ("score", *_COLUMNS), rows, numeric=("score",))
    if not found:
        print("no such note")


@app.callback()
def notes(  # noqa: PLR0913, PLR0917  (one parameter per option)
    context: typer.Context,
    archive: Annotated[
        list[str] | None,
        option("--archive", "ID", "Archive this note; recall does not show it (repeatable)."),
    ] = None,
    forget: Annotated[
        list[str] | None, option("--forget", "ID", "Delete this note (repeatable).")
    ] = None,
    repo: Annotated[
        str | None, option("--repo", "OWNER/REPO", "Only notes about this repository.")
    ] = None,
    pin: Annotated[
        list[str] | None, option("--pin", "ID", "Keep it in every snapshot (repeatable).")
    ] = None,
    restore: Annotated[
        list[str] | None, option("--restore", "ID", "Recall it again (repeatable).")
    ] = None,
    archived: Annotated[
        bool, typer.Option("--archived", help="Only archived or superseded notes.")
    ] = False,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """List notes, or archive, restore, pin or delete some.

    `contextgraph notes review` shows what may be worth a note.

    \b
    With --json one line per note: "id", "content", "repo", "source", "tags",
    "created_at", "credibility", "confirmed", "contradicts", "superseded_by",
    "archived_at", "kind", "links" [{"type", "target", "weight"}], "locator",
    "pinned", "security", "valid_from", "valid_until", "importance", "recalls";
    with --archive, --restore, --pin or --forget one object: "archived",
    "restored", "pinned", "forgotten" (how many).

    \b
    Example:
      contextgraph notes --repo acme/shop
      contextgraph notes --archive note_1f0c3a5b7d9e2468
    """
    changes = {
        "archived": archive or [],
        "restored": restore or [],
        "pinned": pin or [],
        "forgotten": forget or [],
    }
    if context.invoked_subcommand:
        if any(changes.values()) or repo or archived or as_json or store or tenant:
            raise typer.BadParameter(f"give options after {context.invoked_subcommand}")
        return
    if any(changes.values()):
        _change(changes, store, tenant, as_json=as_json)
        return
    with open_memory(store, tenant, read_only=True) as memory:
        found = memory.notes.of(repo, archived=archived)
    if as_json:
        for note in found:
            emit(record_of(note))
        return
    print_table(number_of(len(found), "note"), _COLUMNS, map(_row, found))
    if not found:
        print("no notes")


_COLUMNS = ("when", "note", "source", "id")


def _row(note: "Note") -> tuple[str, ...]:
    mark = " (contradicted)" if note.contradicts else ""
    return f"{note.created_at:%Y-%m-%d}", note.content + mark, note.source, note.id


def _change(
    changes: dict[str, list[str]], store: str | None, tenant: str | None, *, as_json: bool
) -> None:
    with open_memory(store, tenant, create=False) as memory:
        notes = memory.notes
        verbs = (notes.archive, notes.restore, notes.pin, notes.forget)
        done = {name: verb(ids) for (name, ids), verb in zip(changes.items(), verbs, strict=True)}
    if any(done[name] < len({*ids}) for name, ids in changes.items()):
        warn("some of these notes are not in the memory, or were changed so before")
    said = (f"{number_of(done[name], 'note')} {name}" for name, ids in changes.items() if ids)
    answer({**done}, ", ".join(said), as_json=as_json)
    if not any(done.values()):
        raise typer.Exit(FAILED)


def snapshot(
    trigger: Annotated[
        str, typer.Argument(metavar="TRIGGER", help="What happened, such as a failed check.")
    ],
    focus: Annotated[str, option("--focus", "TEXT", "What the agent is about to work on.")] = "",
    repo: Annotated[
        str | None, option("--repo", "OWNER/REPO", "Only notes about it, or about anything.")
    ] = None,
    tokens: Annotated[int, typer.Option(metavar="N", min=1, help="At most N tokens.")] = 500,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Show what people and agents say that matters now.

    All pinned notes, then the three that answer trigger and focus best, then those of the last day;
    for the prompt of an agent.

    \b
    With --json one object: "notes" [as `notes`], "text" (the prompt text).

    \b
    Example:
      contextgraph snapshot "test_checkout fails on main" --focus payments
    """
    with open_memory(store, tenant, read_only=True) as memory:
        found = memory.snapshot(trigger, focus, repo=repo, max_tokens=tokens)
    record: dict[str, Json] = {"notes": [record_of(note) for note in found.notes]}
    answer({**record, "text": found.text}, found.text or "no such note", as_json=as_json)


def maintain(
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Archive and merge notes, decide conflicts, embed what waits.

    For cron. Nothing is deleted; pinned notes stay. Waits while another process holds the lease.
    A second run right after changes nothing.

    \b
    With --json one object: "promoted", "demoted" (to and from the long-term
    layer), "archived", "evicted", "merged", "conflicts_resolved",
    "conflicts_open", "embedded" (how many).

    \b
    Example:
      contextgraph maintain --store team.db
    """
    with open_memory(store, tenant, create=False) as memory:
        report = memory.maintain(
            waiting=lambda until: warn(f"another process holds the lease until {until:%H:%M:%S}")
        )
    record = record_of(report)
    said = (f"{count} {name.replace('_', ' ')}" for name, count in record.items() if count)
    answer(record, ", ".join(said) or "nothing changed", as_json=as_json)


Key = Annotated[str, typer.Argument(metavar="KEY", help="A path such as /user/preference/style.")]
Content = Annotated[
    str,
    typer.Argument(
        metavar="JSON", help="What to store; null removes the key; - for standard input."
    ),
]


def set_(
    key: Key,
    content: Content,
    source: Annotated[
        str,
        option("--source", "NAME|JSON", "Its source: a name, or JSON with kind, name, … (user)."),
    ] = "user",
    isolate: Annotated[
        bool,
        typer.Option("--isolate", help="Without a complete source, store below /untrusted."),
    ] = False,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Store JSON under a key, on plain files.

    Agents read the files with ls, grep and jq. The former content is replaced, and stays in the
    log. What comes from the web, a tool or a file, or goes below /kb/, needs a source with kind,
    name, retrieved_at and locator. Secrets are masked.

    \b
    With --json one object: "key", "seq", "status" (set, removed or isolated),
    "path" (null where removed).

    \b
    Example:
      contextgraph set /user/review '{"summary": "be brief", "importance": 8}'
      contextgraph set /user/todo/flag null --source agent
    """
    text = sys.stdin.read() if content == "-" else content
    receipt = _keyed(store, tenant).set_memory(
        key,
        _json(text, "JSON"),
        _json(source, "--source") if source.lstrip().startswith("{") else source,
        untrusted="isolate" if isolate else "refuse",
    )
    path = str(receipt.path) if receipt.path else None
    answer(
        {"key": receipt.key, "seq": receipt.seq, "status": receipt.status, "path": path},
        f"{receipt.key}: {receipt.status}" + (f", {path}" if path else ""),
        as_json=as_json,
    )


def brief(
    tokens: Annotated[
        int, typer.Option(metavar="N", min=1, help="The most tokens of the text.")
    ] = 800,
    tag: Annotated[
        list[str] | None, option("--tag", "TAG", "Prefer entries with this tag (repeatable).")
    ] = None,
    newest_first: Annotated[
        bool, typer.Option("--newest-first", help="Order by time, then importance, then tags.")
    ] = False,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Print the best keyed entries for the start of a prompt.

    Recency, importance (0 to 10; 5 if it is not set) and matching tags count equally. Leaves out
    expired entries and those below /untrusted; prints nothing if no entry is left.

    \b
    With --json one object: "text", "keys", "omitted" (current entries that did
    not fit).

    \b
    Example:
      contextgraph brief --tokens 600 --tag python
    """
    from contextgraph.keyed import BriefingPolicy

    policy = BriefingPolicy(newest_first=newest_first)
    found = _keyed(store, tenant).brief(tokens, tag or (), policy=policy)
    record: dict[str, Json] = {"keys": [*found.keys], "omitted": found.omitted}
    answer({"text": found.text, **record}, found.text, as_json=as_json)


def compact(as_json: AsJson = False, store: Store = None, tenant: Tenant = None) -> None:
    """Shorten the log of keyed entries.

    Moves earlier calls to archive/, so that the log holds the current entries only. Removes expired
    entries, and repairs files that other programs changed.

    \b
    With --json one object: "lines_before", "lines_after", "keys", "expired".

    \b
    Example:
      contextgraph compact
    """
    report = _keyed(store, tenant).compact()
    text = (
        f"log: {report.lines_before:,} -> {number_of(report.lines_after, 'line')}, "
        f"{number_of(report.keys, 'key')}, {report.expired:,} expired"
    )
    answer(record_of(report), text, as_json=as_json)


def forget_key(
    key: str, store: str | None, tenant: str | None, *, yes: bool, as_json: bool
) -> None:
    """Erase all traces of *key*; exits with 1 where there are none."""
    memory = _keyed(store, tenant)
    if not (yes or typer.confirm(f"Forget {plain(key)} and its history?", err=True)):
        warn("nothing was forgotten; answer y, or use --yes")
        raise typer.Exit(FAILED)
    removed = memory.forget(key)
    if not removed:
        warn(f"no entry of {key} in {memory.root}")
        raise typer.Exit(FAILED)
    text = f"forgot {key}: {number_of(removed, 'call')}"
    answer({"forgotten": removed, "key": key}, text, as_json=as_json)


def _keyed(store: str | None, tenant: str | None) -> "KeyedMemory":
    from contextgraph.wiring import keyed_memory

    return keyed_memory(settings_of(store, tenant))


def _json(text: str, what: str) -> object:
    import orjson

    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(
            f"{what} is not JSON: {error}; a text needs quotes, as in '\"text\"'"
        ) from error
