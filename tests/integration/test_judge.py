"""A language model as judge of conflicts between notes, behind a server."""

from collections.abc import Iterator
from contextlib import contextmanager

import orjson
import pytest

from contextgraph import AgentMemory
from contextgraph.config import Settings
from contextgraph.model import NoteStatus
from tests.model_server import KEY, Handler, Reply, Server, chat_reply, serving

BEFORE = "the deploy job of the shop waits for a review by two people"
NOW = "the deploy job of the shop needs nobody to approve it"


@contextmanager
def judged(answer: str, status: int = 200) -> Iterator[tuple[AgentMemory, Server]]:
    """A memory whose judge gives this *answer*, and the server of the judge."""

    def reply(number: int, handler: Handler) -> Reply | None:
        return status, {}, orjson.dumps(chat_reply(server.requests[number], answer))

    with serving(fault=reply) as server:
        settings = Settings(
            ":memory:", conflict_judge="openai/gpt-test", api_url=server.url, embedding_api_key=KEY
        )
        with AgentMemory.of_settings(settings) as memory:
            yield memory, server


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
        assert orjson.loads(body["messages"][1]["content"]) == {"old": BEFORE, "new": NOW}


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
