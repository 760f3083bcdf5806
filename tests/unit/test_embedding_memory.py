"""A memory fits its embedding space, embeds what it learns, and searches in that space."""

from collections.abc import Callable, Iterator, Sequence, Sized
from datetime import UTC, datetime

import pytest

from contextgraph import AgentMemory, Outcome, RawTrajectory, State
from contextgraph.advising.gate import UNGATED
from contextgraph.advising.pipeline import MemoryRetriever
from contextgraph.errors import EmbeddingError, SpaceMismatchError, StoreError
from contextgraph.inference import spaces
from contextgraph.inference.fitting import FIRST_RUNS, embed_missing, fit_due, refit
from contextgraph.inference.spaces import ActiveEmbedder
from contextgraph.learning import MemoryWriter
from contextgraph.model import Embeddings, Scope, Space, Vector
from contextgraph.model.values import replace
from contextgraph.store.memory_store import NoteStore, RunStore, VectorStore
from tests.embedders import embedders
from tests.made_bundles import made_bundle

NOW = datetime(2026, 5, 1, tzinfo=UTC)
TOPICS = ("the cache returns stale sessions", "the parser loses indentation of nested blocks")


def issue(number: int) -> RawTrajectory:
    task = f"{TOPICS[number % 2]} in release {number}"
    return RawTrajectory(
        "import", f"ada__engine-{number}", "ada/engine", task, outcome=Outcome.SOLVED
    )


@pytest.fixture
def memory() -> Iterator[AgentMemory]:
    with AgentMemory.open(":memory:") as opened:
        yield opened


def learn(memory: AgentMemory, numbers: Sequence[int]) -> list[int]:
    """Learn these issues; how many nodes of each were left without a vector."""
    return [memory.learn(issue(number)).to_embed for number in numbers]


def test_a_space_is_fitted_once_there_are_enough_runs(memory: AgentMemory) -> None:
    assert learn(memory, range(FIRST_RUNS)) == [1] * FIRST_RUNS
    space = memory.store.vectors.active_space()
    assert space is not None
    assert space.name.startswith("tfidf/")
    assert space.runs == FIRST_RUNS
    assert memory.store.vectors.texts_to_embed(10, space.name) == {}


def test_a_run_is_embedded_when_it_is_learned(memory: AgentMemory) -> None:
    learn(memory, range(FIRST_RUNS))
    assert learn(memory, [100]) == [0]
    assert memory.learn(issue(100)).to_embed == 0


def test_a_space_is_refitted_when_the_memory_has_doubled(memory: AgentMemory) -> None:
    learn(memory, range(FIRST_RUNS))
    first = memory.store.vectors.active_space()
    learn(memory, range(FIRST_RUNS, 2 * FIRST_RUNS - 1))
    assert memory.store.vectors.active_space() == first
    learn(memory, [2 * FIRST_RUNS - 1])
    second = memory.store.vectors.active_space()
    assert second is not None
    assert second.runs == 2 * FIRST_RUNS
    assert memory.store.vectors.texts_to_embed(10, second.name) == {}


def test_a_model_that_stays_the_same_is_not_fitted_with_every_run(memory: AgentMemory) -> None:
    same = [replace(issue(0), instance_id=f"same {number}") for number in range(2 * FIRST_RUNS)]
    for raw in same:
        memory.learn(raw)
    space = memory.store.vectors.active_space()
    assert space is not None
    assert space.runs == 2 * FIRST_RUNS
    assert not fit_due(memory.store)


def test_a_space_that_was_not_fitted_on_the_memory_stays(memory: AgentMemory) -> None:
    memory.store.vectors.prepare(Space("openai/small@2", 0), None)
    memory.store.vectors.switch("openai/small@2")
    assert learn(memory, range(FIRST_RUNS + 1)) == [1] * (FIRST_RUNS + 1)
    assert not fit_due(memory.store)


def test_meaning_finds_a_task_that_shares_few_words(memory: AgentMemory) -> None:
    learn(memory, range(FIRST_RUNS))
    query = State(task_description="stale sessions after login", repo="ada/engine")
    # Half of the tasks are as close: the gate would name none of them.
    (answer,) = memory.retriever.only("semantic").retrieve_under((UNGATED,), query)
    found = answer.similar_cases
    assert found
    assert all(int(case.instance_id.split("-")[1]) % 2 == 0 for case in found[:4])
    assert {rank.channel for case in found for rank in case.why.channels} == {"semantic"}


def test_without_a_space_the_semantic_channel_finds_nothing(memory: AgentMemory) -> None:
    learn(memory, [0])
    context = memory.query(State(task_description=TOPICS[0], repo="ada/engine"))
    assert context.similar_cases
    assert context.degraded == ()


class Failing:
    """An embedder that is never reached."""

    space = "made/far@2"
    similarity_threshold = None
    is_remote = False

    def embed(self, texts: Sequence[str]) -> Embeddings:
        raise EmbeddingError("made/far@2 does not answer")


def test_an_embedder_that_fails_leaves_the_run_to_be_embedded(memory: AgentMemory) -> None:
    writer = MemoryWriter(memory.store, Failing, clock=lambda: NOW)
    receipt = writer.write(issue(0))
    assert (receipt.status, receipt.to_embed) == ("created", 1)


def test_runs_that_wait_are_counted_in_batches_and_no_others_are_read(
    memory: AgentMemory,
    monkeypatch: pytest.MonkeyPatch,
    results_of: Callable[[type, str], list[Sized]],
) -> None:
    learn(memory, range(FIRST_RUNS))
    writer = MemoryWriter(memory.store, Failing, clock=lambda: NOW)
    for number in range(100, 105):
        writer.write(issue(number))
    monkeypatch.setattr(spaces, "_RUNS_AT_ONCE", 2)
    texts, ids = results_of(VectorStore, "texts_to_embed"), results_of(RunStore, "ids")

    assert memory.spaces.waiting() == 5
    assert [*map(len, texts)] == [2, 2, 1, 0]
    assert ids == []


def test_texts_for_tfidf_are_counted_without_reading_them(
    memory: AgentMemory, results_of: Callable[[type, str], list[Sized]]
) -> None:
    learn(memory, range(5))
    memory.notes.remember("CI uses Python 3.12", repo="ada/engine", source="user:chat")
    read = [results_of(one, "texts_to_embed") for one in (VectorStore, NoteStore)]

    plan = memory.spaces.plan("tfidf")
    assert (plan.runs, plan.texts) == (5, 6)
    assert read == [[], []]


def test_an_embedder_that_fails_is_named_and_the_others_answer(memory: AgentMemory) -> None:
    learn(memory, range(4))
    retriever = MemoryRetriever(memory.store, embedder=Failing)
    context = retriever.retrieve(State(task_description=TOPICS[0], repo="ada/engine"))
    assert context.similar_cases
    (degraded,) = context.degraded
    assert degraded.startswith("semantic: made/far@2 does not answer; words are compared")


def test_where_the_query_cannot_be_embedded_words_are_compared(memory: AgentMemory) -> None:
    learn(memory, range(8))
    query = State(task_description="sessions of the cache are stale", repo="ada/engine")
    ungated = MemoryRetriever(memory.store, embedder=Failing, gate=UNGATED)
    found = ungated.only("semantic").retrieve(query)
    assert {case.instance_id.split("-")[1] for case in found.similar_cases} <= set("0246")
    assert found.similar_cases
    elsewhere = replace(query, repo="ada/other")
    assert not MemoryRetriever(memory.store, embedder=Failing).only("semantic").retrieve(elsewhere)


def test_a_space_without_an_embedder_is_an_error(memory: AgentMemory) -> None:
    memory.store.vectors.prepare(Space("nobody/small@2", 0), None)
    memory.store.vectors.switch("nobody/small@2")
    with pytest.raises(EmbeddingError, match="no embedder for space nobody/small@2"):
        ActiveEmbedder(memory.store, embedders())()


def test_a_vector_of_another_space_is_refused(memory: AgentMemory) -> None:
    learn(memory, range(FIRST_RUNS))
    with pytest.raises(SpaceMismatchError, match="a query has a vector of space made/far@2"):
        memory.store.vectors.nearest(Vector.of("made/far@2", [1, 0]), Scope(), 3)


def test_a_space_that_was_not_prepared_cannot_become_active(memory: AgentMemory) -> None:
    memory.store.runs.add([made_bundle(0)])
    with pytest.raises(StoreError, match="space made/far@2 was not prepared"):
        memory.store.vectors.switch("made/far@2")


def test_a_run_learned_in_the_space_of_before_is_embedded_after_the_switch(
    memory: AgentMemory,
) -> None:
    learn(memory, range(FIRST_RUNS))
    late = replace(issue(500), task=TOPICS[0])
    embedder = ActiveEmbedder(memory.store, embedders())()
    assert embedder is not None
    for number in range(20, 24):
        memory.writer.write(issue(number))
    assert refit(memory.store) != embedder.space
    old = MemoryWriter(memory.store, lambda: embedder, clock=lambda: NOW)
    old.write(late)
    current = ActiveEmbedder(memory.store, embedders())()
    assert current is not None
    embed_missing(memory.store, current)
    assert memory.store.vectors.texts_to_embed(10, current.space) == {}
