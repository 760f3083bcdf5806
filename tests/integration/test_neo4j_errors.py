"""Errors of a server name what was refused; a lost connection is replaced."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from contextgraph.errors import StoreUnavailableError
from contextgraph.store.neo4j import Neo4jStore
from tests.made_bundles import made_bundle
from tests.server import Neo4jServer


@pytest.fixture
def store(neo4j_server: Neo4jServer) -> Iterator[Neo4jStore]:
    store = Neo4jStore(neo4j_server.uri, neo4j_server.auth, uuid4().hex)
    yield store
    store.close()


@pytest.mark.parametrize(
    ("path", "password", "message"),
    [
        ("", "not the password", "refuses the user or the password"),
        ("/absent", None, "has no such database; end the address with /neo4j"),
    ],
)
def test_a_refusal_names_what_was_refused(
    neo4j_server: Neo4jServer, path: str, password: str | None, message: str
) -> None:
    user, right = neo4j_server.auth
    store = Neo4jStore(f"{neo4j_server.uri}{path}", (user, password or right))
    with pytest.raises(StoreUnavailableError, match=message):
        store.runs.ids()
    assert not store.admin.health()[0].ok
    store.close()


def test_a_database_of_another_name_is_found(
    neo4j_server: Neo4jServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Those of Aura have the name of their instance.
    monkeypatch.setattr("contextgraph.store.neo4j.connection.DATABASE", "absent")
    store = Neo4jStore(neo4j_server.uri, neo4j_server.auth, uuid4().hex)
    assert store.runs.ids() == []
    assert store.admin.health()[0].ok
    store.close()


def test_a_snapshot_continues_on_another_connection(
    neo4j_server: Neo4jServer, store: Neo4jStore
) -> None:
    from neo4j import GraphDatabase

    store.runs.add([made_bundle(0)])
    with (
        store.snapshot(),
        GraphDatabase.driver(neo4j_server.uri, auth=neo4j_server.auth) as driver,
    ):
        assert store.runs.ids() == ["run0000"]
        ended = driver.execute_query(
            "CALL dbms.listConnections() YIELD connectionId, userAgent "
            "WHERE userAgent STARTS WITH 'contextgraph' "
            "WITH collect(connectionId) AS ids CALL dbms.killConnections(ids) YIELD message "
            "RETURN message"
        )
        assert ended.records
        assert store.runs.ids() == ["run0000"]
