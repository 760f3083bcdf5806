"""Writes of one process to a server are seen by others at once."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from neo4j import GraphDatabase

from contextgraph.errors import StoreError
from contextgraph.model import (
    ErrorQuestion,
    Outcome,
    RecoveryCandidate,
    Scope,
    SignatureLevel,
    Trajectory,
)
from contextgraph.store.neo4j import Neo4jStore
from contextgraph.store.neo4j.connection import Connection
from contextgraph.store.neo4j.port import Neo4jPort
from contextgraph.store.neo4j.schema import Schema
from contextgraph.store.port import Question
from contextgraph.store.tables import RUN, TABLES
from tests.made_bundles import SIGNATURE, made_bundle
from tests.server import Neo4jServer

QUESTIONS = [ErrorQuestion(SIGNATURE, SignatureLevel.TEMPLATE, Scope())]


@pytest.fixture
def store(neo4j_with_indexes: Neo4jServer) -> Iterator[Neo4jStore]:
    store = Neo4jStore(neo4j_with_indexes.uri, neo4j_with_indexes.auth)
    store.runs.add([made_bundle(number) for number in range(4)])
    yield store
    store.close()


@pytest.fixture
def other(neo4j_with_indexes: Neo4jServer) -> Iterator[Neo4jStore]:
    """As another process has it."""
    other = Neo4jStore(neo4j_with_indexes.uri, neo4j_with_indexes.auth)
    yield other
    other.close()


def answers(store: Neo4jStore) -> list[tuple[RecoveryCandidate, Trajectory]]:
    """The recoveries of the runs 3 and 0, which cleared the error of SIGNATURE, and these runs."""
    found = store.recoveries.for_error(QUESTIONS, 9)
    runs = {run.id: run for run in store.runs.for_task(None, Scope(), 9)}
    return [(one, runs[one.trajectory_id]) for one in found]


def outcomes(store: Neo4jStore) -> list[Outcome]:
    return [run.outcome for _, run in answers(store)]


def test_an_outcome_that_another_process_learned_is_seen(
    store: Neo4jStore, other: Neo4jStore
) -> None:
    assert outcomes(store) == [Outcome.UNKNOWN] * 2
    other.runs.add([made_bundle(number, outcome=Outcome.SOLVED) for number in (0, 3)])
    assert outcomes(store) == [Outcome.SOLVED] * 2


def test_a_run_that_was_forgotten_and_read_otherwise_is_seen(
    store: Neo4jStore, other: Neo4jStore
) -> None:
    before = answers(store)
    other.runs.forget(["run0000"])
    assert len(answers(store)) == 1
    other.runs.add([made_bundle(0, note="again")])
    assert answers(store) == answers(other) != before


def test_a_memory_recreated_in_its_place_is_seen(
    store: Neo4jStore, other: Neo4jStore, neo4j_with_indexes: Neo4jServer
) -> None:
    before = answers(store)
    with GraphDatabase.driver(neo4j_with_indexes.uri, auth=neo4j_with_indexes.auth) as driver:
        driver.execute_query("MATCH (n {tenant: $tenant}) DETACH DELETE n", tenant=store.tenant)
    other.runs.add([made_bundle(number, note="again") for number in range(4)])
    assert answers(store) == answers(other) != before


def test_a_snapshot_has_the_revision_of_its_last_answer(
    neo4j_with_indexes: Neo4jServer, store: Neo4jStore
) -> None:
    schema, uri, auth = Schema(TABLES), neo4j_with_indexes.uri, neo4j_with_indexes.auth
    port = Neo4jPort(Connection(uri, auth, store.tenant, schema, read_only=True))
    with port.snapshot():
        before = port.revision()
        store.runs.add([made_bundle(4)])
        assert port.revision() == before + 1
        port.find([Question(RUN)])
        store.runs.add([made_bundle(5)])
        assert port.revision() == before + 1
        port.find([Question(RUN)])
        assert port.revision() == before + 2
    store.runs.add([made_bundle(6)])
    assert port.revision() == before + 3
    port.close()


def test_bookmarks_request_a_server_that_has_the_last_write(
    neo4j_server: Neo4jServer,
) -> None:
    address = neo4j_server.uri.replace("bolt://", "neo4j://")
    schema, tenant = Schema(TABLES), uuid4().hex
    connection = Connection(address, neo4j_server.auth, tenant, schema, read_only=False)
    port, store = Neo4jPort(connection), Neo4jStore(address, neo4j_server.auth, tenant)
    store.runs.add([made_bundle(0)])
    bookmarks = connection._open().execute_query_bookmark_manager
    before = set(bookmarks.get_bookmarks())
    port.write(lambda rows: rows.drop_vectors(RUN, ["run0000"]))
    after = set(bookmarks.get_bookmarks())
    assert before != after
    # Queries wait for these bookmarks: the server refuses one that is none.
    bookmarks.update_bookmarks(after, ["none"])
    with pytest.raises(StoreError, match="ookmark"):
        port.find([Question(RUN)])
    with port.snapshot(), pytest.raises(StoreError, match="ookmark"):
        port.find([Question(RUN)])
    port.close()
    store.close()
