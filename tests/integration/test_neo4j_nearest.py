"""Nearest items on a Neo4j server: cached vectors are current, indexes find the same."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from uuid import uuid4

import pytest
from neo4j import GraphDatabase

from contextgraph.errors import StoreError
from contextgraph.model import (
    Bundle,
    FragmentCandidate,
    Methodology,
    MethodologyStatus,
    RunVectors,
    Scope,
    Source,
    Space,
    Trajectory,
)
from contextgraph.store.neo4j import Neo4jStore, vector_cache
from contextgraph.store.neo4j.schema import create_vector_indexes, server_version, vector_index
from contextgraph.vectors import Vector
from tests.made_bundles import REPO, made_bundle
from tests.server import Neo4jServer

SPACE = Space("made/by-hand@8", 1)
PROPERTY = "embedding_8_1"
SCOPES = (Scope(repo=REPO), Scope())


def vector(number: int) -> Vector:
    chance = Random(number)
    return Vector.of(SPACE.name, [chance.gauss() for _ in range(8)])


def run_vectors(number: int) -> RunVectors:
    return RunVectors(SPACE.name, vector(number), (vector(1000 + number), None))


def embedded(number: int) -> Bundle:
    return replace(made_bundle(number), vectors=run_vectors(number))


@pytest.fixture
def tenant() -> str:
    return uuid4().hex


@pytest.fixture
def store(neo4j_server: Neo4jServer, tenant: str) -> Iterator[Neo4jStore]:
    store = Neo4jStore(neo4j_server.uri, neo4j_server.auth, tenant)
    store.vectors.prepare(SPACE, None)
    store.vectors.switch(SPACE.name)
    yield store
    store.admin.close()


@pytest.fixture
def other(neo4j_server: Neo4jServer, tenant: str) -> Iterator[Neo4jStore]:
    """The same memory as another process opens it."""
    store = Neo4jStore(neo4j_server.uri, neo4j_server.auth, tenant)
    yield store
    store.admin.close()


def first(store: Neo4jStore, given: Vector, scope: Scope) -> str:
    return store.vectors.nearest(Trajectory, given, scope, 1)[0].item.id


def runs(store: Neo4jStore, given: Vector, scope: Scope) -> object:
    return store.vectors.nearest(Trajectory, given, scope, 5)


def fragments(store: Neo4jStore, given: Vector, scope: Scope) -> object:
    return store.vectors.nearest(FragmentCandidate, given, scope, 5)


def first_fragment(store: Neo4jStore, given: Vector, scope: Scope) -> str:
    return store.vectors.nearest(FragmentCandidate, given, scope, 1)[0].item.fragment.id


@pytest.mark.parametrize("scope", SCOPES)
def test_what_another_process_learned_meanwhile_is_found(
    store: Neo4jStore, other: Neo4jStore, scope: Scope
) -> None:
    other.runs.add([embedded(1), embedded(2)])
    assert first(store, vector(3), scope) in {"run0001", "run0002"}
    other.runs.add([embedded(3)])
    assert first(store, vector(3), scope) == "run0003"
    assert first_fragment(store, vector(1003), scope) == "run0003/0"


@pytest.mark.parametrize("scope", SCOPES)
def test_vectors_that_come_later_than_their_run_are_found(
    store: Neo4jStore, other: Neo4jStore, scope: Scope
) -> None:
    other.runs.add([embedded(1), made_bundle(2)])
    assert first(store, vector(2), scope) == "run0001"
    other.vectors.add(SPACE.name, {"run0002": run_vectors(2)}, {})
    assert first(store, vector(2), scope) == "run0002"


@pytest.mark.parametrize("scope", SCOPES)
def test_a_run_learned_again_is_compared_by_its_new_vector(
    store: Neo4jStore, other: Neo4jStore, scope: Scope
) -> None:
    other.runs.add([embedded(1), embedded(2)])
    assert first(store, vector(9), scope)
    other.runs.replace(replace(made_bundle(1), vectors=run_vectors(9)))
    near = store.vectors.nearest(Trajectory, vector(9), scope, 1)[0]
    assert (near.item.id, near.vector) == ("run0001", vector(9))


def test_vectors_of_a_space_that_was_left_are_not_compared(
    store: Neo4jStore, other: Neo4jStore
) -> None:
    other.runs.add([embedded(1)])
    assert first(store, vector(1), Scope()) == "run0001"
    later = Space("made/by-hand@4", 1)
    given = Vector.of(later.name, [1, 0, 0, 0])
    other.vectors.prepare(later, None)
    other.vectors.add(later.name, {"run0001": RunVectors(later.name, given, (given, None))}, {})
    other.vectors.switch(later.name)
    assert store.vectors.nearest(Trajectory, given, Scope(), 1)[0].vector == given


def test_vectors_of_a_deleted_memory_are_not_compared_in_a_new_one(
    store: Neo4jStore, other: Neo4jStore, neo4j_server: Neo4jServer
) -> None:
    other.runs.add([embedded(1), embedded(2)])
    put(other, methodology(1), 1)
    assert first(store, vector(1), Scope()) == "run0001"
    assert nearest(store, 1) == [("mth1", vector(1))]
    with GraphDatabase.driver(neo4j_server.uri, auth=neo4j_server.auth) as driver:
        driver.execute_query(
            "MATCH (n {tenant: $tenant}) DETACH DELETE n", tenant=store.admin.tenant
        )
    other.vectors.prepare(SPACE, None)
    other.vectors.switch(SPACE.name)
    other.runs.add([replace(made_bundle(1), vectors=run_vectors(9)), embedded(3)])
    put(other, methodology(1), 9)
    assert nearest(store, 9) == [("mth1", vector(9))]
    near = store.vectors.nearest(Trajectory, vector(9), Scope(), 3)
    assert [one.item.id for one in near if one.vector == vector(9)] == ["run0001"]
    assert {one.item.id for one in near} == {"run0001", "run0003"}


def test_a_time_without_zone_is_refused(store: Neo4jStore) -> None:
    store.runs.add([embedded(1)])
    a_time = datetime(2026, 3, 1, tzinfo=UTC).replace(tzinfo=None)
    with pytest.raises(StoreError, match="no time zone"):
        store.vectors.nearest(Trajectory, vector(1), Scope(as_of=a_time), 1)


@pytest.fixture
def older_indexes(store: Neo4jStore, neo4j_server: Neo4jServer) -> Iterator[None]:
    """Indexes as an older server makes them: they stay so when the server is upgraded."""
    with GraphDatabase.driver(neo4j_server.uri, auth=neo4j_server.auth) as driver:
        for label in ("Trajectory", "Fragment"):
            name = vector_index(label, PROPERTY)
            driver.execute_query(f"DROP INDEX {name}")
            driver.execute_query(
                f"CREATE VECTOR INDEX {name} FOR (n:{label}) ON (n.{PROPERTY}) OPTIONS "
                "{indexConfig: {`vector.dimensions`: 8, `vector.similarity_function`: 'cosine'}}"
            )
        driver.execute_query("CALL db.awaitIndexes(60)")
        yield
        for label in ("Trajectory", "Fragment"):
            driver.execute_query(f"DROP INDEX {vector_index(label, PROPERTY)}")
        create_vector_indexes(driver, "neo4j", PROPERTY)


def test_indexes_of_calendar_releases_have_filters(
    store: Neo4jStore, neo4j_server: Neo4jServer
) -> None:
    with GraphDatabase.driver(neo4j_server.uri, auth=neo4j_server.auth) as driver:
        has_filters = store.vectors._can_filter(vector_index("Fragment", PROPERTY))
        assert has_filters == (server_version(driver, "neo4j") > (2026, 3))


@pytest.mark.parametrize("upgraded", [False, True])
@pytest.mark.parametrize("scope", SCOPES)
def test_an_index_finds_the_same_as_comparing_all(
    store: Neo4jStore,
    other: Neo4jStore,
    scope: Scope,
    upgraded: bool,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if upgraded:
        request.getfixturevalue("older_indexes")
        assert not other.vectors._can_filter(vector_index("Fragment", PROPERTY))
    other.runs.add([embedded(number) for number in range(40)])
    hidden = replace(scope, exclude_instances=frozenset({"ada__engine-7"}))
    compared = [
        ask(store, given, within)
        for ask in (runs, fragments)
        for given in map(vector, (7, 1007, 77))
        for within in (scope, hidden)
    ]
    monkeypatch.setattr(vector_cache, "MAX_NUMBERS", 10 * 8)
    by_index = [
        ask(other, given, within)
        for ask in (runs, fragments)
        for given in map(vector, (7, 1007, 77))
        for within in (scope, hidden)
    ]
    assert by_index == compared


def test_the_cache_drops_the_oldest_scope(
    store: Neo4jStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.runs.add([embedded(number) for number in range(8)])
    given = vector(5)
    before = [store.vectors.nearest(Trajectory, given, scope, 3) for scope in SCOPES]
    monkeypatch.setattr(vector_cache, "_MAX_BYTES", 1)
    again = [store.vectors.nearest(Trajectory, given, scope, 3) for scope in SCOPES]
    assert again == before
    assert len(store.vectors._cache._cached) == 1


def methodology(number: int, strategy: str = "call it") -> Methodology:
    return Methodology(
        id=f"mth{number}",
        error_id="",
        keyword="",
        task_type=None,
        repo=None,
        situation="a cache fails",
        strategy=strategy,
        made_by="by hand",
        status=MethodologyStatus.ACTIVE,
        confidence=0.5,
        support=3,
        repositories=2,
        success_rate=0.5,
        avg_steps=2.0,
        frequency=3,
        sources=(Source("run0001", "run0001/0"),),
    )


def put(store: Neo4jStore, given: Methodology, number: int) -> None:
    store.methodologies.put([given])
    store.vectors.add(SPACE.name, {}, {given.id: vector(number)})


def nearest(store: Neo4jStore, number: int) -> list[tuple[str, Vector]]:
    near = store.vectors.nearest(Methodology, vector(number), Scope(), 2)
    return [(one.item.id, one.vector) for one in near]


def test_methodologies_embedded_meanwhile_are_found(store: Neo4jStore, other: Neo4jStore) -> None:
    other.runs.add([embedded(1)])
    put(other, methodology(1), 1)
    assert nearest(store, 2) == [("mth1", vector(1))]
    put(other, methodology(2), 2)
    assert nearest(store, 2)[0] == ("mth2", vector(2))


def test_changed_methodologies_are_found_by_their_new_vector(
    store: Neo4jStore, other: Neo4jStore
) -> None:
    other.runs.add([embedded(1)])
    put(other, methodology(1), 1)
    put(other, methodology(2), 2)
    assert nearest(store, 1)[0] == ("mth1", vector(1))
    other.methodologies.put([methodology(1, "call it twice")], (), (), ())
    assert nearest(store, 1) == [("mth2", vector(2))]
    other.vectors.add(SPACE.name, {}, {"mth1": vector(3)})
    assert nearest(store, 3)[0] == ("mth1", vector(3))
