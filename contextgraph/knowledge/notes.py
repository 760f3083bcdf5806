"""Remembers notes, compares them with earlier ones, and recalls them."""

import logging
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Unpack

from contextgraph.errors import EmbeddingError, InvalidNoteError
from contextgraph.governance import Relation, Verdict
from contextgraph.knowledge.links import walk, with_link
from contextgraph.knowledge.recall import (
    MOST_WORDS,
    Question,
    recollections,
)
from contextgraph.knowledge.rendering import snapshot_of
from contextgraph.knowledge.statements import (
    Judge,
    NoteProperties,
    confirmed_by,
    note_of,
    repo_name,
    verdicts,
    with_properties,
)
from contextgraph.model import (
    Link,
    LinkType,
    Note,
    NoteKind,
    NoteReceipt,
    NoteScope,
    NoteStatus,
    Recollection,
    Snapshot,
)
from contextgraph.ports import EmbedderSource, NoteStore
from contextgraph.text import masked_name, stems
from contextgraph.vectors import Vector

RECALLED = 5
_COMPARED = 20
# Where nothing is ever written, so many recalls wait to be counted; the oldest are dropped.
_COUNTED = 4_096
# Of a snapshot: notes of each kind, in this order.
_PINNED, _RELATED, _RECENT, _RECENTLY = 50, 3, 5, timedelta(hours=24)


class Notes:
    """The notes of a memory.

    *clock* gives the time. *embedder* embeds notes, *questions* embeds questions. *judge* decides
    how a statement relates to an earlier one; where it returns None, their words decide.
    """

    def __init__(
        self,
        store: NoteStore,
        clock: Callable[[], datetime],
        embedder: EmbedderSource = lambda: None,
        questions: EmbedderSource = lambda: None,
        judge: Judge | None = None,
    ) -> None:
        self._store = store
        self._now = clock
        self._embedder = embedder
        self._questions = questions
        self._judge = judge
        # Written with the next change: who only reads counts nothing.
        self._recalled: deque[Recollection] = deque(maxlen=_COUNTED)

    def remember(
        self,
        text: str,
        *,
        repo: str = "",
        source: str = "user",
        tags: Collection[str] = (),
        credibility: float | None = None,
        **properties: Unpack[NoteProperties],
    ) -> NoteReceipt:
        """Store what *source* says about *repo* (``""``: about anything); secrets are masked.

        The same statement of another source is confirmed. A statement that says otherwise about
        the same subject is superseded, if it is older and of the same source or clearly less
        credible; else both stay and are marked. *source* is a kind (user, file, tool, system,
        agent, web), or one with a name (``user:chat``), by which *credibility* (0 to 1) is chosen
        where it is not given.
        *properties* are those of `NoteProperties`. Raises `InvalidNoteError` for a text that is
        empty or has more than 2,000 characters, and for properties that cannot be.
        """
        self.count_recalls()
        stated = note_of(text, repo, source, self._now(), credibility)
        names = dict.fromkeys(masked_name(tag).casefold() for tag in tags)
        note = with_properties(replace(stated, tags=tuple(names)), properties)
        known = self._store.get([note.id]).get(note.id)
        if known is not None and known.is_live:
            return self._confirm(known, note)
        scope = NoteScope((note.repo,))
        query = [*dict.fromkeys(stems(note.content))][:MOST_WORDS]
        related = self._store.for_text(query, scope, _COMPARED)
        compared = verdicts(note, related, self._judge)
        for other, verdict in compared:
            if verdict.relation is Relation.SAME:
                return self._confirm(other, note)
        before = (Link(LinkType.FOLLOWS, note.id) for note in self._store.newest(scope, 1))
        note = replace(note, links=(*note.links, *before))
        receipt = self._store_beside(note, compared)
        return replace(receipt, to_embed=not self._embed(note))

    def recall(
        self,
        question: str,
        *,
        repo: str | None = None,
        limit: int = RECALLED,
        tags: Collection[str] = (),
        min_probability: float = 0.0,
    ) -> tuple[Recollection, ...]:
        """The notes that answer *question* best, the best first.

        Those of *repo* and those about anything; without it, all. With *tags* only notes that have
        all of them. Archived and superseded notes and those that are not valid now are not
        recalled, nor is what answers with less than *min_probability*. Where the question cannot be
        embedded, only words decide, with a warning.
        """
        scope = NoteScope(_places(repo), tags=tuple(map(str.casefold, tags)))
        probable = (
            recollection
            for recollection in self._answers(question, scope)
            if recollection.probability >= min_probability
        )
        recollections = tuple(islice(probable, max(0, limit)))
        self._recalled.extend(recollections)
        return recollections

    def rank(self, question: str, note_id: str, *, repo: str | None = None) -> int | None:
        """The place, from 1, at which this note answers *question*, or what superseded it.

        None where neither is recalled. It does not count as a recall.
        """
        while (note := self._store.get([note_id]).get(note_id)) and note.superseded_by:
            note_id = note.superseded_by
        ids = [
            recollection.note.id
            for recollection in self._answers(question, NoteScope(_places(repo)))
        ]
        return ids.index(note_id) + 1 if note_id in ids else None

    def _answers(self, question: str, scope: NoteScope) -> list[Recollection]:
        """The notes of *scope* that are proposed for *question*, the best first."""
        # Then the question need not be embedded; of all repositories some will have a note.
        if scope.repos is not None and not self._store.newest(scope, 1):
            return []
        query = Question.of(question, self._vector(question), scope, self._now())
        return recollections(self._store, query)

    def snapshot(
        self, trigger: str, focus: str = "", *, repo: str | None = None, max_tokens: int = 500
    ) -> Snapshot:
        """What to know of *repo* when *trigger* happens, in at most *max_tokens*.

        All pinned notes, then the three that answer *trigger* and *focus* best, then the newest
        five of the last 24 hours; each whole, those that do not fit are left out from the end.
        """
        scope, now = NoteScope(_places(repo)), self._now()
        pinned = self._store.newest(replace(scope, pinned=True), _PINNED)
        related = self.recall(f"{focus}\n{trigger}", repo=repo, limit=_RELATED)
        recent = [
            note
            for note in self._store.newest(scope, _RECENT)
            if now - note.created_at <= _RECENTLY
        ]
        notes = {
            note.id: note
            for note in (*pinned, *(recollection.note for recollection in related), *recent)
        }
        valid = (note for note in notes.values() if note.is_valid(now))
        return snapshot_of(valid, max_tokens)

    def count_recalls(self) -> None:
        """Store how often notes were recalled, which is else put off until one is remembered."""
        recalled, self._recalled = self._recalled, deque(maxlen=_COUNTED)
        if recalled:
            ids = [recollection.note.id for recollection in recalled]
            self._store.change(ids, partial(_with_recalls, recalled=recalled, now=self._now()))

    def link(self, source: str, target: str, type_: str = "related", weight: float = 1.0) -> bool:
        """Link two notes, replacing a link of that type; false where one of them is unknown."""
        if not {source, target} <= self._store.get([source, target]).keys():
            return False
        link = Link(masked_name(type_), target, weight)
        self._store.change([source], lambda note: with_link(note, link))
        return True

    def causes(self, note_id: str, depth: int = 5) -> tuple[Note, ...]:
        """The notes that led to this one, the nearest first, up to *depth* steps back."""
        ids = walk(self._store, note_id, depth, (LinkType.CAUSED_BY,))
        notes = self._store.get([*ids])
        return tuple(notes[id_] for id_ in ids)

    def of(self, repo: str | None = None, *, archived: bool = False) -> tuple[Note, ...]:
        """The notes of *repo* (None: all), the newest first; those not recalled if *archived*."""
        chosen = [
            note
            for note in self._store.all()
            if note.kind is NoteKind.NOTE
            and note.is_live is not archived
            and (repo is None or note.repo == repo_name(repo))
        ]
        return tuple(sorted(chosen, key=lambda note: (note.created_at, note.id), reverse=True))

    def pin(self, ids: Collection[str], *, pinned: bool = True) -> int:
        """Pin these notes, or no longer; a pinned one is in every snapshot and never pruned."""
        return len(self._store.change([*ids], lambda note: replace(note, pinned=pinned)))

    def archive(self, ids: Collection[str]) -> int:
        """Recall these notes no more; they stay. Returns how many were live."""
        now = self._now()
        changed = self._store.change([*ids], partial(archived_at, now=now))
        return sum(note.archived_at == now for note in changed)

    def restore(self, ids: Collection[str]) -> int:
        """Recall archived notes again; returns how many were archived."""
        archived = [note.id for note in self._store.get([*ids]).values() if note.archived_at]
        return len(self._store.change(archived, lambda note: replace(note, archived_at=None)))

    def prune(
        self,
        *,
        repo: str | None = None,
        before: datetime | None = None,
        tags: Collection[str] = (),
        max_recalls: int | None = None,
    ) -> int:
        """Archive live notes that meet all given conditions; returns how many.

        Those of *repo*, remembered *before* a time, with all of *tags*, recalled at most
        *max_recalls* times. Pinned notes stay. Raises `InvalidNoteError` without a condition.
        """
        if repo is None and before is None and not tags and max_recalls is None:
            raise InvalidNoteError("prune needs a condition: repo, before, tags or max_recalls")
        self.count_recalls()
        wanted = {*map(str.casefold, tags)}
        return self.archive(
            [
                note.id
                for note in self.of(repo)
                if not note.pinned
                and (before is None or note.created_at < before)
                and wanted <= {*note.tags}
                and (max_recalls is None or note.recalls <= max_recalls)
            ]
        )

    def reset(self, *, repo: str | None = None, source: str | None = None) -> int:
        """Delete all notes, or those of *repo* and *source*; returns how many."""
        return self.forget(
            [
                note.id
                for note in self._store.all()
                if (repo is None or note.repo == repo_name(repo))
                and (source is None or note.source == masked_name(source))
            ]
        )

    def forget(self, ids: Collection[str]) -> int:
        """Delete these notes; returns how many were known."""
        return self._store.delete([*ids])

    def _confirm(self, known: Note, again: Note) -> NoteReceipt:
        """Count *again* as a confirmation of *known*; its tags and its pin are added."""

        def confirmed(note: Note) -> Note:
            return replace(
                confirmed_by(note, again.source),
                tags=tuple(dict.fromkeys((*note.tags, *again.tags))),
                pinned=note.pinned or again.pinned,
            )

        self._store.change([known.id], confirmed)
        return NoteReceipt(known.id, NoteStatus.SAME, (known.id,))

    def _store_beside(self, note: Note, compared: Sequence[tuple[Note, Verdict]]) -> NoteReceipt:
        """Store *note*, and with it what it means for those that it was compared with."""
        superseded = [pair for pair in compared if pair[1].relation is Relation.SUPERSEDES]
        contradicted = [pair for pair in compared if pair[1].relation is Relation.CONTRADICTS]
        ids = tuple(note.id for note, _ in contradicted)
        replaced = {note.id for note, _ in superseded}

        def marked(other: Note) -> Note:
            if other.id in replaced:
                return replace(other, superseded_by=note.id)
            return replace(other, contradicts=tuple(dict.fromkeys((*other.contradicts, note.id))))

        links = (*note.links, *(Link(LinkType.SUPERSEDES, note.id) for note, _ in superseded))
        note = replace(note, contradicts=ids, links=links)
        self._store.change([*replaced, *ids], marked, new=[note])
        for status, others in (
            (NoteStatus.SUPERSEDES, superseded),
            (NoteStatus.CONTRADICTS, contradicted),
        ):
            if others:
                confidence = max(verdict.confidence for _, verdict in others)
                return NoteReceipt(
                    note.id, status, tuple(note.id for note, _ in others), confidence
                )
        return NoteReceipt(note.id, NoteStatus.CREATED)

    def _vector(self, question: str) -> Vector | None:
        """The vector of *question*; None where it cannot be embedded: then words decide."""
        try:
            embedder = self._questions()
            return embedder.embed([question]).vectors[0] if embedder else None
        except EmbeddingError as error:
            logging.getLogger(__name__).warning("%s; notes are recalled by words only", error)
            return None

    def _embed(self, note: Note) -> bool:
        """Embed *note*; false where that fails: it waits until the memory is maintained."""
        try:
            if embedder := self._embedder():
                (vector,) = embedder.embed([note.content]).vectors
                self._store.add(embedder.space, {note.id: vector})
        except EmbeddingError:
            return False
        return True


def _places(repo: str | None) -> tuple[str, ...] | None:
    """The repositories in which notes are recalled for *repo*: notes about anything as well."""
    return None if repo is None else tuple(dict.fromkeys((repo_name(repo), "")))


def archived_at(note: Note, now: datetime) -> Note:
    """*note*, archived *now* where it was live."""
    return replace(note, archived_at=now) if note.is_live else note


def _with_recalls(note: Note, recalled: Sequence[Recollection], now: datetime) -> Note:
    scores = [recollection.score for recollection in recalled if recollection.note.id == note.id]
    return replace(
        note,
        recalls=note.recalls + len(scores),
        recall_score=note.recall_score + sum(scores),
        recalled_at=now,
    )
