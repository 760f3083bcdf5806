"""Validates statements, and relates them to earlier notes."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import blake2b
from typing import Any, TypedDict

from contextgraph.errors import InvalidNoteError
from contextgraph.governance import (
    Relation,
    Statement,
    Verdict,
    judged,
    verdict,
)
from contextgraph.knowledge.recall import stem_counts
from contextgraph.model import (
    Link,
    LinkType,
    Note,
    Security,
)
from contextgraph.ranking import dice
from contextgraph.text import (
    clean,
    mask_secrets,
    masked_name,
)

MAX_NOTE = 2_000
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
# How many notes a judge compares, and the least share of words that they have in common.
_JUDGED, _SIMILAR = 3, 0.4

Judge = Callable[[str, str], Verdict | None]
"""What a statement is to an earlier one; None where it cannot say."""


class NoteProperties(TypedDict, total=False):
    """What `remember` may be given beside text, repository, source and tags.

    *locator* is where the source says it: a source of the kind web needs one. *importance* is 0 to
    1. *caused_by* are ids of notes. The other fields are those of `Note`.
    """

    locator: str
    pinned: bool
    security: Security | str
    valid_from: datetime | None
    valid_until: datetime | None
    importance: float
    caused_by: Collection[str]


def note_of(text: str, repo: str, source: str, now: datetime, credibility: float | None) -> Note:
    """What *source* says about *repo* in *text*, masked; raises `InvalidNoteError`."""
    content = mask_secrets(clean(text)).strip()
    if not content:
        raise InvalidNoteError("a note needs a text")
    if len(content) > MAX_NOTE:
        raise InvalidNoteError(f"a note has at most {MAX_NOTE:,} characters, not {len(content):,}")
    place, kind = repo_name(repo), source.partition(":")[0]
    known = f"{place}\n{' '.join(content.casefold().split())}"
    return Note(
        id=f"note_{blake2b(known.encode(), digest_size=8).hexdigest()}",
        content=content,
        repo=place,
        source=masked_name(source),
        created_at=now,
        credibility=RELIABILITY.get(kind, _OTHERWISE) if credibility is None else credibility,
    )


def with_properties(note: Note, properties: NoteProperties) -> Note:
    """*note* with *properties*; raises `InvalidNoteError` for those that cannot be."""
    given: dict[str, Any] = {**properties}
    causes, security = given.pop("caused_by", ()), given.pop("security", Security.INTERNAL)
    given["locator"] = mask_secrets(given.get("locator", ""))
    if security not in {*Security}:
        raise InvalidNoteError(f"no security level {security!r}; known: {', '.join(Security)}")
    note = replace(
        note,
        **given,
        security=Security(security),
        links=tuple(Link(LinkType.CAUSED_BY, id_) for id_ in causes),
    )
    if note.source.partition(":")[0] == "web" and not note.locator:
        raise InvalidNoteError("a note from the web needs its locator, such as the URL")
    for time in (note.valid_from, note.valid_until):
        if time is not None and time.tzinfo is None:
            raise InvalidNoteError(f"time {time.isoformat()} has no time zone")
    if not 0 <= note.importance <= 1 or not 0 <= note.credibility <= 1:
        raise InvalidNoteError("importance and credibility are from 0 to 1")
    return note


def repo_name(repo: str) -> str:
    """The name by which a repository is compared: GitHub ignores case."""
    return masked_name(repo).casefold()


def statement_of(note: Note) -> Statement:
    """What *note* is compared by."""
    return Statement(note.content, note.source, note.created_at, note.credibility)


def verdicts(
    new: Note, related: Sequence[Note], judge: Judge | None = None
) -> list[tuple[Note, Verdict]]:
    """What *new* is to each of *related*: by their words, where *judge* does not say."""
    statement = statement_of(new)
    verdicts = {note.id: verdict(statement, statement_of(note)) for note in related}
    is_known = any(by_words.relation is Relation.SAME for by_words in verdicts.values())
    if judge and not is_known and not new.security.is_secret:
        for note in _most_similar(new, related):
            answer = judge(new.content, note.content)
            if answer is None:
                break
            verdicts[note.id] = judged(answer, statement, statement_of(note))
    return [(note, verdicts[note.id]) for note in related]


def _most_similar(new: Note, related: Sequence[Note]) -> list[Note]:
    """Those of *related* that a judge compares; nothing confidential."""
    words = stem_counts(new.content).keys()
    open_ = [note for note in related if not note.security.is_secret]
    similar = {note.id: dice(words, stem_counts(note.content).keys()) for note in open_}
    chosen = (note for note in open_ if similar[note.id] >= _SIMILAR)
    return sorted(chosen, key=lambda note: -similar[note.id])[:_JUDGED]


def confirmed_by(note: Note, source: str) -> Note:
    """*note*, confirmed by *source* unless *source* did so before."""
    if source in (note.source, *note.confirmed_by):
        return note
    sources = (*note.confirmed_by, source)
    return replace(note, confirmed=note.confirmed + 1, confirmed_by=sources)
