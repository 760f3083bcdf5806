"""A memory embedded by a server, also while the server fails."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copy
from typing import TypeAlias

import pytest

from contextgraph import AgentMemory, Outcome, RawTrajectory, State, Step, Trajectory
from contextgraph.errors import EmbeddingError, NeverLearnedError
from contextgraph.model import Action
from contextgraph.model.values import replace
from tests.acceptance.command_line import call, contextgraph, write_runs
from tests.builders import recovering_run
from tests.model_server import (
    KEY,
    MODEL,
    Handler,
    Reply,
    Server,
    closed,
    dripping,
    dripping_headers,
    error,
    garbled,
    serving,
    silent,
    truncated,
)

Fault: TypeAlias = Callable[[int, Handler], Reply | None]

TOPICS = ("the cache returns stale sessions", "the parser loses indentation of nested blocks")
QUESTION = State(task_description=TOPICS[0], repo="ada/engine")


def issue(number: int) -> RawTrajectory:
    task = f"{TOPICS[number % 2]} in release {number}"
    return RawTrajectory(
        "import", f"ada__engine-{number}", "ada/engine", task, outcome=Outcome.SOLVED
    )


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serving() as running:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


def memory_at(path: Path | str, embedder: str | None = MODEL) -> AgentMemory:
    return AgentMemory.open(str(path), embedder=embedder)


def learn(memory: AgentMemory, numbers: range) -> int:
    """Learn these issues; how many nodes were left without a vector."""
    return sum(memory.learn(issue(number)).to_embed for number in numbers)


def vectors(path: Path) -> dict[str, bytes]:
    """Run -> its vectors in the space that answers."""
    with sqlite3.connect(path) as connection:
        rows = connection.execute(
            "SELECT t.key, v.data FROM vector v JOIN run t ON t.rowid = v.owner "
            "JOIN space s ON s.key = v.space WHERE v.name = 'run' AND s.active"
        ).fetchall()
    connection.close()
    return dict(rows)


def spaces(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    found = [row[0] for row in connection.execute("SELECT key FROM space ORDER BY rowid")]
    connection.close()
    return found


def down(server: Server) -> None:
    server.fault = lambda number, handler: error(400, "closed for today")


def up(server: Server) -> None:
    server.fault = lambda number, handler: None


def test_a_configured_memory_is_embedded_by_the_server(server: Server, tmp_path: Path) -> None:
    with memory_at(tmp_path / "memory.db") as memory:
        receipt = memory.learn(issue(0))
        assert (receipt.to_embed, receipt.not_embedded, receipt.usage.requests) == (0, "", 1)
        learn(memory, range(1, 16))
        found = memory.retriever.only("semantic").retrieve(QUESTION).similar_cases
        assert all(int(case.instance_id.split("-")[1]) % 2 == 0 for case in found[:4])
        assert memory.get_stats().usage[MODEL].requests == len(server.requests)
    assert spaces(tmp_path / "memory.db") == [MODEL]


def test_what_is_sent_of_a_session_is_masked_and_nothing_of_what_is_never_learned(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    monkeypatch.setenv("CONTEXTGRAPH_NEVER_LEARN", "ada/secret")
    told = Step(
        0,
        f"The importer of barley asks for {token} twice, which takes a minute each time.",
        Action("bash", "ls"),
        "ok",
    )
    asked = Step(1, "", Action("", ""), None, user_message=f"Why does barley need {token} at all?")
    session = RawTrajectory("claude-code", "talk", "ada/engine", "Barley", (told, asked))
    with memory_at(tmp_path / "memory.db") as memory:
        memory.learn(session)
        hidden = replace(session, repo="ada/secret", instance_id="hidden", task="The quarry")
        with pytest.raises(NeverLearnedError):
            memory.learn(hidden)
        memory.consolidate()
        memory.search(f"why does barley need {token}", "ada/engine")
    assert any("importer of barley" in text for text in server.texts)
    assert not any(token in text or "quarry" in text for text in server.texts)


def test_runs_learned_in_an_outage_are_embedded_after_it(server: Server, tmp_path: Path) -> None:
    with memory_at(tmp_path / "without_outage.db") as memory:
        assert learn(memory, range(24)) == 0
        memory.consolidate()
    with memory_at(tmp_path / "with_outage.db") as memory:
        learn(memory, range(8))
        down(server)
        receipt = memory.learn(issue(99))
        assert receipt.to_embed == 1
        assert "closed for today" in receipt.not_embedded
        assert learn(memory, range(30, 32)) == 2
        up(server)
        memory.forget([receipt.trajectory_id])
        learn(memory, range(8, 24))
        memory.forget(memory.learn(issue(number)).trajectory_id for number in (30, 31))
        memory.consolidate()
    assert vectors(tmp_path / "with_outage.db") == vectors(tmp_path / "without_outage.db")


def test_consolidation_embeds_what_is_waiting(server: Server, tmp_path: Path) -> None:
    with memory_at(tmp_path / "memory.db") as memory:
        down(server)
        assert learn(memory, range(6)) == 6
        assert memory.spaces.waiting() == 6
        up(server)
        memory.consolidate()
        assert memory.spaces.waiting() == 0


def test_a_query_in_an_outage_is_answered_by_the_other_channels(
    server: Server, tmp_path: Path
) -> None:
    with memory_at(tmp_path / "memory.db") as memory:
        learn(memory, range(8))
        down(server)
        context = memory.query(QUESTION)
        assert context.similar_cases
        (degraded,) = context.degraded
        assert "closed for today" in degraded
        assert "words are compared" in degraded


def test_an_agent_is_never_stopped_by_a_server_that_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        with memory_at(tmp_path / "memory.db") as memory:
            learn(memory, range(8))
            for number in range(4):
                memory.learn(recovering_run(number, repo="ada/engine"))
            found = memory.retriever.by_semantic(TOPICS[0], "Trajectory")[0]
            assert isinstance(found, Trajectory)
    # Nobody listens at its address any longer.
    with memory_at(tmp_path / "memory.db") as memory:
        assert memory.query(QUESTION).similar_cases
        nothing = memory.query(State(task_description="Zebras graze", repo="no/where"))
        assert (nothing.failed, nothing.similar_cases) == (("semantic",), ())
        (first, *_) = memory.retriever.by_semantic(TOPICS[0], "Trajectory")
        assert isinstance(first, Trajectory)
        assert first.task.startswith(TOPICS[0])
        (near, *_) = memory.retriever.by_semantic(found.embedding, "Trajectory")
        assert near.task.startswith(TOPICS[0])  # type: ignore[union-attr]
        error = "No module named 'tariffs'"
        for kind in ("Fragment", "State"):
            assert memory.retriever.by_semantic(error, kind)
            memory.retriever.by_semantic(found.embedding, kind)
        memory.retriever.by_semantic(error, "Methodology")


def always(status: int, content: bytes | str = b"{}", **headers: str) -> Fault:
    """Always the same reply, an error for a text; *headers* with _ for -."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    reply = (status, named, content) if isinstance(content, bytes) else error(status, content)
    return lambda number, handler: reply


FAULTS: dict[str, Fault] = {
    "silent": silent,
    "dripping": dripping,
    "dripping headers": dripping_headers,
    "closed": closed,
    "truncated": truncated,
    "not http": garbled,
    "400": always(400, "no"),
    "401": always(401, "no"),
    "403": always(403, "no"),
    "404": always(404, "no"),
    "429": always(429, "slow down"),
    "429 for an hour": always(429, retry_after="3600"),
    "500": always(500, "down"),
    "503 with a date": always(503, retry_after="Wed, 21 Oct 2099 07:28:00 GMT"),
    "redirected in a circle": always(307, location="/v1/embeddings"),
    "redirected to another server": always(307, location="http://localhost:1/"),
    "html": always(200, b"<html>"),
    "compressed": always(200, b"{}", content_encoding="gzip"),
    "no vectors": always(200, b'{"data": []}'),
    "other dimensions": always(200, b'{"data": [{"index": 0, "embedding": [0.5]}]}'),
    "no numbers": always(
        200, b'{"data": [{"index": 0, "embedding": [' + b",".join([b'"x"'] * 32) + b"]}]}"
    ),
    "not finite": always(
        200, b'{"data": [{"index": 0, "embedding": [' + b",".join([b"1e999"] * 32) + b"]}]}"
    ),
}


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory of eight runs, whose server is gone."""
    folder = tmp_path_factory.mktemp("embedded")
    with pytest.MonkeyPatch.context() as patch, serving() as running:
        patch.setenv("HOME", str(folder))
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("OPENAI_BASE_URL", running.url)
        with memory_at(folder / "memory.db") as memory:
            assert learn(memory, range(8)) == 0
    return folder / "memory.db"


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_the_server_does_a_query_is_answered(
    server: Server, embedded: Path, tmp_path: Path, fault: str
) -> None:
    with memory_at(copy(embedded, tmp_path)) as memory:
        server.fault = FAULTS[fault]
        context = memory.query(QUESTION)
        assert context.similar_cases
        assert any("words are compared" in one for one in context.degraded)


def test_a_run_is_stored_before_the_server_is_asked(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    stored: list[int] = []

    def look(number: int, handler: Handler) -> Reply | None:
        with AgentMemory.open(str(path)) as other:
            stored.append(len(other.store.runs.ids()))
        return error(400, "closed for today")

    with memory_at(path) as memory:
        server.fault = look
        receipts = [*memory.learn_many(map(issue, range(3)))]
        assert stored[0] == 3
        assert all(one.to_embed and "closed for today" in one.not_embedded for one in receipts)
        up(server)
        memory.learn(issue(4))
        memory.consolidate()
        assert memory.spaces.waiting() == 0


def test_without_a_key_a_memory_learns_and_reports_what_is_missing(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with memory_at(tmp_path / "memory.db") as memory:
        learn(memory, range(2))
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL")
    with memory_at(tmp_path / "memory.db", None) as memory:
        receipt = memory.learn(issue(5))
        assert receipt.to_embed == 1
        assert "set OPENAI_API_KEY" in receipt.not_embedded
        (check,) = [check for check in memory.health() if check.name == "embedding"]
        assert (check.ok, "set OPENAI_API_KEY" in check.detail) == (False, True)


def test_another_embedder_than_that_of_the_memory_is_a_warning(
    server: Server, tmp_path: Path
) -> None:
    store = tmp_path / "memory.db"
    runs = write_runs(tmp_path / "runs.jsonl", map(issue, range(16)))
    assert contextgraph("learn", runs, "--store", store).code == 0
    result = contextgraph("learn", runs, "--store", store, "--embedder", MODEL)
    assert f"{MODEL} is configured, but the space of the memory is tfidf/" in result.err
    assert "contextgraph call reembed" in result.err
    assert server.requests == []


def test_a_dry_run_sends_nothing_and_reports_the_cost(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXTGRAPH_EMBEDDING_PRICE", "1000")
    store = tmp_path / "memory.db"
    runs = write_runs(tmp_path / "runs.jsonl", map(issue, range(16)))
    contextgraph("learn", runs, "--store", store)
    monkeypatch.setenv("CONTEXTGRAPH_EMBEDDER", MODEL)
    (plan,) = call("reembed", store, dry_run=True).records
    assert (plan["space"], plan["runs"], plan["texts"]) == (MODEL, 16, 16)
    assert plan["cost"] == pytest.approx(plan["tokens"] / 1000)
    monkeypatch.setenv("CONTEXTGRAPH_MAX_COST", str(plan["cost"] / 2))
    refused = call("reembed", store)
    assert (refused.code, "nothing was sent" in refused.err) == (1, True)
    assert server.requests == []
    monkeypatch.setenv("CONTEXTGRAPH_MAX_COST", str(2 * plan["cost"]))
    (done,) = call("reembed", store).records
    assert (done["space"], done["runs"]) == (MODEL, 16)
    assert 0 < done["cost"] <= plan["cost"]
    assert spaces(store) == [MODEL]


def test_a_cost_limit_needs_a_known_price(server: Server, tmp_path: Path) -> None:
    runs = write_runs(tmp_path / "runs.jsonl", [issue(0)])
    store = tmp_path / "memory.db"
    result = contextgraph("learn", runs, "--store", store, "--embedder", MODEL, "--max-cost", "1")
    assert result.code == 1
    assert "set embedding_price" in result.err


def test_a_401_while_reembedding_stops_at_once_and_the_old_space_stays(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "memory.db"
    runs = write_runs(tmp_path / "runs.jsonl", map(issue, range(16)))
    contextgraph("learn", runs, "--store", store)
    monkeypatch.setenv("CONTEXTGRAPH_EMBEDDER", MODEL)
    before = vectors(store)
    server.key = "another"
    result = call("reembed", store)
    assert result.code == 1
    assert "check OPENAI_API_KEY" in result.err
    assert KEY not in result.err + result.out
    assert len(server.requests) == 1
    assert vectors(store) == before


def test_from_tfidf_to_the_server_and_back(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with memory_at(path, None) as memory:
        learn(memory, range(16))
        fitted = vectors(path)
        done = memory.reembed(MODEL)
        assert (done.space.name, done.runs) == (MODEL, 16)
        assert memory.query(QUESTION).similar_cases
        assert memory.reembed("tfidf").space.name.startswith("tfidf/")
    assert vectors(path) == fitted


def test_a_space_gets_its_own_similarity_threshold(server: Server, tmp_path: Path) -> None:
    with memory_at(tmp_path / "memory.db") as memory:
        learn(memory, range(16))
        memory.consolidate()
        space = memory.store.vectors.active_space()
        assert space is not None
        assert space.runs == 16
        assert space.similarity_threshold is not None
        assert 0.5 < space.similarity_threshold < 1


def test_a_query_sees_the_old_space_or_the_new_one(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    seen: list[set[str]] = []
    stop = threading.Event()

    def query() -> None:
        with AgentMemory.open(str(path), read_only=True) as reader:
            while not stop.is_set():
                context = reader.retriever.only("semantic").retrieve(QUESTION, top_k=20)
                seen.append({case.instance_id for case in context.similar_cases})
                assert context.degraded == ()

    with memory_at(path, None) as memory:
        learn(memory, range(32))
        querying = threading.Thread(target=query)
        querying.start()
        for name in (MODEL, "tfidf", MODEL):
            memory.reembed(name)
        stop.set()
        querying.join()
    assert len(seen) > 3
    assert all(seen)


def test_a_killed_reembedding_continues_when_repeated(server: Server, tmp_path: Path) -> None:
    path, other = tmp_path / "memory.db", tmp_path / "other.db"
    for store in (path, other):
        with memory_at(store, None) as memory:
            learn(memory, range(64))
    before = vectors(path)
    reached, resume = threading.Event(), threading.Event()

    def stall(number: int, handler: object) -> None:
        if number == 2:
            reached.set()
            resume.wait(20)

    server.fault = stall
    command = [sys.executable, "-c", "from contextgraph.cli import main; main()", "call"]
    process = subprocess.Popen(
        [*command, "reembed", "--store", str(path)],
        env={**os.environ, "CONTEXTGRAPH_EMBEDDER": MODEL},
    )
    was_reached = reached.wait(60)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert was_reached
    resume.set()
    assert vectors(path) == before
    embedded = {*server.requests[0]["input"], *server.requests[1]["input"]}
    expire_lease(path)
    with memory_at(path, None) as memory:
        done = memory.reembed(MODEL)
        assert done.runs < 64
    assert embedded.isdisjoint(text for body in server.requests[3:] for text in body["input"])
    with memory_at(other, None) as memory:
        memory.reembed(MODEL)
    assert vectors(path) == vectors(other)


def expire_lease(path: Path) -> None:
    """Expire the lease, so that the test need not wait for that."""
    connection = sqlite3.connect(path)
    connection.create_function("row_hash", -1, lambda *row: 0)
    with connection:
        connection.execute("DELETE FROM state WHERE key = 'lease'")
    connection.close()


def test_reembedding_continues_after_an_outage(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with memory_at(path, None) as memory:
        learn(memory, range(40))
        server.fault = lambda number, handler: error(400, "closed") if number >= 1 else None
        with pytest.raises(EmbeddingError, match="closed"):
            memory.reembed(MODEL)
        (first,) = spaces(path)[:1]
        assert first.startswith("tfidf/")
        up(server)
        assert memory.reembed(MODEL).runs == 40 - 16
    assert spaces(path) == [MODEL]
