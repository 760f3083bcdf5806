"""A memory whose embeddings come from a server: what it does while the server fails, and after."""

import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextgraph import AgentMemory, Outcome, RawTrajectory, State
from contextgraph.errors import EmbeddingError
from tests.acceptance.command_line import contextgraph, write_runs
from tests.model_server import KEY, MODEL, Server, error, serving

TOPICS = ("the cache returns stale sessions", "the parser loses indentation of nested blocks")
QUESTION = State(task_description="stale sessions after login", repo="ada/engine")


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
            "SELECT t.id, v.data FROM vectors v JOIN trajectory t ON t.key = v.trajectory "
            "JOIN space s ON s.key = v.space WHERE s.active"
        ).fetchall()
    connection.close()
    return dict(rows)


def spaces(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    found = [row[0] for row in connection.execute("SELECT name FROM space ORDER BY key")]
    connection.close()
    return found


def down(server: Server) -> None:
    server.fault = lambda number, handler: error(400, "closed for today")


def up(server: Server) -> None:
    server.fault = lambda number, handler: None


def test_a_memory_that_is_told_to_is_embedded_by_the_server(server: Server, tmp_path: Path) -> None:
    with memory_at(tmp_path / "memory.db") as memory:
        receipt = memory.learn(issue(0))
        assert (receipt.to_embed, receipt.not_embedded, receipt.usage.requests) == (0, "", 1)
        learn(memory, range(1, 16))
        found = memory.retriever.by_semantic(QUESTION).similar_cases
        assert all(int(case.instance_id.split("-")[1]) % 2 == 0 for case in found[:4])
        assert memory.get_stats().usage[MODEL].requests == len(server.asked)
    assert spaces(tmp_path / "memory.db") == [MODEL]


def test_what_was_learned_in_an_outage_is_embedded_after_it(server: Server, tmp_path: Path) -> None:
    with memory_at(tmp_path / "calm.db") as memory:
        assert learn(memory, range(24)) == 0
        memory.consolidate()
    with memory_at(tmp_path / "stormy.db") as memory:
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
    assert vectors(tmp_path / "stormy.db") == vectors(tmp_path / "calm.db")


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


def test_a_memory_without_its_key_learns_and_says_what_is_missing(
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


def test_another_embedder_than_the_memorys_is_said_and_waits_to_be_asked(
    server: Server, tmp_path: Path
) -> None:
    store = tmp_path / "memory.db"
    runs = write_runs(tmp_path / "runs.jsonl", map(issue, range(16)))
    assert contextgraph("learn", runs, "--store", store).code == 0
    told = contextgraph("learn", runs, "--store", store, "--embedder", MODEL)
    assert f"{MODEL} is configured, but the space of the memory is tfidf/" in told.err
    assert "contextgraph reembed" in told.err
    assert server.asked == []


def test_a_dry_run_sends_nothing_and_says_what_it_would_cost(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXTGRAPH_EMBEDDING_PRICE", "1000")
    store = tmp_path / "memory.db"
    runs = write_runs(tmp_path / "runs.jsonl", map(issue, range(16)))
    contextgraph("learn", runs, "--store", store)
    arguments = ("reembed", "--store", store, "--embedder", MODEL)
    (plan,) = contextgraph(*arguments, "--dry-run", "--json").records
    assert (plan["space"], plan["runs"], plan["texts"]) == (MODEL, 16, 16)
    assert plan["cost"] == pytest.approx(plan["tokens"] / 1000)
    refused = contextgraph(*arguments, "--max-cost", plan["cost"] / 2)
    assert (refused.code, "nothing was sent" in refused.err) == (1, True)
    assert server.asked == []
    (done,) = contextgraph(*arguments, "--max-cost", 2 * plan["cost"], "--json").records
    assert (done["space"], done["runs"]) == (MODEL, 16)
    assert 0 < done["cost"] <= plan["cost"]
    assert spaces(store) == [MODEL]


def test_a_price_that_is_not_known_cannot_be_capped(server: Server, tmp_path: Path) -> None:
    runs = write_runs(tmp_path / "runs.jsonl", [issue(0)])
    store = tmp_path / "memory.db"
    told = contextgraph("learn", runs, "--store", store, "--embedder", MODEL, "--max-cost", "1")
    assert told.code == 1
    assert "set embedding_price" in told.err


def test_a_401_while_reembedding_stops_at_once_and_leaves_the_space_of_before(
    server: Server, tmp_path: Path
) -> None:
    store = tmp_path / "memory.db"
    runs = write_runs(tmp_path / "runs.jsonl", map(issue, range(16)))
    contextgraph("learn", runs, "--store", store)
    before = vectors(store)
    server.key = "another"
    told = contextgraph("reembed", "--store", store, "--embedder", MODEL)
    assert told.code == 1
    assert "check OPENAI_API_KEY" in told.err
    assert KEY not in told.err + told.out
    assert len(server.asked) == 1
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


def test_a_space_gets_a_bound_on_likeness_of_its_own(server: Server, tmp_path: Path) -> None:
    with memory_at(tmp_path / "memory.db") as memory:
        learn(memory, range(16))
        memory.consolidate()
        space = memory.store.active_space()
        assert space is not None
        assert space.runs == 16
        assert space.alike is not None
        assert 0.5 < space.alike < 1


def test_a_query_sees_the_old_space_or_the_new_one(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    seen: list[set[str]] = []
    stop = threading.Event()

    def ask() -> None:
        with AgentMemory.open(str(path), read_only=True) as reader:
            while not stop.is_set():
                context = reader.retriever.by_semantic(QUESTION, limit=20)
                seen.append({case.instance_id for case in context.similar_cases})
                assert context.degraded == ()

    with memory_at(path, None) as memory:
        learn(memory, range(32))
        asking = threading.Thread(target=ask)
        asking.start()
        for name in (MODEL, "tfidf", MODEL):
            memory.reembed(name)
        stop.set()
        asking.join()
    assert len(seen) > 3
    assert all(seen)


def test_a_reembedding_that_was_killed_goes_on_where_it_was(server: Server, tmp_path: Path) -> None:
    path, calm = tmp_path / "memory.db", tmp_path / "calm.db"
    for store in (path, calm):
        with memory_at(store, None) as memory:
            learn(memory, range(64))
    before = vectors(path)
    reached, go_on = threading.Event(), threading.Event()

    def stall(number: int, handler: object) -> None:
        if number == 2:
            reached.set()
            go_on.wait(20)

    server.fault = stall
    command = [sys.executable, "-c", "from contextgraph.cli import main; main()", "reembed"]
    process = subprocess.Popen([*command, "--store", str(path), "--embedder", MODEL])
    was_reached = reached.wait(60)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert was_reached
    go_on.set()
    assert vectors(path) == before
    bought = {*server.asked[0]["input"], *server.asked[1]["input"]}
    free_the_lease(path)
    with memory_at(path, None) as memory:
        done = memory.reembed(MODEL)
        assert done.runs < 64
    assert bought.isdisjoint(text for body in server.asked[3:] for text in body["input"])
    with memory_at(calm, None) as memory:
        memory.reembed(MODEL)
    assert vectors(path) == vectors(calm)


def free_the_lease(path: Path) -> None:
    """Spare the test the minute for which a killed process keeps it."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE consolidation SET expires_at = 0")
    connection.close()


def test_an_outage_while_reembedding_is_gone_on_from(server: Server, tmp_path: Path) -> None:
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
