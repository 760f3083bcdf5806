"""The server plans its queries anew as a memory grows, and not more often."""

import pytest

from contextgraph.store.neo4j_store import Neo4jStore, consolidations
from contextgraph.store.neo4j_store.transaction import Transaction
from tests.made_bundles import made_bundle
from tests.server import Neo4jServer


def test_queries_are_planned_anew_when_a_memory_has_grown_many_times_over(
    neo4j: Neo4jServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consolidations, "_PLANNED_AT_FIRST", 4)
    run, planned_at = Transaction.rows, []

    def noted(self: Transaction, name: str, /, **parameters: object) -> object:
        if name == "plan_anew":
            planned_at.append(number + 1)
        return run(self, name, **parameters)

    monkeypatch.setattr(Transaction, "rows", noted)
    store = Neo4jStore(neo4j.uri, neo4j.auth)
    for number in range(17):
        store.add_bundles([made_bundle(number)])
        store.mark_consolidated(store.unconsolidated().revision)
    store.close()
    assert planned_at == [4, 16]
