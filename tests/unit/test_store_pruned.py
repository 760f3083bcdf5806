"""Runs of which some fragments were not worth keeping."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contextgraph.model import Bundle, FragmentType
from contextgraph.model.values import replace
from contextgraph.store.sqlite import SqliteStore
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
