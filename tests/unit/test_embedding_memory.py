"""A memory finds its space by itself, embeds what it learns, and is searched in it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from contextgraph import AgentMemory, Outcome, RawTrajectory, State
from contextgraph.embedding import embed_missing, embedded, fit_due, refit
from contextgraph.embedding.active import ActiveEmbedder
from contextgraph.embedding.fitting import FIRST_RUNS
from contextgraph.errors import EmbeddingError, SpaceMismatchError, StoreError
from contextgraph.model import Embeddings, Scope, Space
from contextgraph.retrieval import MemoryRetriever
from contextgraph.vectors import Vector
from contextgraph.writing import MemoryWriter
from tests.embedders import catalogue
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


def test_a_memory_has_its_space_once_it_has_runs_enough(memory: AgentMemory) -> None:
    assert learn(memory, range(FIRST_RUNS)) == [1] * FIRST_RUNS
    space = memory.store.active_space()
    assert space is not None
    assert space.name.startswith("tfidf/")
    assert space.runs == FIRST_RUNS
    assert memory.store.texts_to_embed(10, space.name) == []


def test_what_is_learned_in_a_space_is_embedded_at_once(memory: AgentMemory) -> None:
    learn(memory, range(FIRST_RUNS))
    assert learn(memory, [100]) == [0]
    assert memory.learn(issue(100)).to_embed == 0


def test_a_space_is_fitted_anew_when_the_memory_has_doubled(memory: AgentMemory) -> None:
    learn(memory, range(FIRST_RUNS))
    first = memory.store.active_space()
    learn(memory, range(FIRST_RUNS, 2 * FIRST_RUNS - 1))
    assert memory.store.active_space() == first
    learn(memory, [2 * FIRST_RUNS - 1])
    second = memory.store.active_space()
    assert second is not None
    assert second.runs == 2 * FIRST_RUNS
    assert memory.store.texts_to_embed(10, second.name) == []


def test_a_model_that_stays_the_same_is_not_fitted_with_every_run(memory: AgentMemory) -> None:
    same = [replace(issue(0), instance_id=f"same {number}") for number in range(2 * FIRST_RUNS)]
    for raw in same:
        memory.learn(raw)
    space = memory.store.active_space()
    assert space is not None
    assert space.runs == 2 * FIRST_RUNS
    assert not fit_due(memory.store)


def test_a_space_that_was_not_fitted_on_the_memory_stays(memory: AgentMemory) -> None:
    memory.store.prepare_space(Space("openai/small@2", 0), None)
    memory.store.switch_space("openai/small@2")
    assert learn(memory, range(FIRST_RUNS + 1)) == [1] * (FIRST_RUNS + 1)
    assert not fit_due(memory.store)


def test_meaning_finds_a_task_that_shares_few_words(memory: AgentMemory) -> None:
    learn(memory, range(FIRST_RUNS))
    asked = State(task_description="stale sessions after login", repo="ada/engine")
    found = memory.retriever.by_semantic(asked).similar_cases
    assert found
    assert all(int(case.instance_id.split("-")[1]) % 2 == 0 for case in found[:4])
    assert {rank.channel for case in found for rank in case.why.channels} == {"semantic"}


def test_the_channel_is_silent_while_there_is_no_space(memory: AgentMemory) -> None:
    learn(memory, [0])
    context = memory.query(State(task_description=TOPICS[0], repo="ada/engine"))
    assert context.similar_cases
    assert context.degraded == ()


class Failing:
    """An embedder that is never reached."""

    space = "made/far@2"
    alike = None

    def embed(self, texts: Sequence[str]) -> Embeddings:
        raise EmbeddingError("made/far@2 does not answer")


def test_an_embedder_that_fails_leaves_the_run_to_be_embedded(memory: AgentMemory) -> None:
    writer = MemoryWriter(memory.store, lambda: NOW, lambda it: embedded(it, Failing))
    receipt = writer.write(issue(0))
    assert (receipt.status, receipt.to_embed) == ("created", 1)


def test_an_embedder_that_fails_is_named_and_the_others_answer(memory: AgentMemory) -> None:
    learn(memory, range(4))
    retriever = MemoryRetriever(memory.store, embedder=Failing)
    context = retriever.retrieve(State(task_description=TOPICS[0], repo="ada/engine"))
    assert context.similar_cases
    (degraded,) = context.degraded
    assert degraded.startswith("semantic: made/far@2 does not answer; words are compared")


def test_while_nothing_can_be_embedded_words_stand_in_for_vectors(memory: AgentMemory) -> None:
    learn(memory, range(8))
    asked = State(task_description="sessions of the cache are stale", repo="ada/engine")
    found = MemoryRetriever(memory.store, embedder=Failing).by_semantic(asked)
    assert {case.instance_id.split("-")[1] for case in found.similar_cases} <= set("0246")
    assert found.similar_cases
    elsewhere = replace(asked, repo="ada/other")
    assert not MemoryRetriever(memory.store, embedder=Failing).by_semantic(elsewhere)


def test_a_space_without_its_embedder_is_said_to_be_so(memory: AgentMemory) -> None:
    memory.store.prepare_space(Space("nobody/small@2", 0), None)
    memory.store.switch_space("nobody/small@2")
    with pytest.raises(EmbeddingError, match="no embedder for space nobody/small@2"):
        ActiveEmbedder(memory.store, catalogue())()


def test_a_vector_of_another_space_is_not_searched_for(memory: AgentMemory) -> None:
    learn(memory, range(FIRST_RUNS))
    with pytest.raises(SpaceMismatchError, match="made/far@2 was asked about"):
        memory.store.nearest_trajectories(Vector.of("made/far@2", [1, 0]), Scope(), 3)


def test_vectors_of_a_space_that_was_dropped_are_refused(memory: AgentMemory) -> None:
    memory.store.add_bundles([made_bundle(0)])
    with pytest.raises(StoreError, match="no room was made for space made/far@2"):
        memory.store.switch_space("made/far@2")


def test_a_run_learned_in_the_space_of_before_is_embedded_after_the_switch(
    memory: AgentMemory,
) -> None:
    learn(memory, range(FIRST_RUNS))
    late = replace(issue(500), task=TOPICS[0])
    embedder = ActiveEmbedder(memory.store, catalogue())()
    assert embedder is not None
    for number in range(20, 24):
        memory.writer.write(issue(number))
    assert refit(memory.store) != embedder.space
    old = MemoryWriter(memory.store, lambda: NOW, lambda it: embedded(it, lambda: embedder))
    old.write(late)
    current = ActiveEmbedder(memory.store, catalogue())()
    assert current is not None
    embed_missing(memory.store, current)
    assert memory.store.texts_to_embed(10, current.space) == []
