"""Nearest runs on a Neo4j server: what others write is found, indexes find the same."""

from collections.abc import Iterator
from datetime import UTC, datetime
from random import Random
from uuid import uuid4

import pytest
from neo4j import GraphDatabase

from contextgraph.errors import StoreError
from contextgraph.model import Bundle, EmbeddedRun, Note, Scope, Space, Vector
from contextgraph.model.values import replace
from contextgraph.store.neo4j import Neo4jStore, port
from tests.made_bundles import REPO, made_bundle
from tests.server import Neo4jServer

SPACE = Space("made/by-hand@8", 1)
SCOPES = (Scope(repo=REPO), Scope())


def vector(number: int) -> Vector:
    chance = Random(number)
    return Vector.of(SPACE.name, [chance.gauss() for _ in range(8)])


def embedded(number: int, by: int | None = None) -> Bundle:
    """A run with the vector of its number, or of that of *by*."""
    run = EmbeddedRun(SPACE.name, vector(number if by is None else by))
    return replace(made_bundle(number), embedded=run)


@pytest.fixture
def tenant() -> str:
    return uuid4().hex


@pytest.fixture
def store(neo4j_server: Neo4jServer, tenant: str) -> Iterator[Neo4jStore]:
    store = Neo4jStore(neo4j_server.uri, neo4j_server.auth, tenant)
    store.vectors.prepare(SPACE, None)
    store.vectors.switch(SPACE.name)
    yield store
    store.close()


@pytest.fixture
def other(neo4j_server: Neo4jServer, tenant: str) -> Iterator[Neo4jStore]:
    """The same memory as another process opens it."""
    store = Neo4jStore(neo4j_server.uri, neo4j_server.auth, tenant)
    yield store
    store.close()


def first(store: Neo4jStore, given: Vector, scope: Scope) -> str:
    return store.vectors.nearest(given, scope, 1)[0].trajectory.id


@pytest.mark.parametrize("scope", SCOPES)
def test_what_another_process_learned_meanwhile_is_found(
    store: Neo4jStore, other: Neo4jStore, scope: Scope
) -> None:
    other.runs.add([embedded(1), embedded(2)])
    assert first(store, vector(3), scope) in {"run0001", "run0002"}
    other.runs.add([embedded(3)])
    assert first(store, vector(3), scope) == "run0003"


@pytest.mark.parametrize("scope", SCOPES)
def test_vectors_that_come_later_than_their_run_are_found(
    store: Neo4jStore, other: Neo4jStore, scope: Scope
) -> None:
    other.runs.add([embedded(1), made_bundle(2)])
    assert first(store, vector(2), scope) == "run0001"
    other.vectors.add(SPACE.name, {"run0002": vector(2)})
    assert first(store, vector(2), scope) == "run0002"


@pytest.mark.parametrize("scope", SCOPES)
def test_a_run_learned_again_is_compared_by_its_new_vector(
    store: Neo4jStore, other: Neo4jStore, scope: Scope
) -> None:
    other.runs.add([embedded(1), embedded(2)])
    assert first(store, vector(9), scope)
    other.runs.replace({"run0001": embedded(1, by=9)})
    near = store.vectors.nearest(vector(9), scope, 1)[0]
    assert (near.trajectory.id, near.cosine) == ("run0001", 1.0)


def test_vectors_of_a_space_that_was_left_are_not_compared(
    store: Neo4jStore, other: Neo4jStore
) -> None:
    other.runs.add([embedded(1)])
    assert first(store, vector(1), Scope()) == "run0001"
    later = Space("made/by-hand@4", 1)
    given = Vector.of(later.name, [1, 0, 0, 0])
    other.vectors.prepare(later, None)
    other.vectors.add(later.name, {"run0001": given})
    other.vectors.switch(later.name)
    assert store.vectors.nearest(given, Scope(), 1)[0].cosine == 1.0


def test_vectors_of_a_deleted_memory_are_not_compared_in_a_new_one(
    store: Neo4jStore, other: Neo4jStore, neo4j_server: Neo4jServer
) -> None:
    other.runs.add([embedded(1), embedded(2)])
    assert first(store, vector(1), Scope()) == "run0001"
    with GraphDatabase.driver(neo4j_server.uri, auth=neo4j_server.auth) as driver:
        driver.execute_query("MATCH (n {tenant: $tenant}) DETACH DELETE n", tenant=store.tenant)
    other.vectors.prepare(SPACE, None)
    other.vectors.switch(SPACE.name)
    other.runs.add([embedded(1, by=9), embedded(3)])
    near = store.vectors.nearest(vector(9), Scope(), 3)
    assert [one.trajectory.id for one in near if one.cosine == 1.0] == ["run0001"]
    assert {one.trajectory.id for one in near} == {"run0001", "run0003"}


def test_a_time_without_zone_is_refused(store: Neo4jStore) -> None:
    store.runs.add([embedded(1)])
    a_time = datetime(2026, 3, 1, tzinfo=UTC).replace(tzinfo=None)
    with pytest.raises(StoreError, match="no time zone"):
        store.vectors.nearest(vector(1), Scope(as_of=a_time), 1)


@pytest.mark.parametrize("scope", SCOPES)
def test_an_index_finds_the_same_as_comparing_all(
    store: Neo4jStore, other: Neo4jStore, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    other.runs.add([embedded(number) for number in range(40)])
    hidden = replace(scope, exclude_instances=frozenset({"ada__engine-7"}))

    def nearest(asked: Neo4jStore) -> list[object]:
        return [
            asked.vectors.nearest(given, within, 5)
            for given in map(vector, (7, 77))
            for within in (scope, hidden)
        ]

    compared = nearest(store)
    monkeypatch.setattr(port, "MAX_COMPARED", 10)
    assert nearest(other) == compared


def test_where_too_few_of_the_nearest_are_in_scope_all_are_compared(
    store: Neo4jStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.runs.add([embedded(number) for number in range(40)])
    hidden = Scope(exclude_instances=frozenset(f"ada__engine-{number}" for number in range(30)))
    compared = store.vectors.nearest(vector(7), hidden, 5)
    monkeypatch.setattr(port, "MAX_COMPARED", 10)
    monkeypatch.setattr(port, "_NEAREST", (5, 10))
    assert store.vectors.nearest(vector(7), hidden, 5) == compared
    assert len(compared) == 5


def test_a_property_is_taken_again_when_no_row_has_vectors_of_its_space(
    store: Neo4jStore, neo4j_server: Neo4jServer
) -> None:
    """Spaces come and go with each fitting; properties with their indexes stay few."""
    store.runs.add([made_bundle(1)])
    for number in range(4):
        later = Space(f"made/by-hand-{number}@8", 1)
        store.vectors.prepare(later, None)
        store.vectors.add(later.name, {"run0001": Vector.of(later.name, [1] + 7 * [0])})
        store.vectors.switch(later.name)
        note = Note("note", f"text {number}", REPO, "user", datetime(2026, 3, 1, tzinfo=UTC))
        store.notes.change(new=[note])
        store.notes.add(later.name, {"note": Vector.of(later.name, [1] + 7 * [0])})
    with GraphDatabase.driver(neo4j_server.uri, auth=neo4j_server.auth) as driver:
        found = driver.execute_query(
            "MATCH (n {tenant: $tenant}) WHERE n:Trajectory OR n:Note "
            "UNWIND keys(n) AS name WITH name WHERE name STARTS WITH 'embedding' "
            "RETURN collect(DISTINCT name) AS names",
            tenant=store.tenant,
        )
    assert {*found.records[0]["names"]} <= {"embedding_8_1", "embedding_8_2"}
