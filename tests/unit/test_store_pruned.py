"""What becomes of a run of which some fragments were not worth keeping."""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from contextgraph.model import (
    Bundle,
    FragmentCandidate,
    FragmentType,
    RunVectors,
    Scope,
    Space,
    Trajectory,
)
from contextgraph.store import SqliteStore
from contextgraph.store.sqlite import admin, graph
from contextgraph.vectors import Vector
from tests.made_bundles import REPO, made_bundle

SPACE = Space("made/model@3", 0, None)
OF_RUN, OF_FIRST, OF_SECOND = (
    Vector.of(SPACE.name, numbers) for numbers in ((1, 0, 0), (0, 1, 0), (0, 0, 1))
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(str(tmp_path / "memory.db"))
    store.vectors.prepare(SPACE, None)
    store.vectors.switch(SPACE.name)
    store.runs.add([failed_then_recovered()])
    yield store
    store.admin.close()


def failed_then_recovered() -> Bundle:
    """A run whose first fragment is a failed attempt."""
    made = made_bundle(0)
    first, second = made.fragments
    return replace(
        made,
        fragments=(replace(first, fragment_type=FragmentType.FAILED_ATTEMPT), second),
        vectors=RunVectors(SPACE.name, OF_RUN, (OF_FIRST, OF_SECOND)),
    )


def prune(store: SqliteStore) -> int:
    return store.recoveries.prune_failed([made_bundle(0).errors[0].id], 0)


def nearest(store: SqliteStore) -> list[tuple[str, Vector]]:
    found = store.vectors.nearest(FragmentCandidate, OF_SECOND, Scope(REPO), 9)
    return [(near.item.fragment.id, near.vector) for near in found]


def test_its_vectors_are_gone_until_it_is_embedded_again(store: SqliteStore) -> None:
    assert [fragment for fragment, _ in nearest(store)] == ["run0000/1", "run0000/0"]
    assert prune(store) == 1
    assert nearest(store) == []
    assert [run.trajectory_id for run in store.vectors.texts_to_embed(9, SPACE.name)] == ["run0000"]


@pytest.mark.parametrize("was_asked", [False, True])
def test_embedded_again_each_fragment_has_its_own_vector_once(
    store: SqliteStore, was_asked: bool
) -> None:
    if was_asked:
        nearest(store)
    prune(store)
    store.vectors.add(SPACE.name, {"run0000": RunVectors(SPACE.name, OF_RUN, (OF_SECOND,))}, {})
    assert nearest(store) == [("run0000/1", OF_SECOND)]
    (near,) = store.vectors.nearest(Trajectory, OF_RUN, Scope(REPO), 9)
    assert (near.item.id, near.vector) == ("run0000", OF_RUN)
    archived = store.runs.archived("run0000")
    assert archived is not None
    assert archived.bundle.vectors == RunVectors(SPACE.name, OF_RUN, (OF_SECOND,))


def test_pruned_twice_it_is_taken_out_of_the_graph_twice(store: SqliteStore) -> None:
    prune(store)
    assert "run0000/0" not in store.admin.graph()
    store.runs.replace(failed_then_recovered())
    assert "run0000/0" in store.admin.graph()
    prune(store)
    assert "run0000/0" not in store.admin.graph()


@pytest.mark.parametrize("listed", [0, 1, 2, 3])
def test_a_process_that_is_far_behind_reads_the_graph_again(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: int
) -> None:
    monkeypatch.setattr(admin, "REMOVALS_LISTED", listed)
    monkeypatch.setattr(graph, "REMOVALS_LISTED", listed)
    store.runs.add([made_bundle(1), made_bundle(2)])
    assert {"run0000/0", "run0001"} <= {*store.admin.graph().nodes}
    other = SqliteStore(str(tmp_path / "memory.db"))
    prune(other)
    other.runs.forget(["run0001"])
    other.runs.add([made_bundle(3)])
    other.admin.mark_consolidated(other.admin.unconsolidated().revision)
    assert sorted(store.admin.graph().edges(keys=True)) == sorted(
        other.admin.graph().edges(keys=True)
    )
    assert {*store.admin.graph().nodes} == {*other.admin.graph().nodes}
    kept = sqlite3.connect(tmp_path / "memory.db")
    (count,) = kept.execute(
        "SELECT (SELECT count(*) FROM removal) + (SELECT count(*) FROM pruned)"
    ).fetchone()
    assert count == min(listed, 2)
    kept.close()
    other.admin.close()
