"""`contextgraph doctor` on a Neo4j server: a failed check has one sentence and a remedy."""

import socket

import pytest
from neo4j import GraphDatabase

from contextgraph import AgentMemory
from contextgraph.cli.commands import Common
from contextgraph.cli.installation import check_up
from contextgraph.model import HealthCheck
from tests.server import Neo4jServer

OF_THE_STORE = ("reachable", "schema version", "integrity", "writable", "sizes")


@pytest.fixture
def credentials(neo4j_server: Neo4jServer, monkeypatch: pytest.MonkeyPatch) -> None:
    user, password = neo4j_server.auth
    monkeypatch.setenv("CONTEXTGRAPH_NEO4J_USER", user)
    monkeypatch.setenv("CONTEXTGRAPH_NEO4J_PASSWORD", password)


@pytest.fixture
def memory(neo4j_with_indexes: Neo4jServer, credentials: None) -> str:
    """The address of an empty memory."""
    with AgentMemory.open(neo4j_with_indexes.uri) as made:
        assert made.store.runs.ids() == []  # which makes it
    return neo4j_with_indexes.uri


def failed(address: str) -> list[HealthCheck]:
    return [check for check in check_up(Common(store=address)).checks if not check.ok]


@pytest.mark.usefixtures("credentials")
def test_an_empty_server_has_no_memory_and_gets_none(neo4j: Neo4jServer) -> None:
    (check,) = failed(neo4j.uri)
    assert "learn something first" in f"{check.detail} {check.remedy}"
    assert neo4j.is_empty()


def test_a_healthy_memory_shows_version_and_edition(memory: str) -> None:
    found = {check.name: check for check in check_up(Common(store=memory)).checks}
    assert all(found[name].ok for name in OF_THE_STORE)
    assert found["reachable"].detail.startswith(f"{memory}: Neo4j ")
    assert found["reachable"].detail.endswith("community")


@pytest.mark.usefixtures("credentials")
def test_a_wrong_database_is_named(neo4j_server: Neo4jServer) -> None:
    (check,) = failed(f"{neo4j_server.uri}/memories")
    assert check.name == "reachable"
    assert "has no such database" in check.detail
    assert "memories" in check.detail


def test_a_wrong_password_differs_from_an_unreachable_server(
    neo4j_server: Neo4jServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXTGRAPH_NEO4J_PASSWORD", "guessed")
    (refused,) = failed(neo4j_server.uri)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        (away,) = failed(f"bolt://127.0.0.1:{unused.getsockname()[1]}")

    assert "refuses the user or the password" in refused.detail
    assert "cannot be reached" in away.detail
    assert "CONTEXTGRAPH_NEO4J_PASSWORD" in refused.remedy


def test_a_missing_password_is_named(neo4j_server: Neo4jServer) -> None:
    (check,) = failed(neo4j_server.uri)
    assert "requires a user and a password" in check.detail
    assert "CONTEXTGRAPH_NEO4J_PASSWORD" in check.remedy


@pytest.mark.usefixtures("credentials")
def test_dropped_indexes_are_named_and_created_again(neo4j_to_change: Neo4jServer) -> None:
    address = neo4j_to_change.uri
    assert not failed(address)
    with GraphDatabase.driver(address, auth=neo4j_to_change.auth) as driver:
        driver.execute_query("DROP INDEX run_words")
        driver.execute_query("DROP CONSTRAINT fragment_id")
    (check,) = failed(address)
    assert (check.name, check.detail) == (
        "schema version",
        f"{address} lacks index run_words, index fragment_id",
    )
    assert check.remedy.startswith(f"run contextgraph call consolidate --store {address}")

    with AgentMemory.open(address) as opened:
        opened.consolidate()
    assert not failed(address)


def test_a_memory_of_another_version_differs_from_an_unreachable_server(
    neo4j_server: Neo4jServer, memory: str
) -> None:
    assert not failed(memory)
    with GraphDatabase.driver(neo4j_server.uri, auth=neo4j_server.auth) as driver:
        driver.execute_query("MATCH (s:Schema) SET s.number = 999")
    (check,) = failed(neo4j_server.uri)
    assert check.name == "schema version"
    assert "has schema 999, this version has" in check.detail
    assert check.remedy.startswith("export it with the version that wrote it")


@pytest.mark.usefixtures("credentials")
def test_a_database_with_other_data_is_not_changed(neo4j: Neo4jServer) -> None:
    with GraphDatabase.driver(neo4j.uri, auth=neo4j.auth) as driver:
        driver.execute_query("CREATE (:Customer {name: 'Ada'})")
    found = failed(neo4j.uri)
    assert any("holds data, but no memory" in check.detail for check in found)
    assert all("name an empty database" in check.remedy + check.detail for check in found)
