"""Notes of people and agents, and what people decided in sessions."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from contextgraph.knowledge.recall import (
    render_notes,
    shareable,
    shareable_snapshot,
    without_secret,
)
from contextgraph.learning.distilling import Distilled, DistilRequest
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import (
    Json,
    Lesson,
    LessonStatus,
    MaintenanceReport,
    Note,
    NoteReceipt,
    Recollection,
    Security,
    Snapshot,
    Strategy,
)
from contextgraph.service.operations import Record, TokenScope, operation
from contextgraph.service.operations.arguments import (
    AboutRepository,
    AsOf,
    Kinds,
    Most,
    Name,
    Names,
    OnlyRepository,
    PageSize,
    Question,
    Share,
    Tags,
    Text,
    Time,
    Tokens,
)
from contextgraph.service.records import record_of


def without_secrets(value: Any) -> Any:
    """Return a value of notes as others than the owner of the memory see it."""
    if isinstance(value, Note):
        return without_secret(value)
    if isinstance(value, Recollection):
        return shareable(value)
    return [*map(without_secrets, value)] if isinstance(value, tuple | list) else value


@operation(
    TokenScope.READ,
    "POST /v1/notes/recall",
    form=lambda found, *_: {"notes": [*map(record_of, found)], "text": render_notes(found)},
    lines="notes",
)
def recall(
    memory: AgentMemory,
    question: Question,
    repo: AboutRepository = None,
    tags: Annotated[Tags, Field(description="Only notes with this tag.")] = (),
    limit: Most = 5,
    min_probability: Annotated[
        Share, Field(description="Only what answers at least as probably.")
    ] = 0.0,
    strategy: Kinds = Strategy.HYBRID,
) -> Sequence[Recollection]:
    """Return what was said in sessions, and notes of all kinds, that answer a question.

    Of *repo* where one is given, and about anything. "text" is for prompts.
    """
    return memory.notes.recall(
        question,
        repo=repo,
        limit=limit,
        tags=tags,
        min_probability=min_probability,
        strategy=strategy,
    )


class SavedQuestion(BaseModel):
    """A question whose answer is the note of an id."""

    model_config = ConfigDict(extra="forbid")

    question: Text
    note: Name
    repo: Name | None = None


@operation(
    TokenScope.READ,
    lines="questions",
    exit_code=lambda record: 0 if record["answered"] == len(record["questions"]) else 1,
)
def recall_saved(
    memory: AgentMemory,
    questions: Annotated[
        tuple[SavedQuestion, ...], Field(description="Objects with question, note and repo.")
    ],
    limit: PageSize = 5,
) -> Record:
    """Return the place at which each note, or its successor, answers its question; null for none.

    It has failed where one is not among the first *limit*.
    """
    found: list[Json] = []
    answered = 0
    for one in questions:
        rank = memory.notes.rank(one.question, one.note, repo=one.repo)
        answered += rank is not None and rank <= limit
        found.append({**one.model_dump(), "rank": rank})
    return {"questions": found, "answered": answered}


@operation(TokenScope.READ, "GET /v1/notes", lines="notes")
def notes(
    memory: AgentMemory,
    repo: OnlyRepository | None = None,
    archived: Annotated[bool, Field(description="Only archived or superseded notes.")] = False,
    conflicts: Annotated[bool, Field(description="Only those that another contradicts.")] = False,
    limit: PageSize | None = None,
) -> Sequence[Note]:
    """List all notes, the newest first."""
    found = memory.notes.of(repo, archived=archived)
    if conflicts:
        live = {note.id for note in found}
        found = tuple(note for note in found if not live.isdisjoint(note.contradicts))
    return found[:limit]


@operation(TokenScope.ADMIN, exit_code=lambda record: 0 if any(record.values()) else 1)
def notes_change(
    memory: AgentMemory,
    archive: Annotated[Names, Field(description="Recall these notes no more.")] = (),
    restore: Annotated[Names, Field(description="Recall these again.")] = (),
    pin: Annotated[Names, Field(description="Keep these in every snapshot and playbook.")] = (),
    unpin: Annotated[Names, Field(description="Keep these there no longer.")] = (),
    forget: Annotated[Names, Field(description="Delete these.")] = (),
) -> Record:
    """Archive, restore, pin, unpin or delete notes by id; returns how many of each."""
    return {
        "archived": memory.notes.archive(archive),
        "restored": memory.notes.restore(restore),
        "pinned": memory.notes.pin(pin),
        "unpinned": memory.notes.pin(unpin, pinned=False),
        "forgotten": memory.notes.forget(forget),
    }


@operation(TokenScope.ADMIN, "POST /v1/notes/prune", key="archived")
def notes_prune(
    memory: AgentMemory,
    repo: OnlyRepository | None = None,
    before: Annotated[Time | None, Field(description="Remembered before.")] = None,
    tags: Annotated[Tags, Field(description="With all of these tags.")] = (),
    max_recalls: Annotated[
        int | None, Field(ge=0, description="Recalled at most so often.")
    ] = None,
) -> int:
    """Archive the notes that meet all given conditions; pinned ones stay."""
    return memory.notes.prune(repo=repo, before=before, tags=tags, max_recalls=max_recalls)


@operation(TokenScope.ADMIN, "POST /v1/notes/reset", key="forgotten")
def notes_reset(
    memory: AgentMemory,
    repo: OnlyRepository | None = None,
    source: Annotated[Name | None, Field(description="Only what this source said.")] = None,
    everything: Annotated[bool, Field(description="Needed to delete all of them.")] = False,
) -> int:
    """Delete all notes, lessons, pages and entities, or those of a repository or source."""
    return memory.notes.reset(repo=repo, source=source, everything=everything)


@operation(TokenScope.READ, "POST /v1/snapshot")
def snapshot(
    memory: AgentMemory,
    trigger: Annotated[Text, Field(description="What happens: an event, an error, a task.")],
    focus: Annotated[Text, Field(description="What you work on meanwhile.")] = "",
    repo: AboutRepository = None,
    max_tokens: Tokens = 500,
    *,
    is_owner: bool = True,
) -> Snapshot:
    """Return the notes that matter now: pinned, about the trigger, of the last day."""
    known = memory.snapshot(trigger, focus, repo=repo, max_tokens=max_tokens)
    return known if is_owner else shareable_snapshot(known, max_tokens)


@operation(TokenScope.READ, "GET /v1/lessons", lines="lessons")
def lessons(
    memory: AgentMemory,
    repo: OnlyRepository | None = None,
    *,
    status: Annotated[
        tuple[LessonStatus, ...], Field(max_length=len(LessonStatus), description="Of these.")
    ] = (LessonStatus.ACTIVE, LessonStatus.PROPOSED),
    recurring: Annotated[
        bool, Field(description="Only what was said in two sessions or more.")
    ] = False,
    as_of: AsOf = None,
) -> Sequence[Lesson]:
    """List the lessons of a repository, the newest first, in the form of `contextgraph lessons`.

    Decisions, rules and facts that a colleague would pass on.
    """
    return memory.lessons.of(repo, status=status, recurring=recurring, as_of=as_of)


@operation(TokenScope.READ, "POST /v1/lessons/about", lines="lessons")
def lessons_about(
    memory: AgentMemory,
    subject: Annotated[Text, Field(description="A subject, such as one of an index.")],
    repo: OnlyRepository | None = None,
    limit: Most = 5,
) -> Sequence[Lesson]:
    """List the lessons that are nearest to a subject."""
    return memory.lessons.about(subject, repo, limit)


@operation(
    TokenScope.WRITE,
    "POST /v1/distil/next",
    form=lambda found, *_: record_of(found) if found else {"id": "", "text": ""},
)
def distil_next(
    memory: AgentMemory, repo: OnlyRepository | None = None, *, only_of: str | None = None
) -> DistilRequest | None:
    """Return a request to write down the lessons of a session, for the agent that asks.

    Answer it with distil_answer. "text" is empty where none waits.
    """
    return memory.distil_queue.next_request(repo, only_of=only_of)


@operation(TokenScope.WRITE, "POST /v1/distil/answer", example={"request": "…", "answer": "[]"})
def distil_answer(
    memory: AgentMemory,
    request: Annotated[Name, Field(description="The id that distil_next gave.")],
    answer: Annotated[Text, Field(description="The JSON that the request asks for.")],
    is_last: Annotated[
        bool, Field(description="Keep what counts of it; without, refused parts return it.")
    ] = False,
    *,
    only_of: str | None = None,
) -> Distilled:
    """Give the answer to a request of distil_next; it is checked against the session.

    Where its status is "returned", correct what was refused, and give all again with is_last.
    """
    return memory.distil_queue.answer(request, answer, is_last=is_last, only_of=only_of)


@operation(
    TokenScope.WRITE,
    "POST /v1/notes",
    form=lambda receipt, *_: record_of(receipt, confidence=round(receipt.confidence, 4)),
    source="agent:{}",
    creates=True,
    example={"content": "CI uses Python 3.11", "repo": "acme/shop"},
)
def remember(  # noqa: PLR0913  (one parameter per property of a note)
    memory: AgentMemory,
    content: Annotated[Text, Field(description="One statement.")],
    *,
    source: Annotated[
        Name, Field(description="KIND or KIND:NAME: user, file, tool, system, agent or web.")
    ] = "user",
    repo: Annotated[
        Name, Field(description="The repository it is about (owner/repo); none where true of any.")
    ] = "",
    tags: Annotated[Names, Field(description="Words to find it by.")] = (),
    locator: Annotated[
        Name, Field(description="Where the source says it; the web needs one.")
    ] = "",
    pinned: Annotated[bool, Field(description="Keep it in every snapshot and playbook.")] = False,
    security: Annotated[
        Security, Field(description="public, internal, confidential or restricted.")
    ] = Security.INTERNAL,
    valid_from: Annotated[Time | None, Field(description="Recall it from then on.")] = None,
    valid_until: Annotated[Time | None, Field(description="Recall it until then.")] = None,
    importance: Annotated[Share, Field(description="How much it matters, 0 to 1.")] = 0.5,
    caused_by: Annotated[Names, Field(description="Notes that are a cause of it.")] = (),
) -> NoteReceipt:
    """Store a statement for later runs; storing it again confirms it.

    Secrets are masked. A pinned one, which all runs of the
    repository are shown, needs the scope admin. A request takes the source from its token.
    """
    return memory.notes.remember(
        content,
        repo=repo,
        source=source,
        tags=tags,
        locator=locator,
        pinned=pinned,
        security=security,
        valid_from=valid_from,
        valid_until=valid_until,
        importance=importance,
        caused_by=caused_by,
    )


@operation(TokenScope.ADMIN, "POST /v1/maintain", takes_long=True)
def maintain(memory: AgentMemory) -> MaintenanceReport:
    """Archive and merge notes, decide conflicts, embed what waits; for cron."""
    return memory.maintain()
