"""The server plans its statements again when a memory has grown fourfold, and not more often."""

from datetime import UTC, datetime

import pytest

from contextgraph.model import Note
from contextgraph.store.neo4j import Neo4jStore
from contextgraph.store.neo4j.connection import Connection
from tests.server import Neo4jServer

NOW = datetime(2026, 3, 1, tzinfo=UTC)
REPLAN = Connection.replan  # before a server for tests replaces it


def test_statements_are_planned_again_when_changes_are_four_times_as_many(
    neo4j_to_change: Neo4jServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    replanned_at = []

    def noted(self: Connection) -> None:
        replanned_at.append(number)
        REPLAN(self)

    monkeypatch.setattr(Connection, "replan", noted)
    store = Neo4jStore(neo4j_to_change.uri, neo4j_to_change.auth)
    for number in range(1, 66):
        store.notes.change(new=[Note(f"note_{number}", "", "", "", NOW)])
    store.close()
    assert replanned_at == [16, 64]
