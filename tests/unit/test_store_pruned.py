"""What becomes of a run of which some fragments were not worth keeping."""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from contextgraph.model import Bundle, FragmentType, RunVectors, Scope, Space
from contextgraph.store import NetworkxStore, consolidations, projection
from contextgraph.vectors import Vector
from tests.made_bundles import REPO, made_bundle

SPACE = Space("made/model@3", 0, None)
OF_RUN, OF_FIRST, OF_SECOND = (
    Vector.of(SPACE.name, numbers) for numbers in ((1, 0, 0), (0, 1, 0), (0, 0, 1))
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[NetworkxStore]:
    store = NetworkxStore(str(tmp_path / "memory.db"))
    store.prepare_space(SPACE, None)
    store.switch_space(SPACE.name)
    store.add_bundles([failed_then_recovered()])
    yield store
    store.close()


def failed_then_recovered() -> Bundle:
    """A run whose first fragment is a failed attempt."""
    made = made_bundle(0)
    first, second = made.fragments
    return replace(
        made,
        fragments=(replace(first, fragment_type=FragmentType.FAILED_ATTEMPT), second),
        vectors=RunVectors(SPACE.name, OF_RUN, (OF_FIRST, OF_SECOND)),
    )


def prune(store: NetworkxStore) -> int:
    return store.prune_failed_fragments([made_bundle(0).errors[0].id], 0)


def nearest(store: NetworkxStore) -> list[tuple[str, Vector]]:
    found = store.nearest_fragments(OF_SECOND, Scope(REPO), 9)
    return [(near.item.fragment.id, near.vector) for near in found]


def test_its_vectors_are_gone_until_it_is_embedded_again(store: NetworkxStore) -> None:
    assert [fragment for fragment, _ in nearest(store)] == ["run0000/1", "run0000/0"]
    assert prune(store) == 1
    assert nearest(store) == []
    assert [run.trajectory_id for run in store.texts_to_embed(9, SPACE.name)] == ["run0000"]


@pytest.mark.parametrize("was_asked", [False, True])
def test_embedded_again_each_fragment_has_its_own_vector_once(
    store: NetworkxStore, was_asked: bool
) -> None:
    if was_asked:
        nearest(store)
    prune(store)
    store.add_vectors({"run0000": RunVectors(SPACE.name, OF_RUN, (OF_SECOND,))})
    assert nearest(store) == [("run0000/1", OF_SECOND)]
    (near,) = store.nearest_trajectories(OF_RUN, Scope(REPO), 9)
    assert (near.item.id, near.vector) == ("run0000", OF_RUN)
    archived = store.archived_run("run0000")
    assert archived is not None
    assert archived.bundle.vectors == RunVectors(SPACE.name, OF_RUN, (OF_SECOND,))


def test_pruned_twice_it_is_taken_out_of_the_graph_twice(store: NetworkxStore) -> None:
    prune(store)
    assert "run0000/0" not in store.graph()
    store.replace_bundle(failed_then_recovered())
    assert "run0000/0" in store.graph()
    prune(store)
    assert "run0000/0" not in store.graph()


@pytest.mark.parametrize("remembered", [0, 1, 2, 3])
def test_a_process_that_is_far_behind_finds_gone_what_nobody_remembers(
    store: NetworkxStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remembered: int
) -> None:
    monkeypatch.setattr(consolidations, "REMEMBERED", remembered)
    monkeypatch.setattr(projection, "REMEMBERED", remembered)
    store.add_bundles([made_bundle(1), made_bundle(2)])
    assert {"run0000/0", "run0001"} <= {*store.graph().nodes}
    other = NetworkxStore(str(tmp_path / "memory.db"))
    prune(other)
    other.forget(["run0001"])
    other.add_bundles([made_bundle(3)])
    other.mark_consolidated(other.unconsolidated().revision)
    assert sorted(store.graph().edges(keys=True)) == sorted(other.graph().edges(keys=True))
    assert {*store.graph().nodes} == {*other.graph().nodes}
    kept = sqlite3.connect(tmp_path / "memory.db")
    (count,) = kept.execute(
        "SELECT (SELECT count(*) FROM removal) + (SELECT count(*) FROM pruned)"
    ).fetchone()
    assert count == min(remembered, 2)
    kept.close()
    other.close()
