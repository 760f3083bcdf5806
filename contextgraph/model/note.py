"""Notes of people and agents, and the other entries of their table."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct, field

from contextgraph.model.lesson import LESSONS_FOLDER, LessonFacts
from contextgraph.model.step import Json, Time
from contextgraph.model.trajectory import CLONE


class NoteKind(StrEnum):
    """Kinds of note: written down, a lesson, a page, or a named entity."""

    NOTE = "note"
    LESSON = "lesson"
    PAGE = "page"
    ENTITY = "entity"
    KEYED = "keyed"
    """an entry of a keyed file, as it is recalled: no store has it"""
    SAID = "said"
    """what was said in a session, as it is recalled: stored as a passage"""


class Strategy(StrEnum):
    """Kinds to recall: everything; all but entities and links; those alone; or notes alone."""

    HYBRID = "hybrid"
    KNOWLEDGE = "knowledge"
    GRAPH = "graph"
    NOTES = "notes"

    @property
    def kinds(self) -> tuple[NoteKind, ...]:
        """The kinds of note that are recalled."""
        notes = (NoteKind.NOTE, NoteKind.LESSON)
        if self is Strategy.NOTES:
            return notes
        known = (*notes, NoteKind.PAGE, NoteKind.KEYED)
        return known if self is Strategy.KNOWLEDGE else (*known, NoteKind.ENTITY)


class Security(StrEnum):
    """Confidentiality of a note; only public and internal ones are shown over MCP and HTTP."""

    PUBLIC = "public"
    INTERNAL = "internal"
    CONFIDENTIAL = "confidential"
    RESTRICTED = "restricted"

    @property
    def is_secret(self) -> bool:
        """True where it is shown to the owner of the memory only."""
        return self in (Security.CONFIDENTIAL, Security.RESTRICTED)


class LinkType(StrEnum):
    """The types of links with a meaning; others are free."""

    FOLLOWS = "follows"
    """to the note that was remembered before it about the same repository"""
    SUPERSEDES = "supersedes"
    CAUSED_BY = "caused_by"
    REFERENCES = "references"
    MENTIONS = "mentions"
    SAID_IN = "said_in"
    """to the run in which a person said so"""


class Link(Struct, frozen=True, omit_defaults=True):
    """A relation of a *type* to the note with the id *target*; *weight* is 0 to 1."""

    type: str
    target: str
    weight: float = 1.0


class Note(Struct, frozen=True, omit_defaults=True):
    """A statement about a repository (``""``: about anything), with its *source*.

    *locator* is where the source says it (a URL, path or message). *confirmed* counts others who
    said the same, *confirmed_by* are the sources. A note that is superseded or archived is stored
    but not recalled, as is one before *valid_from* or after *valid_until*. *contradicts* are the
    ids of notes that say otherwise. *recall_score* is the sum of its scores over all *recalls*. A
    page or an entity has a *title*. *history* lists who reviewed or changed it, when, and what it
    said before. *is_judged* says that a language model has compared it with earlier notes. *lesson*
    is set for lessons.
    """

    id: str
    content: str
    repo: str
    source: str
    created_at: Time
    tags: tuple[str, ...] = ()
    credibility: float = 0.75
    confirmed: int = 0
    contradicts: tuple[str, ...] = ()
    superseded_by: str | None = None
    archived_at: Time | None = None
    kind: NoteKind = NoteKind.NOTE
    title: str = ""
    summary: str = ""
    links: tuple[Link, ...] = ()
    locator: str = ""
    pinned: bool = False
    security: Security = Security.INTERNAL
    valid_from: Time | None = None
    valid_until: Time | None = None
    importance: float = 0.5
    is_long_term: bool = False
    recalls: int = 0
    recall_score: float = 0.0
    recalled_at: Time | None = None
    updated_at: Time | None = None
    confirmed_by: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    is_judged: bool = False
    lesson: LessonFacts | None = None

    @property
    def heading(self) -> str:
        """The title of a page or entity; empty for a lesson, whose title is for search only."""
        return "" if self.lesson else self.title

    @property
    def is_live(self) -> bool:
        """True if it is neither archived nor superseded."""
        return self.superseded_by is None and self.archived_at is None

    def is_valid(self, now: datetime) -> bool:
        """Return True if it is valid at the time *now*."""
        begun = self.valid_from is None or self.valid_from <= now
        return begun and (self.valid_until is None or now < self.valid_until)

    def targets(self, type_: LinkType) -> tuple[str, ...]:
        """Return the ids to which its links of this type lead."""
        return tuple(link.target for link in self.links if link.type == type_)

    @property
    def speaker(self) -> str:
        """Speaker of a lesson: the user, or the agent whose words the user confirmed."""
        return "agent, confirmed by user" if self.source.endswith(":agent") else "user"

    @property
    def contributor(self) -> str:
        """Name of the token's source, or of the run's contributor; the owner has no name."""
        kind, _, rest = self.source.partition(":")
        if self.lesson is not None:
            return rest.rpartition(":")[0]
        return rest if kind == "agent" else ""

    @property
    def is_of_team(self) -> bool:
        """True for a lesson from a file of its repository, which the user trusts."""
        is_of_file = self.locator.startswith(f"{LESSONS_FOLDER}/")
        return is_of_file and self.contributor.startswith(CLONE)

    @property
    def session(self) -> str:
        """The name of the session in which a lesson was said first."""
        return self.locator.rpartition("#")[0]


class NoteScope(Struct, frozen=True):
    """Notes of one of *repos* (None: of all) and one of *kinds* that have all of *tags*.

    With *pinned*, only pinned notes. *live* False: archived and superseded notes; None: both.
    """

    repos: tuple[str, ...] | None = None
    kinds: tuple[NoteKind, ...] = (NoteKind.NOTE,)
    tags: tuple[str, ...] = ()
    pinned: bool = False
    live: bool | None = True

    def has(self, note: Note) -> bool:
        """Return True where *note* is in this scope, whether it is live or not."""
        return (
            (self.repos is None or note.repo in self.repos)
            and note.kind in self.kinds
            and {*self.tags} <= {*note.tags}
            and (note.pinned or not self.pinned)
        )


class MaintenancePolicy(Struct, frozen=True):
    """Limits that `maintain` applies.

    A note is archived if it is weak, was not recalled for *retention*, and was recalled fewer than
    three times; beyond *max_notes* the least valuable are archived.
    """

    retention: timedelta = timedelta(days=365)
    max_notes: int = 10_000


class MaintenanceReport(Struct, frozen=True):
    """Counts of the notes that maintenance changed, and of pairs that still contradict each other.

    *archived* were weak and unused, *evicted* too many. *embedded* runs and notes were waiting.
    """

    promoted: int = 0
    demoted: int = 0
    archived: int = 0
    evicted: int = 0
    merged: int = 0
    conflicts_resolved: int = 0
    conflicts_open: int = 0
    embedded: int = 0


class Snapshot(Struct, frozen=True, omit_defaults=True):
    """Notes for the start of a run, pinned ones first, and their prompt *text*.

    *keyed* is the prompt text of keyed files.
    """

    notes: tuple[Note, ...]
    text: str
    keyed: str = ""


class NoteStatus(StrEnum):
    """Result of remembering a note."""

    CREATED = "created"
    SAME = "same"
    SUPERSEDES = "supersedes"
    CONTRADICTS = "contradicts"


class NoteReceipt(Struct, frozen=True, omit_defaults=True):
    """Result of `remember`: the *id* of the note, and *others* that it supersedes or contradicts.

    *confidence* is that of the relation to them, 0 to 1. *to_embed* is True if it has no vector
    yet.
    """

    id: str
    status: NoteStatus
    others: tuple[str, ...] = ()
    confidence: float = 1.0
    to_embed: bool = False


# From this probability on a hit probably answers: of 63 questions that nothing in a team's sessions
# answers one was above it, of 30 others 29.
LIKELY = 0.3


class Found(Struct, frozen=True):
    """An item that answers a question: its *kind*, *text*, and the *command* that opens it.

    *kind* is note, page, entity, remedy, command (one that tasks of the repository agree on), keyed
    (an entry of a keyed file), or of a session: task (how it began, if it opened or changed files),
    session (how any other began), said, reply and commit (what a person, an agent and a commit said
    in it), lesson (of what was said in it). Hits of one *session* stand together, the best first;
    *title* is how it began, *run* the id of its run, *source* the file that it was read from,
    *step* the step of this run in which it was said, -1 where it is of none, or of a sub-agent.
    *contributor* is who vouches for it: empty for the owner.
    *score*, *why* and *probability* are those of a `Recollection`; what was asked for because it is
    new has the probability 1.
    """

    kind: str
    id: str
    text: str
    repo: str
    time: Time
    score: float
    command: str
    why: Mapping[str, float] = field(default_factory=dict)
    probability: float = 0.0
    session: str = ""
    title: str = ""
    run: str = ""
    source: str = ""
    speaker: str = ""
    step: int = -1
    contributor: str = ""


class Recollection(Struct, frozen=True):
    """A recalled note with its *score*, 0 to 1, and the parts of the score by name in *why*.

    The parts are shared *words* and *meaning*, the same of *neighbours*, *recency* and
    *credibility*, and for some questions a *reason*, a named *file*, and nearness in the *graph*.
    *probability* is how likely it answers the question, 0 to 1. *later* is the most similar later
    note, if any, which may say otherwise.
    """

    note: Note
    score: float
    why: dict[str, float]
    probability: float = 1.0
    later: Note | None = None


class Envelope(Struct, frozen=True):
    """One call of `set_memory`; *content* is None where it removed the key.

    *seq* counts the calls of a memory from 1 and decides which is the latest; *ts* is for people.
    """

    key: str
    seq: int
    ts: Time
    valid: bool
    source: Json
    content: Json
