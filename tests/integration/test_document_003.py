"""The founding design (document 003), typed item by item on each store."""

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

import contextgraph
from contextgraph import (
    AgentMemory,
    EmbeddingClient,
    ErrorPattern,
    FailurePattern,
    Fragment,
    LoopDetector,
    LoopInfo,
    LoopMatch,
    LoopSignature,
    MemoryConsolidator,
    MemoryContext,
    MemoryRetriever,
    MemoryStats,
    MemoryWriter,
    Methodology,
    MistakePattern,
    Neo4jConnection,
    Outcome,
    RankedItem,
    RetrievalResult,
    State,
    StatisticsEngine,
    Trajectory,
)
from contextgraph.advising.channels import by_semantic, query_of
from contextgraph.config import load_settings
from contextgraph.errors import SpaceMismatchError
from contextgraph.memory.wiring import build
from contextgraph.model import TaskType
from contextgraph.model.codec import COMPLETE, decoded, encoded
from contextgraph.model.values import replace
from contextgraph.store.sqlite import SqliteStore
from contextgraph.trace import states_of
from contextgraph.trace.loops import predicament_in
from tests.builders import NO_MODULE, installing_run, recovering_run, run
from tests.server import Neo4jServer

STORES = ("memory.db", "networkx:", "neo4j")
MESSAGE = "No module named 'mod2'"
REQUIRED: Mapping[str, object] = {
    "id": "t1",
    "instance_id": "acme__shop-1",
    "repo": "acme/shop",
    "task_type": TaskType.BUG_FIX,
    "total_steps": 3,
    "summary": "",
}


@contextmanager
def learned(request: pytest.FixtureRequest, folder: Path) -> Iterator[AgentMemory]:
    """A memory of 16 runs that met an error and cleared it, on the store of *request*."""
    address, auth, tenant = str(request.param), None, None
    if address == "neo4j":
        server: Neo4jServer = request.getfixturevalue("neo4j_server")
        address, auth, tenant = server.uri, server.auth, uuid4().hex
    elif not address.endswith(":"):
        address = str(folder / address)
    with AgentMemory.open(address, auth=auth, tenant=tenant) as memory:
        runs = map(installing_run, range(1, 17))
        list(memory.learn_many(replace(run, agent="", outcome=Outcome.SOLVED) for run in runs))
        yield memory


@pytest.fixture(params=STORES, scope="module")
def memory(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AgentMemory]:
    """The memory on each store, for tests that only read."""
    with learned(request, tmp_path_factory.mktemp("read")) as memory:
        yield memory


@pytest.fixture(params=STORES)
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AgentMemory]:
    """The memory on each store, for a test that writes."""
    with learned(request, tmp_path) as memory:
        yield memory


def stuck() -> list[State]:
    command = ("python reproduce.py", NO_MODULE, 1)
    return list(states_of(run([command] * 4, instance_id="acme__shop-99")))


def test_every_public_class_is_importable_and_the_package_stays_lazy() -> None:
    for name in contextgraph.__all__:
        assert getattr(contextgraph, name) is not None
    assert LoopMatch is LoopInfo
    assert RetrievalResult is MemoryContext
    assert RankedItem is not None
    loaded = "import sys, contextgraph; print([m for m in sys.modules if 'contextgraph' in m])"
    ran = subprocess.run([sys.executable, "-c", loaded], capture_output=True, check=True, text=True)
    assert set(ast.literal_eval(ran.stdout)) == {
        "contextgraph",
        "contextgraph.system",
        "contextgraph.system.names",
    }


# Class -> the members that the document has, each with its arguments, or the fields of the class.
PUBLIC = {
    Trajectory: "id instance_id repo task_type success total_steps summary embedding",
    Fragment: "id step_range fragment_type description action_sequence outcome embedding",
    State: "tools repo_summary task_description current_error phase embedding",
    Methodology: "id situation strategy confidence success_count failure_count embedding",
    MemoryStats: "error_frequency common_mistakes failure_patterns",
    RetrievalResult: "methodologies similar_fragments error_solutions warnings",
    MemoryContext: "suggestions warnings similar_cases",
    LoopInfo: "escape_suggestions",
    LoopSignature: "action_type error_category error_keywords",
    AgentMemory: """__init__(neo4j_uri,embedding_api_key) query(current_state) learn(trajectory)
        check_loop(state_history) get_stats()""",
    MemoryWriter: "write_trajectory(trajectory)",
    MemoryRetriever: """retrieve(current_state,top_k) by_error(error_type,error_msg)
        by_task(task_type,repo_context) by_state(state) by_semantic(query_embedding,node_type)""",
    MemoryConsolidator: "consolidate(batch_size)",
    LoopDetector: """detect(state_history) is_same_predicament(state1,state2)
        get_escape_suggestions(loop_info)""",
    StatisticsEngine: """get_error_frequency() get_error_transitions() get_failure_patterns()
        get_common_mistakes(situation) update_from_batch(trajectories)""",
}


@pytest.mark.parametrize("owner", PUBLIC, ids=lambda owner: owner.__name__)
def test_every_public_item_has_the_arguments_of_the_document(owner: type) -> None:
    for item in PUBLIC[owner].split():
        name, _, arguments = item.partition("(")
        member = inspect.getattr_static(owner, name)
        if arguments:
            taken = [*inspect.signature(getattr(owner, name)).parameters]
            given = [argument for argument in arguments.rstrip(")").split(",") if argument]
            assert taken[taken[:1] == ["self"] :][: len(given)] == given, item
        else:
            assert not callable(member), item


def test_a_text_as_second_argument_is_the_embedding_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with AgentMemory("bolt://localhost:7687", "sk-test") as memory:
        settings = memory._parts.settings
        assert settings.embedding_api_key == "sk-test"
        assert settings.embedder.startswith("openai/")
        assert settings.auth is None
    with AgentMemory("bolt://localhost:7687", ("neo4j", "pass")) as memory:
        assert memory._parts.settings.auth == ("neo4j", "pass")
    monkeypatch.setenv("CONTEXTGRAPH_NEO4J_PASSWORD", "of-the-environment")
    with AgentMemory(neo4j_uri="bolt://localhost:7687", embedding_api_key="sk-test") as memory:
        assert memory._parts.settings.embedding_api_key == "sk-test"
        assert memory._parts.settings.auth == ("neo4j", "of-the-environment")


def test_the_parts_can_be_made_by_themselves() -> None:
    server = Neo4jConnection("bolt://localhost:7687", ("neo4j", "pass"))
    server.close()
    embedder = EmbeddingClient("sk-test")
    assert embedder.space == "openai/text-embedding-3-small@1536"
    assert embedder() is embedder
    assert embedder.calibrated(0.5).similarity_threshold == 0.5
    assert embedder.embed([""]).vectors == (None,)
    graph = SqliteStore(":memory:")
    writer, retriever = MemoryWriter(graph, embedder), MemoryRetriever(graph, embedder)
    receipt = writer.write(recovering_run())
    assert receipt.status == "created"
    assert MemoryConsolidator(graph, embedder).consolidate().started
    assert retriever.retrieve(State(current_error=NO_MODULE, repo="acme/shop")) is not None
    assert StatisticsEngine(graph).get_error_frequency() == {"ModuleNotFoundError": 1}


def test_a_memory_has_its_parts(memory: AgentMemory) -> None:
    assert isinstance(memory.writer, MemoryWriter)
    assert isinstance(memory.retriever, MemoryRetriever)
    assert isinstance(memory.consolidator, MemoryConsolidator)
    assert isinstance(memory.loop_detector, LoopDetector)
    assert isinstance(memory.stats, StatisticsEngine)
    assert memory.embedder() is not None
    assert memory.graph().number_of_nodes() > 16
    state = State(current_error=NO_MODULE, repo="acme/shop")
    assert MemoryRetriever(memory.graph, memory.embedder).retrieve(state).methodologies
    assert StatisticsEngine(memory.graph).get_error_frequency()


def test_the_nodes_are_made_with_the_fields_of_the_document() -> None:
    run = Trajectory(  # type: ignore[call-arg]
        id="t1",
        instance_id="acme__shop-1",
        repo="acme/shop",
        task_type="bug_fix",  # type: ignore[arg-type]
        success=True,
        total_steps=3,
        summary="totals",
        embedding=[0.6, 0.8],
    )
    assert run.success is True
    assert run.outcome is Outcome.SOLVED
    assert run.embedding == [0.6, 0.8]
    assert Trajectory(**{**REQUIRED, "success": None}).success is None  # type: ignore[arg-type]
    fragment = Fragment(  # type: ignore[call-arg]
        id="f1",
        step_range=(2, 4),
        fragment_type="error_recovery",  # type: ignore[arg-type]
        description="set the path",
        action_sequence=("ls", "python reproduce.py"),
        outcome="recovered",  # type: ignore[arg-type]
        embedding=[1.0],
    )
    assert (fragment.step_range, fragment.start, fragment.end) == ((2, 4), 2, 4)
    by_position = ("d", ("ls",), "recovered", [1.0])
    fragment = Fragment("f1", (2, 4), "loop", *by_position)  # type: ignore[arg-type]
    assert (fragment.step_range, fragment.outcome) == ((2, 4), "recovered")
    run = Trajectory("t1", "acme__shop-1", "acme/shop", "bug_fix", True, 3, "totals")  # type: ignore[arg-type]
    assert (run.success, run.total_steps) == (True, 3)
    methodology = Methodology("m1", "when X", "do Y", 0.5, 2, 1, [1.0])
    assert (methodology.confidence, methodology.success_count) == (0.5, 2)
    state = State(["bash"], "a shop", "totals are wrong", NO_MODULE, "fixing", [1.0])  # type: ignore[arg-type]
    assert (state.phase, state.embedding) == ("fixing", [1.0])
    stats = MemoryStats(error_frequency={}, common_mistakes=lambda _: (), failure_patterns=())
    assert stats.counts.nodes == {}


def test_vectors_of_nodes_are_no_part_of_their_records() -> None:
    run = Trajectory(**REQUIRED, outcome=Outcome.FAILED, embedding=(1.0,))  # type: ignore[arg-type]
    assert "embedding" not in encoded(run, COMPLETE)  # type: ignore[operator]
    assert decoded(Trajectory, encoded(run)) == run


def test_a_vector_of_the_task_may_be_given(memory: AgentMemory) -> None:
    (vector,) = memory.embedder.embed(["Totals are wrong when a tariff is missing"]).vectors
    assert vector is not None
    task = State(task_description="zebra stripes", repo="acme/shop")

    def found(state: State) -> int:
        return len(
            by_semantic(query_of(state, memory.store, embedder=memory.embedder), memory.store).cases
        )

    assert not found(task)
    assert found(replace(task, embedding=vector.numbers().tolist()))
    with pytest.raises(SpaceMismatchError):
        found(replace(task, embedding=[1.0]))


def test_write_trajectory_returns_the_id(own: AgentMemory) -> None:
    raw = recovering_run(50)
    identity = own.writer.write_trajectory(raw)
    assert own.learn(raw).trajectory_id == identity
    stored = own.store.runs.trajectories([identity])[identity]
    assert isinstance(stored, Trajectory)
    assert (stored.instance_id, stored.repo) == ("acme__shop-50", "acme/shop")
    assert stored.task_type == "bug_fix"
    assert stored.success is None
    assert stored.total_steps == 3
    assert stored.summary


def test_fragments_have_the_fields_of_the_document(memory: AgentMemory) -> None:
    fragments = memory.retriever.by_task("bug_fix", "acme/shop")
    assert fragments
    for fragment in fragments:
        assert isinstance(fragment, Fragment)
        assert fragment.step_range == (fragment.start, fragment.end)
        assert fragment.fragment_type
        assert fragment.description
        assert fragment.action_sequence
        assert fragment.outcome
    assert memory.retriever.by_task("feature", "acme/shop") == ()
    assert memory.retriever.by_task("bug_fix", "other/repo") == ()


def test_a_state_can_be_retrieved_for(memory: AgentMemory) -> None:
    state = State(
        tools=("bash",),
        repo_summary="a shop",
        task_description="Totals are wrong",
        current_error=NO_MODULE,
        phase="fixing",  # type: ignore[arg-type]
        repo="acme/shop",
    )
    result = memory.retriever.retrieve(current_state=state, top_k=5)
    assert isinstance(result, RetrievalResult)
    assert result.methodologies == result.suggestions
    assert result.methodologies or result.error_solutions
    assert result.warnings == ()
    started = memory.retriever.retrieve(State((), "acme/shop", "", "Totals are wrong"))
    assert started.similar_fragments == tuple(
        fragment for case in started.similar_cases for fragment in case.fragments
    )


def test_methodologies_are_found_by_error(memory: AgentMemory) -> None:
    (best, *_) = memory.retriever.by_error("ModuleNotFoundError", MESSAGE)
    assert isinstance(best, Methodology)
    assert best.situation
    assert "install" in best.strategy
    assert 0 <= best.confidence <= 1
    assert best.success_count >= 0
    assert best.failure_count >= 0
    by_type = memory.retriever.by_error("ModuleNotFoundError", "something else entirely")
    assert best.id in [found.id for found in by_type]
    assert memory.retriever.by_error("ZeroDivisionError", "division by zero") == ()


def test_methodologies_are_found_by_state(memory: AgentMemory) -> None:
    at_error = memory.retriever.by_state(State(current_error=NO_MODULE, repo="acme/shop"))
    assert at_error
    assert all(isinstance(found, Methodology) for found in at_error)
    (fragment, *_) = memory.retriever.by_task("bug_fix", "acme/shop")
    in_phase = memory.retriever.by_state(State(phase=fragment.phase, repo="acme/shop"))
    assert in_phase


@pytest.mark.parametrize(
    ("node_type", "kind"),
    [
        ("Fragment", Fragment),
        ("Methodology", Methodology),
        ("Trajectory", Trajectory),
        ("State", State),
    ],
)
def test_nodes_are_found_by_meaning(memory: AgentMemory, node_type: str, kind: type) -> None:
    text = "ModuleNotFoundError: No module named 'mod2', install mod2"
    found = memory.retriever.by_semantic(text, node_type)
    assert 0 < len(found) <= 5
    assert all(isinstance(node, kind) for node in found)
    (vector,) = memory.embedder.embed(["Totals are wrong when a tariff is missing"]).vectors
    assert vector is not None
    numbers = [float(number) for number in vector.numbers()]
    nearest = memory.retriever.by_semantic(query_embedding=numbers, node_type=node_type, top_k=2)
    assert all(len(node.embedding) == len(numbers) for node in nearest)


def test_the_nearest_fragment_comes_first(memory: AgentMemory) -> None:
    (best, *_) = memory.retriever.by_semantic("pip install mod7", "Fragment")
    assert isinstance(best, Fragment)
    assert "mod7" in " ".join((best.description, *best.action_sequence))


def test_stored_vectors_of_fragments_and_methodologies_are_searched(
    own: AgentMemory,
) -> None:
    text, vectors = "pip install mod7", own.store.vectors
    (vector,) = own.embedder.embed([text]).vectors
    assert vector is not None
    assert vectors.nearest_nodes(vector, "Fragment", 9) == {}
    assert {*vectors.nodes_to_embed(999, vector.space)} > {*own.store.methodologies.ids()} != set()
    MemoryConsolidator(own.store, own.embedder, embeds_nodes=True).consolidate()
    assert vectors.nodes_to_embed(9, vector.space) == {}
    fragments = vectors.nearest_nodes(vector, "Fragment", 3)
    found = own.retriever.by_semantic(vector, "Fragment", 3)
    assert [(one.trajectory_id, one.id) for one in found if isinstance(one, Fragment)] == [
        *fragments
    ]
    assert [one.embedding for one in found] == [
        own.numbers().tolist() for own in fragments.values()
    ]
    methodologies = vectors.nearest_nodes(vector, "Methodology", 3)
    found = own.retriever.by_semantic(vector, "Methodology", 3)
    assert {one.id for one in found if isinstance(one, Methodology)} == {
        id_ for _, id_ in methodologies
    }
    own.forget([run for run, _ in fragments])
    left = vectors.nearest_nodes(vector, "Fragment", 99)
    assert left
    assert not left.keys() & fragments.keys()


def test_consolidation_stores_vectors_of_fragments_where_that_is_set() -> None:
    for setting, is_stored in (("off", False), ("on", True)):
        settings = replace(load_settings(store=":memory:"), node_vectors=setting)
        with AgentMemory.of(build(settings)) as memory:
            memory.learn([installing_run(number) for number in range(1, 18)])
            memory.consolidate()
            space = memory.store.vectors.active_space()
            assert space is not None
            assert (not memory.store.vectors.nodes_to_embed(9, space.name)) is is_stored


def test_an_unknown_type_of_node_is_refused(memory: AgentMemory) -> None:
    with pytest.raises(ValueError, match="Fragment, Methodology, Trajectory, State"):
        memory.retriever.by_semantic("text", "Step")


def test_a_young_memory_is_searched_by_words() -> None:
    with AgentMemory(":memory:") as memory:
        memory.learn(recovering_run())
        (found, *_) = memory.retriever.by_semantic("tariff totals", "Trajectory")
        assert isinstance(found, Trajectory)
        with pytest.raises(SpaceMismatchError, match="search by a text"):
            memory.retriever.by_semantic([0.5, 0.5], "Trajectory")


def test_consolidation_takes_a_batch_size(own: AgentMemory) -> None:
    own.writer.write_trajectory(recovering_run(60))
    report = own.consolidator.consolidate(batch_size=16)
    assert report.started
    assert own.consolidator.consolidate(16).changed == 0


def test_loops_are_detected_without_a_memory() -> None:
    detector = LoopDetector()
    history = stuck()
    loop = detector.detect(history)
    assert isinstance(loop, LoopInfo)
    assert loop.error_types == ("ModuleNotFoundError",)
    assert loop.escape_suggestions == ()
    assert detector.get_escape_suggestions(loop) == ()
    assert LoopDetector(min_repeat=6).detect(history) is None
    assert detector.is_same_predicament(history[1], history[2])
    assert not detector.is_same_predicament(history[1], State(last_action="ls"))


def test_a_loop_is_seen_by_the_kind_of_an_action_and_its_error(memory: AgentMemory) -> None:
    state = State(["bash"], "a shop", "Totals are wrong", NO_MODULE, "fixing", [])  # type: ignore[arg-type]
    assert memory.check_loop([state] * 3) is None  # an error alone: who knows what was tried
    state = replace(state, action_type="run")
    assert memory.check_loop([state] * 2) is None
    loop = memory.check_loop([state] * 3)
    assert loop is not None
    assert "install" in loop.escape_suggestions[0].text
    assert memory.check_loop([State(task_description="Totals are wrong")] * 3) is None


def test_an_error_is_known_by_its_category_and_keywords(memory: AgentMemory) -> None:
    state = State(action_type="edit", error_category="E999", error_keywords=("indent",))  # type: ignore[arg-type]
    loop = memory.check_loop([state] * 3)
    assert loop is not None
    other = replace(state, error_keywords=("name",))
    assert memory.check_loop([state, other, state]) is None


def test_a_signature_has_action_error_and_keywords() -> None:
    signature = predicament_in(stuck()[2])
    assert isinstance(signature, LoopSignature)
    assert signature.action_type == "run"
    assert signature.error_category == "ModuleNotFoundError"
    assert "tariffs" in signature.error_keywords


def test_escapes_are_suggested_for_a_loop(memory: AgentMemory) -> None:
    history = stuck()
    loop = memory.check_loop(state_history=history)
    assert loop is not None
    assert loop.escape_suggestions
    suggestions = memory.loop_detector.get_escape_suggestions(loop_info=loop)
    assert suggestions == loop.escape_suggestions
    found = LoopDetector().detect(history)
    assert found is not None
    assert memory.loop_detector.get_escape_suggestions(found)


def test_statistics_are_those_of_the_document(own: AgentMemory) -> None:
    engine = own.stats
    assert engine.get_error_frequency()["ModuleNotFoundError"] == 16
    assert isinstance(engine.get_error_transitions(), dict)
    (mistake, *_) = engine.get_common_mistakes("bug_fix")
    assert isinstance(mistake, MistakePattern)
    assert all(isinstance(pattern, FailurePattern) for pattern in engine.get_failure_patterns())
    run_id = own.writer.write_trajectory(installing_run(1))
    engine.update_from_batch(own.store.runs.trajectories([run_id]).values())
    stats = own.get_stats()
    assert isinstance(stats, MemoryStats)
    assert stats.error_frequency == engine.get_error_frequency()
    assert stats.common_mistakes("bug_fix")[0] == mistake
    labels = {node["label"] for _, node in own.graph().nodes(data=True)}
    assert {"Trajectory", "Fragment", ErrorPattern.__name__, "Methodology"} <= labels


def test_the_usage_example_runs(own: AgentMemory) -> None:
    history: list[State] = []
    handled = []
    for state in stuck():
        history.append(state)
        context = own.query(current_state=state)
        assert isinstance(own.render(context), str)
        loop = own.check_loop(history)
        if loop:
            handled.append(loop.escape_suggestions)
    assert handled
    receipt = own.learn(trajectory=recovering_run(70))
    assert receipt.trajectory_id
