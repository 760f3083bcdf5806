"""The server plans its statements again when a memory has grown fourfold, and not more often."""

import pytest

from contextgraph.store.neo4j import Neo4jStore
from contextgraph.store.neo4j.connection import Connection
from tests.made_bundles import made_bundle
from tests.server import Neo4jServer

REPLAN = Connection.replan  # before a server for tests replaces it


def test_statements_are_planned_again_when_changes_are_four_times_as_many(
    neo4j: Neo4jServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    replanned_at = []

    def noted(self: Connection) -> None:
        replanned_at.append(number)
        REPLAN(self)

    monkeypatch.setattr(Connection, "replan", noted)
    store = Neo4jStore(neo4j.uri, neo4j.auth)
    for number in range(1, 66):
        store.runs.add([made_bundle(number)])
    store.close()
    assert replanned_at == [16, 64]
