"""A memory whose runs a model tells again: when it is asked, and what becomes of its words."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from contextgraph import AgentMemory, State
from contextgraph.errors import SettingsError
from contextgraph.model import ConsolidationReport, Retelling
from tests.acceptance.command_line import contextgraph
from tests.builders import run
from tests.model_server import KEY, Handler, Reply, Server, error, facts_in, said, serving

MODEL = "openai/gpt-test"
TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
TASK = "Prices with a discount are rounded the wrong way"


def rounding_run(number: int, *, more: str = ""):
    """A run of a repository of its own, so that no methodology comes of several."""
    return run(
        [
            (f"python reproduce{number}.py{more}", f"total: 12.{number}\n", 0),
            (f"sed -i s/round{number}/floor/ shop/prices.py", "", 0),
            (f"python reproduce{number}.py", "total: 12\n", 0),
        ],
        instance_id=f"acme__shop{number}-1",
        repo=f"acme/shop{number}",
        task=f"{TASK} in case {number}\n\nSee the log.",
    )


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serving() as running:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A memory of three runs that is not consolidated yet."""
    with AgentMemory.open(str(tmp_path / "memory.db")) as memory:
        for number in range(3):
            memory.learn(rounding_run(number))
    return tmp_path / "memory.db"


def retold(store: Path, summarizer: str = MODEL, summarize: str = "runs") -> ConsolidationReport:
    with AgentMemory.open(str(store), summarizer=summarizer, summarize=summarize) as memory:
        return memory.consolidate()


def kept(store: Path) -> dict[str, Retelling]:
    """How the runs of *store* were told again, by the number of their instance."""
    with AgentMemory.open(str(store), read_only=True) as memory:
        found = memory.store.retellings_of(memory.store.trajectory_ids())
        numbers = {}
        for one in found:
            known = memory.store.trajectory(one)
            assert known
            numbers[known.instance_id] = found[one]
    return numbers


def told(server: Server) -> list[str]:
    """The tasks of the runs that were sent, in order."""
    sent = [facts_in(body) for body in server.chats]
    return sorted(facts["task"].split("\n")[0] for facts in sent if "fragments" in facts)


def test_runs_are_told_again_only_where_that_was_chosen(server: Server, store: Path) -> None:
    assert retold(store, summarize="methodologies").usage.requests == 0
    assert kept(store) == {}
    report = retold(store)
    assert told(server) == [f"{TASK} in case {number}" for number in range(3)]
    assert (report.usage.requests, report.runs_waiting) == (3, 0)
    assert {step.name: step.updated for step in report.steps}["retell"] == 3
    assert {one.made_by for one in kept(store).values()} == {f"{MODEL} run.v1"}


def test_words_are_shown_beside_what_a_rule_made(server: Server, store: Path) -> None:
    retold(store)
    state = State(repo="acme/shop1", task_description=f"{TASK} in case 1")
    with AgentMemory.open(str(store)) as memory:
        context = memory.query(state)
        case = context.similar_cases[0]
        first = case.fragments[0]
        assert f": In acme/shop1: {TASK} in case 1" in memory.render(context)
        assert case.told != case.summary
        assert case.told_of(first) != first.description
        facts = memory.explain(case.trajectory_id)
        part = memory.explain(first.id)
    assert facts
    assert facts.facts["retold"] == case.told
    assert facts.facts["summary"] == case.summary
    assert facts.facts["retold_by"] == f"{MODEL} run.v1"
    assert part
    assert part.facts["retold"] == case.told_of(first)
    asked = ("query", "--store", store, "--repo", "acme/shop1", "--task", f"{TASK} in case 1")
    (record,) = contextgraph(*asked, "--json").records
    shown = next(
        one for one in record["similar_cases"] if one["trajectory_id"] == case.trajectory_id
    )
    assert (shown["summary"], shown["retold"]) == (case.summary, case.told)
    assert shown["fragments"][0]["retold"] == case.told_of(first)


def test_what_was_told_is_not_asked_again(server: Server, store: Path) -> None:
    retold(store)
    before = kept(store)
    report = retold(store)
    assert (report.changed, report.usage.requests) == (0, 0)
    with AgentMemory.open(str(store)) as memory:
        memory.learn(rounding_run(3))
    retold(store)
    assert told(server) == [f"{TASK} in case {number}" for number in range(4)]
    assert before.items() < kept(store).items()


def test_learning_never_asks_about_runs(server: Server, tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    with AgentMemory.open(path, summarizer=MODEL, summarize="runs") as memory:
        for number in range(16):
            memory.learn(rounding_run(number))
        list(memory.learn_many(rounding_run(number) for number in range(16, 34)))
    assert told(server) == []


def test_words_stay_over_a_rebuild_that_reads_the_same(server: Server, store: Path) -> None:
    retold(store)
    before = kept(store)
    contextgraph("rebuild", "--store", store)
    assert kept(store) == before
    assert retold(store).usage.requests == 0


def test_a_run_that_tells_something_else_is_asked_about_again(server: Server, store: Path) -> None:
    """As one that an earlier version had read in another way."""
    retold(store)
    with AgentMemory.open(str(store)) as memory:
        first, *_ = memory.store.trajectory_ids()
        earlier = Retelling(f"{MODEL} run.v1", "another", "An earlier reading.")
        memory.store.put_retellings({first: earlier})
        list(memory.rebuild())
        assert first not in memory.store.retellings_of([first])
    assert retold(store).usage.requests == 1
    assert len(kept(store)) == 3


def test_another_model_tells_all_anew(server: Server, store: Path) -> None:
    retold(store)
    assert retold(store, "openai/gpt-other").usage.requests == 3
    assert {one.made_by for one in kept(store).values()} == {"openai/gpt-other run.v1"}


def test_what_a_model_cannot_tell_stays_as_it_is_and_is_not_asked_again(
    server: Server, store: Path
) -> None:
    def nonsense(number: int, handler: Handler) -> Reply:
        return 200, {}, orjson.dumps(said(server.asked[number], "no idea"))

    server.fault = nonsense
    report = retold(store)
    assert (report.usage.requests, report.runs_waiting, report.unusable) == (6, 0, 3)
    assert "Invalid JSON" in report.fault
    assert {one.summary for one in kept(store).values()} == {""}
    assert retold(store).usage.requests == 0
    with AgentMemory.open(str(store)) as memory:
        (case, *_) = memory.query(State(repo="acme/shop1", task_description=TASK)).similar_cases
        assert case.told == case.summary


def test_what_was_told_before_a_model_failed_stays_and_the_rest_is_asked_about_later(
    server: Server, tmp_path: Path
) -> None:
    store = tmp_path / "memory.db"
    with AgentMemory.open(str(store)) as memory:
        list(memory.learn_many(rounding_run(number) for number in range(20)))
    server.fault = lambda number, handler: error(403, "closed") if number >= 10 else None
    report = retold(store)
    done = len(kept(store))
    assert 8 <= done <= 10
    assert report.runs_waiting == 20 - done
    assert "closed" in report.not_worded
    asked = ("consolidate", "--store", store, "--summarizer", MODEL, "--summarize", "runs")
    assert f"{20 - done} runs still to be worded" in contextgraph(*asked).err
    server.fault = lambda number, handler: None
    report = retold(store)
    assert (report.usage.requests, report.runs_waiting) == (20 - done, 0)
    assert len(kept(store)) == 20


def test_a_run_that_is_forgotten_while_the_model_thinks_does_not_come_back(
    server: Server, store: Path
) -> None:
    with AgentMemory.open(str(store)) as memory:
        ids = memory.store.trajectory_ids()

    def forget(number: int, handler: Handler) -> Reply | None:
        with AgentMemory.open(str(store)) as other:
            other.forget(ids[:2])
        return None

    server.fault = forget
    retold(store)
    with AgentMemory.open(str(store)) as memory:
        assert [*memory.store.retellings_of(ids)] == ids[2:]


def test_no_secret_of_a_run_is_sent(server: Server, tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    with AgentMemory.open(str(store)) as memory:
        memory.learn(rounding_run(1, more=f" --token {TOKEN}"))
    retold(store)
    assert told(server)
    assert TOKEN not in orjson.dumps(server.asked).decode()


def test_a_dry_run_counts_runs_and_what_they_cost(
    server: Server, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXTGRAPH_PROMPT_PRICE", "1")
    monkeypatch.setenv("CONTEXTGRAPH_ANSWER_PRICE", "10")
    asked = ("consolidate", "--store", store, "--summarizer", MODEL, "--summarize", "runs")
    (plan,) = contextgraph(*asked, "--dry-run", "--json").records
    assert not server.asked
    assert (plan["reteller"], plan["runs"], plan["requests"]) == (f"{MODEL} run.v1", 3, 3)
    assert "3 runs to tell again" in contextgraph(*asked, "--dry-run").out
    (report,) = contextgraph(*asked, "--json").records
    prompts = ["\n".join(one["content"] for one in body["messages"]) for body in server.chats]
    assert plan["run_prompt"] in prompts
    assert 0 < report["cost"] <= plan["cost"]
    (left,) = contextgraph(*asked, "--dry-run", "--json").records
    assert (left["runs"], left["run_prompt"]) == (0, None)


def test_a_cap_leaves_runs_for_later(
    server: Server, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXTGRAPH_PROMPT_PRICE", "1")
    monkeypatch.setenv("CONTEXTGRAPH_ANSWER_PRICE", "1")
    asked = ("consolidate", "--store", store, "--summarizer", MODEL, "--summarize", "runs")
    (report,) = contextgraph(*asked, "--max-cost", "0.0001", "--json").records
    assert (report["requests"], report["runs_waiting"]) == (0, 3)
    assert "pass the cap" in report["not_worded"]
    assert not server.asked


def test_words_go_with_a_memory_into_another(server: Server, store: Path, tmp_path: Path) -> None:
    retold(store)
    contextgraph("export", tmp_path / "all.jsonl", "--store", store)
    contextgraph("import", tmp_path / "all.jsonl", "--store", tmp_path / "other.db")
    assert kept(tmp_path / "other.db") == kept(store)
    assert retold(tmp_path / "other.db").usage.requests == 0


def test_no_word_of_a_forgotten_run_is_left_in_the_file(server: Server, store: Path) -> None:
    retold(store)
    words = kept(store)["acme__shop1-1"].summary.encode()
    with AgentMemory.open(str(store)) as memory:
        memory.forget(memory.store.trajectory_ids())
    files = list(store.parent.glob("memory.db*"))
    assert files
    assert not any(words in file.read_bytes() for file in files)


def test_what_a_model_cannot_summarize_is_refused() -> None:
    with pytest.raises(SettingsError, match="write methodologies or runs"):
        AgentMemory.open(":memory:", summarizer=MODEL, summarize="everything")
