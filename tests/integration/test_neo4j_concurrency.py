"""Concurrent writers of one memory on a server: nothing lost, one consolidation at a time."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from contextgraph import AgentMemory
from contextgraph.model import ConsolidationReport, LearnStatus
from contextgraph.store.neo4j import Neo4jStore
from tests.builders import recovering_run
from tests.made_bundles import made_bundle
from tests.server import Neo4jServer


@pytest.fixture
def store(neo4j_server: Neo4jServer) -> Iterator[Neo4jStore]:
    store = Neo4jStore(neo4j_server.uri, neo4j_server.auth, uuid4().hex)
    store.runs.add([made_bundle(0)])
    yield store
    store.admin.close()


def test_writers_that_share_errors_do_not_block_each_other(
    store: Neo4jStore, neo4j_server: Neo4jServer
) -> None:
    stores = [Neo4jStore(neo4j_server.uri, neo4j_server.auth, store.admin.tenant) for _ in range(4)]

    def learn(other: Neo4jStore, numbers: range) -> list[LearnStatus]:
        return [status for n in numbers for status in other.runs.add([made_bundle(n)])]

    with ThreadPoolExecutor(len(stores)) as pool:
        orders = (range(1, 13), range(12, 0, -1), range(1, 13, 2), range(12, 0, -2))
        statuses = [status for some in pool.map(learn, stores, orders) for status in some]
    assert statuses.count(LearnStatus.CREATED) == 12
    assert store.admin.counts().nodes["Trajectory"] == 13
    assert store.admin.counts().nodes["ErrorPattern"] == 3
    for other in stores:
        other.admin.close()


def test_a_lease_is_given_to_one_of_many(store: Neo4jStore, neo4j_server: Neo4jServer) -> None:
    stores = [Neo4jStore(neo4j_server.uri, neo4j_server.auth, store.admin.tenant) for _ in range(4)]
    now = datetime(2026, 3, 1, tzinfo=UTC)
    until = now + timedelta(minutes=5)
    barrier = threading.Barrier(len(stores))

    def take(number: int) -> datetime | None:
        barrier.wait()
        return stores[number].admin.take_lease(f"holder{number}", now, until)

    with ThreadPoolExecutor(len(stores)) as pool:
        taken = list(pool.map(take, range(len(stores))))
    assert taken.count(None) == 1
    assert taken.count(until) == 3
    for other in stores:
        other.admin.close()


def test_of_two_concurrent_consolidations_one_works(neo4j_server: Neo4jServer) -> None:
    tenant = uuid4().hex

    def opened() -> AgentMemory:
        return AgentMemory.open(neo4j_server.uri, auth=neo4j_server.auth, tenant=tenant)

    with opened() as one, opened() as other:
        one.writer.write_all([recovering_run(number) for number in range(4)])
        reports: list[ConsolidationReport] = []

        def meanwhile(done: int, total: int) -> None:
            if not reports:
                reports.append(other.consolidate())

        first = one.consolidate(meanwhile)
        again = one.consolidate()
    assert first.started
    assert [report.started for report in reports] == [False]
    assert "another process holds the lease" in reports[0].reason
    assert again.changed == 0
