"""What a memory keeps, shares between runs, and lets go."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contextgraph.errors import StoreError
from contextgraph.model import (
    Action,
    ErrorQuestion,
    ErrorSignature,
    Family,
    LearnStatus,
    Outcome,
    Scope,
    SignatureLevel,
    Step,
)
from contextgraph.store import NetworkxStore
from tests.made_bundles import REPO, SIGNATURE, made_bundle

ONE_RUN = {"Trajectory": 1, "Fragment": 2, "ErrorPattern": 1, "Methodology": 0}

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[NetworkxStore]:
    store = NetworkxStore(str(tmp_path / "memory.db"))
    yield store
    store.close()


def test_learning_twice_changes_nothing(store: NetworkxStore) -> None:
    assert store.add_bundles([made_bundle(0)]) == [LearnStatus.CREATED]
    before = store.counts()
    assert store.add_bundles([made_bundle(0)]) == [LearnStatus.UNCHANGED]
    assert store.counts() == before


def test_an_outcome_that_comes_later_is_taken_over_everywhere(store: NetworkxStore) -> None:
    store.add_bundles([made_bundle(0)])
    assert store.add_bundles([made_bundle(0, outcome=Outcome.SOLVED)]) == [LearnStatus.UPDATED]
    trajectory, raw = store.trajectory("run0000"), store.raw_trajectory("run0000")
    assert trajectory is not None
    assert raw is not None
    assert (trajectory.outcome, trajectory.exit_status) == (Outcome.SOLVED, "submitted")
    assert (raw.outcome, raw.exit_status) == (Outcome.SOLVED, "submitted")
    assert store.counts().outcomes == {"solved": 1, "failed": 0, "unknown": 0}
    assert store.graph().nodes["run0000"]["name"] == trajectory.name


def test_an_outcome_that_is_known_stays(store: NetworkxStore) -> None:
    store.add_bundles([made_bundle(0, outcome=Outcome.SOLVED)])
    assert store.add_bundles([made_bundle(0, outcome=Outcome.FAILED)]) == [LearnStatus.UNCHANGED]
    assert store.add_bundles([made_bundle(0)]) == [LearnStatus.UNCHANGED]
    assert store.counts().outcomes["solved"] == 1


def test_runs_share_the_pattern_of_an_error(store: NetworkxStore) -> None:
    for number in (0, 3):
        store.add_bundles([made_bundle(number)])
    assert store.counts().nodes["ErrorPattern"] == 1
    tally = store.error_tally(SIGNATURE, Scope())
    assert tally is not None
    assert (tally.runs, tally.trajectories) == (2, ("run0003", "run0000"))


def test_at_most_ten_runs_are_named(store: NetworkxStore) -> None:
    for number in range(0, 36, 3):
        store.add_bundles([made_bundle(number)])
    tally = store.error_tally(SIGNATURE, Scope())
    assert tally is not None
    assert tally.runs == 12
    assert tally.trajectories == tuple(f"run{number:04}" for number in range(33, 3, -3))


def test_forgetting_a_run_takes_what_only_it_supports(store: NetworkxStore) -> None:
    for number in (0, 1, 3):
        store.add_bundles([made_bundle(number)])
    assert store.forget(["run0000", "run0001", "unknown", "run0000"]) == 2
    assert store.counts().nodes == ONE_RUN
    assert store.word_frequencies(["part3", "part0"]) == {"part3": 1, "part0": 0}
    assert sorted(store.graph().nodes) == ["error0", "run0003", "run0003/0", "run0003/1"]


def test_the_words_of_a_shared_error_outlive_the_run_they_came_from(store: NetworkxStore) -> None:
    for number in (0, 3):
        store.add_bundles([made_bundle(number, note=f"note{number}")])
    before, after = store.error_tally(SIGNATURE, Scope()), None
    store.forget(["run0000"])
    after = store.error_tally(SIGNATURE, Scope())
    assert before is not None
    assert after is not None
    assert (before.error.context, after.error.context) == ("boom 0 note0", "boom 3 note3")


def test_a_forgotten_text_is_nowhere_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = NetworkxStore(str(path))
    for number in range(40):
        note = "verysecretword" if number == 20 else "harmlessword"
        store.add_bundles([made_bundle(number, note=note)])
    store.forget(["run0020"])
    content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    store.close()
    assert b"harmlessword" in content
    assert b"verysecretword" not in content
    assert b"run0020" not in content


def test_forgetting_takes_the_credit_of_what_is_gone(store: NetworkxStore) -> None:
    for number in (0, 1):
        store.add_bundles([made_bundle(number)])
    store.add_exposure("seen", ["run0000/0", "run0001/0"], NOON)
    store.report_outcome("seen", True)
    store.forget(["run0000"])
    assert store.credit(["run0000/0", "run0001/0"]) == {
        "run0000/0": (0, 0),
        "run0001/0": (0.5, 0),
    }


def test_a_context_is_reported_once(store: NetworkxStore) -> None:
    store.add_exposure("seen", ["a", "b", "a"], NOON)
    store.add_exposure("seen again", ["b"], NOON)
    assert store.report_outcome("seen", True)
    assert not store.report_outcome("seen", False)
    assert not store.report_outcome("never seen", True)
    assert store.report_outcome("seen again", False)
    assert store.credit(["a", "b", "c"]) == {"a": (0.5, 0), "b": (0.5, 1), "c": (0, 0)}


def test_a_context_that_is_noted_stays_as_it_is(store: NetworkxStore) -> None:
    store.add_exposure("seen", ["a"], NOON)
    store.report_outcome("seen", True)
    store.add_exposure("seen", ["b"], NOON)
    assert store.credit(["a", "b"]) == {"a": (1, 0), "b": (0, 0)}


def test_replacing_keeps_what_does_not_depend_on_reading(store: NetworkxStore) -> None:
    store.add_bundles([made_bundle(0, outcome=Outcome.SOLVED)])
    store.add_exposure("seen", ["run0000/0"], NOON)
    store.report_outcome("seen", True)
    before = store.trajectory("run0000")
    again = made_bundle(0, note="told better")
    later = replace(again.trajectory, learned_at=NOON, repo="bob/pump")
    store.replace_bundle(replace(again, trajectory=later))
    after = store.trajectory("run0000")
    assert before is not None
    assert after is not None
    assert after == replace(before, task=again.trajectory.task, repo="bob/pump")
    assert store.word_frequencies(["told"]) == {"told": 1}
    assert store.counts().repositories == 1
    assert store.credit(["run0000/0"]) == {"run0000/0": (1, 0)}


def test_what_is_not_known_cannot_be_replaced(store: NetworkxStore) -> None:
    with pytest.raises(StoreError, match="no run run0000 to replace"):
        store.replace_bundle(made_bundle(0))
    assert store.trajectory_ids() == []


def test_a_bundle_that_refers_elsewhere_leaves_nothing(store: NetworkxStore) -> None:
    bundle = made_bundle(0)
    stray = replace(bundle.recovered[0], fragment_id="elsewhere")
    with pytest.raises(StoreError, match="run0000 refers to elsewhere"):
        store.add_bundles([replace(bundle, recovered=(stray,))])
    assert not any(store.counts().nodes.values())
    assert store.document_count() == 0
    assert store.add_bundles([bundle]) == [LearnStatus.CREATED]


def test_a_time_without_zone_is_refused(store: NetworkxStore) -> None:
    bundle = made_bundle(0)
    unclear = replace(bundle.trajectory, run_at=datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(StoreError, match="2026-01-01T00:00:00 has no time zone"):
        store.add_bundles([replace(bundle, trajectory=unclear)])


@pytest.mark.parametrize("place", ["raw", "trajectory", "fragment"])
def test_a_text_that_is_not_unicode_is_refused(store: NetworkxStore, place: str) -> None:
    bundle, torn = made_bundle(0), "torn \ud83d"
    changed = {
        "raw": replace(bundle, raw=replace(bundle.raw, task=torn)),
        "trajectory": replace(bundle, trajectory=replace(bundle.trajectory, task=torn)),
        "fragment": replace(
            bundle, fragments=(replace(bundle.fragments[0], files=(torn,)), bundle.fragments[1])
        ),
    }[place]
    with pytest.raises(StoreError, match="cannot"):
        store.add_bundles([changed])
    assert store.trajectory_ids() == []


def test_every_field_of_a_raw_run_is_kept(store: NetworkxStore) -> None:
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
    store.add_bundles([replace(bundle, raw=raw)])
    assert store.raw_trajectory("run0000") == raw


def test_tenants_do_not_see_each_other(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    ours, theirs = NetworkxStore(path, tenant="ours"), NetworkxStore(path, tenant="theirs")
    assert ours.add_bundles([made_bundle(0, note="ourword")]) == [LearnStatus.CREATED]
    assert theirs.document_count() == 0
    assert theirs.add_bundles([made_bundle(0, note="theirword")]) == [LearnStatus.CREATED]
    assert theirs.word_frequencies(["ourword", "theirword"]) == {"ourword": 0, "theirword": 1}
    assert theirs.trajectories_for_text(["ourword"], Scope(REPO), 5) == []
    assert theirs.forget(["run0000"]) == 1
    assert ours.counts().nodes == ONE_RUN
    ours.close()
    theirs.close()


def test_a_place_is_no_level_to_ask_for(store: NetworkxStore) -> None:
    with pytest.raises(ValueError, match="place"):
        store.recoveries_for_error([ErrorQuestion(SIGNATURE, SignatureLevel.PLACE, Scope())], 5)


def test_only_the_rarest_eight_words_count(store: NetworkxStore) -> None:
    common = [f"common{number}" for number in range(8)]
    rare = [f"rare{number}" for number in range(8)]
    store.add_bundles([made_bundle(0, note=" ".join(common))])
    store.add_bundles([made_bundle(1, note=" ".join(common + rare))])
    found = store.trajectories_for_text([*common, *rare], Scope(), 5)
    assert [run.id for run in found] == ["run0001"]
    assert len(store.trajectories_for_text(common, Scope(), 5)) == 2


def test_a_graph_that_was_handed_out_does_not_change(store: NetworkxStore) -> None:
    store.add_bundles([made_bundle(0)])
    graph = store.graph()
    before = sorted(graph.edges(keys=True))
    store.add_bundles([made_bundle(1)])
    store.forget(["run0000"])
    assert sorted(graph.edges(keys=True)) == before
    assert "run0000" not in store.graph()


def test_the_graph_names_nodes_as_the_values_do(store: NetworkxStore) -> None:
    bundle = made_bundle(0)
    store.add_bundles([bundle])
    run, fragment, error = bundle.trajectory, bundle.fragments[0], bundle.errors[0]
    nodes = store.graph().nodes
    assert nodes[run.id] == {"label": "Trajectory", "name": run.name, "repo": REPO}
    assert nodes[fragment.id] == {"label": "Fragment", "name": fragment.name, "repo": REPO}
    assert nodes[error.id] == {"label": "ErrorPattern", "name": error.name, "repo": ""}


def test_an_unknown_repository_has_nothing(store: NetworkxStore) -> None:
    store.add_bundles([made_bundle(0)])
    nowhere = Scope("nobody/nothing")
    asked = ErrorQuestion(SIGNATURE, SignatureLevel.FAMILY, nowhere)
    assert store.recoveries_for_error([asked], 5) == []
    assert store.recoveries_for_text(["boom"], nowhere, 5) == []
    assert store.error_tally(SIGNATURE, nowhere) is None


def test_an_unknown_error_has_no_tally(store: NetworkxStore) -> None:
    store.add_bundles([made_bundle(0)])
    assert store.error_tally(ErrorSignature(Family.SHELL, "X", "", ""), Scope()) is None
