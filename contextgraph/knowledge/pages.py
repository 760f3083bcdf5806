"""Pages: knowledge about one subject under an id, with an index and references."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from contextgraph.errors import (
    AlreadyExistsError,
    InvalidNoteError,
    NotFoundError,
)
from contextgraph.knowledge.entities import normalized_tags
from contextgraph.knowledge.links import (
    entity_id,
    name_of_entity,
    page_note,
    page_of_note,
    walk,
)
from contextgraph.knowledge.recall import stem_counts
from contextgraph.knowledge.statements import repo_name
from contextgraph.model import (
    Link,
    LinkType,
    Note,
    NoteKind,
    NoteScope,
)
from contextgraph.ports import NoteStore
from contextgraph.ranking import bm25
from contextgraph.text import (
    clean,
    mask_secrets,
    stems,
)

MAX_PAGE = 100_000
_PROPOSED, _INDEXED = 200, 10_000
# A title and a summary say what a page is about: their words count so often.
_TITLE, _SUMMARY = 3, 2
_MOST_WORDS = 64


@dataclass(frozen=True, slots=True)
class Page:
    """A page with its *id*, unique in the memory; *repo* ``""`` is about anything.

    *references* are ids of pages, *mentions* names of entities.
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


@dataclass(frozen=True, slots=True)
class PageFound:
    """A page with its *score*: its BM25 over that of the best page of its repository or of all."""

    page: Page
    score: float


class Pages:
    """The pages of a memory; *clock* gives the time."""

    def __init__(self, store: NoteStore, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._now = clock

    def add_page(self, page: Page) -> None:
        """Store a new page; secrets are masked.

        Raises `AlreadyExistsError` where there is one with its id, `InvalidNoteError` for a page
        without id or title, or with more than 100,000 characters.
        """
        if self._find(page.id) is not None:
            raise AlreadyExistsError(f"there is a page {page.id!r} already; update it")
        self._put(_note_of(page, self._now()))

    def update_page(self, page: Page) -> None:
        """Replace the page with this id; raises `NotFoundError` where there is none."""
        before = self._find(page.id)
        if before is None:
            raise NotFoundError(f"no page {page.id!r}")
        now = self._now()
        self._put(replace(_note_of(page, now), created_at=before.created_at))

    def get_page(self, page_id: str) -> Page:
        """The page with this id; raises `NotFoundError`."""
        note = self._find(page_id)
        if note is None:
            raise NotFoundError(f"no page {page_id!r}")
        return _page_of(note)

    def remove_page(self, page_id: str) -> bool:
        """Delete a page; false where there is none. References to it stay and lead nowhere."""
        return bool(self._store.delete([page_note(page_id)]))

    def get_index(self, repo: str | None = None) -> tuple[Page, ...]:
        """All pages, or those of *repo*, by id and without their content."""
        repos = None if repo is None else (repo_name(repo),)
        notes = self._store.newest(NoteScope(repos, (NoteKind.PAGE,)), _INDEXED)
        pages = (replace(_page_of(note), content="") for note in notes)
        return tuple(sorted(pages, key=lambda page: page.id))

    def references(self, page_id: str, depth: int = 1) -> dict[str, int]:
        """The pages to which this one leads, with the number of steps, up to *depth*."""
        distances = walk(self._store, page_note(page_id), depth, (LinkType.REFERENCES,))
        return {page_of_note(id_): distance for id_, distance in distances.items()}

    def search(
        self, question: str, *, repo: str | None = None, limit: int = 5
    ) -> tuple[PageFound, ...]:
        """Pages that share most words with *question* (BM25; titles and summaries count more).

        Those of *repo* first, then those of others.
        """
        terms = [*dict.fromkeys(stems(question))][:_MOST_WORDS]
        results = self._ranked(terms, None if repo is None else (repo_name(repo),), limit)
        if repo is not None and len(results) < limit:
            known = {result.page.id for result in results}
            others = self._ranked(terms, None, limit)
            results += [result for result in others if result.page.id not in known]
        return tuple(results[: max(0, limit)])

    def _put(self, note: Note) -> None:
        """Store a page; the entities that it mentions get its tags, as far as they have room."""
        mentioned = note.targets(LinkType.MENTIONS)
        self._store.change(
            mentioned,
            lambda entity: replace(entity, tags=normalized_tags((*entity.tags, *note.tags))),
            new=[note],
        )

    def _ranked(
        self, terms: Sequence[str], repos: tuple[str, ...] | None, limit: int
    ) -> list[PageFound]:
        scope = NoteScope(repos, (NoteKind.PAGE,))
        notes = self._store.for_text(terms, scope, max(_PROPOSED, limit))
        scores = bm25(terms, [stem_counts(_weighted(note)) for note in notes])
        ranked = sorted(zip(notes, scores, strict=True), key=lambda pair: (-pair[1], pair[0].id))
        most = ranked[0][1] if ranked else 0.0
        return [PageFound(_page_of(note), score / most) for note, score in ranked if score > 0]

    def _find(self, page_id: str) -> Note | None:
        id_ = page_note(page_id)
        return self._store.get([id_]).get(id_)


def _weighted(note: Note) -> str:
    """The text of a page, with the words of its title and its summary as often as they count."""
    fields = [note.title] * _TITLE + [note.summary] * _SUMMARY + [note.content, *note.tags]
    return " ".join(fields)


def _note_of(page: Page, now: datetime) -> Note:
    title, content = mask_secrets(clean(page.title)).strip(), mask_secrets(clean(page.content))
    if not page.id.strip() or not title:
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
        source="user",
        created_at=now,
        tags=normalized_tags(page.tags),
        kind=NoteKind.PAGE,
        title=title,
        summary=mask_secrets(clean(page.summary)).strip(),
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
    )
