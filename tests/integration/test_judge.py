"""A language model as judge of conflicts between notes, behind a server."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from contextgraph import AgentMemory
from contextgraph.config import Settings
from contextgraph.model import (
    Json,
    LessonFacts,
    LessonKind,
    MaintenanceReport,
    Note,
    NoteKind,
    NoteStatus,
    Origin,
    Quotation,
)
from tests.model_server import (
    DIMENSIONS,
    KEY,
    MODEL,
    Body,
    Handler,
    Reply,
    Server,
    chat_reply,
    serving,
)

BEFORE = "the deploy job of the shop waits for a review by two people"
NOW = "the deploy job of the shop needs nobody to approve it"
FORMER = "releases leave from the branch main"
MOVED = "we cut every version out of stable; nothing releases elsewhere"
CONTRADICTS = '{"relation": "contradicts", "confidence": 0.9}'


@contextmanager
def judged(
    answer: str, status: int = 200, address: str = ":memory:", embedder: str = ""
) -> Iterator[tuple[AgentMemory, Server]]:
    """A memory whose judge gives this *answer*, and the server of the judge."""

    def reply(number: int, handler: Handler) -> Reply | None:
        if "messages" not in server.requests[number]:
            return None
        return status, {}, orjson.dumps(chat_reply(server.requests[number], answer))

    with serving(fault=reply) as server:
        settings = Settings(
            address,
            embedder=embedder,
            conflict_judge="openai/gpt-test",
            api_url=server.url,
            embedding_api_key=KEY,
        )
        with AgentMemory.of_settings(settings) as memory:
            yield memory, server


def statements_in(body: Body) -> Json:
    (message,) = body["messages"]
    statements: Json = orjson.loads(message["content"].splitlines()[-1])
    return statements


@pytest.mark.parametrize(
    ("relation", "confidence", "status"),
    [
        ("contradicts", 0.9, NoteStatus.SUPERSEDES),
        ("contradicts", 0.5, NoteStatus.CREATED),
        ("same", 0.9, NoteStatus.SAME),
        ("unrelated", 1.0, NoteStatus.CREATED),
    ],
)
def test_a_judge_finds_a_conflict_in_other_words(
    relation: str, confidence: float, status: NoteStatus
) -> None:
    answer = orjson.dumps({"relation": relation, "confidence": confidence}).decode()
    with judged(f"```json\n{answer}\n```") as (memory, server):
        memory.notes.remember(BEFORE)
        memory.notes.remember("backups go to the bucket in Paris")
        assert not server.chats  # nothing that is similar
        assert memory.notes.remember(NOW).status is status
        (body,) = server.chats
        assert statements_in(body) == {"old": BEFORE, "new": NOW}


@pytest.mark.parametrize(("answer", "status"), [("I cannot say.", 200), ("", 401)])
def test_words_decide_where_the_judge_does_not_answer(answer: str, status: int) -> None:
    with judged(answer, status) as (memory, server):
        memory.notes.remember("CI uses Python 3.11")
        assert memory.notes.remember("CI uses Python 3.12").status is NoteStatus.SUPERSEDES
        assert len(server.chats) == 1


def test_what_is_confidential_is_not_sent_to_the_judge() -> None:
    with judged("{}") as (memory, server):
        memory.notes.remember(BEFORE, security="restricted")
        memory.notes.remember(NOW)
        assert not server.chats


def days_ago(days: int) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)


def stored(memory: AgentMemory, *texts: str) -> list[str]:
    """The ids of notes of these *texts*, a day after each other, that nobody has compared."""
    memory.store.notes.change(
        new=[
            Note(f"note_{index}", text, "", "user", days_ago(len(texts) - index))
            for index, text in enumerate(texts)
        ]
    )
    return [f"note_{index}" for index in range(len(texts))]


def test_the_judge_reads_the_note_that_is_nearest_whatever_its_words() -> None:
    with judged(CONTRADICTS) as (memory, server):
        (former, _) = stored(memory, FORMER, "backups go to the bucket in Paris")
        receipt = memory.notes.remember(MOVED)
        assert (receipt.status, receipt.others) == (NoteStatus.SUPERSEDES, (former,))
        assert len(server.chats) == 1
        memory.maintain()
        assert len(server.chats) == 1  # what was judged is not paid for again


def test_the_judge_reads_the_note_that_is_nearest_by_meaning() -> None:
    with judged(CONTRADICTS, embedder=MODEL) as (memory, server):
        server.embed = lambda text: [1.0, *[float("backups" in text)] * (DIMENSIONS - 1)]
        memory.notes.remember("backups go to the bucket in Paris")
        (former,) = stored(memory, FORMER)
        assert memory.maintain().embedded == 1
        moved = "every version is cut elsewhere"
        assert memory.notes.remember(moved).others == (former,)
        assert [statements_in(body) for body in server.chats] == [{"old": FORMER, "new": moved}]


def test_what_is_stored_is_judged_once_at_maintenance() -> None:
    with judged(CONTRADICTS) as (memory, server):
        former, moved, _ = stored(memory, FORMER, MOVED, "backups go to the bucket in Paris")
        assert memory.maintain() == MaintenanceReport(conflicts_resolved=1)
        assert memory.store.notes.get([former])[former].superseded_by == moved
        assert memory.maintain() == MaintenanceReport()
        assert [statements_in(body) for body in server.chats] == [{"old": FORMER, "new": MOVED}]


def test_what_the_judge_does_not_answer_stays_and_waits(tmp_path: Path) -> None:
    address = str(tmp_path / "notes.db")
    with judged("", 401, address) as (memory, _):
        stored(memory, FORMER, MOVED)
        assert memory.maintain() == MaintenanceReport()
        assert len(memory.notes.of()) == 2
    with judged(CONTRADICTS, 200, address) as (memory, _):
        assert memory.maintain() == MaintenanceReport(conflicts_resolved=1)


@pytest.mark.parametrize(("by", "holds"), [("", 1), ("ann", 2)])
def test_a_later_statement_of_the_same_person_is_judged_at_maintenance(by: str, holds: int) -> None:
    with judged(CONTRADICTS) as (memory, server):
        for day, text, who in ((2, FORMER, ""), (1, MOVED, by)):
            memory.store.notes.change(
                new=[
                    Note(
                        f"lesson_{day}",
                        text,
                        "acme/shop",
                        f"conversation:{who}:user" if who else "conversation",
                        days_ago(day),
                        kind=NoteKind.LESSON,
                        locator=f"session {day}#1",
                        lesson=LessonFacts(
                            LessonKind.DECISION,
                            Origin.SAID,
                            evidence=(Quotation(text, f"run {day}", str(day), 1, days_ago(day)),),
                            is_active=True,
                        ),
                    )
                ]
            )
        assert memory.maintain().conflicts_resolved == 2 - holds
        listed = memory.lessons.of("acme/shop")
        assert sum(one.superseded_by is None for one in listed) == holds
        assert len(server.chats) == 1
