"""The façade: learning, advising, crediting, forgetting."""

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contextgraph import AgentMemory, Outcome, Phase, State
from contextgraph.advising.channels import Channel, Findings, by_error
from contextgraph.advising.pipeline import MemoryRetriever
from contextgraph.agents.local_copy import copy_repository
from contextgraph.config import Settings
from contextgraph.errors import (
    ContextGraphError,
    InvalidArgumentError,
    MemoryNotFoundError,
    ReadError,
    SpaceMismatchError,
    StoreError,
    StoreUnavailableError,
)
from contextgraph.knowledge.pages import Entity, Page
from contextgraph.memory.wiring import build
from contextgraph.model import Action, LearnStatus, LoopKind, ScopeLevel, SessionFilter, Step
from contextgraph.model.values import replace
from contextgraph.readers import SkippedError, read, write_jsonl
from contextgraph.text import strip_fenced, without_private
from contextgraph.trace import states_of
from tests.builders import NO_MODULE, NOON, detouring_run, recovering_run, run
from tests.marked import (
    PERSON,
    REPO as MARKED_REPO,
    SESSION,
    marked_files,
    marked_run,
    remember_marked,
)

UNCHECKED: Any = State
STATE = State(
    repo="acme/shop",
    task_description="Totals are wrong when a tariff is missing",
    current_error=NO_MODULE,
)
START = replace(STATE, current_error="")


@pytest.fixture
def memory():
    with AgentMemory.of(build(Settings(":memory:"), clock=lambda: NOON)) as memory:
        yield memory


def test_the_remedy_of_one_run_is_shown_to_the_next(memory):
    memory.learn(recovering_run())
    (solution,) = memory.query(STATE).error_solutions
    assert "PYTHONPATH=lib" in solution.description
    assert solution.why.scope is ScopeLevel.REPO
    assert solution.why.support == 1
    assert solution.why.trajectories == (solution.trajectory_id,)


def test_names_of_repositories_are_compared_without_case(memory):
    for number, repo in enumerate(("Acme/Shop", "acme/shop", "ACME/shop")):
        memory.learn(recovering_run(number, repo=repo))
    (solution,) = memory.query(replace(STATE, repo="acme/SHOP")).error_solutions
    assert (solution.why.scope, solution.why.support) == (ScopeLevel.REPO, 3)
    assert len(memory.query(replace(START, repo="Acme/shop")).similar_cases) == 3
    assert memory.get_stats().counts.repositories == 1


def test_an_exception_in_a_test_report_helps_with_the_plain_exception(memory):
    report = (
        f"E\n{'=' * 70}\nERROR: test_total (unittest.loader._FailedTest.test_total)\n{'-' * 70}\n"
    )
    report += f"ImportError: Failed to import test module: test_total\n{NO_MODULE}\n\n{'-' * 70}\n"
    report += "Ran 1 test in 0.000s\n\nFAILED (errors=1)\n"
    memory.learn(
        run(
            [
                ("python -m unittest", report, 1),
                (
                    "PYTHONPATH=lib python -m unittest",
                    f"{'-' * 70}\nRan 1 test in 0.001s\n\nOK\n",
                    0,
                ),
            ]
        )
    )
    (solution,) = memory.query(STATE).error_solutions
    assert "PYTHONPATH=lib" in solution.description


def test_learning_twice_changes_nothing(memory):
    first = memory.learn(recovering_run())
    before = memory.query(STATE)
    second = memory.learn(recovering_run())
    assert (first.status, second.status) == (LearnStatus.CREATED, LearnStatus.UNCHANGED)
    assert replace(second, status=first.status) == first
    assert replace(memory.query(STATE), id=before.id) == before


def test_learning_an_outcome_that_was_unknown_updates_the_run(memory):
    memory.learn(recovering_run())
    receipt = memory.learn(recovering_run(outcome=Outcome.SOLVED))
    assert receipt.status is LearnStatus.UPDATED
    assert (
        memory.store.runs.trajectories([receipt.trajectory_id])[receipt.trajectory_id].outcome
        is Outcome.SOLVED
    )
    assert memory.learn(recovering_run()).status is LearnStatus.UNCHANGED


def test_the_same_advice_from_several_runs_is_one_solution_that_they_support(memory):
    receipts = [memory.learn(recovering_run(number)) for number in (1, 2, 3)]
    (solution,) = memory.query(STATE).error_solutions
    assert solution.why.support == 3
    assert set(solution.why.trajectories) == {receipt.trajectory_id for receipt in receipts}


def test_a_similar_task_is_found_by_its_words(memory):
    memory.learn(recovering_run(1))
    memory.learn(recovering_run(2, task="Add a flag to print the receipt as HTML"))
    cases = memory.query(START).similar_cases
    assert cases[0].instance_id == "acme__shop-1"
    assert len({case.trajectory_id for case in cases}) == len(cases)


def test_beside_an_error_only_what_cleared_it_is_said(memory):
    receipt = memory.learn(recovering_run())
    context = memory.query(STATE)
    (remedy,) = context.error_solutions
    (case,) = context.similar_cases
    assert (case.trajectory_id, case.probability) == (receipt.trajectory_id, remedy.probability)
    assert [fragment.id for fragment in case.fragments] == [remedy.fragment_id]
    assert case.instance_id not in memory.render(context)
    assert context.warnings == ()
    assert memory.query(STATE, unasked=True).similar_cases == ()


@pytest.mark.parametrize(
    "state",
    [
        State(),
        State(repo="acme/shop", current_error="FluxCapacitorError: the time circuits are off"),
        State(current_error="lorem ipsum dolor sit amet"),
        State(repo="acme/shop", task_description="qwertz uiop asdfgh"),
        State(repo="no/such", task_description="Totals are wrong when a tariff is missing"),
    ],
)
def test_unknown_situations_are_answered_with_nothing(memory, state):
    memory.learn(recovering_run(task="Something else altogether happened"))
    assert not memory.query(state)
    assert memory.render(memory.query(state)) == ""


def test_runs_of_an_excluded_instance_are_ignored(memory):
    memory.learn(recovering_run(1))
    assert memory.query(STATE)
    assert not memory.query(STATE, exclude_instances=["acme__shop-1"])


def test_runs_newer_than_the_query_are_ignored(memory):
    memory.learn(recovering_run(started_at=NOON))
    assert memory.query(STATE, as_of=NOON)
    assert not memory.query(STATE, as_of=NOON - timedelta(seconds=1))


def test_the_limit_bounds_every_list(memory):
    for number in range(4):
        memory.learn(recovering_run(number, steps=recovering_run().steps[: number + 1]))
    assert len(memory.query(START, limit=1).similar_cases) == 1
    assert len(memory.query(STATE, limit=1).ranked) == 1


def test_a_loop_comes_with_the_escape_of_another_run(memory):
    memory.learn(recovering_run())
    stuck = run([("python reproduce.py", NO_MODULE, 1)] * 4, instance_id="acme__shop-9")
    loop = memory.check_loop(list(states_of(stuck)))
    assert loop.kind is LoopKind.SAME_COMMAND_SAME_ERROR
    assert "PYTHONPATH=lib" in loop.escape_suggestions[0].text


def test_what_failed_before_is_no_escape_from_a_loop(memory):
    attempt = ("python reproduce.py", NO_MODULE, 1)
    memory.learn(run([attempt, ("pip install tariffs", "installed", 0), (attempt[0], "OK", 0)]))
    stuck = State(repo="acme/shop", current_error=NO_MODULE, last_action=attempt[0])
    (escape,) = memory.loop_detector.get_escape_suggestions(stuck)
    assert "pip install tariffs" in escape.text
    tried = replace(stuck, failed_actions=("pip install tariffs",))
    assert not memory.loop_detector.get_escape_suggestions(tried)


def test_an_agent_that_makes_progress_is_not_in_a_loop(memory):
    assert memory.check_loop(list(states_of(recovering_run()))) is None


def test_advice_that_keeps_failing_is_not_shown_any_more(memory):
    memory.learn(recovering_run())
    shown = 0
    while memory.render(context := memory.query(STATE)):
        shown += 1
        assert memory.report_outcome(context.id, helped=False)
    assert 2 < shown <= 8
    assert memory.query(STATE).error_solutions == ()


def test_an_outcome_is_reported_once_and_only_for_what_was_shown(memory):
    memory.learn(recovering_run())
    context = memory.query(STATE)
    assert not memory.report_outcome(context.id, helped=True)
    memory.render(context)
    assert memory.report_outcome(context.id, helped=True)
    assert not memory.report_outcome(context.id, helped=True)


def test_exposures_during_another_write_are_stored_later(tmp_path, monkeypatch):
    monkeypatch.setattr("contextgraph.store.sqlite.connections.BUSY_SECONDS", 0.01)
    path = tmp_path / "memory.db"
    with AgentMemory.open(str(path)) as memory:
        memory.learn(recovering_run())
        contexts = [memory.query(STATE) for _ in range(2)]
        for context in contexts:
            memory.render(context)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreUnavailableError):
                memory.learn(recovering_run(2))
        assert all(memory.report_outcome(context.id, helped=True) for context in contexts)


def test_exposures_are_stored_once_by_any_thread(memory):
    memory.learn(recovering_run())
    contexts = [memory.query(STATE) for _ in range(64)]
    for context in contexts:
        memory.render(context)
    with ThreadPoolExecutor(8) as threads:
        reported = list(
            threads.map(lambda context: memory.report_outcome(context.id, True), contexts)
        )
    assert all(reported)


def test_rendered_text_carries_the_id_of_its_context(memory):
    memory.learn(recovering_run())
    context = memory.query(STATE)
    assert strip_fenced(memory.render(context))[1] == (context.id,)


def test_rebuilding_changes_nothing_when_reading_did_not_change(memory):
    receipt = memory.learn(recovering_run(outcome=Outcome.SOLVED))
    context = memory.query(STATE)
    run = memory.store.runs.trajectories([receipt.trajectory_id])
    assert [again.trajectory_id for again in memory.rebuild()] == [receipt.trajectory_id]
    assert replace(memory.query(STATE), id=context.id) == context
    assert memory.store.runs.trajectories([receipt.trajectory_id]) == run


def test_a_forgotten_run_is_removed_with_its_errors(memory):
    receipt = memory.learn(recovering_run())
    assert memory.forget([receipt.trajectory_id, "trj_unknown"]) == 1
    assert not memory.query(STATE)
    assert memory.get_stats().counts.nodes["ErrorPattern"] == 0


def test_the_title_of_a_forgotten_task_stays_in_no_text_that_was_shown(memory):
    title = "Totals are wrong when a tariff is missing"
    receipt = memory.learn(recovering_run(task=title, outcome=Outcome.SOLVED))
    state = State(repo="acme/shop", task_description=title, last_action="ls")
    assert title in memory.render(memory.query(state))
    memory.note_exposures()
    memory.forget([receipt.trajectory_id])
    (shown,) = memory.store.exposures.all()
    assert (shown.text, shown.items) == ("", ())


def test_statistics_count_errors_and_what_follows_them(memory):
    memory.learn(recovering_run())
    stats = memory.get_stats()
    assert stats.error_frequency == {"ModuleNotFoundError": 1}
    assert stats.counts.nodes["Trajectory"] == 1
    assert [mistake.count for mistake in stats.common_mistakes("acme/shop")] == [1]
    assert stats.common_mistakes(Phase.SUBMITTING) == ()


def test_each_transition_row_is_a_distribution(memory):
    memory.learn(
        run(
            [
                ("python reproduce.py", NO_MODULE, 1),
                ("gti status", "bash: gti: command not found", 127),
                ("python reproduce.py", NO_MODULE, 1),
            ]
        )
    )
    for row in memory.get_stats().transitions.values():
        assert sum(row.values()) == pytest.approx(1)


def test_a_channel_that_fails_is_named_and_the_others_answer(memory):
    def fail(query, store):
        raise ContextGraphError("no vectors")

    broken = Channel(fail, fail)
    memory.learn(recovering_run())
    memory.retriever = MemoryRetriever(
        memory.store, channels={**MemoryRetriever(memory.store).channels, "task": broken}
    )
    context = memory.query(STATE)
    assert context.degraded == ("task: no vectors",)
    assert context.error_solutions
    memory.retriever = MemoryRetriever(memory.store, channels={"task": broken})
    nothing = memory.query(State(repo="acme/shop"))
    assert (bool(nothing), nothing.failed) == (False, ("task",))


def test_a_query_sees_one_state_of_the_memory(tmp_path):
    path = str(tmp_path / "memory.db")
    with AgentMemory.open(path) as memory, AgentMemory.open(path) as other:
        memory.learn(recovering_run(1))

        def meanwhile(query, store):
            other.learn(recovering_run(2))
            return Findings()

        channels = {"task": Channel(meanwhile), "error": Channel(by_error)}
        memory.retriever = MemoryRetriever(memory.store, channels=channels)
        (solution,) = memory.query(STATE).error_solutions
        assert solution.why.support == 1
        (solution,) = memory.query(STATE).error_solutions
        assert solution.why.support == 2


def test_learning_nothing_creates_no_memory(tmp_path):
    path = tmp_path / "none.db"
    with AgentMemory.open(path) as memory:
        assert memory.learn([]) == []
    assert not path.exists()


def test_reading_a_memory_that_does_not_exist_does_not_create_it(tmp_path):
    path = tmp_path / "none.db"
    with (
        AgentMemory.open(str(path), read_only=True) as memory,
        pytest.raises(MemoryNotFoundError, match="learn something first"),
    ):
        memory.query(STATE)
    assert not path.exists()


def test_a_read_only_memory_records_nothing(tmp_path):
    path = str(tmp_path / "memory.db")
    with AgentMemory.open(path) as memory:
        memory.learn(recovering_run())
    with AgentMemory.open(path, read_only=True) as memory:
        context = memory.query(STATE)
        assert memory.render(context)
    with AgentMemory.open(path) as memory:
        assert not memory.report_outcome(context.id, helped=True)


def test_the_constructor_reports_a_server_that_cannot_be_reached():
    memory = AgentMemory(neo4j_uri="bolt://127.0.0.1:1", neo4j_auth=("neo4j", "x"))
    with pytest.raises(StoreUnavailableError, match="cannot be reached"):
        memory.get_stats()


def test_a_run_that_cannot_be_stored_does_not_affect_its_batch():
    timeless = recovering_run(2, started_at=NOON.replace(tzinfo=None))
    runs = [recovering_run(1), timeless, recovering_run(3)]
    with AgentMemory.open(":memory:") as memory:
        receipts = memory.learn_many(runs)
        assert next(receipts).status is LearnStatus.CREATED
        with pytest.raises(InvalidArgumentError, match="started_at: Expected datetime with"):
            next(receipts)
        assert len(memory.store.runs.ids()) == 1
        assert [receipt.status for receipt in memory.learn_many([runs[0], runs[2], runs[2]])] == [
            LearnStatus.UNCHANGED,
            LearnStatus.CREATED,
            LearnStatus.UNCHANGED,
        ]


def test_a_run_that_cannot_be_traced_does_not_affect_the_others(memory):
    first, odd, last = (recovering_run(number) for number in (1, 2, 3))
    steps = tuple(replace(step, index=10 * step.index) for step in odd.steps)
    odd = replace(odd, steps=steps, source="runs.jsonl:2")
    failed: list[ReadError] = []
    receipts = list(memory.learn_many([first, odd, last], on_error=failed.append))
    assert [receipt.status for receipt in receipts] == ["created", "created"]
    (error,) = failed
    assert str(error) == ("runs.jsonl:2: a run that cannot be learned: step 1 has the index 10")
    with pytest.raises(ReadError):
        memory.learn(odd)


def test_what_cannot_be_read_is_left_out_and_the_rest_learned(memory, tmp_path, caplog):
    for number in (1, 3):
        with (tmp_path / f"{number}.jsonl").open("wb") as file:
            write_jsonl([recovering_run(number)], file)
    (tmp_path / "2.jsonl").write_text('{"source_format": "test", ')
    (tmp_path / "4.jsonl").write_text("")

    receipts = memory.learn(tmp_path)

    assert [receipt.status for receipt in receipts] == ["created", "created"]
    assert "2.jsonl" in caplog.text
    again = list(memory.learn_many(read(tmp_path)))
    assert [receipt.status for receipt in again] == ["unchanged", "unchanged"]
    assert memory.learn([recovering_run(5)])[0].status is LearnStatus.CREATED


def test_rows_of_a_data_set_are_learned_as_dicts(memory, caplog):
    turns = [{"role": "user", "text": "ISSUE:\nx"}, {"role": "ai", "text": "```\nls\n```"}]
    rows = [
        {"instance_id": f"teapot__kettle-{number}", "target": True, "trajectory": turns}
        for number in range(3)
    ]
    receipts = memory.learn(iter([*rows, {"instance_id": "a__b-1", "other": 1}]))
    assert [receipt.status for receipt in receipts] == ["created"] * 3
    assert "learn:4" in caplog.text or "record 4" in caplog.text
    assert memory.learn(rows[0])[0].status == "unchanged"
    with pytest.raises(ReadError):
        memory.learn({"instance_id": "a__b-1", "other": 1})


class Split:
    """Rows that are no list and no mapping, as a split of a `DatasetDict`."""

    def __init__(self, *rows):
        self._rows = rows

    def __iter__(self):
        return iter(self._rows)


def test_each_split_of_a_data_set_is_learned(memory):
    turns = [{"role": "user", "text": "ISSUE:\nx"}, {"role": "ai", "text": "```\nls\n```"}]
    rows = [
        {"instance_id": f"teapot__kettle-{number}", "target": True, "trajectory": turns}
        for number in range(3)
    ]
    receipts = memory.learn({"train": Split(*rows[:2]), "test": Split(rows[2])})
    assert [receipt.status for receipt in receipts] == ["created"] * 3
    plain = memory.learn({"train": rows[:2], "test": rows[2:]})
    columns = memory.learn({name: [row[name] for row in rows] for name in rows[0]})
    assert [receipt.status for receipt in (*plain, *columns)] == ["unchanged"] * 6


def test_receipts_of_a_batch_come_once_all_of_it_is_stored():
    with AgentMemory.open(":memory:") as memory:
        receipts = memory.learn_many(map(recovering_run, range(20)))
        next(receipts)
        assert len(memory.store.runs.ids()) == 16
        assert len(list(receipts)) == 19
        assert len(memory.store.runs.ids()) == 20


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda memory: memory.query(None), "current_state: Expected str \\| State, got None"),
        (lambda memory: memory.query({"repo": "a/b"}), "current_state: Expected State, got "),
        (
            lambda memory: memory.query("", workdir=1),
            "workdir: Expected Path \\| str",
        ),
        (
            lambda memory: memory.query(UNCHECKED(repo=5)),
            "(current_state.)?repo: Expected str",
        ),
        (
            lambda memory: memory.query(UNCHECKED(current_error=b"")),
            "current_state.current_error: Expected str",
        ),
        (
            lambda memory: memory.query(UNCHECKED(environment="linux")),
            "current_state.environment: Expected Environment \\| None, got 'linux'",
        ),
        (lambda memory: memory.maintain("weekly"), "policy: Expected MaintenancePolicy"),
        (lambda memory: memory.export_graph(Path("a"), "xml"), "graph_format: .* 'xml'"),
        (lambda memory: memory.learn(3), "trajectory: Expected RawTrajectory \\| "),
        (lambda memory: memory.learn([1]), "record 1: Expected RawTrajectory or a mapping"),
        (lambda memory: memory.learn(iter([1])), "record 1: Expected RawTrajectory or a ma"),
        (lambda memory: memory.check_loop("python x.py"), "state_history: Expected list, got "),
        (lambda memory: memory.check_loop([1]), "state_history\\[0\\]: Expected State, got 1"),
        (lambda memory: memory.render("text"), "context: Expected MemoryContext, got "),
        (
            lambda memory: memory.live(repo=None, task=""),
            "(current_state.)?repo: Expected str",
        ),
        (
            lambda memory: memory.live(repo="a/b", task="").observe(1, ""),
            "action: Expected str \\| Action, got 1",
        ),
        (lambda memory: memory.working().add_llm_response(None), "content: Expected str, got None"),
        (
            lambda memory: memory.conversation("a").add_message("user", 5),
            "content: Expected str, got 5",
        ),
        (lambda memory: memory.open(None), "address: Expected str \\| Path, got None"),
        (lambda memory: memory.learn_many("a.jsonl"), "raws: Expected Iterable, got "),
        (
            lambda memory: memory.retriever.by_semantic(["a"]),
            "query_embedding\\[0\\]: Expected float",
        ),
        (
            lambda memory: memory.session_facets(SessionFilter(until=datetime(2026, 1, 1))),  # noqa: DTZ001
            "until: Expected datetime with a timezone",
        ),
    ],
)
def test_misuse_names_what_a_method_takes(memory, call, message):
    with pytest.raises(InvalidArgumentError, match=f"^{message}"):
        call(memory)


@pytest.mark.parametrize("given", [np.zeros(3), [np.float32(0)] * 3])
def test_a_vector_may_be_of_numpy(memory, given):
    with pytest.raises(SpaceMismatchError, match="no embedding space yet"):
        memory.retriever.by_semantic(given)


def test_no_text_of_a_state_is_one_that_is_not_given(memory):
    state = UNCHECKED(repo=None, current_error=None, task_description=None, agent=None)
    assert state == State()
    assert not memory.query(state)


def test_the_same_answer_is_equal_whatever_its_id():
    with AgentMemory.open(":memory:") as memory:
        memory.learn(recovering_run())
        one, other = (memory.query(NO_MODULE, repo="acme/shop") for _ in range(2))
        assert one.id != other.id
        assert one == other
        assert not one != other  # noqa: SIM202  (a Struct compares both by itself)
        assert one != memory.query("ValueError: no such table")


@pytest.mark.parametrize("address", ["networkx:", ":memory:"])
def test_a_note_is_deleted_once(address):
    with AgentMemory.open(address) as memory:
        ids = [memory.notes.remember(text, repo="acme/shop").id for text in ("Steel", "No glass")]
        assert memory.store.notes.delete(ids[:1]) == 1
        assert memory.store.notes.delete(ids) == 1
        assert memory.store.notes.delete(ids) == 0


def test_what_is_said_in_private_is_not_kept(tmp_path):
    given = recovering_run(1)
    said = "Always use tabs. <private>My wife is called zqmarker.</private> Thanks"
    first, second, *others = given.steps
    asks = replace(first.action, tool="AskUserQuestion")
    steps = (
        replace(first, user_message=said, observation=f"Answer: {said}", action=asks),
        replace(second, observation=f"Refused: {said}", denied=True),
        *others,
    )
    with AgentMemory.open(str(tmp_path / "memory.db")) as memory:
        memory.learn(replace(given, steps=steps, task=f"Price {said} <PRIVATE>zqmarker open"))
        private = "CI uses tox <private>zqmarker</private>"
        memory.notes.remember(private)
        memory.pages.add_page(Page("page", private, private, private))
        memory.entities.add_entity(Entity("entity", description=private))
        memory.keyed.set_memory("/user/style", {"summary": private}, "user")
        memory.export(tmp_path / "all.jsonl")
    text = (tmp_path / "all.jsonl").read_text()
    assert "Always use tabs" in text
    assert not _files_with(tmp_path, "zqmarker")


def test_what_is_said_in_private_is_not_kept_where_the_run_repeats_it(tmp_path):
    private = "The customer is\ncalled zqmarker,\nhttps://zqmarker.example/orders"
    given = run(
        [
            (
                "deploy --as 'The customer is called zqmarker, https://zqmarker.example/orders'",
                "",
                0,
            ),
            ("curl https://zqmarker.example/orders", "404 https://zqmarker.example/orders", 1),
            ("ls called", "called", 0),
        ]
    )
    first, *others = given.steps
    thought = f"You said <private>{private}</private>; a customer, called"
    steps = (
        replace(first, thought=thought, user_message=f"<private>{private}</private> Go"),
        *others,
    )
    with AgentMemory.open(str(tmp_path / "memory.db")) as memory:
        receipt = memory.learn(replace(given, steps=steps, patch=f"+ # {private}"))
        kept = memory.store.runs.raw(receipt.trajectory_id)
    assert kept
    assert kept.steps[-1].action.text == "ls called"
    assert "a customer, called" in kept.steps[0].thought
    assert not _files_with(tmp_path, "zqmarker")


@pytest.mark.parametrize(
    "private",
    [
        "<private reason='family'>zqmarker</private>",
        "< private >zqmarker</ private >",
        "&lt;private&gt;zqmarker&lt;/private&gt;",
        "\\u003cprivate\\u003ezqmarker\\u003c/private\\u003e",
        "&#60;private&#62;zqmarker&#60;/private&#62;",
        "&#x3C;private&#x3e;zqmarker&#x03c;/private&#062;",
        "[private]zqmarker[/private]",
        "[Private : family]zqmarker[/private ]",
        "<pri\U0001bca0vate>zqmarker</private>",
        "\uff1cprivate\uff1ezqmarker\uff1c\uff0fprivate\uff1e",
        "<\uff50\uff52ivate>zqmarker</private>",
        "<pri\u200bvate>zqmarker</private>",
        "<private>a <private>b</private> zqmarker</private>",
        "<private>\nzqmarker\n</private>",
        "<private\n>zqmarker</private>",
        "<private note='a<b>c'>zqmarker</private>",
        "<!-- private -->zqmarker<!-- /private -->",
        "<private>a <b>b</private> zqmarker</b> </private>",
    ],
)
def test_marks_of_what_is_private_have_many_forms(tmp_path, private):
    with AgentMemory.open(str(tmp_path / "memory.db")) as memory:
        memory.notes.remember(f"CI uses tox {private} and ruff")
        (note,) = memory.store.notes.all()
    assert note.content.split() == ["CI", "uses", "tox", "and", "ruff"]
    assert not _files_with(tmp_path, "zqmarker")


def test_what_is_not_private_is_kept_as_it_is():
    for text in (
        "a private key",
        "class A { private: int x; }; vector<private_key> y",
        "x </private> y",
        "x <!-- private --> y",
        "\uff1cb\uff1e private",
    ):
        assert without_private(text) == text


@pytest.mark.parametrize(
    "named",
    [{}, {"sessions": [SESSION]}, {"sources": [PERSON]}, {"repos": [MARKED_REPO]}],
    ids=["runs", "a session", "a person", "a repository"],
)
def test_what_is_forgotten_is_in_no_file(named, tmp_path):
    with AgentMemory.open(str(tmp_path / "memory.db")) as memory:
        ids = remember_marked(memory)
        if "repos" in named:
            memory.notes.remember("The zqmarker build needs tox", repo=MARKED_REPO)
        if "sessions" in named:
            memory.conversation(SESSION).add_message("user", "zqmarker")
        if "sources" in named:
            memory.keyed.set_memory("/user/name", {"text": "zqmarker"}, f"agent:{PERSON}")
        memory.export(tmp_path / "all.jsonl")
        memory.export(tmp_path / "all.jsonl.zst")
        memory.export_graph(tmp_path / "graph.json", "json")
        memory.back_up(tmp_path / "backup.db")
        assert len(marked_files(tmp_path)) >= 5
        assert memory.forget([] if named else ids, **named) == 3
    assert not marked_files(tmp_path)
    with AgentMemory.open(":memory:") as memory:
        assert memory.import_archive(tmp_path / "all.jsonl", as_owner=True).created == 16


@pytest.mark.parametrize("address", ["networkx:", ":memory:"])
def test_a_session_that_was_forgotten_is_learned_again_where_asked_alone(address, tmp_path):
    first, other = (replace(recovering_run(n), session=f"session-{n}") for n in (1, 2))
    grown = replace(
        first, steps=(*first.steps, Step(len(first.steps), "", Action("bash", "ls"), "ok"))
    )
    archive = tmp_path / "a.jsonl"
    with AgentMemory.open(address) as memory:
        [*memory.learn_many([first, other])]
        assert memory.forget(sessions=["session-1"]) == 1
        memory.export(archive)
    assert "session-1" not in archive.read_text()
    with AgentMemory.open(address) as memory:
        memory.import_archive(archive, as_owner=True)
        for log in (first, grown):
            with pytest.raises(SkippedError, match="forgotten"):
                memory.learn(log)
            with pytest.raises(SkippedError, match="forgotten"):
                memory.learn(log, source="carol")
        # What was another's is forgotten of that one alone.
        memory.learn(replace(other, session="session-3"), source="carol")
        memory.forget(sources=["carol"])
        with pytest.raises(SkippedError, match="forgotten"):
            memory.learn(replace(other, session="session-3"), source="carol")
        refused = list[ReadError]()
        assert len([*memory.learn_many([first, other], on_error=refused.append)]) == 1
        assert len(refused) == 1
        memory.learn_again([first])
        assert memory.learn(grown).status == "created"


def test_a_repository_that_is_forgotten_leaves_no_name_in_what_was_shown():
    with AgentMemory.open(":memory:") as memory:
        for number in range(1, 4):
            memory.learn(detouring_run(number))
        live = memory.live(repo="acme/shop", instance_id="acme__shop-99", task="x")
        assert live.observe("python reproduce.py", NO_MODULE, exit_code=1)
        memory.note_exposures()
        assert [one.repo for one in memory.store.exposures.all()] == ["acme/shop"]
        memory.forget(memory.store.runs.ids()[:1])
        assert [one.repo for one in memory.store.exposures.all()] == ["acme/shop"]
        memory.forget(repos=["acme/shop"])
        assert [one.repo for one in memory.store.exposures.all()] == [""]


@pytest.mark.parametrize("step", ["exposures.forget_texts", "runs.forget"])
def test_forgetting_that_is_interrupted_and_repeated_leaves_nothing(step, tmp_path, monkeypatch):
    part, name = step.split(".")
    with AgentMemory.open(str(tmp_path / "memory.db")) as memory:
        ids = remember_marked(memory)
        owner = getattr(memory.store, part)
        done = getattr(owner, name)

        def interrupted(*given):
            done(*given)
            raise KeyboardInterrupt

        monkeypatch.setattr(owner, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            memory.forget(ids)
    with AgentMemory.open(str(tmp_path / "memory.db")) as memory:
        memory.forget(ids)
    assert not marked_files(tmp_path)


def test_words_of_others_keep_their_vectors_where_some_are_forgotten(tmp_path):
    with AgentMemory.open(str(tmp_path / "memory.db")) as memory:
        ids = remember_marked(memory)
        task = "Totals are wrong when a tariff is missing"
        before = memory.embedder.embed([task]).vectors
        memory.forget(ids)
        assert memory.spaces.waiting() == 0
    with AgentMemory.open(str(tmp_path / "memory.db")) as memory:
        assert memory.embedder.embed([task]).vectors == before
        assert memory.embedder.embed(["zqmarker"]).vectors == (None,)


def test_what_a_fork_repeats_goes_with_the_session_that_said_it(tmp_path):
    first = marked_run(1)
    more = [replace(step, index=step.index + 4) for step in recovering_run(2).steps]
    fork = replace(
        first, session="the-fork", instance_id="fork", patch=None, steps=(*first.steps, *more)
    )
    with AgentMemory.open(str(tmp_path / "memory.db")) as memory:
        memory.learn(first)
        assert memory.learn(fork).copied == len(first.steps)
        assert memory.forget(sessions=[SESSION]) == 1
        (left,) = memory.store.runs.ids()
        kept = memory.store.runs.raw(left)
        assert kept
        assert len(kept.steps) == len(more)
    assert marked_files(tmp_path) == []


def _files_with(folder, marker):
    """Return the files below *folder* that hold *marker*."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if marker.encode() in path.read_bytes()]


def test_misuse_is_a_typed_error_that_says_what_is_taken(tmp_path: Path) -> None:
    memory = AgentMemory.open(":memory:")
    used = (raw for raw in [recovering_run(1)])
    memory.learn(used)
    context = memory.query("ModuleNotFoundError: No module named 'tariffs'", repo="acme/shop")
    with memory.live(repo="acme/shop", task="Mend it.") as live:
        misuse: list[tuple[type[Exception], str, Callable[[], object]]] = [
            (ReadError, "an empty path", lambda: memory.learn("")),
            (ReadError, "no such file or folder", lambda: memory.learn(tmp_path / "absent")),
            (ValueError, "used up", lambda: memory.learn(used)),
            (StoreError, "is a folder", lambda: AgentMemory.open(tmp_path)),
            (InvalidArgumentError, "context_id: ", lambda: memory.report_outcome(context, True)),  # type: ignore[arg-type]
            (InvalidArgumentError, "helped: ", lambda: memory.report_outcome(context.id, "yes")),  # type: ignore[arg-type]
            (InvalidArgumentError, "action: ", lambda: live.observe(["ls"], "")),  # type: ignore[arg-type]
            (InvalidArgumentError, "action: ", lambda: live.before(3)),  # type: ignore[arg-type]
            (InvalidArgumentError, "observation: ", lambda: live.observe("ls", b"")),  # type: ignore[arg-type]
            (InvalidArgumentError, "content: ", lambda: memory.remember(None)),  # type: ignore[arg-type]
            (InvalidArgumentError, "question: ", lambda: memory.recall(3)),  # type: ignore[arg-type]
            (InvalidArgumentError, "question: ", lambda: memory.search(None)),  # type: ignore[arg-type]
            (InvalidArgumentError, "solved: ", lambda: memory.set_outcome("acme__shop-1", "yes")),  # type: ignore[arg-type]
            (InvalidArgumentError, "context: ", lambda: memory.render(context.id)),  # type: ignore[arg-type]
            (InvalidArgumentError, "repo: ", lambda: memory.playbook(None)),  # type: ignore[arg-type]
        ]
        for error, message, call in misuse:
            with pytest.raises(error, match=message):
                call()
    assert memory.learn([]) == []


def test_the_facade_remembers_recalls_and_searches() -> None:
    memory = AgentMemory.open(":memory:")
    receipt = memory.remember("Invoices are rounded once, at the total.", repo="acme/shop")
    (found,) = memory.recall("how are invoices rounded", repo="acme/shop")
    assert found.note.id == receipt.id
    assert receipt.id in {hit.id for hit in memory.search("invoices rounded", "acme/shop")}


def test_advice_that_was_never_shown_cannot_be_turned_off() -> None:
    memory = AgentMemory.open(":memory:")
    assert not memory.quarantine("adv_0123456789abcdef")
    assert not memory.release("adv_0123456789abcdef")


def test_a_copy_follows_a_session_that_grows_and_its_outcome(tmp_path: Path) -> None:
    grown = recovering_run(1, session="one")
    grown = replace(grown, steps=(*grown.steps, replace(grown.steps[0], index=3)))
    with (
        AgentMemory.open(tmp_path / "memory.db") as memory,
        AgentMemory.open(tmp_path / "copy.db") as copy,
    ):
        for raw in (recovering_run(1, session="one"), grown):
            memory.learn(raw)
            copy_repository(memory, copy, raw.repo)
            assert copy.store.runs.ids() == memory.store.runs.ids()
        memory.set_outcome(grown.instance_id, solved=True)
        copy_repository(memory, copy, grown.repo)
        (run_id,) = copy.store.runs.ids()
        assert copy.store.runs.trajectories([run_id])[run_id].outcome is Outcome.SOLVED
