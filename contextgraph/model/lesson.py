"""Lessons: sentences that stand alone, which a colleague would pass on to the next one."""

from enum import StrEnum

from msgspec import Struct

from contextgraph.model.step import Time

# Where a repository has lessons as files.
LESSONS_FOLDER = ".contextgraph/lessons"


class LessonKind(StrEnum):
    """Kinds of lesson.

    A *decision* settles how the product is, a *rule* how to work on it; a *fact* is about the
    machine, the project or its surroundings; a *checklist* names what is changed together; a
    *reference* is the code or document that others follow.
    """

    DECISION = "decision"
    RULE = "rule"
    FACT = "fact"
    CHECKLIST = "checklist"
    REFERENCE = "reference"


class Origin(StrEnum):
    """Origins of a lesson: a document, a person's words, counted runs, or a language model."""

    WRITTEN = "written"
    SAID = "said"
    COUNTED = "counted"
    DISTILLED = "distilled"


class LessonStatus(StrEnum):
    """Status of a lesson; only an active one is shown unasked."""

    PROPOSED = "proposed"
    ACTIVE = "active"
    SUPERSEDED = "superseded"
    REJECTED = "rejected"


class About(Struct, frozen=True, omit_defaults=True):
    """The *paths*, *symbols*, *programs* and the *subject* (a few words) of a lesson."""

    paths: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    subject: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The paths, symbols and programs."""
        return (*self.paths, *self.symbols, *self.programs)


class Quotation(Struct, frozen=True, omit_defaults=True):
    """The exact words (*quote*) by which a lesson is known, and where they stand.

    *run* is the id of the learned run, *session* its instance, *step* that after which they were
    written (-1: in the first request). *speaker* is a person (``user``), the ``agent`` whom a
    person confirmed, or the path of a document. *context* is what a short answer answers. *pasted*
    is a digest of the whole message where that is so long that nobody types it twice.
    """

    quote: str
    run: str
    session: str
    step: int
    at: Time
    speaker: str = "user"
    context: str = ""
    pasted: str = ""


class Review(Struct, frozen=True, omit_defaults=True):
    """The state of a lesson before its last review, to which `undo` returns."""

    content: str
    is_active: bool
    superseded_by: str | None = None
    archived_at: Time | None = None


class LessonFacts(Struct, frozen=True, omit_defaults=True):
    """The part of a lesson that a note does not have.

    *probability* is how likely it is one that a reader wants, as far as nobody reviewed it.
    *ruled_out* is what was rejected in its favour. *before* is the state before the last review.
    *gone* are the files, or symbols and programs, that it names, if its repository lost all.
    """

    kind: LessonKind
    origin: Origin
    about: About = About()
    evidence: tuple[Quotation, ...] = ()
    is_active: bool = False
    probability: float = 1.0
    ruled_out: str = ""
    before: Review | None = None
    gone: tuple[str, ...] = ()

    @property
    def sessions(self) -> int:
        """The number of sessions in which it was said.

        A message that was pasted into several counts once, as do the same words of one moment.
        Two sessions may say the same in the same second: only fractions of it identify a moment.
        """
        first: dict[object, str] = {}
        for one in self.evidence:
            moment = one.at if one.at.microsecond else one.session
            first.setdefault(one.pasted or (one.quote.casefold(), moment), one.session)
        return len({*first.values()})


class Lesson(Struct, frozen=True):
    """One sentence that stands alone, with its evidence.

    *speaker* is who said it first, *time* when, *source* who vouches for it. *superseded_by* is the
    id of the lesson that took its place, *supersedes* are those whose place it took. *sessions*
    counts those in which it was said; copies of one message count once. *gone* is as in
    `LessonFacts`. *request* is how the session began in which a person said it. *is_reviewed*: a
    person reviewed it, and did not take that back.
    """

    id: str
    text: str
    kind: LessonKind
    status: LessonStatus
    origin: Origin
    repo: str
    about: About
    evidence: tuple[Quotation, ...]
    speaker: str
    time: Time
    sessions: int
    source: str
    probability: float = 1.0
    supersedes: tuple[str, ...] = ()
    superseded_by: str | None = None
    ruled_out: str = ""
    history: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    request: str = ""
    is_reviewed: bool = False

    @property
    def contributor(self) -> str:
        """Name of who vouches for it; the owner has no name."""
        return self.source.partition(":")[2].rpartition(":")[0]
