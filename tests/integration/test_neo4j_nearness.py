"""What is near on a Neo4j server: vectors that were read before are no older than the memory."""

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
    Methodology,
    MethodologyStatus,
    RunVectors,
    Scope,
    Source,
    Space,
)
from contextgraph.store.neo4j_store import Neo4jStore, held_vectors
from contextgraph.store.neo4j_store.server import server_version
from contextgraph.store.neo4j_store.transaction import Transaction
from contextgraph.store.neo4j_store.vector_index import (
    VectorIndexes,
    make_vector_indexes,
    vector_index,
)
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
    store.prepare_space(SPACE, None)
    store.switch_space(SPACE.name)
    yield store
    store.close()


@pytest.fixture
def other(neo4j_server: Neo4jServer, tenant: str) -> Iterator[Neo4jStore]:
    """Another process's door to the same memory."""
    store = Neo4jStore(neo4j_server.uri, neo4j_server.auth, tenant)
    yield store
    store.close()


def first(store: Neo4jStore, asked: Vector, scope: Scope) -> str:
    return store.nearest_trajectories(asked, scope, 1)[0].item.id


def first_fragment(store: Neo4jStore, asked: Vector, scope: Scope) -> str:
    return store.nearest_fragments(asked, scope, 1)[0].item.fragment.id


@pytest.mark.parametrize("scope", SCOPES)
def test_what_another_process_learned_meanwhile_is_found(
    store: Neo4jStore, other: Neo4jStore, scope: Scope
) -> None:
    other.add_bundles([embedded(1), embedded(2)])
    assert first(store, vector(3), scope) in {"run0001", "run0002"}
    other.add_bundles([embedded(3)])
    assert first(store, vector(3), scope) == "run0003"
    assert first_fragment(store, vector(1003), scope) == "run0003/0"


@pytest.mark.parametrize("scope", SCOPES)
def test_vectors_that_come_later_than_their_run_are_found(
    store: Neo4jStore, other: Neo4jStore, scope: Scope
) -> None:
    other.add_bundles([embedded(1), made_bundle(2)])
    assert first(store, vector(2), scope) == "run0001"
    other.add_vectors({"run0002": run_vectors(2)})
    assert first(store, vector(2), scope) == "run0002"


@pytest.mark.parametrize("scope", SCOPES)
def test_a_run_learned_again_is_compared_by_its_new_vector(
    store: Neo4jStore, other: Neo4jStore, scope: Scope
) -> None:
    other.add_bundles([embedded(1), embedded(2)])
    assert first(store, vector(9), scope)
    other.replace_bundle(replace(made_bundle(1), vectors=run_vectors(9)))
    near = store.nearest_trajectories(vector(9), scope, 1)[0]
    assert (near.item.id, near.vector) == ("run0001", vector(9))


def test_vectors_of_a_space_that_was_left_are_not_compared(
    store: Neo4jStore, other: Neo4jStore
) -> None:
    other.add_bundles([embedded(1)])
    assert first(store, vector(1), Scope()) == "run0001"
    later = Space("made/by-hand@4", 1)
    asked = Vector.of(later.name, [1, 0, 0, 0])
    other.prepare_space(later, None)
    other.add_vectors({"run0001": RunVectors(later.name, asked, (asked, None))})
    other.switch_space(later.name)
    assert store.nearest_trajectories(asked, Scope(), 1)[0].vector == asked


def test_vectors_of_a_memory_that_was_deleted_are_not_compared_in_one_made_anew(
    store: Neo4jStore, other: Neo4jStore, neo4j_server: Neo4jServer
) -> None:
    other.add_bundles([embedded(1), embedded(2)])
    put(other, methodology(1), 1)
    assert first(store, vector(1), Scope()) == "run0001"
    assert nearest(store, 1) == [("mth1", vector(1))]
    with GraphDatabase.driver(neo4j_server.uri, auth=neo4j_server.auth) as driver:
        driver.execute_query("MATCH (n {tenant: $tenant}) DETACH DELETE n", tenant=store.tenant)
    other.prepare_space(SPACE, None)
    other.switch_space(SPACE.name)
    other.add_bundles([replace(made_bundle(1), vectors=run_vectors(9)), embedded(3)])
    put(other, methodology(1), 9)
    assert nearest(store, 9) == [("mth1", vector(9))]
    near = store.nearest_trajectories(vector(9), Scope(), 3)
    assert [one.item.id for one in near if one.vector == vector(9)] == ["run0001"]
    assert {one.item.id for one in near} == {"run0001", "run0003"}


def test_a_time_without_zone_is_refused(store: Neo4jStore) -> None:
    store.add_bundles([embedded(1)])
    a_time = datetime(2026, 3, 1, tzinfo=UTC).replace(tzinfo=None)
    with pytest.raises(StoreError, match="no time zone"):
        store.nearest_trajectories(vector(1), Scope(as_of=a_time), 1)


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
        make_vector_indexes(driver, "neo4j", PROPERTY)


def know_scopes(server: Neo4jServer) -> bool:
    with GraphDatabase.driver(server.uri, auth=server.auth) as driver, driver.session() as session:
        index = vector_index("Fragment", PROPERTY)
        return session.execute_read(
            lambda tx: VectorIndexes().know_scopes(Transaction(tx, "any"), index)
        )


def test_indexes_of_calendar_releases_know_scopes(
    store: Neo4jStore, neo4j_server: Neo4jServer
) -> None:
    with GraphDatabase.driver(neo4j_server.uri, auth=neo4j_server.auth) as driver:
        assert know_scopes(neo4j_server) == (server_version(driver, "neo4j") > (2026, 3))


@pytest.mark.parametrize("upgraded", [False, True])
@pytest.mark.parametrize("scope", SCOPES)
def test_many_are_asked_of_an_index_and_are_the_same(
    store: Neo4jStore,
    other: Neo4jStore,
    neo4j_server: Neo4jServer,
    scope: Scope,
    upgraded: bool,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if upgraded:
        request.getfixturevalue("older_indexes")
        assert not know_scopes(neo4j_server)
    other.add_bundles([embedded(number) for number in range(40)])
    hidden = replace(scope, exclude_instances=frozenset({"ada__engine-7"}))
    looked_at = [
        ask(asked, within, 5)
        for ask in (store.nearest_trajectories, store.nearest_fragments)
        for asked in map(vector, (7, 1007, 77))
        for within in (scope, hidden)
    ]
    monkeypatch.setattr(held_vectors, "MOST_NUMBERS", 10 * 8)
    by_index = [
        ask(asked, within, 5)
        for ask in (other.nearest_trajectories, other.nearest_fragments)
        for asked in map(vector, (7, 1007, 77))
        for within in (scope, hidden)
    ]
    assert by_index == looked_at


def test_what_was_asked_for_longest_ago_is_let_go(
    store: Neo4jStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add_bundles([embedded(number) for number in range(8)])
    asked = vector(5)
    before = [store.nearest_trajectories(asked, scope, 3) for scope in SCOPES]
    monkeypatch.setattr(held_vectors, "_MOST_BYTES", 1)
    again = [store.nearest_trajectories(asked, scope, 3) for scope in SCOPES]
    assert again == before
    assert len(store._known.vectors._held) == 1


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
    store.put_methodologies([given], (), (), ())
    store.add_methodology_vectors(SPACE.name, {given.id: vector(number)})


def nearest(store: Neo4jStore, number: int) -> list[tuple[str, Vector]]:
    near = store.nearest_methodologies(vector(number), Scope(), 2)
    return [(one.item.id, one.vector) for one in near]


def test_methodologies_embedded_meanwhile_are_found(store: Neo4jStore, other: Neo4jStore) -> None:
    other.add_bundles([embedded(1)])
    put(other, methodology(1), 1)
    assert nearest(store, 2) == [("mth1", vector(1))]
    put(other, methodology(2), 2)
    assert nearest(store, 2)[0] == ("mth2", vector(2))


def test_methodologies_told_anew_are_found_by_their_new_vector(
    store: Neo4jStore, other: Neo4jStore
) -> None:
    other.add_bundles([embedded(1)])
    put(other, methodology(1), 1)
    put(other, methodology(2), 2)
    assert nearest(store, 1)[0] == ("mth1", vector(1))
    other.put_methodologies([methodology(1, "call it twice")], (), (), ())
    assert nearest(store, 1) == [("mth2", vector(2))]
    other.add_methodology_vectors(SPACE.name, {"mth1": vector(3)})
    assert nearest(store, 3)[0] == ("mth1", vector(3))
