"""Runs on a Neo4j server: stored, read, replaced and forgotten as the protocols say."""

from collections.abc import Iterator
from dataclasses import replace

import networkx as nx
import pytest

from contextgraph.errors import MemoryNotFoundError, StoreError
from contextgraph.model import Bundle, Outcome
from contextgraph.store import SqliteStore
from contextgraph.store.neo4j import Neo4jStore
from tests.made_bundles import made_bundle
from tests.server import Neo4jServer


@pytest.fixture
def store(neo4j: Neo4jServer) -> Iterator[Neo4jStore]:
    store = Neo4jStore(neo4j.uri, neo4j.auth)
    yield store
    store.close()


def assert_equal_content(store: Neo4jStore, reference: SqliteStore) -> None:
    ids = (*reference.runs.ids(), "absent")
    assert store.runs.ids() == reference.runs.ids()
    assert store.runs.trajectories(ids) == reference.runs.trajectories(ids)
    assert [store.runs.raw(run) for run in ids] == [reference.runs.raw(run) for run in ids]
    assert store.runs.learned(ids) == reference.runs.learned(ids)
    assert store.runs.fragments(ids) == reference.runs.fragments(ids)


def test_a_run_is_stored_once(store: Neo4jStore) -> None:
    reference = SqliteStore(":memory:")
    for bundle in (*map(made_bundle, (5, 3, 4, 5)), made_bundle(3, outcome=Outcome.SOLVED)):
        assert store.runs.add([bundle]) == reference.runs.add([bundle])
    assert_equal_content(store, reference)


def test_runs_are_replaced_and_forgotten_whole(store: Neo4jStore) -> None:
    reference = SqliteStore(":memory:")
    for known in (store, reference):
        for number in range(5):
            known.runs.add([made_bundle(number)])
        again = made_bundle(2, outcome=Outcome.SOLVED, note="better read")
        known.runs.replace({"run0002": again})
        assert known.runs.forget(["run0000", "run0004", "absent"]) == 2
        assert known.runs.replace({"run0004": made_bundle(4)}) == []
    assert_equal_content(store, reference)


def test_an_inconsistent_run_leaves_nothing(store: Neo4jStore) -> None:
    bundle = made_bundle(1)
    twice: Bundle = replace(bundle, fragments=(*bundle.fragments, bundle.fragments[0]))
    strange = replace(bundle, errors=())
    for wrong in (twice, strange):
        with pytest.raises(StoreError, match="run0001"):
            store.runs.add([wrong])
    assert store.runs.ids() == []


def test_tenants_do_not_see_each_other(store: Neo4jStore, neo4j: Neo4jServer) -> None:
    neighbour = Neo4jStore(neo4j.uri, neo4j.auth, tenant="neighbour")
    store.runs.add([made_bundle(1)])
    neighbour.runs.add([made_bundle(2)])
    assert store.runs.ids() == ["run0001"]
    assert neighbour.runs.forget(["run0001"]) == 0
    neighbour.close()


def test_the_graph_cannot_be_changed(store: Neo4jStore) -> None:
    with pytest.raises(nx.NetworkXError, match="Frozen"):
        store.admin.graph().add_node("run")


def test_a_memory_that_does_not_exist_is_not_made_by_reading(neo4j: Neo4jServer) -> None:
    reader = Neo4jStore(neo4j.uri, neo4j.auth, read_only=True)
    with pytest.raises(MemoryNotFoundError, match="learn something first"):
        reader.runs.ids()
    with pytest.raises(StoreError, match="reading only"):
        reader.runs.add([made_bundle(1)])
    reader.close()
