"""Runs of which some fragments were not worth keeping."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from contextgraph.model import Bundle, FragmentType
from contextgraph.model.values import replace
from contextgraph.store.sqlite import SqliteStore, port
from tests.made_bundles import made_bundle


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(str(tmp_path / "memory.db"))
    store.runs.add([failed_then_recovered()])
    yield store
    store.close()


def failed_then_recovered() -> Bundle:
    """A run whose first fragment is a failed attempt."""
    made = made_bundle(0)
    first, second = made.fragments
    return replace(
        made,
        fragments=(replace(first, fragment_type=FragmentType.FAILED_ATTEMPT), second),
    )


def prune(store: SqliteStore) -> int:
    return store.recoveries.clean_up([made_bundle(0).errors[0].id], 0)


def test_pruned_twice_it_is_taken_out_of_the_graph_twice(store: SqliteStore) -> None:
    prune(store)
    assert "run0000/0" not in store.admin.graph()
    store.runs.replace({"run0000": failed_then_recovered()})
    assert "run0000/0" in store.admin.graph()
    prune(store)
    assert "run0000/0" not in store.admin.graph()


@pytest.mark.parametrize("listed", [1, 2, 3, 100])
def test_a_process_that_is_far_behind_reads_the_graph_again(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: int
) -> None:
    monkeypatch.setattr(port, "CHANGES_LISTED", listed)
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
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        (count,) = connection.execute("SELECT count(DISTINCT revision) FROM change").fetchone()
    assert count < 2 * listed
    other.close()
