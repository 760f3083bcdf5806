"""Runs on a Neo4j server are kept, told, replaced and forgotten as the ports say."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from contextgraph.errors import MemoryNotFoundError, StoreError
from contextgraph.model import Bundle, Outcome
from contextgraph.store.neo4j_store import Neo4jStore
from tests.made_bundles import made_bundle
from tests.reference_store import ReferenceStore
from tests.server import Neo4jServer


@pytest.fixture
def store(neo4j: Neo4jServer) -> Iterator[Neo4jStore]:
    store = Neo4jStore(neo4j.uri, neo4j.auth)
    yield store
    store.close()


def assert_they_hold_the_same(store: Neo4jStore, reference: ReferenceStore) -> None:
    assert store.trajectory_ids() == reference.trajectory_ids()
    for run in (*reference.trajectory_ids(), "absent"):
        assert store.trajectory(run) == reference.trajectory(run)
        assert store.raw_trajectory(run) == reference.raw_trajectory(run)
    asked = (*reference.trajectory_ids(), "absent")
    assert store.learned(asked) == reference.learned(asked)
    assert store.fragments_of(asked) == reference.fragments_of(asked)


def test_what_was_learned_is_held_once(store: Neo4jStore) -> None:
    reference = ReferenceStore()
    for bundle in (*map(made_bundle, (5, 3, 4, 5)), made_bundle(3, outcome=Outcome.SOLVED)):
        assert store.add_bundles([bundle]) == reference.add_bundles([bundle])
    assert_they_hold_the_same(store, reference)


def test_runs_are_replaced_and_forgotten_whole(store: Neo4jStore) -> None:
    reference = ReferenceStore()
    for known in (store, reference):
        for number in range(5):
            known.add_bundles([made_bundle(number)])
        known.replace_bundle(made_bundle(2, outcome=Outcome.SOLVED, note="better read"))
        assert known.forget(["run0000", "run0004", "absent"]) == 2
        with pytest.raises(StoreError):
            known.replace_bundle(made_bundle(4))
    assert_they_hold_the_same(store, reference)


def test_a_run_that_does_not_hang_together_leaves_nothing(store: Neo4jStore) -> None:
    bundle = made_bundle(1)
    twice: Bundle = replace(bundle, fragments=(*bundle.fragments, bundle.fragments[0]))
    strange = replace(bundle, errors=())
    for wrong in (twice, strange):
        with pytest.raises(StoreError, match="run0001"):
            store.add_bundles([wrong])
    assert store.trajectory_ids() == []


def test_tenants_do_not_see_each_other(store: Neo4jStore, neo4j: Neo4jServer) -> None:
    neighbour = Neo4jStore(neo4j.uri, neo4j.auth, tenant="neighbour")
    store.add_bundles([made_bundle(1)])
    neighbour.add_bundles([made_bundle(2)])
    assert store.trajectory_ids() == ["run0001"]
    assert neighbour.forget(["run0001"]) == 0
    neighbour.close()


def test_a_memory_that_does_not_exist_is_not_made_by_reading(neo4j: Neo4jServer) -> None:
    reader = Neo4jStore(neo4j.uri, neo4j.auth, read_only=True)
    with pytest.raises(MemoryNotFoundError, match="learn something first"):
        reader.trajectory_ids()
    with pytest.raises(StoreError, match="reading only"):
        reader.add_bundles([made_bundle(1)])
    reader.close()
