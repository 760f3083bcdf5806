"""Runs on a Neo4j server: stored, read, replaced and forgotten as the docstrings say."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest
from neo4j import GraphDatabase

from contextgraph import AgentMemory, State
from contextgraph.agents.local_copy import copy_repository
from contextgraph.errors import StoreError
from contextgraph.model import Bundle, NoteKind, NoteScope, Outcome
from contextgraph.model.values import replace
from contextgraph.store.neo4j import Neo4jStore
from contextgraph.store.sqlite import SqliteStore
from tests.made_bundles import made_bundle
from tests.marked import MARKER, REPO as MARKED_REPO, SESSION, marked_files, remember_marked
from tests.server import Neo4jServer
from tests.unit.test_lessons import LATER, SHOP, amended_talk, export_talk, small_talk

SAID = r"\b640\b"  # ids and times may have these digits, too


@pytest.fixture
def store(neo4j_with_indexes: Neo4jServer) -> Iterator[Neo4jStore]:
    store = Neo4jStore(neo4j_with_indexes.uri, neo4j_with_indexes.auth)
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


def test_a_deleted_conversation_leaves_none_of_its_statements(
    neo4j_with_indexes: Neo4jServer, tmp_path: Path
) -> None:
    """Neither in the graph nor in its indexes, nor in the copy that hooks read."""

    def everything() -> str:
        with GraphDatabase.driver(neo4j_with_indexes.uri, auth=neo4j_with_indexes.auth) as driver:
            found = driver.execute_query("MATCH (n) RETURN properties(n) AS known")
        return json.dumps([record["known"] for record in found.records], default=str)

    memory = AgentMemory(neo4j_uri=neo4j_with_indexes.uri, neo4j_auth=neo4j_with_indexes.auth)
    said = memory.learn(export_talk())
    amended = memory.learn(amended_talk())
    for talk in map(small_talk, range(8)):
        memory.learn(talk)
    state = State(task_description=LATER, repo=SHOP)
    assert {one.note.session for one in memory.query(state).lessons} == {"amended"}
    assert memory.forget([amended.trajectory_id]) == 1
    assert {one.note.session for one in memory.query(state).lessons} == {"export"}
    copy = AgentMemory.open(tmp_path / "copy.db")
    copy_repository(memory, copy, SHOP)
    assert {one.note.session for one in copy.query(state).lessons} == {"export"}
    assert re.search(SAID, everything())

    assert memory.forget([said.trajectory_id]) == 1
    copy_repository(memory, copy, SHOP)
    copy.close()
    assert memory.query(state).lessons == ()
    assert not any(one.evidence[0].session == "export" for one in memory.lessons.of())
    assert memory.store.notes.for_text(["640", "row"], NoteScope(None, (NoteKind.LESSON,)), 9) == []
    assert not re.search(SAID, everything())
    assert not any(b"640 row" in path.read_bytes() for path in tmp_path.glob("copy.db*"))
    memory.close()


@pytest.mark.parametrize(
    "named", [{"sessions": [SESSION]}, {"repos": [MARKED_REPO]}], ids=["session", "repository"]
)
def test_what_is_forgotten_is_in_no_property(
    named: dict[str, list[str]], neo4j_with_indexes: Neo4jServer, tmp_path: Path
) -> None:
    neo4j = neo4j_with_indexes

    def known() -> str:
        parts = ("MATCH (n) RETURN properties(n) AS known, labels(n) AS kind",
                 "MATCH ()-[n]->() RETURN properties(n) AS known, type(n) AS kind")  # fmt: skip
        with GraphDatabase.driver(neo4j.uri, auth=neo4j.auth) as driver:
            found = [record.data() for one in parts for record in driver.execute_query(one).records]
        return str(found).lower()

    with AgentMemory(neo4j_uri=neo4j.uri, neo4j_auth=neo4j.auth) as memory:
        remember_marked(memory)
        memory.export(tmp_path / "all.jsonl")
        assert MARKER in known()
        assert memory.forget(**named) == 3
    assert MARKER not in known()
    assert marked_files(tmp_path) == []


def test_tenants_do_not_see_each_other(store: Neo4jStore, neo4j_with_indexes: Neo4jServer) -> None:
    neighbour = Neo4jStore(neo4j_with_indexes.uri, neo4j_with_indexes.auth, tenant="neighbour")
    store.runs.add([made_bundle(1)])
    neighbour.runs.add([made_bundle(2)])
    assert store.runs.ids() == ["run0001"]
    assert neighbour.runs.forget(["run0001"]) == 0
    neighbour.close()


def test_the_graph_cannot_be_changed(store: Neo4jStore) -> None:
    with pytest.raises(nx.NetworkXError, match="Frozen"):
        store.admin.graph().add_node("run")
