"""``contextgraph pages`` and ``entities``; ``set``, ``brief`` and ``compact``: named knowledge."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from contextgraph.cli.options import FAILED, AsJson, Store, Tenant, open_memory, option, settings_of
from contextgraph.cli.output import answer, answer_rows, confirm, warn
from contextgraph.records import record_of
from contextgraph.text import number_of, plain

if TYPE_CHECKING:
    from contextgraph.keyed import KeyedMemory
    from contextgraph.knowledge import Page
    from contextgraph.model import Json

pages = typer.Typer(no_args_is_help=True, help="Pages that refer to each other.")
entities = typer.Typer(no_args_is_help=True, help="Named entities with tags and relations.")

Id = Annotated[str, typer.Argument(metavar="ID", help="The id of the page.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the entity.")]
Repo = Annotated[str, option("--repo", "OWNER/REPO", "The repository it is about.")]
OfRepo = Annotated[str | None, option("--repo", "OWNER/REPO", "Its pages.")]
Tags = Annotated[list[str] | None, option("--tag", "TAG", "A tag (repeatable).")]


@pages.command()
def put(  # noqa: PLR0913, PLR0917  (one parameter per option)
    page_id: Id,
    title: Annotated[str, option("--title", "TEXT", "Its title.")],
    summary: Annotated[str, option("--summary", "TEXT", "What it says, in a line.")] = "",
    repo: Repo = "",
    tag: Tags = None,
    reference: Annotated[
        list[str] | None, option("--reference", "ID", "A page that it refers to (repeatable).")
    ] = None,
    mention: Annotated[
        list[str] | None, option("--mention", "NAME", "An entity in it (repeatable).")
    ] = None,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Store a page; its content is read from standard input.

    One with this id is replaced. Secrets are masked.

    \b
    With --json one object: as `pages list`.

    \b
    Example:
      contextgraph pages put payments --title Payments < payments.md
    """
    from contextgraph.errors import NotFoundError
    from contextgraph.knowledge import Page

    lists = tuple(tag or ()), tuple(reference or ()), tuple(mention or ())
    page = Page(page_id, title, summary, sys.stdin.read(), *lists, repo=repo)
    with open_memory(store, tenant) as memory:
        try:
            memory.pages.update_page(page)
        except NotFoundError:
            memory.pages.add_page(page)
        stored = memory.pages.get_page(page_id)
    answer(record_of(stored), f"{stored.id}: stored", as_json=as_json)


@pages.command()
def get(page_id: Id, as_json: AsJson = False, store: Store = None, tenant: Tenant = None) -> None:
    """Print a page.

    \b
    With --json one object: as `pages list`, with "content".

    \b
    Example:
      contextgraph pages get payments
    """
    with open_memory(store, tenant, read_only=True) as memory:
        page = memory.pages.get_page(page_id)
    text = f"# {page.title}\n\n{page.content}".rstrip()
    answer(record_of(page), text, as_json=as_json)


@pages.command("list")
def list_(
    repo: OfRepo = None, as_json: AsJson = False, store: Store = None, tenant: Tenant = None
) -> None:
    """List pages by id, without their content.

    \b
    With --json one line per page: "id", "title", "summary", "tags",
    "references", "mentions", "repo", "updated_at".

    \b
    Example:
      contextgraph pages list --repo acme/shop
    """
    with open_memory(store, tenant, read_only=True) as memory:
        found = memory.pages.get_index(repo)
    answer_rows(map(record_of, found), "Pages", _COLUMNS, map(_row, found), as_json=as_json)


@pages.command()
def search(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What to look for.")],
    repo: OfRepo = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="At most N.")] = 5,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Show the pages that share most words with a question.

    Those of --repo come first.

    \b
    With --json one line per page: as `pages list`, and "content", "score"
    (0 to 1).

    \b
    Example:
      contextgraph pages search "are webhooks idempotent" --repo acme/shop
    """
    with open_memory(store, tenant, read_only=True) as memory:
        found = memory.pages.search(question, repo=repo, limit=limit)
    records = (record_of(one.page, score=round(one.score, 4)) for one in found)
    rows = ((f"{one.score:.2f}", *_row(one.page)) for one in found)
    answer_rows(records, "Pages", ("score", *_COLUMNS), rows, ("score",), as_json=as_json)


@pages.command()
def remove(
    page_id: Id, as_json: AsJson = False, store: Store = None, tenant: Tenant = None
) -> None:
    """Delete a page.

    \b
    With --json one object: "removed" (whether there was one).

    \b
    Example:
      contextgraph pages remove payments
    """
    with open_memory(store, tenant, create=False) as memory:
        _report_removed(memory.pages.remove_page(page_id), f"page {page_id!r}", as_json=as_json)


@entities.command()
def add(
    name: Name,
    entity_type: Annotated[str, option("--type", "TYPE", "What it is, such as service.")] = "",
    description: Annotated[str, option("--description", "TEXT", "What to know of it.")] = "",
    tag: Tags = None,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Store an entity. Without tags it gets those of its name.

    \b
    With --json one object: "name", "entity_type", "description", "tags",
    "updated_at".

    \b
    Example:
      contextgraph entities add PriceRule --type class
    """
    from contextgraph.knowledge import Entity

    with open_memory(store, tenant) as memory:
        memory.entities.add_entity(Entity(name, entity_type, description, tuple(tag or ())))
        entity = memory.entities.get_entity(name)
    answer(record_of(entity), f"{entity.name}: tags {', '.join(entity.tags)}", as_json=as_json)


@entities.command()
def link(
    source: Name,
    relation: Annotated[str, typer.Argument(metavar="TYPE", help="Such as depends_on.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The other entity.")],
    weight: Annotated[float, typer.Option(metavar="W", min=0, max=1, help="0 to 1.")] = 1.0,
    remove: Annotated[bool, typer.Option("--remove", help="Remove this relation.")] = False,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Relate two entities, or remove their relation.

    \b
    With --json one object: "source", "type", "target", "weight"; with --remove
    "removed" (whether there was one).

    \b
    Example:
      contextgraph entities link Cart depends_on PriceRule
    """
    text = f"{source} {relation} {target}"
    with open_memory(store, tenant, create=False) as memory:
        if remove:
            removed = memory.entities.remove_relation(source, target, relation)
            _report_removed(removed, f"relation {text!r}", as_json=as_json)
            return
        memory.entities.add_relation(source, target, relation, weight)
    record: dict[str, Json] = {"source": source, "type": relation, "target": target}
    answer({**record, "weight": weight}, text, as_json=as_json)


@entities.command()
def related(
    name: Name,
    depth: Annotated[int, typer.Option(metavar="N", min=1, help="At most N relations away.")] = 1,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """List entities that are related to one, the nearest first.

    Relations count in both directions.

    \b
    With --json one line per entity: as `entities add`, and "distance", "score",
    "pages" [ids of those that mention it].

    \b
    Example:
      contextgraph entities related PriceRule --depth 2
    """
    with open_memory(store, tenant, read_only=True) as memory:
        found = memory.entities.get_related(name, depth)
    records = (
        record_of(one.entity, distance=one.distance, score=round(one.score, 4), pages=[*one.pages])
        for one in found
    )
    columns = ("distance", "name", "type", "mentioned in")
    rows = (
        (str(one.distance), one.entity.name, one.entity.entity_type, ", ".join(one.pages))
        for one in found
    )
    answer_rows(records, "Entities", columns, rows, columns[:1], as_json=as_json)


@entities.command()
def find(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="Words of names or tags.")],
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """List the entities whose name begins with a word, or that have it as tag or type.

    \b
    With --json one line per entity: as `entities add`.

    \b
    Example:
      contextgraph entities find "which classes compute prices"
    """
    with open_memory(store, tenant, read_only=True) as memory:
        found = memory.entities.find_by_keywords(question)
    rows = ((one.name, one.entity_type, ", ".join(one.tags)) for one in found)
    columns = ("name", "type", "tags")
    answer_rows(map(record_of, found), "Entities", columns, rows, as_json=as_json)


@entities.command()
def tags(
    prefix: Annotated[str, typer.Argument(metavar="[PREFIX]", help="Only those.")] = "",
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """List tags that begin with a prefix, to use an existing one.

    \b
    With --json one object: tag -> number of entities.

    \b
    Example:
      contextgraph entities tags state
    """
    with open_memory(store, tenant, read_only=True) as memory:
        found = memory.entities.find_tags(prefix)
    rows, columns = ((tag, str(count)) for tag, count in found.items()), ("tag", "entities")
    answer_rows([{**found}], "Tags", columns, rows, columns[1:], as_json=as_json)


@entities.command("remove")
def remove_entity(
    name: Name, as_json: AsJson = False, store: Store = None, tenant: Tenant = None
) -> None:
    """Delete an entity with its relations.

    \b
    With --json one object: "removed" (whether there was one).

    \b
    Example:
      contextgraph entities remove PriceRule
    """
    with open_memory(store, tenant, create=False) as memory:
        _report_removed(memory.entities.remove_entity(name), f"entity {name!r}", as_json=as_json)


_COLUMNS = ("id", "title", "summary")


def _row(page: "Page") -> tuple[str, ...]:
    return page.id, page.title, page.summary


def _report_removed(removed: bool, what: str, *, as_json: bool) -> None:
    if not removed:
        warn(f"no {what} in the memory")
    answer({"removed": removed}, f"{what} removed" if removed else "", as_json=as_json)
    if not removed:
        raise typer.Exit(FAILED)


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
    text = ", ".join(filter(None, (f"{receipt.key}: {receipt.status}", path)))
    record: dict[str, Json] = {"key": receipt.key, "seq": receipt.seq, "status": receipt.status}
    answer({**record, "path": path}, text, as_json=as_json)


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
    if not yes:
        confirm(f"Forget {plain(key)} and its history?", "nothing was removed")
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
            f"{what} cannot be parsed: {error}; a text needs quotes, as in '\"text\"'"
        ) from error
