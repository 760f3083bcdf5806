"""The schema on a Neo4j server: created for a new memory, migrated on demand only."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from neo4j import Driver, GraphDatabase

from contextgraph import AgentMemory
from contextgraph.errors import MemoryNotFoundError, SchemaError, StoreError
from contextgraph.knowledge import Entity, Page
from contextgraph.learning import bundle_of
from contextgraph.model import ErrorQuestion, Scope, SignatureLevel, Space
from contextgraph.store.neo4j import Neo4jStore, schema
from contextgraph.store.neo4j.schema import cypher_folder
from contextgraph.values import replace
from tests.made_bundles import SIGNATURE, made_bundle
from tests.planted import planted
from tests.server import Neo4jServer

LATER = f"V{len(schema.migrations()) + 1:04}__probe"


@pytest.fixture
def store(neo4j: Neo4jServer) -> Iterator[Neo4jStore]:
    with_database = Neo4jStore(neo4j.uri, neo4j.auth)
    yield with_database
    with_database.close()


@pytest.fixture
def driver(neo4j: Neo4jServer) -> Iterator[Driver]:
    with GraphDatabase.driver(neo4j.uri, auth=neo4j.auth) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The migrations of this version, free to be added to and edited."""
    copy = tmp_path / "cypher"
    shutil.copytree(cypher_folder(), copy)
    monkeypatch.setattr(schema, "cypher_folder", lambda: copy)
    return copy / "migrations"


def names(driver: Driver, shown: str) -> set[str]:
    """The names of all indexes or constraints."""
    found = driver.execute_query(
        f"SHOW {shown} YIELD name, type WHERE type <> 'LOOKUP' RETURN name"
    )
    return {record["name"] for record in found.records}


def add_later(folder: Path) -> None:
    text = "CREATE RANGE INDEX probe_name IF NOT EXISTS FOR (n:Probe) ON (n.name);\n"
    (folder / f"{LATER}.cypher").write_text(text)


def test_an_empty_database_becomes_a_memory_when_it_is_first_used(
    store: Neo4jStore, driver: Driver
) -> None:
    pending = store.admin.migrate(dry_run=True)
    assert pending == [step.name for step in schema.migrations()]
    assert names(driver, "INDEXES") == set()

    assert store.runs.ids() == []

    assert "trajectory_id" in names(driver, "CONSTRAINTS")
    states = driver.execute_query("SHOW INDEXES YIELD state RETURN collect(DISTINCT state) AS all")
    assert states.records[0]["all"] == ["ONLINE"]
    assert store.admin.migrate(dry_run=True) == []


def test_what_is_only_read_is_not_made(neo4j: Neo4jServer, driver: Driver) -> None:
    store = Neo4jStore(neo4j.uri, neo4j.auth, read_only=True)
    with pytest.raises(MemoryNotFoundError, match=rf"no memory at {neo4j.uri}; learn something"):
        store.runs.ids()
    with pytest.raises(StoreError, match="opened for reading only"):
        store.admin.migrate()
    store.close()
    assert names(driver, "CONSTRAINTS") == set()


def test_a_database_of_others_becomes_a_memory_only_on_demand(
    store: Neo4jStore, neo4j: Neo4jServer, driver: Driver
) -> None:
    driver.execute_query("CREATE (:Customer {name: 'Ada'})")

    remedy = f"holds data, but no memory; .* contextgraph call migrate --store {neo4j.uri}$"
    with pytest.raises(SchemaError, match=remedy):
        store.runs.ids()
    assert names(driver, "CONSTRAINTS") == set()

    assert store.admin.migrate() == [step.name for step in schema.migrations()]
    store.runs.add([made_bundle(1)])
    customers = driver.execute_query("MATCH (n:Customer) RETURN n.name AS name").records
    assert [record["name"] for record in customers] == ["Ada"]


def test_a_memory_is_refused_until_a_later_step_is_applied(
    store: Neo4jStore, neo4j: Neo4jServer, driver: Driver, folder: Path
) -> None:
    store.runs.add([made_bundle(1)])
    add_later(folder)
    later = Neo4jStore(neo4j.uri, neo4j.auth)

    with pytest.raises(
        SchemaError, match=f"lacks {LATER}; run contextgraph call migrate --store {neo4j.uri}$"
    ):
        later.runs.ids()
    assert later.admin.migrate(dry_run=True) == [LATER]
    assert "probe_name" not in names(driver, "INDEXES")

    assert later.admin.migrate() == [LATER]
    assert later.admin.migrate() == []
    assert "probe_name" in names(driver, "INDEXES")
    assert later.runs.ids() == store.runs.ids()
    later.close()


def test_a_memory_of_a_later_version_and_an_edited_step_are_refused(
    store: Neo4jStore, neo4j: Neo4jServer, folder: Path
) -> None:
    add_later(folder)
    store.runs.add([made_bundle(1)])

    with (folder / f"{LATER}.cypher").open("a") as file:
        file.write("// A comment may be added,\n")
    assert store.admin.migrate(dry_run=True) == []
    with (folder / f"{LATER}.cypher").open("a") as file:
        file.write("DROP INDEX other IF EXISTS;\n")
    with pytest.raises(SchemaError, match="not what was applied"):
        Neo4jStore(neo4j.uri, neo4j.auth).runs.ids()

    (folder / f"{LATER}.cypher").unlink()
    with pytest.raises(SchemaError, match="upgrade contextgraph-memory"):
        Neo4jStore(neo4j.uri, neo4j.auth).runs.ids()


@pytest.mark.parametrize("is_recorded", [False, True])
def test_a_step_that_was_broken_off_is_applied_again(
    store: Neo4jStore, driver: Driver, is_recorded: bool
) -> None:
    (first, *_) = schema.migrations()
    if is_recorded:  # and the next one was never begun
        schema.apply(driver, "neo4j", first)
    else:
        for statement in first.statements[:3]:
            driver.execute_query(statement)

    store.runs.add([made_bundle(1)])

    known = schema.indexes_of(schema.migrations())
    assert names(driver, "INDEXES") == {*known, "migration_name"}


def test_data_of_version_0_1_is_converted(store: Neo4jStore, driver: Driver) -> None:
    bundle = made_bundle(0)
    store.runs.add([bundle])
    store.vectors.prepare(Space("made/by-hand@4", 1), None)
    for statement in (
        "MATCH (m:Migration) WHERE m.name >= 'V0002' DELETE m",
        "MATCH ()-[r:RECOVERED]->() SET r.what = 'call it', r.actions = ['call']",
        "MATCH (e:ErrorPattern) SET e.told_by = e.described_by, e.described_by = null",
        "MATCH (t:Trajectory) SET t.retold = 'a summary', t.retold_by = 'a model'",
        "MATCH (s:Space) SET s.alike = 0.4, s.similarity_threshold = null",
    ):
        driver.execute_query(statement)

    assert len(store.admin.migrate()) == len(schema.migrations()) - 1
    assert store.admin.migrate() == []

    question = ErrorQuestion(SIGNATURE, SignatureLevel.TEMPLATE, Scope())
    (found,) = store.recoveries.for_error([question], 9)
    assert found.actions == ()
    (edge,) = driver.execute_query("MATCH ()-[r:RECOVERED]->() RETURN r").records
    assert edge["r"]["description"] == "call it"
    assert store.runs.learned(["run0000"])["run0000"].trajectory_id == "run0000"
    store.runs.replace({"run0000": bundle})
    assert store.runs.forget(["run0000"]) == 1


def test_a_memory_of_a_version_between_releases_is_migrated(
    store: Neo4jStore, driver: Driver
) -> None:
    store.runs.add([made_bundle(0)])
    before = store.runs.archived("run0000")
    driver.execute_query("MATCH (m:Migration) WHERE m.name >= 'V0002' DELETE m")
    driver.execute_query(
        "UNWIND $names AS name CREATE (:Migration {name: name, checksum: 'of another version'})",
        names=sorted(schema.REPLACED),
    )
    assert store.admin.migrate() == [step.name for step in schema.migrations()[1:]]
    assert store.admin.migrate() == []
    assert store.runs.archived("run0000") == before


@pytest.mark.parametrize("dimensions", [None, 3])
def test_vector_indexes_that_do_not_fit_are_refused_and_made_anew(
    store: Neo4jStore, neo4j: Neo4jServer, driver: Driver, dimensions: int | None
) -> None:
    store.vectors.prepare(Space("made/by-hand@4", 1), None)
    store.vectors.switch("made/by-hand@4")
    index = "trajectory_embedding_4_1"
    driver.execute_query(f"DROP INDEX {index}")
    if dimensions is not None:
        driver.execute_query(
            f"CREATE VECTOR INDEX {index} FOR (n:Trajectory) ON (n.embedding_4_1) "
            "OPTIONS {indexConfig: {`vector.dimensions`: $dimensions}}",
            dimensions=dimensions,
        )
    later = Neo4jStore(neo4j.uri, neo4j.auth)

    wanted = f"vector index {index} of 4 dimensions"
    with pytest.raises(SchemaError, match=f"lacks {wanted}; run contextgraph call migrate"):
        later.runs.ids()
    assert not {check.name: check.ok for check in later.admin.health()}["schema version"]
    assert later.admin.migrate() == [wanted]

    assert later.admin.migrate(dry_run=True) == []
    assert later.runs.ids() == []
    later.close()


def test_vectors_of_fragments_as_version_0_1_had_them_are_removed(
    store: Neo4jStore, neo4j: Neo4jServer, driver: Driver
) -> None:
    store.runs.add([made_bundle(0)])
    driver.execute_query("MATCH (m:Migration) WHERE m.name STARTS WITH 'V0003' DELETE m")
    driver.execute_query("MATCH (f:Fragment) SET f.embedding_4_1 = [1.0, 0.0, 0.0, 0.0]")
    driver.execute_query(
        "CREATE VECTOR INDEX fragment_embedding_4_1 FOR (n:Fragment) ON (n.embedding_4_1) "
        "OPTIONS {indexConfig: {`vector.dimensions`: 4}}"
    )
    later = Neo4jStore(neo4j.uri, neo4j.auth)
    assert later.admin.migrate()[-1] == "unused index fragment_embedding_4_1"
    assert later.admin.migrate(dry_run=True) == []
    found = "MATCH (f:Fragment) WHERE f.embedding_4_1 IS NOT NULL RETURN f"
    assert driver.execute_query(found).records == []
    later.close()


def test_entities_have_a_label_and_typed_relations_also_those_of_before(
    neo4j: Neo4jServer, driver: Driver
) -> None:
    def typed() -> list[tuple[str, str, float, str]]:
        found = driver.execute_query(
            "MATCH (a:Entity)-[r]->(b:Entity) "
            "RETURN a.name AS a, type(r) AS r, r.weight AS weight, b.name AS b"
        )
        return [(row["a"], row["r"], row["weight"], row["b"]) for row in found.records]

    with AgentMemory(neo4j.uri, neo4j_auth=neo4j.auth) as memory:
        for name in ("Cart", "PriceRule"):
            memory.entities.add_entity(Entity(name, "class"))
        memory.entities.add_relation("Cart", "PriceRule", "depends on", 0.5)
        memory.pages.add_page(Page("carts", "Carts", mentions=("Cart",)))
        expected = [("Cart", "DEPENDS ON", 0.5, "PriceRule")]
        assert typed() == expected
        mentioned = "MATCH (p:Page)-[:MENTIONS]->(e:Entity) RETURN p.name AS page, e.name AS entity"
        (row,) = driver.execute_query(mentioned).records
        assert (row["page"], row["entity"]) == ("Carts", "Cart")
        related = memory.entities.get_related("PriceRule")

        for statement in (
            "MATCH (m:Migration) WHERE m.name STARTS WITH 'V0004' DELETE m",
            (
                "MATCH (a:Note)-[r]->(b:Note) CREATE (a)-[:LINKED {type: toLower(type(r)), "
                "weight: r.weight}]->(b) DELETE r"
            ),
            "MATCH (n:Note) REMOVE n:Entity:Page",
        ):
            driver.execute_query(statement)
    assert typed() == []
    later = Neo4jStore(neo4j.uri, neo4j.auth)
    assert [name[:5] for name in later.admin.migrate()] == ["V0004"]
    later.close()
    assert typed() == expected
    assert driver.execute_query("MATCH ()-[r:LINKED]->() RETURN r").records == []
    with AgentMemory(neo4j.uri, neo4j_auth=neo4j.auth) as memory:
        assert memory.entities.get_related("PriceRule") == related
        assert memory.entities.remove_entity("Cart")
        assert typed() == []
        (left,) = driver.execute_query("MATCH (n:Entity) RETURN n.name AS name").records
        assert left["name"] == "PriceRule"


MIGRATE = """
import sys
from contextgraph.store.neo4j import Neo4jStore
store = Neo4jStore(sys.argv[1], (sys.argv[2], sys.argv[3]))
store.admin.migrate()
print(len(store.runs.ids()))
store.close()
"""


def test_processes_may_make_one_memory_at_once(neo4j: Neo4jServer, driver: Driver) -> None:
    command = [sys.executable, "-c", MIGRATE, neo4j.uri, *neo4j.auth]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    outputs = [process.communicate() for process in running]
    assert outputs == [("0\n", "")] * 3
    found = driver.execute_query("MATCH (m:Migration) RETURN count(*) AS count").records
    assert found[0]["count"] == len(schema.migrations())


def test_what_an_older_version_stored_in_the_clear_is_masked(
    neo4j: Neo4jServer, driver: Driver
) -> None:
    planted_runs = [planted(kind, "task", Random(1)) for kind in ("cookie", "netrc", "bearer")]
    with AgentMemory.open(neo4j.uri, auth=neo4j.auth) as memory:
        for number, (raw, _) in enumerate(planted_runs):
            older = replace(raw, instance_id=f"acme__shop-{number}")
            bundle = bundle_of(older, datetime(2026, 3, 1, tzinfo=UTC))
            run = replace(bundle.trajectory, task=older.task)
            memory.store.runs.add([replace(bundle, raw=older, trajectory=run)])
        assert memory.mask_stored() == (3, 3)
        assert memory.mask_stored() == (0, 0)
        raws = [memory.store.runs.raw(one) for one in memory.store.runs.ids()]
    nodes = driver.execute_query("MATCH (n) RETURN collect(properties(n)) AS found").records
    assert len(raws) == 3
    assert not any(secret in f"{raws}{nodes}" for _, secret in planted_runs)
