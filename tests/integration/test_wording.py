"""Methodologies worded by a language model, also while the model fails."""

from collections.abc import Callable, Iterator, Sequence, Sized
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from contextgraph import AgentMemory, State
from contextgraph.errors import LeaseLostError, SettingsError
from contextgraph.learning import abstraction as wording
from contextgraph.model import ConsolidationReport, Methodology, RawTrajectory, Step, Words
from contextgraph.model.values import replace
from contextgraph.store.memory_store import MethodologyStore
from tests.acceptance.command_line import call, contextgraph, write_runs
from tests.builders import NO_MODULE, installing_run, run
from tests.model_server import (
    KEY,
    MODEL as EMBEDDER,
    Handler,
    Reply,
    Server,
    chat_reply,
    error,
    serving,
)

MODEL = "openai/gpt-test"
TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


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
        (found,) = memory.store.methodologies.get(memory.store.methodologies.ids())
    return found


def worded_by(store: Path) -> str:
    words = methodology(store).words
    assert words
    return words.model


def learn(store: Path, *runs) -> None:
    with AgentMemory.open(str(store)) as memory:
        for one in runs:
            memory.learn(one)


def test_a_model_words_methodologies(server: Server, store: Path) -> None:
    report = worded(store)
    found = methodology(store)
    assert "`<the missing module>`; its name may differ (4 of 4 tasks" in found.strategy
    assert found.words == Words(
        f"{MODEL} methodology.v2",
        "When ModuleNotFoundError comes up in acme/shop.",
        "first install the package that provides `<the missing module>`; its name may differ.",
    )
    assert (report.usage.requests, report.waiting) == (1, 0)
    with AgentMemory.open(str(store)) as memory:
        context = memory.query(State(repo="acme/shop", current_error=NO_MODULE))
        shown = memory.render(context).splitlines()
        how = f"How: {found.words.strategy}"
        at = shown.index(f"   {how}")
        assert shown[at - 1].endswith("[4 of 4 tasks here]")
        assert memory.get_stats().usage == {MODEL: report.usage}
        explained = memory.explain(found.id)
    assert explained is not None
    assert explained.facts["worded_by"] == f"{MODEL} methodology.v2"
    assert explained.facts["words"] == how


def test_a_worded_methodology_is_not_worded_again(server: Server, store: Path) -> None:
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
    assert "(5 of 5 tasks" in after.strategy
    assert after.words == before.words
    assert len(server.chats) == 1


def test_another_model_words_everything_again(server: Server, store: Path) -> None:
    worded(store)
    worded(store, "openai/gpt-other")
    assert [body["model"] for body in server.chats] == ["gpt-test", "gpt-other"]
    assert worded_by(store) == "openai/gpt-other methodology.v2"


def _told(raw: RawTrajectory) -> tuple[Step, ...]:
    """The steps of *raw*, the first of which prints a secret above its error."""
    first, *others = raw.steps
    return replace(first, observation=f"token: {TOKEN}\n{first.observation}"), *others


def test_no_secret_of_a_run_is_sent(server: Server, tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    runs = (installing_run(n) for n in range(4))
    learn(store, *(replace(raw, task=f"{raw.task} with {TOKEN}", steps=_told(raw)) for raw in runs))
    worded(store)
    assert server.chats
    assert TOKEN not in orjson.dumps(server.requests).decode()


def test_without_an_answer_the_words_of_the_template_stay(server: Server, store: Path) -> None:
    server.fault = lambda number, handler: error(403, "closed for today")
    report = worded(store)
    found = methodology(store)
    assert report.waiting == 1
    assert "closed for today" in report.not_worded
    assert "provides `<the missing module>`" in found.strategy
    assert found.words is None
    assert worded(store).changed == 0
    server.fault = lambda number, handler: None
    assert worded(store).waiting == 0
    assert worded_by(store) == f"{MODEL} methodology.v2"


def test_an_unusable_answer_is_not_requested_again(
    server: Server, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nonsense(number: int, handler: Handler) -> Reply:
        return 200, {}, orjson.dumps(chat_reply(server.requests[number], "no idea"))

    server.fault = nonsense
    monkeypatch.setenv("CONTEXTGRAPH_SUMMARIZER", MODEL)
    (report,) = call("consolidate", store).records
    assert (report["unusable"], "Invalid JSON" in report["fault"]) == (1, True)
    assert methodology(store).words == Words(f"{MODEL} methodology.v2")
    assert worded(store).usage.requests == 0
    assert len(server.chats) == 2


def test_a_run_that_is_forgotten_during_a_request_does_not_come_back(
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
        assert not memory.store.methodologies.ids()


def _trajectories(store: Path) -> list[str]:
    with AgentMemory.open(str(store)) as memory:
        return [memory.learn(installing_run(number)).trajectory_id for number in range(4)]


def test_above_the_cost_limit_methodologies_wait(server: Server, store: Path) -> None:
    with pytest.raises(SettingsError, match="prompt_price and answer_price"):
        AgentMemory.open(str(store), summarizer=MODEL, max_cost=1.0)
    with AgentMemory.open(str(store), summarizer="openai/gpt-4.1", max_cost=0.01) as memory:
        report = memory.consolidate()
    assert report.waiting == 1
    assert "pass the cap" in report.not_worded
    assert not server.requests


def test_embeddings_and_words_share_one_budget(
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
    assert methodology(tmp_path / "memory.db").words is None


def test_learning_one_run_limits_the_time_for_a_model_and_a_batch_does_not(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runs = [installing_run(number) for number in range(32)]
    with AgentMemory.open(str(tmp_path / "memory.db"), summarizer=MODEL) as memory:
        consolidator = memory.consolidator
        consolidator.policy = replace(consolidator.policy, rewording_time=timedelta(0))
        for one in runs[:16]:
            memory.learn(one)
        assert "learning does not wait for a model any longer" in caplog.text
        assert not server.chats
        list(memory.learn_many(runs[16:]))
        assert len(server.chats) == 1
    assert worded_by(tmp_path / "memory.db") == f"{MODEL} methodology.v2"


def test_a_dry_run_shows_what_a_consolidation_then_sends(
    server: Server, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXTGRAPH_SUMMARIZER", MODEL)
    (plan,) = call("consolidate", store, dry_run=True).records
    assert not server.requests
    assert methodologies_of(store) == []
    (report,) = call("consolidate", store).records
    (prompt,) = plan["prompts"]
    assert prompt == "\n".join(one["content"] for one in server.chats[0]["messages"])
    assert plan["editor"] == f"{MODEL} methodology.v2"
    assert 0 < report["tokens"] <= plan["tokens"]
    (rest,) = call("consolidate", store, dry_run=True).records
    assert rest["prompts"] == []


def test_distilling_sends_what_a_consolidation_sends(server: Server, store: Path) -> None:
    worded(store, "template")
    distilled = contextgraph("distil", "--methodologies", "--by", MODEL, "--store", store, "--json")
    by_distilling = methodology(store).words
    worded(store, "openai/gpt-other")
    first, second = server.chats
    assert distilled.records[-1]["summary"]["worded"] == 1
    assert first == {**second, "model": "gpt-test"}
    assert "response_format" in first
    assert by_distilling == replace(methodology(store).words, model=f"{MODEL} methodology.v2")


def methodologies_of(store: Path) -> list[str]:
    with AgentMemory.open(str(store)) as memory:
        return list(memory.store.methodologies.ids())


def test_costs_are_reported(
    server: Server, store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CONTEXTGRAPH_SUMMARIZER", MODEL)
    monkeypatch.setenv("CONTEXTGRAPH_PROMPT_PRICE", "1")
    monkeypatch.setenv("CONTEXTGRAPH_ANSWER_PRICE", "10")
    monkeypatch.setenv("CONTEXTGRAPH_MAX_COST", "1")
    (report,) = call("consolidate", store).records
    assert report["requests"] == 1
    (stats,) = contextgraph("stats", "--store", store, "--json").records
    assert stats["usage"][MODEL]["cost"] > 0
    runs = write_runs(tmp_path / "runs.jsonl", [installing_run(9)])
    assert contextgraph("learn", runs, "--store", store).code == 0


def test_an_unknown_summarizer_is_an_error() -> None:
    with pytest.raises(SettingsError, match="write template or openai/MODEL"):
        AgentMemory.open(":memory:", summarizer="gpt-4.1")


def test_a_model_looks_at_few_methodologies_at_a_time(
    server: Server,
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
    results_of: Callable[[type, str], list[Sized]],
) -> None:
    monkeypatch.setattr(wording, "BATCH", 1)
    learn(store, *map(without_pytest, range(10, 14)))
    with AgentMemory.open(str(store)) as memory:
        memory.consolidate()
    with AgentMemory.open(str(store), summarizer=MODEL) as memory:
        pages = results_of(MethodologyStore, "ids")
        assert len(memory.consolidator.plan_wording().prompts) == 2
    assert [*map(len, pages)] == [1, 1, 0]


def test_after_learning_only_what_changed_is_worded(
    server: Server, store: Path, results_of: Callable[[type, str], list[Sequence[Methodology]]]
) -> None:
    server.fault = lambda number, handler: error(403, "closed for today")
    worded(store)
    server.fault = lambda number, handler: None
    with AgentMemory.open(str(store), summarizer=MODEL) as memory:
        loaded = results_of(MethodologyStore, "get")
        for number in range(10, 26):
            memory.learn(without_pytest(number))
        assert {one.repo for found in loaded for one in found} == {"acme/bank"}
        assert not any(words_of(memory, "acme/shop"))
        assert all(words_of(memory, "acme/bank"))
        memory.consolidate()
        assert all(words_of(memory, "acme/shop"))


def without_pytest(number: int):
    commands = [
        ("pytest", "bash: pytest: command not found\n", 127),
        ("pip install pytest", "Successfully installed", 0),
        ("pytest", "===== 3 passed in 0.12s =====", 0),
    ]
    return run(commands, repo="acme/bank", instance_id=f"acme__bank-{number}")


def words_of(memory: AgentMemory, repo: str) -> list[Words | None]:
    found = memory.store.methodologies.get(memory.store.methodologies.ids(repo))
    assert found
    return [one.words for one in found]


def test_without_its_lease_a_process_writes_nothing_more(server: Server, store: Path) -> None:
    def taking(number: int, handler: Handler) -> Reply | None:
        later = datetime.now(UTC) + timedelta(minutes=9)
        with AgentMemory.open(str(store)) as other:
            assert (
                other.store.admin.take_lease("other", later, later + timedelta(minutes=1)) is None
            )
        return None

    server.fault = taking
    with pytest.raises(LeaseLostError):
        worded(store)
    assert methodology(store).words is None
