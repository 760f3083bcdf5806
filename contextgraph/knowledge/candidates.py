"""Candidates for notes: statements found in recorded sessions, until they are reviewed."""

from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime
from functools import partial
from hashlib import blake2b

from contextgraph.governance import Relation, verdict
from contextgraph.knowledge.corrections import Correction, corrections_in
from contextgraph.knowledge.notes import Notes, repo_name, statement_of
from contextgraph.model import (
    Link,
    LinkType,
    Note,
    NoteKind,
    NoteScope,
    RawTrajectory,
)
from contextgraph.ports import NoteStore
from contextgraph.ranking import dice
from contextgraph.text import (
    clean,
    mask_secrets,
    stems,
)

_SOURCE = "user:session"
_CREDIBILITY = 0.85
# What two sessions say is taken for true without a review.
_SESSIONS = 2
_SIMILAR, _COMPARED, _LISTED = 0.8, 20, 10_000


class Candidates:
    """The candidates of a memory; accepted ones become *notes*."""

    def __init__(self, notes: Notes, store: NoteStore, clock: Callable[[], datetime]) -> None:
        self._notes, self._store, self._now = notes, store, clock

    def add(self, run: RawTrajectory, run_id: str) -> None:
        """Note what people corrected, refused or decided in *run*, which has the id *run_id*.

        What is known is counted once for each run. What a second run says becomes a note. Doing it
        again changes nothing; what was rejected stays rejected.
        """
        for correction in corrections_in(run):
            candidate = self._candidate(correction, run, run_id)
            known = self._known(candidate)
            if known is None:
                self._store.change(new=[candidate])
                continue
            (known,) = self._store.change([known.id], partial(_repeated, link=candidate.links[0]))
            if known.kind is NoteKind.CANDIDATE and known.is_live and sessions(known) >= _SESSIONS:
                self.accept([known.id])

    def of(self, repo: str | None = None) -> tuple[Note, ...]:
        """Those of *repo* (None: all) that wait for a review, the newest first."""
        return tuple(self._store.newest(_scope(repo, NoteKind.CANDIDATE), _LISTED))

    def repeated(self, repo: str | None = None) -> tuple[tuple[Note, int], ...]:
        """Notes that people said in several sessions, and in how many; the most frequent first."""
        notes = self._store.newest(_scope(repo, NoteKind.NOTE), _LISTED)
        counted = ((note, sessions(note)) for note in notes)
        return tuple(sorted((pair for pair in counted if pair[1] > 1), key=lambda pair: -pair[1]))

    def accept(self, ids: Collection[str]) -> int:
        """Remember these candidates as notes; returns how many there were."""
        notes = [note for note in self._store.get([*ids]).values() if _waits(note)]
        for note in notes:
            receipt = self._notes.remember(
                note.content, repo=note.repo, source=note.source, locator=note.locator
            )
            for link in note.links:
                self._store.change([receipt.id], partial(_repeated, link=link))
        self._store.delete([note.id for note in notes])
        return len(notes)

    def reject(self, ids: Collection[str]) -> int:
        """Do not propose these candidates again; returns how many there were."""
        waiting = [note.id for note in self._store.get([*ids]).values() if _waits(note)]
        return self._notes.archive(waiting)

    def _candidate(self, correction: Correction, run: RawTrajectory, run_id: str) -> Note:
        content, repo = mask_secrets(clean(correction.text)).strip(), repo_name(run.repo)
        known_by = blake2b(f"{repo}\n{content.casefold()}".encode(), digest_size=8).hexdigest()
        return Note(
            id=f"candidate_{known_by}",
            content=content,
            repo=repo,
            source=_SOURCE,
            created_at=self._now(),
            credibility=_CREDIBILITY,
            kind=NoteKind.CANDIDATE,
            locator=f"{run_id}#{correction.step}",
            links=(Link(LinkType.SAID_IN, run_id),),
        )

    def _known(self, candidate: Note) -> Note | None:
        """The note or candidate that says the same."""
        if known := self._store.get([candidate.id]).get(candidate.id):
            return known
        terms = [*dict.fromkeys(stems(candidate.content))]
        scope = NoteScope((candidate.repo,), (NoteKind.NOTE, NoteKind.CANDIDATE))
        related = self._store.for_text(terms, scope, _COMPARED)
        return next((note for note in related if self._is_same(candidate, note)), None)

    def _is_same(self, note: Note, other: Note) -> bool:
        relation = verdict(statement_of(note), statement_of(other)).relation
        similar = dice({*stems(note.content)}, {*stems(other.content)}) >= _SIMILAR
        return relation is Relation.SAME or (relation is Relation.UNRELATED and similar)


def sessions(note: Note) -> int:
    """In how many recorded sessions people said *note*."""
    return len(note.targets(LinkType.SAID_IN))


def _repeated(note: Note, *, link: Link) -> Note:
    if link in note.links:
        return note
    return replace(note, links=(*note.links, link), confirmed=note.confirmed + 1)


def _waits(note: Note) -> bool:
    return note.kind is NoteKind.CANDIDATE and note.is_live


def _scope(repo: str | None, kind: NoteKind) -> NoteScope:
    return NoteScope(None if repo is None else (repo_name(repo),), (kind,))
