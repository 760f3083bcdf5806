"""Concurrent writers of one memory on a server: nothing lost, one consolidation at a time."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from neo4j import GraphDatabase

from contextgraph import AgentMemory
from contextgraph.model import ConsolidationReport, LearnStatus, Phase, Scope, Source
from contextgraph.model.values import replace
from contextgraph.store.neo4j import Neo4jStore
from contextgraph.store.neo4j.connection import Connection, Parameters, Row
from contextgraph.store.neo4j.statements import together
from tests.builders import recovering_run
from tests.made_bundles import made_bundle, made_methodology
from tests.server import Neo4jServer


@pytest.fixture
def store(neo4j_server: Neo4jServer) -> Iterator[Neo4jStore]:
    store = Neo4jStore(neo4j_server.uri, neo4j_server.auth, uuid4().hex)
    store.runs.add([made_bundle(0)])
    yield store
    store.close()


def test_writers_that_share_errors_do_not_block_each_other(
    store: Neo4jStore, neo4j_server: Neo4jServer
) -> None:
    stores = [Neo4jStore(neo4j_server.uri, neo4j_server.auth, store.tenant) for _ in range(4)]

    def learn(other: Neo4jStore, numbers: range) -> list[LearnStatus]:
        return [status for n in numbers for status in other.runs.add([made_bundle(n)])]

    with ThreadPoolExecutor(len(stores)) as pool:
        orders = (range(1, 13), range(12, 0, -1), range(1, 13, 2), range(12, 0, -2))
        statuses = [status for some in pool.map(learn, stores, orders) for status in some]
    assert statuses.count(LearnStatus.CREATED) == 12
    assert store.admin.counts().nodes["Trajectory"] == 13
    assert store.admin.counts().nodes["ErrorPattern"] == 3
    for other in stores:
        other.close()


def test_a_lease_is_given_to_one_of_many(store: Neo4jStore, neo4j_server: Neo4jServer) -> None:
    stores = [Neo4jStore(neo4j_server.uri, neo4j_server.auth, store.tenant) for _ in range(4)]
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
        other.close()


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


RUNS = [made_bundle(number) for number in range(6)]
IDS = [bundle.trajectory.id for bundle in RUNS]
ERRORS = [bundle.errors[0].id for bundle in RUNS]
READINGS: dict[str, Callable[[Neo4jStore], object]] = {
    "trajectories": lambda store: store.runs.trajectories(IDS),
    "runs for a task": lambda store: store.runs.for_task(None, Scope(), 50),
    "runs for a text": lambda store: store.runs.for_text(["cache"], Scope(), 50),
    "fragments": lambda store: store.runs.find_fragments(Scope(), 50),
    "recoveries": lambda store: store.recoveries.for_text(["boom"], Scope(), 50),
    "errors": lambda store: store.recoveries.errors(Scope(), 50),
    "errors in a phase": lambda store: store.recoveries.errors(Scope(), 50, phase=Phase.FIXING),
    "texts": lambda store: store.vectors.texts_to_embed(50),
    "methodologies": lambda store: store.methodologies.get(store.methodologies.ids()),
    "methodologies of errors": lambda store: store.methodologies.get(errors=ERRORS),
    "methodologies of types": lambda store: store.methodologies.of_types(ERRORS),
    "relations": lambda store: [*getattr(store.admin.explain(ERRORS[0]), "relations", ())],
    "the graph": lambda store: sorted(store.admin.graph()),
}


@pytest.mark.parametrize("name", READINGS)
def test_what_is_forgotten_while_it_is_read_is_read_again(
    store: Neo4jStore, neo4j_server: Neo4jServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Values of nodes that a query has found are null once another process has deleted them."""
    store.runs.add(RUNS)
    store.methodologies.put(
        [
            replace(made_methodology(n), sources=(Source(IDS[n], RUNS[n].fragments[0].id),))
            for n in range(3)
        ]
    )
    rows_of: Counter[str] = Counter()
    begun: list[str] = []

    def read(connection: Connection, text: str, parameters: Parameters) -> list[Row]:
        """Row by row; when the longest answer has begun, all runs are forgotten."""
        found: list[Row] = []
        with connection._open().session(database="neo4j", fetch_size=1) as session:
            for row in session.run(text, parameters):
                found.append(row)
                if begun == [text]:
                    begun.append("forgotten")
                    assert store.runs.forget(IDS) == len(IDS)
        rows_of[text] += len(found)
        return found

    def answer() -> object:
        fresh = Neo4jStore(neo4j_server.uri, neo4j_server.auth, store.tenant)
        with closing(fresh):
            return READINGS[name](fresh)

    monkeypatch.setattr(Connection, "run", read)
    before = answer()
    begun.append(rows_of.most_common(1)[0][0])
    found = answer()
    assert begun[1:] == ["forgotten"]
    assert found in (before, answer())


def test_a_deletion_while_a_statement_is_answered_is_seen(
    store: Neo4jStore, neo4j_server: Neo4jServer
) -> None:
    """What was deleted last is read before the answer, and again after it."""
    store.runs.add(RUNS)
    deletion = "MATCH (n:Memory {tenant: $tenant}) SET n.removed_at = 7"
    asked = together([f"{deletion} RETURN 0 AS number, [] AS found"])
    with GraphDatabase.driver(neo4j_server.uri, auth=neo4j_server.auth) as driver:
        (row,) = driver.execute_query(asked, tenant=store.tenant, database_="neo4j").records
    assert (row["before"], row["removed_at"]) == (0, 7)
