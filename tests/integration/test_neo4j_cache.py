"""Values that were read from a server are cached, and read again once they have changed."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
from neo4j import GraphDatabase

from contextgraph.errors import StoreError
from contextgraph.model import (
    ErrorQuestion,
    Outcome,
    RecoveryCandidate,
    Scope,
    SignatureLevel,
    Trajectory,
)
from contextgraph.store.neo4j import Neo4jStore, search
from contextgraph.store.neo4j.connection import NamedQueries
from tests.made_bundles import SIGNATURE, made_bundle
from tests.server import Neo4jServer

QUESTIONS = [ErrorQuestion(SIGNATURE, SignatureLevel.TEMPLATE, Scope())]


@pytest.fixture
def store(neo4j: Neo4jServer) -> Iterator[Neo4jStore]:
    store = Neo4jStore(neo4j.uri, neo4j.auth)
    store.runs.add([made_bundle(number) for number in range(4)])
    yield store
    store.close()


@pytest.fixture
def other(neo4j: Neo4jServer) -> Iterator[Neo4jStore]:
    """As another process has it."""
    other = Neo4jStore(neo4j.uri, neo4j.auth)
    yield other
    other.close()


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the executed queries."""
    names: list[str] = []
    run = NamedQueries.rows

    def noted(self: NamedQueries, name: str, /, **parameters: object) -> object:
        names.append(name)
        return run(self, name, **parameters)

    monkeypatch.setattr(NamedQueries, "rows", noted)
    return names


def answers(store: Neo4jStore) -> list[tuple[RecoveryCandidate, Trajectory]]:
    """The recoveries of the runs 3 and 0, which cleared the error of SIGNATURE, and these runs.

    Two queries for values: of the recoveries, and of all runs.
    """
    found = store.recoveries.for_error(QUESTIONS, 9)
    runs = {run.id: run for run in store.runs.for_task(None, Scope(), 9)}
    return [(one, runs[one.trajectory_id]) for one in found]


def outcomes(store: Neo4jStore) -> list[Outcome]:
    return [run.outcome for _, run in answers(store)]


def test_cached_values_are_not_read_again(store: Neo4jStore, executed: list[str]) -> None:
    before = answers(store)
    assert executed.count("values_of") == 2
    assert answers(store) == before
    assert executed.count("values_of") == 2


def test_an_outcome_that_another_process_learned_is_seen(
    store: Neo4jStore, other: Neo4jStore
) -> None:
    assert outcomes(store) == [Outcome.UNKNOWN] * 2
    other.runs.add([made_bundle(number, outcome=Outcome.SOLVED) for number in (0, 3)])
    assert outcomes(store) == [Outcome.SOLVED] * 2


def test_a_run_that_was_forgotten_and_read_otherwise_is_seen(
    store: Neo4jStore, other: Neo4jStore
) -> None:
    before = answers(store)
    other.runs.forget(["run0000"])
    assert len(answers(store)) == 1
    other.runs.add([made_bundle(0, note="again")])
    assert answers(store) == answers(other) != before


def test_a_memory_recreated_in_its_place_is_seen(
    store: Neo4jStore, other: Neo4jStore, neo4j: Neo4jServer
) -> None:
    before = answers(store)
    with GraphDatabase.driver(neo4j.uri, auth=neo4j.auth) as driver:
        driver.execute_query("MATCH (n {tenant: $tenant}) DETACH DELETE n", tenant=store.tenant)
    other.runs.add([made_bundle(number, note="again") for number in range(4)])
    assert answers(store) == answers(other) != before


class CountingId(str):
    """An id that counts how often it is compared."""

    __slots__ = ()
    comparisons = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        CountingId.comparisons += 1
        return str(self) == str(other)


def test_known_recoveries_are_looked_up_not_compared_with_each_fragment(
    store: Neo4jStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 40
    store.runs.add([made_bundle(number) for number in range(count)])
    ids = [CountingId(f"run{number:04}/1") for number in range(count)]
    collected = NamedQueries.collected

    def counting(self: NamedQueries, name: str, /, **parameters: object) -> list[Any]:
        return [
            [*map(CountingId, key[:3]), *key[3:]] for key in collected(self, name, **parameters)
        ]

    monkeypatch.setattr(NamedQueries, "collected", counting)
    CountingId.comparisons = 0
    assert len(store.recoveries.of_fragments(ids)) == count
    assert CountingId.comparisons <= 10 * count


def test_only_runs_that_changed_are_read_again(
    store: Neo4jStore, other: Neo4jStore, executed: list[str]
) -> None:
    answers(store)
    other.runs.add([made_bundle(number) for number in (4, 5)])
    answers(store)
    assert executed.count("values_of") == 3


def test_where_many_runs_changed_all_is_read_again(
    store: Neo4jStore, other: Neo4jStore, executed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MAX_CHANGED_RUNS", 1)
    answers(store)
    other.runs.add([made_bundle(number) for number in (4, 5)])
    answers(store)
    assert executed.count("values_of") == 4


def test_threads_that_see_a_change_at_once_agree(
    store: Neo4jStore, other: Neo4jStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(store)
    other.runs.add([made_bundle(0, outcome=Outcome.SOLVED)])
    updated, both = search.CandidateCache._updated, Barrier(2, timeout=20)

    def at_once(*given: Any) -> object:
        both.wait()
        return updated(*given)

    monkeypatch.setattr(search.CandidateCache, "_updated", at_once)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: outcomes(store), range(2)))
    assert found[0] == found[1]
    assert Outcome.SOLVED in found[0]


def test_bookmarks_request_a_server_that_has_the_last_write(
    neo4j_server: Neo4jServer,
) -> None:
    address = neo4j_server.uri.replace("bolt://", "neo4j://")
    store = Neo4jStore(address, neo4j_server.auth, uuid4().hex)
    store.runs.add([made_bundle(0)])
    bookmarks = store._connection._open().execute_query_bookmark_manager
    before = set(bookmarks.get_bookmarks())
    store.runs.add([made_bundle(1)])
    after = set(bookmarks.get_bookmarks())
    assert before
    assert before != after
    with store.snapshot():
        assert store.runs.word_counts(()).total == 2
    # Queries wait for these bookmarks: the server refuses one that is none.
    bookmarks.update_bookmarks(after, ["none"])
    with pytest.raises(StoreError, match="ookmark"):
        store.runs.ids()
    with store.snapshot(), pytest.raises(StoreError, match="ookmark"):
        store.runs.ids()
    store.close()
