"""The server replans its queries when a memory has grown fourfold, and not more often."""

import pytest

from contextgraph.store.neo4j import Neo4jStore, admin
from contextgraph.store.neo4j.connection import Connection
from tests.made_bundles import made_bundle
from tests.server import Neo4jServer


def test_queries_are_replanned_when_a_memory_has_grown_fourfold(
    neo4j: Neo4jServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin, "_FIRST_REPLANNED_AT", 4)
    replan, replanned_at = Connection.replan, []

    def noted(self: Connection) -> None:
        replanned_at.append(number + 1)
        replan(self)

    monkeypatch.setattr(Connection, "replan", noted)
    store = Neo4jStore(neo4j.uri, neo4j.auth)
    for number in range(17):
        store.runs.add([made_bundle(number)])
        store.admin.mark_consolidated(store.admin.unconsolidated().revision)
    store.close()
    assert replanned_at == [4, 16]
