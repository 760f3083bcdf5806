"""What was read from a server is remembered, and read again as soon as it is not the same."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from neo4j import GraphDatabase

from contextgraph.model import ErrorQuestion, Outcome, Scope, SignatureLevel
from contextgraph.store.neo4j_store import Neo4jStore, values
from contextgraph.store.neo4j_store.transaction import Transaction
from tests.made_bundles import SIGNATURE, made_bundle
from tests.server import Neo4jServer

ASKED = [ErrorQuestion(SIGNATURE, SignatureLevel.TEMPLATE, Scope())]


@pytest.fixture
def store(neo4j: Neo4jServer) -> Iterator[Neo4jStore]:
    store = Neo4jStore(neo4j.uri, neo4j.auth)
    store.add_bundles([made_bundle(number) for number in range(4)])
    yield store
    store.close()


@pytest.fixture
def other(neo4j: Neo4jServer) -> Iterator[Neo4jStore]:
    """As another process has it."""
    other = Neo4jStore(neo4j.uri, neo4j.auth)
    yield other
    other.close()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the queries that were run."""
    names: list[str] = []
    run = Transaction.rows

    def noted(self: Transaction, name: str, /, **parameters: object) -> object:
        names.append(name)
        return run(self, name, **parameters)

    monkeypatch.setattr(Transaction, "rows", noted)
    return names


def told(store: Neo4jStore) -> list[tuple[str, Outcome, str]]:
    """Task, outcome and words of the error of the runs 3 and 0, which cleared that of SIGNATURE."""
    return [
        (one.trajectory.task, one.trajectory.outcome, one.error.context)
        for one in store.recoveries_for_error(ASKED, 9)
    ]


def test_what_was_read_is_not_read_again(store: Neo4jStore, asked: list[str]) -> None:
    before = told(store)
    assert asked.count("values_of") == 1
    assert told(store) == before
    assert asked.count("values_of") == 1


def test_an_outcome_that_another_process_learned_is_seen(
    store: Neo4jStore, other: Neo4jStore
) -> None:
    assert [outcome for _, outcome, _ in told(store)] == [Outcome.UNKNOWN] * 2
    other.add_bundles([made_bundle(number, outcome=Outcome.SOLVED) for number in (0, 3)])
    assert [outcome for _, outcome, _ in told(store)] == [Outcome.SOLVED] * 2


def test_a_run_that_was_forgotten_and_read_otherwise_is_seen(
    store: Neo4jStore, other: Neo4jStore
) -> None:
    before = told(store)
    other.forget(["run0000"])
    assert len(told(store)) == 1
    other.add_bundles([made_bundle(0, note="again")])
    assert told(store) == told(other) != before


def test_a_memory_made_anew_in_the_same_place_is_seen(
    store: Neo4jStore, other: Neo4jStore, neo4j: Neo4jServer
) -> None:
    before = told(store)
    with GraphDatabase.driver(neo4j.uri, auth=neo4j.auth) as driver:
        driver.execute_query("MATCH (n {tenant: $tenant}) DETACH DELETE n", tenant=store.tenant)
    other.add_bundles([made_bundle(number, note="anew") for number in range(4)])
    assert told(store) == told(other) != before


def test_only_runs_that_changed_are_read_again(
    store: Neo4jStore, other: Neo4jStore, asked: list[str]
) -> None:
    told(store)
    other.add_bundles([made_bundle(number) for number in (4, 5)])
    told(store)
    assert asked.count("values_of") == 1


def test_where_many_runs_changed_all_is_read_again(
    store: Neo4jStore, other: Neo4jStore, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(values, "_MOST_CHANGED", 1)
    told(store)
    other.add_bundles([made_bundle(number) for number in (4, 5)])
    told(store)
    assert asked.count("values_of") == 2


def test_threads_that_see_a_change_at_once_remember_together(
    store: Neo4jStore, other: Neo4jStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(store)
    other.add_bundles([made_bundle(0, outcome=Outcome.SOLVED)])
    kept, both = values._kept, Barrier(2, timeout=20)

    def at_once(*given: Any) -> object:
        both.wait()
        return kept(*given)

    monkeypatch.setattr(values, "_kept", at_once)
    with ThreadPoolExecutor(2) as pool:
        latest = [pool.submit(store._connection.read, store._known.values._at) for _ in range(2)]
    assert latest[0].result() is latest[1].result()


def test_questions_asked_ahead_share_a_snapshot_and_may_ask_ahead_themselves(
    store: Neo4jStore, asked: list[str]
) -> None:
    def count(depth: int) -> int:
        below = [store.ahead(lambda: count(depth - 1)) for _ in range(3 if depth else 0)]
        return store.document_count() + sum(one() for one in below)

    with store.snapshot():
        store.document_count()
        # More questions wait for others than there are threads.
        assert count(3) == 4 * (1 + 3 + 9 + 27)
    assert asked.count("memory_state") == 1


def test_what_fails_ahead_fails_where_the_answer_is_wanted(store: Neo4jStore) -> None:
    asked = store.ahead(lambda: store.recoveries_for_error([], -1) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        asked()
