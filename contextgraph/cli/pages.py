"""``contextgraph pages`` and ``entities``; ``set`` and ``brief``: named knowledge."""

import sys
from dataclasses import asdict
from operator import attrgetter
from typing import Annotated

import click

from contextgraph.cli.options import (
    AboutRepo,
    Common,
    Limit,
    Question,
    Repo,
    Tags,
    Tokens,
    argument,
    common_options,
    described,
    flag,
    option,
)
from contextgraph.cli.output import fail
from contextgraph.records import record_of

GROUPS = {
    "pages": "Pages that refer to each other.",
    "entities": "Named entities with tags and relations.",
}

Id = Annotated[str, argument(metavar="ID", help="The id of the page.")]
Name = Annotated[str, argument(metavar="NAME", help="The name of the entity.")]


@common_options()
def put(
    common: Common,
    page_id: Id,
    title: Annotated[str, option("--title", "TEXT", "Its title.")],
    summary: Annotated[str, option("--summary", "TEXT", "What it says, in a line.")] = "",
    repo: AboutRepo = "",
    tag: Tags = None,
    reference: Annotated[
        list[str] | None, option("--reference", "ID", "A page that it refers to (repeatable).")
    ] = None,
    mention: Annotated[
        list[str] | None, option("--mention", "NAME", "An entity in it (repeatable).")
    ] = None,
) -> None:
    """Store a page; its content is read from standard input.

    One with this id is replaced. Secrets are masked.

    \b
    Example:
      contextgraph pages put payments --title Payments < payments.md
    """
    from contextgraph.errors import NotFoundError
    from contextgraph.knowledge import Page

    lists = tuple(tag or ()), tuple(reference or ()), tuple(mention or ())
    page = Page(page_id, title, summary, sys.stdin.read(), *lists, repo=repo)
    with common.open() as memory:
        try:
            memory.pages.update_page(page)
        except NotFoundError:
            memory.pages.add_page(page)
        stored = memory.pages.get_page(page_id)
    common.answer(record_of(stored), f"{stored.id}: stored")


@common_options()
def get(common: Common, page_id: Id) -> None:
    """Print a page.

    \b
    Example:
      contextgraph pages get payments
    """
    with common.open(read_only=True) as memory:
        page = memory.pages.get_page(page_id)
    common.answer(record_of(page), f"# {page.title}\n\n{page.content}".rstrip())


@common_options()
def list_(common: Common, repo: Repo = None) -> None:
    """List pages by id, without their content.

    \b
    Example:
      contextgraph pages list --repo acme/shop
    """
    with common.open(read_only=True) as memory:
        index = memory.pages.get_index(repo)
    common.answer_rows(map(record_of, index), "Pages", _COLUMNS, map(_row, index))


@common_options()
def search(
    common: Common,
    question: Question,
    repo: Repo = None,
    limit: Limit = 5,
) -> None:
    """Show the pages that share most words with a question.

    Those of --repo come first.

    \b
    Example:
      contextgraph pages search "are webhooks idempotent" --repo acme/shop
    """
    with common.open(read_only=True) as memory:
        results = memory.pages.search(question, repo=repo, limit=limit)
    records = (record_of(result.page, score=round(result.score, 4)) for result in results)
    rows = ((f"{result.score:.2f}", *_row(result.page)) for result in results)
    common.answer_rows(records, "Pages", ("score", *_COLUMNS), rows, ("score",))


@common_options()
def remove(common: Common, page_id: Id) -> None:
    """Delete a page.

    \b
    Example:
      contextgraph pages remove payments
    """
    with common.open(create=False) as memory:
        _report_removed(common, memory.pages.remove_page(page_id), f"page {page_id!r}")


@common_options()
def add(
    common: Common,
    name: Name,
    entity_type: Annotated[str, option("--type", "TYPE", "What it is, such as service.")] = "",
    description: Annotated[str, option("--description", "TEXT", "What to know of it.")] = "",
    tag: Tags = None,
) -> None:
    """Store an entity. Without tags it gets those of its name.

    \b
    Example:
      contextgraph entities add PriceRule --type class
    """
    from contextgraph.knowledge import Entity

    with common.open() as memory:
        memory.entities.add_entity(Entity(name, entity_type, description, tuple(tag or ())))
        entity = memory.entities.get_entity(name)
    common.answer(record_of(entity), f"{entity.name}: tags {', '.join(entity.tags)}")


@common_options()
def link(
    common: Common,
    source: Name,
    relation: Annotated[str, argument(metavar="TYPE", help="Such as depends_on.")],
    target: Annotated[str, argument(metavar="TARGET", help="The other entity.")],
    weight: Annotated[float, described(metavar="W", min=0, max=1, help="0 to 1.")] = 1.0,
    remove: Annotated[bool, flag("--remove", "Remove this relation.")] = False,
) -> None:
    """Relate two entities, or remove their relation.

    \b
    Example:
      contextgraph entities link Cart depends_on PriceRule
    """
    text = f"{source} {relation} {target}"
    with common.open(create=False) as memory:
        if remove:
            removed = memory.entities.remove_relation(source, target, relation)
            _report_removed(common, removed, f"relation {text!r}")
            return
        memory.entities.add_relation(source, target, relation, weight)
    common.answer({"source": source, "type": relation, "target": target, "weight": weight}, text)


@common_options()
def related(
    common: Common,
    name: Name,
    depth: Annotated[int, described(metavar="N", min=1, help="At most N relations away.")] = 1,
) -> None:
    """List entities that are related to one, the nearest first.

    Relations count in both directions.

    \b
    Example:
      contextgraph entities related PriceRule --depth 2
    """
    with common.open(read_only=True) as memory:
        hits = memory.entities.get_related(name, depth)
    records = (
        record_of(hit.entity, distance=hit.distance, score=round(hit.score, 4), pages=[*hit.pages])
        for hit in hits
    )
    columns = ("distance", "name", "type", "mentioned in")
    rows = (
        (str(hit.distance), hit.entity.name, hit.entity.entity_type, ", ".join(hit.pages))
        for hit in hits
    )
    common.answer_rows(records, "Entities", columns, rows, columns[:1])


@common_options()
def find(
    common: Common,
    question: Annotated[str, argument(metavar="QUESTION", help="Words of names or tags.")],
) -> None:
    """List the entities that words of a question name.

    Their name begins with a word, or they have it as tag or type.

    \b
    Example:
      contextgraph entities find "which classes compute prices"
    """
    with common.open(read_only=True) as memory:
        matches = memory.entities.find_by_keywords(question)
    rows = ((entity.name, entity.entity_type, ", ".join(entity.tags)) for entity in matches)
    common.answer_rows(map(record_of, matches), "Entities", ("name", "type", "tags"), rows)


@common_options()
def tags(
    common: Common,
    prefix: Annotated[str, argument(metavar="[PREFIX]", help="Only those.")] = "",
) -> None:
    """List tags that begin with a prefix, to use an existing one.

    \b
    Example:
      contextgraph entities tags state
    """
    with common.open(read_only=True) as memory:
        counts = memory.entities.find_tags(prefix)
    rows, columns = ((tag, str(count)) for tag, count in counts.items()), ("tag", "entities")
    common.answer_rows([{**counts}], "Tags", columns, rows, columns[1:])


@common_options()
def remove_entity(common: Common, name: Name) -> None:
    """Delete an entity with its relations.

    \b
    Example:
      contextgraph entities remove PriceRule
    """
    with common.open(create=False) as memory:
        _report_removed(common, memory.entities.remove_entity(name), f"entity {name!r}")


_COLUMNS = ("id", "title", "summary")
_row = attrgetter(*_COLUMNS)


def _report_removed(common: Common, removed: bool, what: str) -> None:
    common.answer({"removed": removed}, f"{what} removed" if removed else "")
    if not removed:
        fail(f"no {what} in the memory")


Key = Annotated[str, argument(metavar="KEY", help="A path such as /user/preference/style.")]
Content = Annotated[
    str,
    argument(metavar="JSON", help="What to store; null removes the key; - for standard input."),
]


@common_options()
def set_(
    common: Common,
    key: Key,
    content: Content,
    source: Annotated[
        str,
        option("--source", "NAME|JSON", "Its source: a name, or JSON with kind, name, … (user)."),
    ] = "user",
    isolate: Annotated[
        bool, flag("--isolate", "Without a complete source, store below /untrusted.")
    ] = False,
) -> None:
    """Store JSON under a key, on plain files.

    Agents read the files with ls, grep and jq. The former content is replaced, and stays in the
    log. What comes from the web, a tool or a file, or goes below /kb/, needs a source with kind,
    name, retrieved_at and locator. Secrets are masked.

    \b
    Example:
      contextgraph set /user/review '{"summary": "be brief", "importance": 8}'
      contextgraph set /user/todo/flag null --source agent
    """
    receipt = common.keyed().set_memory(
        key,
        _json(sys.stdin.read() if content == "-" else content, "JSON"),
        _json(source, "--source") if source.lstrip().startswith("{") else source,
        untrusted="isolate" if isolate else "refuse",
    )
    path = str(receipt.path) if receipt.path else None
    text = ", ".join(filter(None, (f"{receipt.key}: {receipt.status}", path)))
    common.answer({**asdict(receipt), "path": path}, text)


@common_options()
def brief(
    common: Common,
    tokens: Tokens = 800,
    tag: Annotated[
        list[str] | None, option("--tag", "TAG", "Prefer entries with this tag (repeatable).")
    ] = None,
    newest_first: Annotated[
        bool, flag("--newest-first", "Order by time, then importance, then tags.")
    ] = False,
) -> None:
    """Print the best keyed entries for the start of a prompt.

    Recency, importance (0 to 10; 5 if it is not set) and matching tags count equally. Leaves out
    expired entries and those below /untrusted; prints nothing if no entry is left. Fails where
    nothing was ever set.

    \b
    Example:
      contextgraph brief --tokens 600 --tag python
    """
    memory = common.keyed()
    memory.check_exists()
    briefing = memory.brief(tokens, tag or (), newest_first=newest_first)
    common.answer(record_of(briefing), briefing.text)


def _json(text: str, what: str) -> object:
    import orjson

    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise click.BadParameter(
            f"{what} cannot be parsed: {error}; a text needs quotes, as in '\"text\"'"
        ) from error
