"""The provider for sde-bench, in the loop of that benchmark with a scripted model on loopback."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from benchmarks.sde_bench import Document, Message, Provider, corrections
from tests.model_server import KEY, Handler, Reply, Server, chat_reply, serving

if TYPE_CHECKING:
    from openai import OpenAI

ROOT = Path(__file__).parents[2]
REPORT = "The importer gives up far too early when the upstream is busy. Restore its retry budget."
EARLIER = """USER: how often may the importer retry before the upstream blocks us?
ASSISTANT: We could retry five times, or until it answers.
USER: Then the retry budget of the importer is exactly 4 attempts, as we measured."""
DECISION = """USER: the importer still trips the rate limit of the upstream, what about its retries?
ASSISTANT: Measured again: the window closes after the seventh.
USER: ok. From now on the retry budget of the importer is exactly 7 attempts, no longer 4."""
OTHERS = [
    "USER: is the calendar view done?\nASSISTANT: Yes, it shows weeks and months.",
    "git commit 1f2e3d\nRename the exporter's options\n\nThey say what they do.",
]
HIDDEN = "from budget import ATTEMPTS\nassert ATTEMPTS == 7, f'{ATTEMPTS} attempts'\n"


@pytest.fixture
def provider(tmp_path: Path) -> Provider:
    made = Provider()
    made.prepare(tmp_path / "store", unit_ids={"retries", "other"})
    texts = [EARLIER, *OTHERS, DECISION]
    documents = [Document(f"doc:{at}", text, "retries") for at, text in enumerate(texts)]
    asyncio.run(made.async_ingest([*documents, Document("doc:9", OTHERS[0], "other")]))
    return made


def test_what_was_ingested_is_retrieved_whole_by_its_unit(provider: Provider) -> None:
    found, _ = provider.retrieve(REPORT, user_id="retries")
    assert {one.content for one in found[:2]} == {EARLIER, DECISION}
    assert {one.id for one in found} <= {f"doc:{at}" for at in range(4)}
    assert provider.retrieve(REPORT, user_id="nobody")[0] == []

    of_other, _ = provider.retrieve("calendar view", user_id="other")
    assert [one.id for one in of_other] == ["doc:9"]


def test_only_a_reset_takes_away_what_was_ingested(provider: Provider, tmp_path: Path) -> None:
    again = Provider()
    again.prepare(tmp_path / "store", reset=False)
    assert again.retrieve(REPORT, k=1, user_id="retries")[0]
    again.prepare(tmp_path / "store")
    assert again.retrieve(REPORT, k=1, user_id="retries")[0] == []


def test_turns_are_taken_as_messages_too(tmp_path: Path) -> None:
    made = Provider()
    made.prepare(tmp_path)
    turns = [
        {"role": "user", "content": "how do we name branches?"},
        {"role": "assistant", "content": "after the ticket"},
        {"role": "user", "content": "yes, always after the ticket"},
    ]
    made.ingest([Document("chat", "", messages=turns, timestamp="2026-01-02T03:04:05+00:00")])
    found, _ = made.retrieve("names of branches")
    assert found[0].content.splitlines() == [
        "USER: how do we name branches?",
        "ASSISTANT: after the ticket",
        "USER: yes, always after the ticket",
    ]
    assert found[0].timestamp == "2026-01-02T03:04:05+00:00"


def test_an_agent_that_is_told_the_decision_needs_no_correction(
    provider: Provider, tmp_path: Path
) -> None:
    from openai import OpenAI

    memories = [one.content for one in provider.retrieve(REPORT, user_id="retries")[0]]
    with serving(fault=scripted) as server, OpenAI(base_url=server.url, api_key=KEY) as client:
        ask, grade = asking(client), graded(tmp_path)
        assert corrections(REPORT, memories, ask, grade) == 0
        assert len(server.chats) == 1
        assert corrections(REPORT, [EARLIER], ask, grade) == 5
        assert len(server.chats) == 1 + 6
        last = server.chats[-1]["messages"]
    assert [one["role"] for one in last] == ["user", "assistant"] * 5 + ["user"]
    assert EARLIER in last[0]["content"]
    assert "[Feedback #5]" in last[-1]["content"]
    assert "AssertionError: 4 attempts" in last[-1]["content"]


def test_the_benchmark_runs_with_the_provider(tmp_path: Path) -> None:
    package = tmp_path / "memory_bench"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "memory.py").write_text("REGISTRY = {}\n")
    (package / "cli.py").write_text(
        "from memory_bench.memory import REGISTRY\n"
        "def app(arguments):\n    print(REGISTRY[arguments[-1]]().name, *arguments)\n"
    )
    command = [sys.executable, "-m", "benchmarks.sde_bench", "run", "--memory", "contextgraph"]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "contextgraph run --memory contextgraph\n"


def scripted(number: int, handler: Handler) -> Reply:
    """A model that writes the budget that it reads first in its first prompt."""
    server: Server = handler.state
    body = server.requests[number]
    decided = re.findall(r"is exactly (\d+) attempts", body["messages"][0]["content"])
    budget = [*decided, "5"][0]
    return 200, {}, orjson.dumps(chat_reply(body, f"ATTEMPTS = {budget}\n"))


def asking(client: "OpenAI") -> Callable[[Sequence[Message]], str]:
    def ask(messages: Sequence[Message]) -> str:
        given: Any = messages
        answer = client.chat.completions.create(model="scripted", messages=given)
        return answer.choices[0].message.content or ""

    return ask


def graded(folder: Path) -> Callable[[str], str]:
    """Grade an answer, which is a module, by a test that its author has not seen."""

    def grade(answer: str) -> str:
        (folder / "budget.py").write_text(answer)
        done = subprocess.run(
            [sys.executable, "-B", "-c", HIDDEN],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stderr

    return grade
