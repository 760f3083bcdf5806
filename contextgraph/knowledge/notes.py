"""Remembering notes, comparing them with earlier ones, and recalling them by their words."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import blake2b
from math import log

from contextgraph.errors import InvalidNoteError
from contextgraph.governance import ConflictPolicy, Relation, Statement, Verdict, age_weight
from contextgraph.model import Note, NoteReceipt, NoteStatus, Recollection
from contextgraph.ports import NoteStore
from contextgraph.ranking import overlap, word_counts
from contextgraph.text import (
    clean,
    count_tokens,
    fence,
    gives_instructions,
    mask_secrets,
    masked_name,
    words,
)

MAX_NOTE = 2_000
RECALLED = 5
RENDER_TOKENS = 400
# How reliable a source is by its kind, which stands before a colon in its name.
RELIABILITY: Mapping[str, float] = {
    "file": 0.95,
    "user": 0.85,
    "system": 0.8,
    "tool": 0.8,
    "agent": 0.7,
    "web": 0.6,
}
_OTHERWISE = 0.7
# What a score is made of. Age and credibility decide between notes that say as much.
_WORDS, _RECENCY, _CREDIBILITY = 0.9, 0.05, 0.05
_HALF_LIFE = timedelta(days=90)
_MOST_WORDS, _COMPARED, _SCORED, _PAGE = 32, 20, 200, 500


class Notes:
    """The notes of a memory; *clock* gives the time."""

    def __init__(
        self,
        store: NoteStore,
        clock: Callable[[], datetime],
        policy: ConflictPolicy | None = None,
    ) -> None:
        self._store = store
        self._now = clock
        self._policy = policy or ConflictPolicy()

    def remember(
        self,
        text: str,
        *,
        repo: str = "",
        source: str = "user",
        tags: Collection[str] = (),
        credibility: float | None = None,
    ) -> NoteReceipt:
        """Store what *source* says about *repo* (``""``: about anything); secrets are masked.

        The same statement is confirmed. A statement that says otherwise about the same subject is
        superseded, if it is older and of the same source or clearly less credible; else both stay
        and are marked. *source* is a kind (user, file, tool, system, agent, web), or one with a
        name (``user:chat``), by which *credibility* (0 to 1) is chosen where it is not given.
        Raises `InvalidNoteError` for a text that is empty or has more than 2,000 characters.
        """
        note = self._note(text, repo, source, tags, credibility)
        known = self._store.get([note.id]).get(note.id)
        if known is not None and known.is_live:
            return self._confirm(known)
        related = self._store.for_text(words(note.content)[:_MOST_WORDS], note.repo, _COMPARED)
        verdicts = [(one, self._verdict(note, one)) for one in related]
        for one, verdict in verdicts:
            if verdict.relation is Relation.SAME:
                return self._confirm(one)
        return self._store_beside(note, verdicts)

    def recall(
        self,
        question: str,
        *,
        repo: str | None = None,
        limit: int = RECALLED,
        tags: Collection[str] = (),
    ) -> tuple[Recollection, ...]:
        """The notes that share most with *question*, best first.

        Those of *repo* and those about anything; without it, all. With *tags* only notes that have
        all of them. Archived and superseded notes are not recalled.
        """
        asked = words(question)[:_MOST_WORDS]
        wanted = {*map(str.casefold, tags)}
        found = [one for one in self._candidates(asked, repo) if wanted <= {*one.tags}]
        weights = _weights(asked, found)
        now = self._now()
        recalled = (_recollection(one, weights, now) for one in found)
        ranked = sorted(recalled, key=lambda one: (-one.score, one.note.id))
        return tuple(ranked[: max(0, limit)])

    def of(self, repo: str | None = None, *, archived: bool = False) -> tuple[Note, ...]:
        """The notes of *repo* (None: all), the newest first; those not recalled if *archived*."""
        chosen = [
            note
            for note in self._all()
            if note.is_live is not archived and (repo is None or note.repo == _repo_of(repo))
        ]
        return tuple(sorted(chosen, key=lambda note: (note.created_at, note.id), reverse=True))

    def archive(self, ids: Collection[str]) -> int:
        """Recall these notes no more; they stay. Returns how many were live."""
        found = [note for note in self._store.get([*ids]).values() if note.is_live]
        self._store.put([replace(note, archived_at=self._now()) for note in found])
        return len(found)

    def forget(self, ids: Collection[str]) -> int:
        """Delete these notes; returns how many were known."""
        return self._store.delete([*ids])

    def _note(
        self,
        text: str,
        repo: str,
        source: str,
        tags: Collection[str],
        credibility: float | None,
    ) -> Note:
        content = mask_secrets(clean(text)).strip()
        if not content:
            raise InvalidNoteError("a note needs a text")
        if len(content) > MAX_NOTE:
            raise InvalidNoteError(
                f"a note has at most {MAX_NOTE:,} characters, not {len(content):,}"
            )
        kind = source.partition(":")[0]
        place = _repo_of(repo)
        return Note(
            id=_id_of(place, content),
            content=content,
            repo=place,
            source=masked_name(source),
            created_at=self._now(),
            tags=tuple(dict.fromkeys(masked_name(tag).casefold() for tag in tags)),
            credibility=RELIABILITY.get(kind, _OTHERWISE) if credibility is None else credibility,
        )

    def _verdict(self, new: Note, old: Note) -> Verdict:
        return self._policy.verdict(_statement(new), _statement(old))

    def _confirm(self, known: Note) -> NoteReceipt:
        self._store.put([replace(known, confirmed=known.confirmed + 1)])
        return NoteReceipt(known.id, NoteStatus.SAME, (known.id,))

    def _store_beside(self, note: Note, verdicts: Sequence[tuple[Note, Verdict]]) -> NoteReceipt:
        """Store *note*, and with it what it means for those that it was compared with."""
        superseded = [one for one in verdicts if one[1].relation is Relation.SUPERSEDES]
        contradicted = [one for one in verdicts if one[1].relation is Relation.CONTRADICTS]
        self._store.put(
            [
                replace(note, contradicts=tuple(one.id for one, _ in contradicted)),
                *(replace(one, superseded_by=note.id) for one, _ in superseded),
                *(replace(one, contradicts=(*one.contradicts, note.id)) for one, _ in contradicted),
            ]
        )
        for status, others in (
            (NoteStatus.SUPERSEDES, superseded),
            (NoteStatus.CONTRADICTS, contradicted),
        ):
            if others:
                confidence = max(verdict.confidence for _, verdict in others)
                return NoteReceipt(note.id, status, tuple(one.id for one, _ in others), confidence)
        return NoteReceipt(note.id, NoteStatus.CREATED)

    def _candidates(self, asked: Sequence[str], repo: str | None) -> list[Note]:
        if repo is None:
            return [*self._store.for_text(asked, None, _SCORED)]
        places = dict.fromkeys((_repo_of(repo), ""))
        return [note for one in places for note in self._store.for_text(asked, one, _SCORED)]

    def _all(self) -> Iterator[Note]:
        after = ""
        while page := self._store.page(after, _PAGE):
            yield from page
            after = page[-1].id


def render_notes(found: Sequence[Recollection], max_tokens: int = RENDER_TOKENS) -> str:
    """The prompt text of *found*, fenced as data, within *max_tokens*; empty without notes."""
    lines: list[str] = []
    for one in found:
        note = one.note
        mark = "; another note says otherwise" if note.contradicts else ""
        origin = f"{note.source}, {note.created_at:%Y-%m-%d}{mark}"
        origin = f"{note.source}, {note.created_at:%Y-%m-%d}{mark}"
        line = f"- {' '.join(note.content.split())} ({origin})"
        if gives_instructions(note.content):
            continue
        if count_tokens(fence("\n".join((*lines, line)), "notes")) > max_tokens:
            break
        lines.append(line)
    return fence("\n".join(lines), "notes") if lines else ""


def _repo_of(repo: str) -> str:
    """The name by which a repository is compared: GitHub ignores case."""
    return masked_name(repo).casefold()


def _id_of(repo: str, content: str) -> str:
    text = f"{repo}\n{' '.join(content.casefold().split())}"
    return f"note_{blake2b(text.encode(), digest_size=8).hexdigest()}"


def _statement(note: Note) -> Statement:
    return Statement(note.content, note.source, note.created_at, note.credibility)


def _weights(asked: Sequence[str], found: Sequence[Note]) -> dict[str, float]:
    """How rare the words *asked* are among the notes *found*."""
    met = Counter(word for note in found for word in word_counts(note.content).keys() & {*asked})
    return {
        word: log(1 + (len(found) - met[word] + 0.5) / (met[word] + 0.5))
        for word in dict.fromkeys(asked)
    }


def _recollection(note: Note, weights: Mapping[str, float], now: datetime) -> Recollection:
    why = {
        "words": overlap(weights, word_counts(" ".join((note.content, *note.tags)))),
        "recency": age_weight(now - note.created_at, _HALF_LIFE),
        "credibility": note.credibility,
    }
    score = _WORDS * why["words"] + _RECENCY * why["recency"] + _CREDIBILITY * why["credibility"]
    return Recollection(note, score, why)
