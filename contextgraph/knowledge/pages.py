"""Pages: knowledge about one subject under an id, with an index and references."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from functools import reduce
from itertools import chain, combinations

from msgspec import Struct

from contextgraph.errors import (
    AlreadyExistsError,
    InvalidEntryError,
    InvalidNoteError,
    NotFoundError,
)
from contextgraph.knowledge.notes import repo_name
from contextgraph.knowledge.recall import (
    Question,
    entity_id,
    name_of_entity,
    page_note,
    page_of_note,
    recollections,
    walk,
    with_link,
)
from contextgraph.model import (
    Link,
    LinkType,
    NonNegativeInt,
    Note,
    NoteKind,
    NoteScope,
    RunFacts,
    Scope,
    Share,
)
from contextgraph.model.values import checked, replace
from contextgraph.store.memory_store import NoteStore, RunStore
from contextgraph.text import (
    clean,
    mask_secrets,
    masked_name,
    number_of,
    regex,
    without_private,
    words,
)

MAX_PAGE = 100_000
_INDEXED = 10_000


class Page(Struct, frozen=True):
    """A page with its *id*, unique in the memory; *repo* ``""`` is about anything.

    *references* are ids of pages, *mentions* names of entities. *source*, of a stored page, is who
    stored it: "user", or "agent:" and the source of a token.
    """

    id: str
    title: str
    summary: str = ""
    content: str = ""
    tags: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    repo: str = ""
    updated_at: datetime | None = None
    source: str = ""


class PageFound(Struct, frozen=True):
    """A page with its *score*: its BM25 relative to the best page of its repository, or of all."""

    page: Page
    score: float


@checked
class Pages:
    """The pages of a memory; *clock* gives the time."""

    def __init__(self, store: NoteStore, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._now = clock

    def add_page(self, page: Page, only_of: str | None = None) -> None:
        """Store a new page, with secrets masked; its source is the contributor *only_of*, if given.

        Raises `AlreadyExistsError` if its id is taken, and `InvalidNoteError` for a page without id
        or title, or with more than 100,000 characters.
        """
        if self._find(page.id) is not None:
            raise AlreadyExistsError(f"there is a page {page.id!r} already; update it")
        self._put(_note_of(page, self._now(), only_of), only_of)

    def update_page(self, page: Page, only_of: str | None = None) -> None:
        """Replace the page with the same id; raises `NotFoundError` if there is none.

        With *only_of*, raises `InvalidEntryError` for a page of another source.
        """
        before = self._find(page.id)
        if before is None:
            raise NotFoundError(f"no page {page.id!r}")
        _check_writer(before, only_of)
        note = _note_of(page, self._now(), only_of)
        self._put(replace(note, created_at=before.created_at), only_of)

    def get_page(self, page_id: str) -> Page:
        """Return the page with this id; raises `NotFoundError`."""
        note = self._find(page_id)
        if note is None:
            raise NotFoundError(f"no page {page_id!r}")
        return _page_of(note)

    def remove_page(self, page_id: str) -> bool:
        """Delete a page; return False if there is none. References to it are kept."""
        return bool(self._store.delete([page_note(page_id)]))

    def get_index(self, repo: str | None = None) -> tuple[Page, ...]:
        """Return all pages, or those of *repo*, by id and without their content."""
        repos = None if repo is None else (repo_name(repo),)
        notes = self._store.newest(NoteScope(repos, (NoteKind.PAGE,)), _INDEXED)
        pages = (replace(_page_of(note), content="") for note in notes)
        return tuple(sorted(pages, key=lambda page: page.id))

    def references(self, page_id: str, depth: NonNegativeInt = 1) -> dict[str, int]:
        """Return the ids of pages that this one leads to, each with its distance, up to *depth*."""
        start = page_note(page_id)
        reached = walk(self._store, [start], depth, (LinkType.REFERENCES,))[start]
        return {page_of_note(one.note.id): one.distance for one in reached}

    def search(
        self, question: str, *, repo: str | None = None, limit: NonNegativeInt = 5
    ) -> tuple[PageFound, ...]:
        """Return the pages that answer *question* best, those of *repo* first, by words.

        They are ranked as notes are recalled; the best of its repository, or of all, has score 1.
        """
        results = self._ranked(question, None if repo is None else (repo_name(repo),), limit)
        if repo is not None and len(results) < limit:
            known = {result.page.id for result in results}
            others = self._ranked(question, None, limit)
            results += [result for result in others if result.page.id not in known]
        return tuple(results[:limit])

    def _put(self, note: Note, only_of: str | None) -> None:
        """Store a page; the entities that it mentions get its tags, as far as they have room.

        With *only_of*, those of this source alone.
        """
        mentioned = note.targets(LinkType.MENTIONS)
        self._store.change(
            mentioned,
            lambda entity: (
                replace(entity, tags=normalized_tags((*entity.tags, *note.tags)))
                if _may_change(entity, only_of)
                else entity
            ),
            new=[note],
        )

    def _ranked(
        self, question: str, repos: tuple[str, ...] | None, limit: NonNegativeInt
    ) -> list[PageFound]:
        scope = NoteScope(repos, (NoteKind.PAGE,))
        asked = Question.of(question, None, scope, self._now())
        ranked = recollections(self._store, asked)[: max(0, limit)]
        most = ranked[0].score if ranked else 1.0
        return [PageFound(_page_of(one.note), one.score / most) for one in ranked]

    def _find(self, page_id: str) -> Note | None:
        id_ = page_note(page_id)
        return self._store.get([id_]).get(id_)


def _kept(text: str) -> str:
    """Return *text* without what is not stored: private words, secrets and control characters."""
    return mask_secrets(clean(without_private(text)))


def _source(only_of: str | None) -> str:
    """Return the source of what the contributor *only_of* writes, or the owner."""
    return "user" if only_of is None else f"agent:{only_of}"


def _may_change(note: Note, only_of: str | None) -> bool:
    return only_of is None or note.source == _source(only_of)


def _check_writer(note: Note, only_of: str | None) -> None:
    """Raise `InvalidEntryError` where *only_of* may not change *note*."""
    if not _may_change(note, only_of):
        raise InvalidEntryError(f"{note.title!r} was stored by another source")


def _note_of(page: Page, now: datetime, only_of: str | None) -> Note:
    title, summary, content = map(_kept, (page.title, page.summary, page.content))
    if not page.id.strip() or not title.strip():
        raise InvalidNoteError("a page needs an id and a title")
    if len(content) > MAX_PAGE:
        raise InvalidNoteError(
            f"a page has at most {MAX_PAGE:,} characters, not {len(content):,}; split it"
        )
    references = [Link(LinkType.REFERENCES, page_note(id_)) for id_ in page.references]
    mentions = [Link(LinkType.MENTIONS, entity_id(name)) for name in page.mentions]
    return Note(
        id=page_note(page.id),
        content=content,
        repo=repo_name(page.repo),
        source=_source(only_of),
        created_at=now,
        tags=normalized_tags(page.tags),
        kind=NoteKind.PAGE,
        title=title.strip(),
        summary=summary.strip(),
        links=(*references, *mentions),
        updated_at=now,
    )


def _page_of(note: Note) -> Page:
    return Page(
        id=page_of_note(note.id),
        title=note.title,
        summary=note.summary,
        content=note.content,
        tags=note.tags,
        references=tuple(map(page_of_note, note.targets(LinkType.REFERENCES))),
        mentions=tuple(map(name_of_entity, note.targets(LinkType.MENTIONS))),
        repo=note.repo,
        updated_at=note.updated_at,
        source=note.source,
    )


_ALL = 100_000
_MAX_TAGS = 8
# Runs of a repository that are looked at, and entities that are made of them.
_LOOKED_AT, _FILLED = 32, 200
_RUNS = "system:runs"
_PART = regex(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")
_PLURAL = regex(r"(?<=[a-z]{3})(?<![suix])s\Z")


class Entity(Struct, frozen=True):
    """A thing with a *name*, unique in its *repo* (or among those of no repository) in any case.

    Without *tags* it gets the words of its name; more than eight are cut. *source* is as in `Page`,
    or "system:runs".
    """

    name: str
    entity_type: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    updated_at: datetime | None = None
    repo: str = ""
    source: str = ""


class RelatedEntity(Struct, frozen=True):
    """An entity with its *distance* in relations, and its *score*, 1 / (1 + distance).

    *pages* are the ids of pages that mention it.
    """

    entity: Entity
    distance: int
    pages: tuple[str, ...] = ()

    @property
    def score(self) -> float:
        """1 / (1 + distance)."""
        return 1 / (1 + self.distance)


@checked
class Entities:
    """The entities of a memory; *clock* gives the time, *runs* are what they are filled from."""

    def __init__(self, store: NoteStore, clock: Callable[[], datetime], runs: RunStore) -> None:
        self._store = store
        self._now = clock
        self._runs = runs

    def add_entity(self, entity: Entity, only_of: str | None = None) -> None:
        """Store a new entity, with secrets masked; its source is *only_of*, if given.

        Raises `AlreadyExistsError` if its name is taken, and `InvalidNoteError` without a name.
        """
        if not entity.name.strip():
            raise InvalidNoteError("an entity needs a name")
        note = replace(_entity_note(entity, self._now()), source=_source(only_of))
        if self._store.get([note.id]):
            raise AlreadyExistsError(f"there is an entity {entity.name!r} already")
        self._store.change(new=[note])

    def fill(self, repo: str) -> int:
        """Store the files, symbols, tests and commands that runs of *repo* used; return how many.

        Consolidation calls this when a repository has two runs, and each time it has half as many
        again. It reads the 32 best runs, solved ones first, then the newest, and stores the 200
        items that most of them share. A symbol and a test are *defined_in* their file, files are
        *changed_with* each other, a command *names* a file. Items that people stored or changed
        stay.
        """
        return fill_entities(self._store, self._runs, repo, self._now())

    def get_entity(self, name: str, repo: str = "") -> Entity:
        """Return the entity with this name, in *repo* or in none; raises `NotFoundError`."""
        return _entity_of(self._note(name, repo))

    def remove_entity(self, name: str, repo: str = "") -> bool:
        """Delete an entity and all its relations; return False if there is none."""
        id_ = entity_id(name, repo)
        linking = [note.id for note in self._store.linking([id_])]
        self._store.change(linking, lambda note: _without(note, id_))
        return bool(self._store.delete([id_]))

    def add_relation(
        self,
        source: str,
        target: str,
        relation: str,
        weight: Share = 1.0,
        repo: str = "",
        only_of: str | None = None,
    ) -> None:
        """Relate two entities, replacing a relation of the same type between them.

        *weight* is 0 to 1. Raises `NotFoundError` if one of them is unknown and, with *only_of*,
        `InvalidEntryError` where *source* was stored by another.
        """
        link = Link(masked_name(relation), self._note(target, repo).id, weight)
        known = self._note(source, repo)
        _check_writer(known, only_of)
        self._store.change(
            [known.id], lambda note: replace(with_link(note, link), source=_source(only_of))
        )

    def remove_relation(self, source: str, target: str, relation: str) -> bool:
        """Delete a relation; return False if there is none."""
        note, gone = self._note(source), (masked_name(relation), entity_id(target))
        if all((link.type, link.target) != gone for link in note.links):
            return False
        self._store.change([note.id], lambda known: _without(known, gone[1], gone[0]))
        return True

    def get_related(
        self, name: str, depth: NonNegativeInt = 1, *types: str, repo: str = ""
    ) -> tuple[RelatedEntity, ...]:
        """Return entities within *depth* relations (of *types*, or any), in both directions.

        The nearest come first, then by name. Raises `NotFoundError`.
        """
        start = self._note(name, repo).id
        reached = walk(self._store, [start], depth, types, back=True)[start]
        linking = self._store.linking([one.note.id for one in reached])
        pages = [note for note in linking if note.kind is NoteKind.PAGE]
        related = (
            RelatedEntity(
                _entity_of(note),
                distance,
                tuple(
                    page_of_note(page.id)
                    for page in pages
                    if note.id in page.targets(LinkType.MENTIONS)
                ),
            )
            for note, distance in reached
            if note.kind is NoteKind.ENTITY
        )
        return tuple(
            sorted(related, key=lambda neighbour: (neighbour.distance, neighbour.entity.name))
        )

    def find_by_keywords(self, question: str) -> tuple[Entity, ...]:
        """Return entities with a word of *question* as start of the name, as tag or as type."""
        terms = {*words(question), *(tag for word in words(question) for tag in tags_of(word))}
        return tuple(
            entity
            for entity in self._all()
            if any(entity.name.casefold().startswith(word) for word in terms)
            or terms & {*entity.tags, entity.entity_type.casefold()}
        )

    def find_tags(self, prefix: str = "") -> dict[str, int]:
        """Return the tags that begin with *prefix*, each with its number of entities."""
        wanted = "-".join(normalized_tags([prefix])) if prefix else ""
        counts = Counter(tag for entity in self._all() for tag in entity.tags)
        return {tag: counts[tag] for tag in sorted(counts) if tag.startswith(wanted)}

    def set_entity_tags(self, name: str, tags: Sequence[str]) -> tuple[str, ...]:
        """Replace the tags of an entity, and return them; raises `NotFoundError`."""
        given, now = normalized_tags(tags), self._now()
        ids = [self._note(name).id]
        self._store.change(
            ids, lambda note: replace(note, tags=given, updated_at=now, source="user")
        )
        return given

    def _note(self, name: str, repo: str = "") -> Note:
        ids = dict.fromkeys((entity_id(name, repo), entity_id(name)))
        stored = self._store.get([*ids])
        note = next((stored[id_] for id_ in ids if id_ in stored), None)
        if note is None:
            raise NotFoundError(f"no entity {name!r}")
        return note

    def _all(self) -> Iterable[Entity]:
        notes = self._store.newest(NoteScope(kinds=(NoteKind.ENTITY,)), _ALL)
        return sorted(map(_entity_of, notes), key=lambda entity: entity.name)


def _without(note: Note, target: str, type_: str | None = None) -> Note:
    """*note* without its links to *target*, of one type where given."""
    remaining = (
        link for link in note.links if link.target != target or type_ not in (None, link.type)
    )
    return replace(note, links=tuple(remaining))


def _entity_note(entity: Entity, now: datetime) -> Note:
    return Note(
        id=entity_id(entity.name, entity.repo),
        content=_kept(entity.description),
        repo=masked_name(entity.repo).casefold(),
        source="user",
        created_at=now,
        tags=normalized_tags(entity.tags or tags_of(entity.name)),
        kind=NoteKind.ENTITY,
        title=masked_name(entity.name),
        summary=masked_name(entity.entity_type),
        updated_at=now,
    )


def _entity_of(note: Note) -> Entity:
    return Entity(
        note.title,
        note.summary,
        note.content,
        note.tags,
        note.updated_at,
        repo=note.repo,
        source=note.source,
    )


def fill_entities(store: NoteStore, runs: RunStore, repo: str, now: datetime) -> int:
    """Replace the entities of the runs of *repo*; how many: see `Entities.fill`."""
    known = runs.for_task(None, Scope(repo), _LOOKED_AT)
    of_runs = runs.facts(run.id for run in known)
    facts = [(run.files, of_runs[run.id]) for run in known if run.id in of_runs]
    notes = {note.id: note for note in _notes_of_runs(facts, repo, now)}
    if notes:
        count = _counts(runs, [repo])[repo]
        entity = Entity(repo, "repository", number_of(count, "run"), repo=repo)
        whole = replace(_entity_note(entity, now), source=_RUNS, confirmed=count)
        notes[whole.id] = whole
    stored = store.get([*notes])
    of_people = {id_ for id_, note in stored.items() if note.source != _RUNS}
    store.delete([note.id for note in _of_runs(store, repo) if note.id not in notes])
    store.change(
        [*of_people],
        lambda note: reduce(with_link, notes[note.id].links, note),
        [note for id_, note in notes.items() if id_ not in of_people],
    )
    return len(notes)


def fill_grown(
    store: NoteStore,
    runs: RunStore,
    repos: Collection[str],
    now: datetime,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Fill the entities of those *repos* that have two runs, half as many again, or fewer.

    So the cost for each run does not grow. *check*, called before each, may end it by raising.
    """
    filled = store.get([entity_id(repo, repo) for repo in repos])
    for repo, count in _counts(runs, repos).items():
        known = filled[id_].confirmed if (id_ := entity_id(repo, repo)) in filled else 0
        if count < known or count >= max(2, 1.5 * known):
            check()
            fill_entities(store, runs, repo, now)


def remove_filled(store: NoteStore, repos: Iterable[str]) -> None:
    """Remove the entities of the runs of *repos*; the next consolidation fills what is left."""
    for repo in repos:
        store.delete([note.id for note in _of_runs(store, repo)])


def _counts(runs: RunStore, repos: Collection[str]) -> dict[str, int]:
    """The number of runs of each of *repos*."""
    found = {repo: dict(runs.repositories(_ALL, containing=repo)) for repo in repos}
    return {repo: counts.get(repo, 0) for repo, counts in found.items()}


def _of_runs(store: NoteStore, repo: str) -> Iterator[Note]:
    """The entities of *repo* that were filled from runs, and that no person changed."""
    scope = NoteScope((repo_name(repo),), (NoteKind.ENTITY,))
    return (note for note in store.newest(scope, _ALL) if note.source == _RUNS)


def _notes_of_runs(
    runs: Iterable[tuple[Sequence[str], RunFacts]], repo: str, now: datetime
) -> list[Note]:
    """Return entities for what *runs* of *repo*, each with the files it changed, worked with."""
    met: Counter[tuple[str, str]] = Counter()
    links: Counter[tuple[tuple[str, str], str, tuple[str, str]]] = Counter()
    for changed, facts in runs:
        files = {("file", file) for file in (*changed, *facts.symbols)}
        parts = {("symbol", name): file for file, names in facts.symbols.items() for name in names}
        parts |= {("test", test): test.partition("::")[0] for test in facts.failing if "::" in test}
        commands = {("command", use.runner): use.text.split() for use in facts.commands if use.ran}
        met.update({*files, *parts, *commands})
        links.update((part, "defined_in", ("file", file)) for part, file in parts.items())
        links.update((one, "changed_with", other) for one, other in combinations(sorted(files), 2))
        links.update(
            (command, "names", file)
            for command, words in commands.items()
            for file in files
            if file[1] in words
        )
    shown = dict(met.most_common(_FILLED))
    return [
        replace(
            _entity_note(
                Entity(name, kind, f"{kind} of {number_of(count, 'run')}", repo=repo), now
            ),
            source=_RUNS,
            confirmed=count,
            links=tuple(
                Link(type_, entity_id(target[1], repo), together / min(count, shown[target]))
                for (source, type_, target), together in links.items()
                if source == (kind, name) and target in shown
            ),
        )
        for (kind, name), count in shown.items()
    ]


def tags_of(name: str) -> tuple[str, ...]:
    """Return the tags of *name*: its parts and, of several, all with hyphens.

    `StateGraphs` gives `state`, `graph`, `state-graph`.
    """
    parts = [_PLURAL.sub("", part.lower()) for part in _PART.findall(masked_name(name))]
    whole = ["-".join(parts)] if len(parts) > 1 else []
    return tuple(dict.fromkeys((*parts, *whole)))


def normalized_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the first eight different *tags*, in lower case, singular, with hyphens."""
    given = (tags_of(tag) for tag in tags)
    last = chain.from_iterable(some[-1:] for some in given)
    return tuple(dict.fromkeys(last))[:_MAX_TAGS]
