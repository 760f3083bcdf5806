"""A memory whose methodologies are worded by a model: what it does while that fails, and after."""

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from contextgraph import AgentMemory, State
from contextgraph.embedding import kept
from contextgraph.errors import SettingsError, StoreError
from contextgraph.model import ConsolidationReport, Methodology
from tests.acceptance.command_line import contextgraph, write_runs
from tests.builders import NO_MODULE, run
from tests.model_server import KEY, MODEL as EMBEDDER, Handler, Reply, Server, error, said, serving

MODEL = "openai/gpt-test"
TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


def installing_run(number: int, *, more: str = ""):
    missing = NO_MODULE.replace("tariffs", f"mod{number}")
    return run(
        [
            ("python reproduce.py", missing, 1),
            (f"pip install mod{number}{more}", "Successfully installed", 0),
            ("python reproduce.py", "total: 12\n", 0),
        ],
        instance_id=f"acme__shop-{number}",
    )


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serving() as running:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A memory of four runs that is not consolidated yet."""
    with AgentMemory.open(str(tmp_path / "memory.db")) as memory:
        for number in range(4):
            memory.learn(installing_run(number))
    return tmp_path / "memory.db"


def worded(store: Path, summarizer: str = MODEL) -> ConsolidationReport:
    with AgentMemory.open(str(store), summarizer=summarizer) as memory:
        return memory.consolidate()


def methodology(store: Path) -> Methodology:
    with AgentMemory.open(str(store)) as memory:
        (found,) = memory.store.methodologies_of(memory.store.methodology_ids())
    return found


def learn(store: Path, *runs) -> None:
    with AgentMemory.open(str(store)) as memory:
        for one in runs:
            memory.learn(one)


def test_a_model_words_what_was_counted(server: Server, store: Path) -> None:
    report = worded(store)
    found = methodology(store)
    counted, how = found.strategy.split("\n")
    assert counted.startswith("run `pip install <the missing module>` first (4 of 4 runs")
    assert how == "How: first run `pip install <the missing module>` first."
    assert found.situation == "When ModuleNotFoundError comes up in acme/shop."
    assert found.made_by.startswith(f"{MODEL} methodology.v2 ")
    assert (report.usage.requests, report.waiting) == (1, 0)
    with AgentMemory.open(str(store)) as memory:
        context = memory.query(State(repo="acme/shop", current_error=NO_MODULE))
        shown = memory.render(context).splitlines()
        at = shown.index("   How: first run `pip install <the missing module>` first.")
        assert shown[at - 1].endswith("4 runs]")
        assert memory.get_stats().usage == {MODEL: report.usage}


def test_what_was_worded_is_not_worded_again(server: Server, store: Path) -> None:
    worded(store)
    before = methodology(store)
    report = worded(store)
    assert (report.changed, report.usage.requests) == (0, 0)
    assert methodology(store) == before
    assert len(server.chats) == 1


def test_counts_change_and_words_stay(server: Server, store: Path) -> None:
    worded(store)
    before = methodology(store)
    learn(store, installing_run(4))
    worded(store, "template")
    after = methodology(store)
    assert "(5 of 5 runs" in after.strategy
    assert after.strategy.split("\n")[1:] == before.strategy.split("\n")[1:]
    assert (after.situation, after.made_by) == (before.situation, before.made_by)
    assert len(server.chats) == 1


def test_another_model_words_anew(server: Server, store: Path) -> None:
    worded(store)
    worded(store, "openai/gpt-other")
    assert [body["model"] for body in server.chats] == ["gpt-test", "gpt-other"]
    assert methodology(store).made_by.startswith("openai/gpt-other ")


def test_no_secret_of_a_run_is_sent(server: Server, tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    learn(store, *(installing_run(n, more=f" --token {TOKEN}") for n in range(4)))
    worded(store)
    assert server.chats
    assert TOKEN not in orjson.dumps(server.asked).decode()


def test_without_an_answer_the_template_stands_until_there_is_one(
    server: Server, store: Path
) -> None:
    server.fault = lambda number, handler: error(403, "closed for today")
    report = worded(store)
    found = methodology(store)
    assert report.waiting == 1
    assert "closed for today" in report.not_worded
    assert found.strategy.startswith("run `pip install <the missing module>` first")
    assert found.made_by.startswith(f"template/1 (waits for {MODEL} methodology.v2 ")
    assert worded(store).changed == 0
    server.fault = lambda number, handler: None
    assert worded(store).waiting == 0
    assert methodology(store).made_by.startswith(f"{MODEL} ")


def test_what_a_model_cannot_word_stays_as_it_is_and_is_not_asked_again(
    server: Server, store: Path
) -> None:
    def nonsense(number: int, handler: Handler) -> Reply:
        return 200, {}, orjson.dumps(said(server.asked[number], "no idea"))

    server.fault = nonsense
    asked = ("consolidate", "--store", store, "--summarizer", MODEL)
    shown = contextgraph(*asked)
    assert "1 answer of the language model could not be used: Invalid JSON" in shown.err
    found = methodology(store)
    assert "\n" not in found.strategy
    assert found.made_by.startswith(f"template/1 ({MODEL} methodology.v2 ")
    assert found.made_by.endswith(": unusable answer)")
    assert worded(store).usage.requests == 0
    assert len(server.chats) == 2


def test_a_run_that_is_forgotten_while_the_model_thinks_does_not_come_back(
    server: Server, store: Path
) -> None:
    ids = _trajectories(store)

    def forget(number: int, handler: Handler) -> Reply | None:
        with AgentMemory.open(str(store)) as other:
            other.forget(ids)
        return None

    server.fault = forget
    worded(store)
    with AgentMemory.open(str(store)) as memory:
        assert not memory.store.methodology_ids()


def _trajectories(store: Path) -> list[str]:
    with AgentMemory.open(str(store)) as memory:
        return [memory.learn(installing_run(number)).trajectory_id for number in range(4)]


def test_a_cap_leaves_words_for_later(server: Server, store: Path) -> None:
    with pytest.raises(SettingsError, match="prompt_price and answer_price"):
        AgentMemory.open(str(store), summarizer=MODEL, max_cost=1.0)
    with AgentMemory.open(str(store), summarizer="openai/gpt-4.1", max_cost=0.01) as memory:
        report = memory.consolidate()
    assert report.waiting == 1
    assert "pass the cap" in report.not_worded
    assert not server.asked


def test_embeddings_and_words_are_paid_from_one_purse(
    server: Server, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXTGRAPH_PROMPT_PRICE", "1")
    monkeypatch.setenv("CONTEXTGRAPH_ANSWER_PRICE", "1")
    monkeypatch.setenv("CONTEXTGRAPH_EMBEDDING_PRICE", "1")
    cap = 0.003  # one answer may cost 0.0027, the vectors cost 0.0008
    with AgentMemory.open(str(store), summarizer=MODEL, embedder=EMBEDDER, max_cost=cap) as memory:
        spent = memory.reembed().usage.cost
        report = memory.consolidate()
    assert report.waiting == 1
    assert f"${spent:.4f} spent" in report.not_worded
    with AgentMemory.open(str(store), summarizer=MODEL, max_cost=cap) as memory:
        assert memory.consolidate().waiting == 0


def test_learning_does_not_fail_with_the_model(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.fault = lambda number, handler: error(400, "no such model")
    with AgentMemory.open(str(tmp_path / "memory.db"), summarizer=MODEL) as memory:
        receipts = list(memory.learn_many(installing_run(number) for number in range(16)))
    assert len(receipts) == 16
    assert "1 methodology still to be worded: " in caplog.text
    assert methodology(tmp_path / "memory.db").made_by.startswith("template/1 (waits for ")


def test_learning_one_run_does_not_wait_long_for_a_model_and_a_batch_does(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runs = [installing_run(number) for number in range(32)]
    with AgentMemory.open(str(tmp_path / "memory.db"), summarizer=MODEL) as memory:
        consolidator = memory.consolidator
        consolidator.policy = replace(consolidator.policy, wording=timedelta(0))
        for one in runs[:16]:
            memory.learn(one)
        assert "learning does not wait for a model any longer" in caplog.text
        assert not server.chats
        list(memory.learn_many(runs[16:]))
        assert len(server.chats) == 1
    assert methodology(tmp_path / "memory.db").made_by.startswith(f"{MODEL} ")


def test_a_dry_run_shows_what_a_consolidation_then_sends(server: Server, store: Path) -> None:
    asked = ("consolidate", "--store", store, "--summarizer", MODEL)
    (plan,) = contextgraph(*asked, "--dry-run", "--json").records
    assert not server.asked
    assert methodologies_of(store) == []
    (report,) = contextgraph(*asked, "--json").records
    (prompt,) = plan["prompts"]
    assert prompt == "\n".join(one["content"] for one in server.chats[0]["messages"])
    assert plan["editor"] == f"{MODEL} methodology.v2"
    assert 0 < report["tokens"] <= plan["tokens"]
    (left,) = contextgraph(*asked, "--dry-run", "--json").records
    assert left["prompts"] == []
    assert "1 methodologies" not in contextgraph("consolidate", "--store", store, "--dry-run").out


def methodologies_of(store: Path) -> list[str]:
    with AgentMemory.open(str(store)) as memory:
        return list(memory.store.methodology_ids())


def test_costs_are_told(
    server: Server, store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CONTEXTGRAPH_SUMMARIZER", MODEL)
    monkeypatch.setenv("CONTEXTGRAPH_PROMPT_PRICE", "1")
    monkeypatch.setenv("CONTEXTGRAPH_ANSWER_PRICE", "10")
    shown = contextgraph("consolidate", "--store", store, "--max-cost", "1").out
    assert "the language model took 1 request," in shown
    (stats,) = contextgraph("stats", "--store", store, "--json").records
    assert stats["usage"][MODEL]["cost"] > 0
    runs = write_runs(tmp_path / "runs.jsonl", [installing_run(9)])
    assert contextgraph("learn", runs, "--store", store).code == 0


def test_a_name_that_means_no_summarizer_is_refused() -> None:
    with pytest.raises(SettingsError, match="write template or openai/MODEL"):
        AgentMemory.open(":memory:", summarizer="gpt-4.1")


class Clock:
    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now


def test_a_lease_is_renewed_while_a_model_thinks(store: Path) -> None:
    clock = Clock()
    with AgentMemory.open(str(store)) as memory, AgentMemory.open(str(store)) as other:
        assert memory.store.take_lease("a", clock(), clock() + timedelta(minutes=1)) is None
        with kept(memory.store, "a", clock, every=0.02):
            clock.now += timedelta(minutes=3)
            time.sleep(0.2)
            assert other.store.take_lease("b", clock(), clock() + timedelta(minutes=1))
        assert other.store.take_lease("b", clock(), clock() + timedelta(minutes=1)) is None


def test_who_lost_the_lease_writes_nothing_more(server: Server, store: Path) -> None:
    def taking(number: int, handler: Handler) -> Reply | None:
        later = datetime.now(UTC) + timedelta(minutes=9)
        with AgentMemory.open(str(store)) as other:
            assert other.store.take_lease("other", later, later + timedelta(minutes=1)) is None
        return None

    server.fault = taking
    with pytest.raises(StoreError, match="another process took over"):
        worded(store)
    assert methodology(store).made_by == "template/1"
