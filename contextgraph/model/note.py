"""Notes: what people and agents say, beside what runs show."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Note:
    """A statement about a repository (``""``: about anything), with its *source*.

    *confirmed* counts how often it was remembered again. A note that another supersedes, or that
    is archived, stays, but is not recalled. *contradicts* are the ids of notes that say otherwise.
    """

    id: str
    content: str
    repo: str
    source: str
    created_at: datetime
    tags: tuple[str, ...] = ()
    credibility: float = 0.75
    confirmed: int = 0
    contradicts: tuple[str, ...] = ()
    superseded_by: str | None = None
    archived_at: datetime | None = None

    @property
    def is_live(self) -> bool:
        """Whether it is recalled."""
        return self.superseded_by is None and self.archived_at is None


class NoteStatus(StrEnum):
    """What remembering a note did."""

    CREATED = "created"
    SAME = "same"
    SUPERSEDES = "supersedes"
    CONTRADICTS = "contradicts"


@dataclass(frozen=True, slots=True)
class NoteReceipt:
    """The *id* under which it is remembered; *others* are the notes it supersedes or contradicts.

    *confidence* is that of the relation to them, 0 to 1.
    """

    id: str
    status: NoteStatus
    others: tuple[str, ...] = ()
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Recollection:
    """A recalled note with its *score*, 0 to 1; *why* is what the score is made of, by name."""

    note: Note
    score: float
    why: dict[str, float] = field(hash=False)
