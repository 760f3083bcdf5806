"""Many that write to one memory on a server at once: queued, never lost, one consolidating."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from contextgraph import AgentMemory
from contextgraph.model import ConsolidationReport, LearnStatus
from contextgraph.store.neo4j_store import Neo4jStore
from tests.builders import recovering_run
from tests.made_bundles import made_bundle
from tests.server import Neo4jServer


@pytest.fixture
def store(neo4j_server: Neo4jServer) -> Iterator[Neo4jStore]:
    store = Neo4jStore(neo4j_server.uri, neo4j_server.auth, uuid4().hex)
    store.add_bundles([made_bundle(0)])
    yield store
    store.close()


def test_writers_that_share_errors_do_not_stop_one_another(
    store: Neo4jStore, neo4j_server: Neo4jServer
) -> None:
    doors = [Neo4jStore(neo4j_server.uri, neo4j_server.auth, store.tenant) for _ in range(4)]

    def learn(door: Neo4jStore, numbers: range) -> list[LearnStatus]:
        return [status for n in numbers for status in door.add_bundles([made_bundle(n)])]

    with ThreadPoolExecutor(len(doors)) as pool:
        orders = (range(1, 13), range(12, 0, -1), range(1, 13, 2), range(12, 0, -2))
        said = [status for some in pool.map(learn, doors, orders) for status in some]
    assert said.count(LearnStatus.CREATED) == 12
    assert store.counts().nodes["Trajectory"] == 13
    assert store.counts().nodes["ErrorPattern"] == 3
    for door in doors:
        door.close()


def test_one_lease_is_given_to_one_of_many(store: Neo4jStore, neo4j_server: Neo4jServer) -> None:
    doors = [Neo4jStore(neo4j_server.uri, neo4j_server.auth, store.tenant) for _ in range(4)]
    now = datetime(2026, 3, 1, tzinfo=UTC)
    until = now + timedelta(minutes=5)
    at_once = threading.Barrier(len(doors))

    def take(number: int) -> datetime | None:
        at_once.wait()
        return doors[number].take_lease(f"holder{number}", now, until)

    with ThreadPoolExecutor(len(doors)) as pool:
        taken = list(pool.map(take, range(len(doors))))
    assert taken.count(None) == 1
    assert taken.count(until) == 3
    for door in doors:
        door.close()


def test_of_two_consolidations_at_once_one_works(neo4j_server: Neo4jServer) -> None:
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
    assert "another consolidation is at work" in reports[0].reason
    assert again.changed == 0
