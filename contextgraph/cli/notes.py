"""Notes of people and agents, what they decided, pages, entities and keyed files."""

import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from difflib import unified_diff
from functools import partial
from operator import attrgetter
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import click
from msgspec import Struct
from msgspec.structs import asdict

from contextgraph.cli.commands import (
    AboutRepo,
    Common,
    Limit,
    Question,
    Repo,
    Tags,
    Yes,
    argument,
    common_options,
    described,
    flag,
    option,
    time_option,
)
from contextgraph.cli.output import FAILED, confirm, emit, fail, print_text, warn
from contextgraph.knowledge.recall import shown_text
from contextgraph.knowledge.ways import ways_in
from contextgraph.records import record_of, statement_record
from contextgraph.text import gives_instructions, number_of, one_line, plain
from contextgraph.values import replace

if TYPE_CHECKING:
    from contextgraph.knowledge import Statement
    from contextgraph.model import Note


_FOUND_WIDTH = 160
# Below it were 7 of 12 questions that nothing in a team's sessions answers, and none of 25 others.
_LIKELY = 0.3
# The section of CLAUDE.md or AGENTS.md for rules that people had to repeat.
_RULES = "## Rules that had to be repeated"


@common_options(operation="remember")
def remember(
    common: Common,
    *,
    content: Annotated[str, argument("TEXT", "The note; - for standard input.")],
    repo: str,
    source: Annotated[
        str, option("KIND[:NAME]", "user (default), file, tool, system, agent or web.")
    ] = "user",
    **given: Any,
) -> None:
    """Store a note: what people or agents say.

    A known note with the same statement is confirmed. One that contradicts it is superseded if it
    is older and from the same source, or clearly less credible; otherwise both are marked. Nothing
    is deleted. Secrets are masked.

    \b
    Example:
      contextgraph remember "CI uses Python 3.11" --repo acme/shop
      contextgraph remember - --source file:tox.ini --tag ci < note.txt
    """
    content = sys.stdin.read() if content == "-" else content
    with common.open() as memory:
        receipt = memory.notes.remember(content, repo=repo, source=source, **given)
    others = [identity for identity in receipt.others if identity != receipt.id]
    text = " ".join((f"{receipt.id}: {receipt.status}", *others))
    text += ", to embed" if receipt.to_embed else ""
    record = record_of(receipt, confidence=round(receipt.confidence, 4))
    common.answer(record, text)


@common_options(operation="notes", without=("archived",))
def recall(
    common: Common,
    question: Question = "",
    *,
    limit: int = 5,
    saved: Annotated[
        Path | None, option("FILE", "Instead, check questions whose answers are known.")
    ] = None,
    **given: Any,
) -> None:
    """Show notes, decisions and pages that answer a question.

    Also entities and keyed entries.
    "what happened recently" gives the newest, "why did we …" also causes, the name of an entity
    what is linked to it.

    Each line of the FILE of --saved is a JSON object: "question", "note" (the id of its answer) and
    "repo", if any. The command fails if one of these notes, or the note that superseded it, is not
    among the first --limit.

    \b
    Example:
      contextgraph recall "which python does CI use" --repo acme/shop
      contextgraph recall --saved questions.jsonl
    """
    if bool(question) is bool(saved):
        raise click.BadParameter("give a QUESTION, or --saved FILE")
    if saved:
        _check_saved(common, saved, limit)
        return
    with common.open(read_only=True) as memory:
        hits = memory.notes.recall(question, limit=limit, **given)
    rows = ((f"{hit.score:.2f}", *_row(hit.note, hit.later)) for hit in hits)
    columns, empty = ("score", *_COLUMNS), "no note answers this"
    records = map(record_of, hits)
    common.answer_rows(records, "Notes", columns, rows, ("score",), empty=empty)


class _Saved(Struct, frozen=True):
    """A question about *repo* whose answer is the note with the id *note*."""

    question: str
    note: str
    repo: str | None = None


def _check_saved(common: Common, file: Path, limit: int) -> None:
    """Print at which place each answer in *file* is recalled; fail where one is missing."""
    from contextgraph.codec import decoded_lines

    questions = decoded_lines(_Saved, file, strict=True)
    with common.open(read_only=True) as memory:
        ranks = [
            memory.notes.rank(question.question, question.note, repo=question.repo)
            for question in questions
        ]
    ranked = [*zip(questions, ranks, strict=True)]
    records = (record_of(question, rank=rank) for question, rank in ranked)
    rows = ((str(rank or "-"), question.note, question.question) for question, rank in ranked)
    common.answer_rows(records, "Saved questions", ("rank", "note", "question"), rows, ("rank",))
    known = sum(rank is not None and rank <= limit for rank in ranks)
    warn(f"{known} of {number_of(len(questions), 'answer')} among the first {limit}")
    if known < len(questions):
        raise click.exceptions.Exit(FAILED)


@common_options()
def notes(  # noqa: PLR0913, PLR0917  (one parameter per flag)
    common: Common,
    archive: Annotated[
        list[str] | None, option("ID", "Archive this note; recall does not show it (repeatable).")
    ] = None,
    forget: Annotated[list[str] | None, option("ID", "Delete this note (repeatable).")] = None,
    repo: Repo = None,
    pin: Annotated[
        list[str] | None, option("ID", "Keep it in every snapshot and playbook (repeatable).")
    ] = None,
    unpin: Annotated[
        list[str] | None, option("ID", "Keep it there no longer (repeatable).")
    ] = None,
    restore: Annotated[list[str] | None, option("ID", "Recall it again (repeatable).")] = None,
    archived: Annotated[bool, flag("Only archived or superseded notes.")] = False,
    conflicts: Annotated[bool, flag("Only those that another note contradicts.")] = False,
) -> None:
    """List notes, or archive, restore, pin, unpin or delete some.

    `contextgraph notes review` shows what may be worth a note.

    \b
    Example:
      contextgraph notes --repo acme/shop
      contextgraph notes --archive note_1f0c3a5b7d9e2468
    """
    changes = {
        "archived": archive or [],
        "restored": restore or [],
        "pinned": pin or [],
        "unpinned": unpin or [],
        "forgotten": forget or [],
    }
    if inner := click.get_current_context().invoked_subcommand:
        if any(changes.values()) or repo or archived or conflicts or common != Common():
            raise click.BadParameter(f"give options after {inner}")
        return
    if any(changes.values()):
        _change(common, changes)
        return
    with common.open(read_only=True) as memory:
        notes = memory.notes.of(repo, archived=archived)
        if conflicts:
            live = {note.id for note in notes}
            notes = tuple(note for note in notes if not live.isdisjoint(note.contradicts))
    title, rows = number_of(len(notes), "note"), map(_row, notes)
    common.answer_rows(map(record_of, notes), title, _COLUMNS, rows, empty="no notes")


_COLUMNS = ("when", "note", "source", "id")
_HIDDEN = "an instruction to the reader, never shown"


def _row(note: "Note", later: "Note | None" = None) -> tuple[str, ...]:
    kind = "" if note.kind == "note" else f"{note.kind}: "
    hidden = f" ({_HIDDEN})" if gives_instructions(note.content) else ""
    text = f"{kind}{shown_text(note)}{' (contradicted)' if note.contradicts else ''}{hidden}"
    if later:
        text = f"{text}; later, {later.created_at:%Y-%m-%d}, about the same: {_row(later)[1]}"
    return f"{note.created_at:%Y-%m-%d}", text, note.source, note.id


@common_options()
def prune(
    common: Common,
    repo: Repo = None,
    before: Annotated[datetime | None, time_option("Remembered before.")] = None,
    tag: Tags = None,
    max_recalls: Annotated[int | None, option("N", "Recalled at most so often.", min=0)] = None,
) -> None:
    """Archive the notes that meet all given conditions.

    At least one is needed. Pinned notes stay; `contextgraph notes --restore` brings others back.

    \b
    Example:
      contextgraph notes prune --before 2026-01-01 --max-recalls 0
    """
    with common.open(create=False) as memory:
        archived = memory.notes.prune(
            repo=repo, before=before, tags=tag or (), max_recalls=max_recalls
        )
    common.answer({"archived": archived}, f"{number_of(archived, 'note')} archived")


@common_options()
def reset(
    common: Common,
    repo: Repo = None,
    source: Annotated[str | None, option("KIND[:NAME]", "Only what this source said.")] = None,
    yes: Yes = False,
) -> None:
    """Delete all notes, or those of a repository or source.

    Statements, pages and entities among them; learned runs stay. Asks for confirmation, unless
    --yes is given.

    \b
    Example:
      contextgraph notes reset --repo acme/shop --yes
    """
    with common.open(create=False) as memory:
        if not yes:
            of = " ".join(filter(None, (repo and f"about {repo}", source and f"of {source}")))
            confirm(
                f"Delete {f'what is noted {of}' if of else 'all notes'}?", "nothing was deleted"
            )
        common.note_shown(memory, forgetting=True)
        deleted = memory.notes.reset(repo=repo, source=source)
    common.answer({"forgotten": deleted}, f"{number_of(deleted, 'note')} deleted")


def _change(common: Common, changes: dict[str, list[str]]) -> None:
    with common.open(create=False) as memory:
        common.note_shown(memory, forgetting=True)
        notes = memory.notes
        unpin: Callable[[list[str]], int] = partial(notes.pin, pinned=False)
        verbs = (notes.archive, notes.restore, notes.pin, unpin, notes.forget)
        done = {name: verb(ids) for (name, ids), verb in zip(changes.items(), verbs, strict=True)}
    if any(done[name] < len({*ids}) for name, ids in changes.items()):
        warn("some of these notes are not in the memory, or were changed so before")
    counts = (f"{number_of(done[name], 'note')} {name}" for name, ids in changes.items() if ids)
    common.answer({**done}, ", ".join(counts))
    if not any(done.values()):
        raise click.exceptions.Exit(FAILED)


@common_options(operation="search")
def search(common: Common, **given: Any) -> None:
    """Search past sessions, decisions, notes and remedies.

    One list, the best first, with the command that opens each. "what happened recently" gives the
    newest, "why did we …" prefers what people decided, the name of a file what is about it.

    \b
    Example:
      contextgraph search "why is the batch limited" --repo acme/shop
      contextgraph search "what happened recently"
      contextgraph search "what do we know about export.py"
    """
    with common.open(read_only=True) as memory:
        found = [
            replace(one, command=_opening(common, one.command)) for one in memory.search(**given)
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
    if not command.startswith(("contextgraph explain ", "contextgraph pages ")):
        return command
    named = (("--store", common.store), ("--tenant", common.tenant))
    return " ".join((command, *(f"{name} {quote(value)}" for name, value in named if value)))


@common_options()
def review(
    common: Common,
    accept: Annotated[list[str] | None, option("ID", "Mark it as right (repeatable).")] = None,
    reject: Annotated[list[str] | None, option("ID", "Never take it again (repeatable).")] = None,
    repo: Repo = None,
) -> None:
    """Show what people said in learned sessions.

    `contextgraph decisions` shows more of it, and takes the same decisions.

    \b
    Example:
      contextgraph notes review --accept note_5f0c2a4d9e1b7c3a
    """
    if accept or reject:
        _decide(common, accept or [], reject or [], "")
        return
    _list_statements(common, repo, recurring=False)


@common_options(operation="decisions")
def decisions(
    common: Common,
    *,
    repo: Annotated[str | None, argument("[REPO]", "owner/repo; without it, all.")] = None,
    recurring: bool,
    accept: Annotated[list[str] | None, option("ID", "Mark it as right (repeatable).")] = None,
    reject: Annotated[
        list[str] | None,
        option("ID", "Never show or take it again, in whatever words (repeatable)."),
    ] = None,
    edit: Annotated[str, option("ID", "Put --text in its place, and mark it as right.")] = "",
    text: Annotated[str, option("TEXT", "The new text for --edit.")] = "",
    propose: Annotated[
        Path | None, option("FILE", "Print what is recurring as a diff of CLAUDE.md or AGENTS.md.")
    ] = None,
) -> None:
    """Show what people decided, corrected or required.

    Agents are shown it when a request or an edited file is about it; a later decision about the
    same takes its place. What may be of the moment comes last, and is not said to agents until it
    is repeated or accepted. What looks like an instruction to the reader is never shown.

    \b
    Example:
      contextgraph decisions acme/shop --recurring
      contextgraph decisions --reject statement_1f0c3a5b7d9e2468
      contextgraph decisions acme/shop --propose CLAUDE.md | patch -p0
    """
    if accept or reject or edit:
        if bool(edit) != bool(text):
            raise click.BadParameter("--edit needs --text", param_hint="'--edit'")
        _decide(common, accept or [], reject or [], edit, text)
    elif propose is not None:
        with common.open(read_only=True) as memory:
            print(_proposed(propose, memory.statements.of(repo, recurring=True)), end="")
    else:
        _list_statements(common, repo, recurring=recurring)


def _list_statements(common: Common, repo: str | None, *, recurring: bool) -> None:
    with common.open(read_only=True) as memory:
        listed = memory.statements.of(repo, recurring=recurring)
    if common.as_json:
        for statement in listed:
            emit(statement_record(statement))
        return
    waiting = [one for one in listed if not (one.is_confirmed or one.stands)]
    shown = [one for one in listed if one.is_confirmed or one.stands]
    for one in (*shown, *waiting):
        if waiting and one is waiting[0]:
            print_text((f"less sure, not said to agents ({len(waiting)}):", "bold"))
        said = f"{one.note.created_at:%Y-%m-%d}"
        sessions = number_of(one.sessions, "session") if one.sessions > 1 else ""
        replaced = f"superseded by {one.superseded_by}" if one.superseded_by else ""
        hidden = _HIDDEN if gives_instructions(one.note.content) else ""
        kind = one.note.statement_kind
        marks = (said, kind, replaced, hidden, one.note.repo, sessions, one.note.id)
        print_text((" · ".join(filter(None, marks)), "dim"))
        print_text(one.note.content, indent=2)
        if recurring and one.rule not in ("", one.note.content):
            print_text((f"rule: {one.rule}", "dim"), indent=2)
        if about := one.note.summary:  # "2" says nothing without the list that it answers
            print_text((f"about: {one_line(about, _FOUND_WIDTH)}", "dim"), indent=2)
    if not listed:
        print("nobody decided anything in the sessions that were learned")


def _decide(
    common: Common, accept: list[str], reject: list[str], edit: str, text: str = ""
) -> None:
    with common.open(create=False) as memory:
        common.note_shown(memory, forgetting=True)
        known = memory.store.notes.get([*accept, *reject, edit])
        done = {
            "accepted": memory.statements.accept(accept),
            "rejected": memory.statements.reject(reject),
            "edited": int(bool(edit) and memory.statements.edit(edit, text)),
        }
    others = max(0, done["rejected"] - len({*reject}.intersection(known)))
    statements = {id_ for id_ in known if id_.startswith("statement_")}
    if not statements.issuperset(filter(None, (*accept, *reject, edit))):
        warn("some of these statements are not in the memory, or were rejected before")
    said = ", ".join(f"{count} {what}" for what, count in done.items())
    they_say = "it says" if others == 1 else "they say"
    also = f"; {others} of these rejected as {they_say} the same in other words" if others else ""
    common.answer({**done, "same_rule": others}, f"{said}{also}")
    if not any(done.values()):
        raise click.exceptions.Exit(FAILED)


def _proposed(path: Path, recurring: "Sequence[Statement]") -> str:
    """A diff that adds the *recurring* rules that *path* does not have, in any words."""
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    known = before.casefold()
    ways = frozenset[str]().union(*map(ways_in, before.splitlines()))
    rules = [" ".join(one.rule.split()) for one in recurring if one.rule and not one.superseded_by]
    added = [
        f"- {rule}"
        for rule in rules
        if rule.casefold() not in known and ways.isdisjoint(ways_in(rule))
    ]
    if not added:
        return ""
    head = before if before.endswith("\n") or not before else f"{before}\n"
    title = "" if _RULES in before else f"{chr(10) if before else ''}{_RULES}\n\n"
    after = f"{head}{title}" + "".join(f"{line}\n" for line in added)
    diff = unified_diff(before.splitlines(True), after.splitlines(True), str(path), str(path))
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in diff)


@common_options(operation="snapshot")
def snapshot(common: Common, **given: Any) -> None:
    """Show what people and agents say that matters now.

    All pinned notes, then the three that answer trigger and focus best, then those of the last day;
    for the prompt of an agent.

    \b
    Example:
      contextgraph snapshot "test_checkout fails on main" --focus payments
    """
    with common.open(read_only=True) as memory:
        snapshot = memory.snapshot(**given)
    common.answer(
        {
            "notes": [record_of(note) for note in snapshot.notes],
            "text": snapshot.text,
            "keyed": snapshot.keyed,
        },
        "\n".join(filter(None, (snapshot.text, snapshot.keyed))) or "no note matters now",
    )


@common_options()
def maintain(common: Common) -> None:
    """Archive and merge notes, decide conflicts, embed what waits.

    For cron. Nothing is deleted; pinned notes stay. Waits while another process holds the lease.
    A second run right after changes nothing.

    \b
    Example:
      contextgraph maintain --store team.db
    """
    with common.open(create=False) as memory:
        report = memory.maintain(
            waiting=lambda until: warn(f"another process holds the lease until {until:%H:%M:%S}")
        )
    record = record_of(report)
    counts = (f"{name.replace('_', ' ')}: {count}" for name, count in record.items() if count)
    common.answer(record, ", ".join(counts) or "nothing changed")


GROUPS = {
    "pages": "Pages that refer to each other.",
    "entities": "Named entities with tags and relations.",
}

Id = Annotated[str, argument("ID", "The id of the page.")]
Name = Annotated[str, argument("NAME", "The name of the entity.")]


@common_options()
def put(
    common: Common,
    page_id: Id,
    title: Annotated[str, option("TEXT", "Its title.")],
    summary: Annotated[str, option("TEXT", "What it says, in a line.")] = "",
    repo: AboutRepo = "",
    tag: Tags = None,
    reference: Annotated[
        list[str] | None, option("ID", "A page that it refers to (repeatable).")
    ] = None,
    mention: Annotated[list[str] | None, option("NAME", "An entity in it (repeatable).")] = None,
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
    common.answer_rows(map(record_of, index), "Pages", _PAGE_COLUMNS, map(_page_row, index))


@common_options()
def search_pages(
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
    rows = ((f"{result.score:.2f}", *_page_row(result.page)) for result in results)
    common.answer_rows(records, "Pages", ("score", *_PAGE_COLUMNS), rows, ("score",))


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
    entity_type: Annotated[
        str, described("--type", metavar="TYPE", help="What it is, such as service.")
    ] = "",
    description: Annotated[str, option("TEXT", "What to know of it.")] = "",
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
def fill(common: Common, repo: Annotated[str, argument("REPO", "owner/repo.")]) -> None:
    """Store what the runs of a repository worked with.

    Files, symbols, tests and commands, with relations: which files change together.

    \b
    Example:
      contextgraph entities fill acme/shop
    """
    with common.open(create=False) as memory:
        stored = memory.entities.fill(repo)
    common.answer({"stored": stored}, f"{stored} entities of {plain(repo)}")


@common_options()
def link(
    common: Common,
    source: Name,
    relation: Annotated[str, argument("TYPE", "Such as depends_on.")],
    target: Annotated[str, argument("TARGET", "The other entity.")],
    weight: Annotated[float, described(metavar="W", min=0, max=1, help="0 to 1.")] = 1.0,
    remove: Annotated[bool, flag("Remove this relation.")] = False,
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
    question: Annotated[str, argument("QUESTION", "Words of names or tags.")],
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
    prefix: Annotated[str, argument("[PREFIX]", "Only those.")] = "",
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


_PAGE_COLUMNS = ("id", "title", "summary")
_page_row = attrgetter(*_PAGE_COLUMNS)


def _report_removed(common: Common, removed: bool, what: str) -> None:
    common.answer({"removed": removed}, f"{what} removed" if removed else "")
    if not removed:
        fail(f"no {what} in the memory")


@common_options(operation="set_memory")
def set_(
    common: Common,
    *,
    key: str,
    json_content: Annotated[
        str, argument("JSON", "What to store; null removes the key; - for standard input.")
    ],
    source: Annotated[
        str, option("NAME|JSON", "Its source: a name, or JSON with kind, name, … (user).")
    ] = "user",
    isolate: Annotated[bool, flag("Without a complete source, store below /untrusted.")] = False,
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
        _json(sys.stdin.read() if json_content == "-" else json_content, "JSON"),
        _json(source, "--source") if source.lstrip().startswith("{") else source,
        untrusted="isolate" if isolate else "refuse",
    )
    path = str(receipt.path) if receipt.path else None
    text = ", ".join(filter(None, (f"{receipt.key}: {receipt.status}", path)))
    common.answer({**asdict(receipt), "path": path}, text)


@common_options(operation="brief")
def brief(common: Common, *, max_tokens: int, **given: Any) -> None:
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
    briefing = memory.brief(max_tokens, **given)
    common.answer(record_of(briefing), briefing.text)


def _json(text: str, what: str) -> object:
    import orjson

    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise click.BadParameter(
            f"{what} cannot be parsed: {error}; a text needs quotes, as in '\"text\"'"
        ) from error
