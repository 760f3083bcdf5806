"""A server that refuses is told with what it refuses; what it ends is begun again."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from contextgraph.errors import StoreUnavailableError
from contextgraph.store.neo4j_store import Neo4jStore
from tests.made_bundles import made_bundle
from tests.server import Neo4jServer


@pytest.fixture
def store(neo4j_server: Neo4jServer) -> Iterator[Neo4jStore]:
    store = Neo4jStore(neo4j_server.uri, neo4j_server.auth, uuid4().hex)
    yield store
    store.close()


@pytest.mark.parametrize(
    ("path", "password", "told"),
    [
        ("", "not the password", "refuses the user or the password"),
        ("/absent", None, "has no such database"),
    ],
)
def test_a_server_that_refuses_is_told_with_what_it_refuses(
    neo4j_server: Neo4jServer, path: str, password: str | None, told: str
) -> None:
    user, right = neo4j_server.auth
    store = Neo4jStore(f"{neo4j_server.uri}{path}", (user, password or right))
    with pytest.raises(StoreUnavailableError, match=told):
        store.trajectory_ids()
    assert not store.health()[0].ok
    store.close()


def test_a_snapshot_goes_on_when_its_connection_was_ended(
    neo4j_server: Neo4jServer, store: Neo4jStore
) -> None:
    from neo4j import GraphDatabase

    store.add_bundles([made_bundle(0)])
    with store.snapshot(), GraphDatabase.driver(neo4j_server.uri, auth=neo4j_server.auth) as driver:
        assert store.trajectory_ids() == ["run0000"]
        ended = driver.execute_query(
            "CALL dbms.listConnections() YIELD connectionId, userAgent "
            "WHERE userAgent STARTS WITH 'contextgraph' "
            "WITH collect(connectionId) AS ids CALL dbms.killConnections(ids) YIELD message "
            "RETURN message"
        )
        assert ended.records
        assert store.trajectory_ids() == ["run0000"]
