"""A memory keeps runs, shares errors between them, and forgets both."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from contextgraph import AgentMemory
from contextgraph.errors import StoreError
from contextgraph.model import (
    Action,
    ErrorPattern,
    ErrorQuestion,
    Exposure,
    Family,
    FragmentType,
    LearnStatus,
    Methodology,
    Note,
    Outcome,
    RemedyKind,
    RemedyPattern,
    Scope,
    ShownItem,
    SignatureLevel,
    Step,
)
from contextgraph.model.values import replace
from contextgraph.store.graph import export_graph
from contextgraph.store.protocols import GraphFormat
from contextgraph.store.sqlite import SqliteStore
from contextgraph.store.tables import NOTE, SHOWN, context_rows
from tests.builders import NO_MODULE, run
from tests.made_bundles import REPO, SIGNATURE, made_bundle

ONE_RUN = {"Trajectory": 1, "Fragment": 2, "ErrorPattern": 1, "Methodology": 0}

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(str(tmp_path / "memory.db"))
    yield store
    store.close()


FILE = f"{REPO} src/cache.py"


def test_learning_twice_changes_nothing(store: SqliteStore) -> None:
    assert store.runs.add([made_bundle(0)]) == [LearnStatus.CREATED]
    before = store.admin.counts()
    assert store.runs.add([made_bundle(0)]) == [LearnStatus.UNCHANGED]
    assert store.admin.counts() == before


def test_an_outcome_that_comes_later_is_taken_over_everywhere(store: SqliteStore) -> None:
    store.runs.add([made_bundle(0)])
    assert store.runs.add([made_bundle(0, outcome=Outcome.SOLVED)]) == [LearnStatus.UPDATED]
    trajectory, raw = store.runs.trajectories(["run0000"])["run0000"], store.runs.raw("run0000")
    assert trajectory is not None
    assert raw is not None
    assert (trajectory.outcome, trajectory.exit_status) == (Outcome.SOLVED, "submitted")
    assert (raw.outcome, raw.exit_status) == (Outcome.SOLVED, "submitted")
    assert store.admin.counts().outcomes == {"solved": 1, "failed": 0, "unknown": 0}
    assert store.admin.graph().nodes["run0000"]["name"] == trajectory.name


def test_an_outcome_that_is_known_stays(store: SqliteStore) -> None:
    store.runs.add([made_bundle(0, outcome=Outcome.SOLVED)])
    assert store.runs.add([made_bundle(0, outcome=Outcome.FAILED)]) == [LearnStatus.UNCHANGED]
    assert store.runs.add([made_bundle(0)]) == [LearnStatus.UNCHANGED]
    assert store.admin.counts().outcomes["solved"] == 1


def test_runs_share_the_pattern_of_an_error(store: SqliteStore) -> None:
    for number in (0, 3):
        store.runs.add([made_bundle(number)])
    assert store.admin.counts().nodes["ErrorPattern"] == 1
    [tally] = store.recoveries.errors(Scope(), 2)
    assert (tally.tasks, tally.trajectories) == (2, ("run0003", "run0000"))


def test_at_most_ten_runs_are_named(store: SqliteStore) -> None:
    for number in range(0, 36, 3):
        store.runs.add([made_bundle(number)])
    [tally] = store.recoveries.errors(Scope(), 2)
    assert tally.tasks == 12
    assert tally.trajectories == tuple(f"run{number:04}" for number in range(33, 3, -3))


def test_forgetting_a_run_takes_what_only_it_supports(store: SqliteStore) -> None:
    for number in (0, 1, 3):
        store.runs.add([made_bundle(number)])
    assert store.runs.forget(["run0000", "run0001", "unknown", "run0000"]) == 2
    assert store.admin.counts().nodes == ONE_RUN
    assert store.runs.word_counts(["part3", "part0"]).by_word == {"part3": 1, "part0": 0}
    own = ["error0", "run0003", "run0003/0", "run0003/1"]
    assert sorted(store.admin.graph().nodes) == [FILE, *own]


def test_the_words_of_a_shared_error_outlive_the_run_they_came_from(store: SqliteStore) -> None:
    for number in (0, 3):
        store.runs.add([made_bundle(number, note=f"note{number}")])
    [before] = store.recoveries.errors(Scope(), 2)
    store.runs.forget(["run0000"])
    [after] = store.recoveries.errors(Scope(), 2)
    assert (before.error.context, after.error.context) == ("boom 0 note0", "boom 3 note3")


def test_a_forgotten_text_is_nowhere_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = SqliteStore(str(path))
    for number in range(40):
        note = "verysecretword" if number == 20 else "harmlessword"
        store.runs.add([made_bundle(number, note=note)])
    store.runs.forget(["run0020"])
    content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    store.close()
    assert b"harmlessword" in content
    assert b"verysecretword" not in content
    assert b"run0020" not in content


def test_a_replaced_text_can_be_erased_from_the_file(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "memory.db"))
    store.runs.add([made_bundle(number, note="verysecretword") for number in range(40)])
    store.runs.replace({f"run{number:04}": made_bundle(number) for number in range(40)})
    store.admin.erase_deleted()
    content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    store.close()
    assert b"verysecretword" not in content


def effects(store: SqliteStore, *names: str) -> dict[str, bool | None]:
    """Item -> whether it helped, of those that `record` finds by *names*."""
    found = store.exposures.record(names).exposures
    return {item.id: item.helped for one in found for item in one.items}


def test_forgetting_takes_the_credit_of_what_is_gone(store: SqliteStore) -> None:
    for number in (0, 1):
        store.runs.add([made_bundle(number)])
    items = [ShownItem("run0000/0"), ShownItem("run0001/0")]
    store.exposures.add([Exposure.of("seen", items, NOON)])
    store.exposures.report("seen", True)
    store.runs.forget(["run0000"])
    assert effects(store, "run0000/0", "run0001/0") == {"run0001/0": True}


def test_a_context_is_reported_once(store: SqliteStore) -> None:
    a, b = ShownItem("a"), ShownItem("b")
    store.exposures.add([Exposure.of("seen", [a, b, a], NOON)])
    assert store.exposures.report("seen", True)
    assert not store.exposures.report("seen", False)
    assert not store.exposures.report("never seen", True)
    assert effects(store, "a") == {"a": True, "b": True}


def test_an_item_is_reported_by_its_number(store: SqliteStore) -> None:
    store.exposures.add([Exposure.of("seen", [ShownItem("a"), ShownItem("b")], NOON)])
    assert store.exposures.report("seen", False, 2)
    assert not store.exposures.report("seen", True, 2)
    assert not store.exposures.report("seen", True, 3)
    assert store.exposures.report("seen", True)
    assert effects(store, "a") == {"a": True, "b": False}


def test_a_context_that_is_noted_stays_as_it_is(store: SqliteStore) -> None:
    store.exposures.add([Exposure.of("seen", [ShownItem("a")], NOON)])
    store.exposures.report("seen", True)
    store.exposures.add([Exposure.of("seen", [ShownItem("b")], NOON)])
    assert effects(store, "a", "b") == {"a": True}


def test_sessions_that_were_shown_an_item_are_counted_once(store: SqliteStore) -> None:
    for number, session in enumerate(("one", "one", "other", "", "")):
        shown = Exposure.of(f"ctx_{number}", [ShownItem("a"), ShownItem("b")][: number + 1], NOON)
        store.exposures.add([replace(shown, session=session)])
    withheld = Exposure.of("ctx_5", [ShownItem("b"), ShownItem("d")], NOON)
    store.exposures.add([replace(withheld, session="third", is_withheld=True)])
    assert store.exposures.sessions_shown(["a", "b", "c", "d"]) == {"a": 4, "b": 4, "c": 0, "d": 0}


def test_of_each_advice_the_newest_hundred_reports_count(store: SqliteStore) -> None:
    for number in range(120):
        shown_at = NOON + timedelta(minutes=number)
        store.exposures.add([Exposure.of(f"ctx_{number:03}", [ShownItem("a")], shown_at)])
        store.exposures.report(f"ctx_{number:03}", True)
    found = [one.context_id for one in store.exposures.record(["a"]).exposures]
    assert found == [f"ctx_{number:03}" for number in range(20, 120)]


def test_replacing_keeps_what_does_not_depend_on_reading(store: SqliteStore) -> None:
    store.runs.add([made_bundle(0, outcome=Outcome.SOLVED)])
    before = store.runs.trajectories(["run0000"])["run0000"]
    again = made_bundle(0, note="worded")
    later = replace(again.trajectory, learned_at=NOON, repo="bob/pump")
    store.runs.replace({"run0000": replace(again, trajectory=later)})
    after = store.runs.trajectories(["run0000"])["run0000"]
    assert before is not None
    assert after is not None
    assert after == replace(before, task=again.trajectory.task, repo="bob/pump")
    assert store.runs.word_counts(["worded"]).by_word == {"worded": 1}
    assert store.admin.counts().repositories == 1


def test_what_is_not_known_cannot_be_replaced(store: SqliteStore) -> None:
    assert store.runs.replace({"run0000": made_bundle(0)}) == []
    assert store.runs.ids() == []


def test_a_bundle_that_refers_elsewhere_leaves_nothing(store: SqliteStore) -> None:
    bundle = made_bundle(0)
    stray = replace(bundle.recovered[0], fragment_id="elsewhere")
    with pytest.raises(StoreError, match="run0000 refers to elsewhere"):
        store.runs.add([replace(bundle, recovered=(stray,))])
    assert not any(store.admin.counts().nodes.values())
    assert store.runs.word_counts(()).total == 0
    assert store.runs.add([bundle]) == [LearnStatus.CREATED]


def test_a_time_without_zone_is_refused(store: SqliteStore) -> None:
    bundle = made_bundle(0)
    unclear = replace(bundle.trajectory, run_at=datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(StoreError, match="2026-01-01T00:00:00 has no time zone"):
        store.runs.add([replace(bundle, trajectory=unclear)])
    first, *rest = bundle.raw.steps
    raw = replace(bundle.raw, steps=(replace(first, timestamp=unclear.run_at), *rest))
    with pytest.raises(StoreError, match="2026-01-01T00:00:00 has no time zone"):
        store.runs.add([replace(bundle, raw=raw)])


@pytest.mark.parametrize("place", ["raw", "trajectory", "fragment"])
def test_a_text_that_is_not_unicode_is_refused(store: SqliteStore, place: str) -> None:
    bundle, torn = made_bundle(0), "torn \ud83d"
    changed = {
        "raw": replace(bundle, raw=replace(bundle.raw, task=torn)),
        "trajectory": replace(bundle, trajectory=replace(bundle.trajectory, task=torn)),
        "fragment": replace(
            bundle, fragments=(replace(bundle.fragments[0], files=(torn,)), bundle.fragments[1])
        ),
    }[place]
    with pytest.raises(StoreError, match="cannot"):
        store.runs.add([changed])
    assert store.runs.ids() == []


def test_every_field_of_a_raw_run_is_kept(store: SqliteStore) -> None:
    bundle = made_bundle(0)
    step = Step(
        index=0,
        thought="",
        action=Action("edit", "edit 1:2", {"nested": {"list": [1, 2.5, None, True, "ü\0"]}}),
        observation=None,
        exit_code=-9,
        is_error=False,
        cwd="/work",
        open_file="",
        timestamp=NOON,
    )
    raw = replace(
        bundle.raw,
        steps=(step, replace(step, index=1, observation="", exit_code=None, is_error=None)),
        agent="a",
        model="m",
        patch="",
        started_at=NOON,
        source="s",
        system_prompt="p",
    )
    store.runs.add([replace(bundle, raw=raw)])
    assert store.runs.raw("run0000") == raw


def test_tenants_do_not_see_each_other(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    ours, theirs = SqliteStore(path, tenant="ours"), SqliteStore(path, tenant="theirs")
    assert ours.runs.add([made_bundle(0, note="ourword")]) == [LearnStatus.CREATED]
    assert theirs.runs.word_counts(()).total == 0
    assert theirs.runs.add([made_bundle(0, note="theirword")]) == [LearnStatus.CREATED]
    assert theirs.runs.word_counts(["ourword", "theirword"]).by_word == {
        "ourword": 0,
        "theirword": 1,
    }
    assert theirs.runs.for_text(["ourword"], Scope(REPO), 5) == []
    assert theirs.runs.forget(["run0000"]) == 1
    assert ours.admin.counts().nodes == ONE_RUN
    ours.close()
    theirs.close()


def test_no_question_is_about_the_place_of_an_error(store: SqliteStore) -> None:
    question = ErrorQuestion(SIGNATURE, SignatureLevel.PLACE, Scope())
    with pytest.raises(ValueError, match="place"):
        store.recoveries.for_error([question], 5)


def test_only_the_rarest_eight_words_count(store: SqliteStore) -> None:
    common = [f"common{number}" for number in range(8)]
    rare = [f"rare{number}" for number in range(8)]
    store.runs.add([made_bundle(0, note=" ".join(common))])
    store.runs.add([made_bundle(1, note=" ".join(common + rare))])
    found = store.runs.for_text([*common, *rare], Scope(), 5)
    assert [run.id for run in found] == ["run0001"]
    assert len(store.runs.for_text(common, Scope(), 5)) == 2


@pytest.mark.parametrize("limit", [1, 2])
def test_of_many_equally_relevant_recoveries_the_least_ids_come_first(
    store: SqliteStore, limit: int
) -> None:
    store.runs.add([made_bundle(number) for number in range(70, 0, -1)])
    least = made_bundle(0)
    twice = tuple(replace(least.recovered[0], error_step=step) for step in (2, 1))
    store.runs.add([replace(least, recovered=twice)])
    found = store.recoveries.for_text(["boom"], Scope(), limit)
    steps = [(one.trajectory_id, one.error_step) for one in found]
    assert steps == [("run0000", 1), ("run0000", 2)][:limit]


def test_a_graph_shows_the_memory_as_it_was_when_it_was_requested(store: SqliteStore) -> None:
    store.runs.add([made_bundle(0)])
    graph = store.admin.graph()
    before = sorted(graph.edges(keys=True))
    store.runs.add([made_bundle(1)])
    store.runs.forget(["run0000"])
    assert sorted(graph.edges(keys=True)) == before
    own = ["error1", "run0001", "run0001/0", "run0001/1"]
    assert sorted(store.admin.graph().nodes) == [FILE, *own]
    assert "run0000" in graph
    with pytest.raises(nx.NetworkXError, match="Frozen"):
        graph.add_node("another")


def test_an_outcome_that_is_learned_later_is_in_the_graph(store: SqliteStore) -> None:
    store.runs.add([made_bundle(0)])
    assert store.admin.graph().nodes["run0000"]["outcome"] == "unknown"
    store.runs.add([made_bundle(0, outcome=Outcome.SOLVED)])
    assert store.admin.graph().nodes["run0000"]["outcome"] == "solved"
    assert store.admin.graph().number_of_nodes() == 5


@pytest.mark.parametrize("graph_format", ["graphml", "json"])
def test_a_graph_is_exported(store: SqliteStore, tmp_path: Path, graph_format: GraphFormat) -> None:
    store.runs.add([made_bundle(0), made_bundle(1)])
    graph, path = store.admin.graph(), tmp_path / "graph"
    export_graph(graph, path, graph_format)
    again: Any = (
        nx.read_graphml(path, force_multigraph=True)
        if graph_format == "graphml"
        else nx.node_link_graph(json.loads(path.read_text()), edges="edges")
    )
    steps = again.edges["run0000/0", "error0", "CAUSED_ERROR"]["steps"]
    whole = dict(graph.nodes["run0001"])
    lists = {"files": "src/cache.py", "conditions": ""} if graph_format == "graphml" else {}
    assert again.nodes["run0001"] == {**whole, **lists}
    assert sorted(again.edges(keys=True)) == sorted(graph.edges(keys=True))
    assert steps == ("1" if graph_format == "graphml" else [1])
    assert not path.with_name("graph.part").exists()
    with pytest.raises(StoreError, match="cannot be written"):
        export_graph(graph, tmp_path / "no" / "graph", graph_format)


def test_the_graph_names_nodes_as_the_values_do(store: SqliteStore) -> None:
    bundle = made_bundle(0)
    store.runs.add([bundle])
    run, fragment, error = bundle.trajectory, bundle.fragments[0], bundle.errors[0]
    nodes = store.admin.graph().nodes
    shown = {"label": "Trajectory", "name": run.name, "repo": REPO, "task": run.task}
    shown |= {"outcome": run.outcome, "change": "made"}
    assert nodes[run.id] == nodes[run.id] | shown
    shown = {
        "label": "Fragment",
        "name": f"0 {fragment.start}-{fragment.end} {fragment.name}",
        "repo": REPO,
    }
    shown |= {"description": fragment.description, "phase": fragment.phase}
    assert nodes[fragment.id] == nodes[fragment.id] | shown
    shown = {"label": "ErrorPattern", "name": error.name, "template": error.template}
    counts = {"runs": 1, "frequency": 1}
    assert nodes[error.id] == nodes[error.id] | shown | counts
    # The message is of one run.
    assert not {"context", "keywords"} & nodes[error.id].keys()
    edges = store.admin.graph().edges
    assert edges[run.id, error.id, "MET"]["message"] == error.context
    assert edges[fragment.id, FILE, "TOUCHED"] == {"type": "TOUCHED"}
    path = FILE.partition(" ")[2]
    assert nodes[FILE] == {"label": "File", "name": path, "path": path, "repo": REPO}


def test_captions_of_files_begin_with_what_tells_them_apart(store: SqliteStore) -> None:
    paths = ("tests/admin/tests.py", "tests/defer/tests.py", "test_simple_a.py", "test_simple_b.py")
    bundle = made_bundle(0)
    first, *others = bundle.fragments
    store.runs.add([replace(bundle, fragments=(replace(first, files=paths), *others))])
    names = [store.admin.graph().nodes[f"{REPO} {path}"]["name"] for path in paths]
    assert names[0] == "tests admin (tests/admin/tests.py)"
    assert names[2] == "tes… imple_a (test_simple_a.py)"
    assert len({name[:12] for name in names}) == len(paths)


def test_captions_of_errors_begin_with_what_tells_them_apart() -> None:
    met = [
        ("make", "bash: line 1: make: command not found", 127),
        ("tree", "bash: line 1: tree: command not found", 127),
        ("python -m ruff", "python: No module named ruff", 1),
    ]
    with AgentMemory.open(":memory:") as memory:
        memory.learn(run(met))
        nodes = memory.graph().nodes.values()
    names = [node["name"] for node in nodes if node["label"] == "ErrorPattern"]
    assert "make: command not found (bash: command not found)" in names
    assert len({name[:12] for name in names}) == len(met), names
    template = "SyntaxError: invalid syntax"
    refused = ErrorPattern("e1", Family.SYNTAX_ERROR, "E999 SyntaxError", template, (), "")
    assert refused.name == "invalid syntax (E999 SyntaxError)"
    unequal = replace(refused, error_type="AssertionError", template="<name> != <name>")
    assert unequal.name == "<name> != <name> (AssertionError)"


@pytest.mark.parametrize(
    ("command", "caption"),
    [
        ("Edit ./checkout/lib/tariffs.py …", "Edit tariffs.py … (loop)"),
        (
            "cd shop && python -m pytest tests/unit/test_a.py::test_b -q",
            "pytest test_a.py::test_b -q (loop)",
        ),
        (
            "git clone https://example.org/acme/shop.git",
            "git clone https://example.org/acme/shop.git (loop)",
        ),
        ("sed -i 's/old/new/' lib/ 2>/dev/null", "sed -i 's/old/new/' lib/ 2>/dev/null (loop)"),
        ("git checkout origin/main", "git checkout origin/main (loop)"),
        ("rm -rf build/* lib/gen/*.c", "rm -rf build/* *.c (loop)"),
    ],
)
def test_captions_of_fragments_name_the_command_and_its_file(command: str, caption: str) -> None:
    fragment = made_bundle(0).fragments[0]
    looped = replace(fragment, action_sequence=(command,), fragment_type=FragmentType.LOOP)
    assert looped.name == caption


@pytest.mark.parametrize(
    ("strategy", "caption"),
    [
        ("use `python3` instead of `python`", "any: python3 instead of python"),
        ("(1) set `A=1`. (2) run `make`", "any: A=1. (2) run make"),
        ("run it in `lib` instead of `src`", "any: run it in lib instead of src"),
    ],
)
def test_captions_of_methodologies_begin_with_what_to_do(strategy: str, caption: str) -> None:
    assert Methodology("m1", "when X", strategy, 0.5, 2, 1).name == caption


def test_captions_of_shown_items_and_targets_are_words() -> None:
    pattern = RemedyPattern(RemedyKind.SET_ENV, "PYTHONPATH=<source folder>")
    shown = Exposure.of("ctx_1", [ShownItem("frg_1", "adv_1", (pattern,))], NOON)
    names = [dict(row.shown())["name"] for row in context_rows(shown) if row.table is SHOWN]
    assert names == ["set env PYTHONPATH=<source folder>"] * 2
    target = NOTE.listed["targets"].shown("entity:acme/shop:lib/tariffs.py")
    assert target == {"name": "lib/tariffs.py"}


def test_an_unknown_repository_has_nothing(store: SqliteStore) -> None:
    store.runs.add([made_bundle(0)])
    nowhere = Scope("nobody/nothing")
    question = ErrorQuestion(SIGNATURE, SignatureLevel.TYPE, nowhere)
    assert store.recoveries.for_error([question], 5) == []
    assert store.recoveries.for_text(["boom"], nowhere, 5) == []
    assert store.recoveries.errors(nowhere, 5) == []


def test_the_graph_of_a_memory_without_a_file_has_its_notes() -> None:
    store = SqliteStore(":memory:")
    store.notes.change(new=[Note("note_1", "Use ruff.", "", "user", NOON)])
    assert store.admin.graph().nodes["note_1"]["label"] == "Note"
    store.notes.delete(["note_1"])
    assert "note_1" not in store.admin.graph()
    store.close()


@pytest.mark.parametrize("at_once", [True, False])
def test_several_runs_of_one_task_count_once(at_once: bool) -> None:
    met = [("python reproduce.py", NO_MODULE, 1)]
    cleared = [*met, ("PYTHONPATH=lib python reproduce.py", "total: 12\n", 0)]
    first, second = (run([(f"cat {name}", "x", 0), *cleared], instance_id="s-1") for name in "ab")
    runs = [run(met, instance_id="s-1"), first, second, run(met, instance_id="s-2")]
    with AgentMemory.open(":memory:") as memory:
        for some in [runs] if at_once else [[one] for one in runs]:
            memory.learn(some)

        def counted() -> set[tuple[int, int, int]]:
            scopes = (Scope(), Scope("acme/shop"))
            (general,), (own,) = (memory.store.recoveries.errors(scope, 5) for scope in scopes)
            return {(one.tasks, one.steps, one.cleared) for one in (general, own)}

        assert counted() == {(2, 4, 1)}
        ids = [*memory.store.runs.ids(instance="s-1")]
        for one, left in zip(ids, (3, 2, 1), strict=True):
            memory.forget([one])
            assert {(tasks, steps) for tasks, steps, _ in counted()} == {(1 + (left > 1), left)}
        assert counted() == {(1, 1, 0)}
