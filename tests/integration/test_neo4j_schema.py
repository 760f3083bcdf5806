"""The schema on a Neo4j server: created for a new memory, refused where it is another."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import product
from random import Random
from typing import LiteralString

import pytest
from neo4j import Driver, GraphDatabase

from contextgraph import AgentMemory
from contextgraph.errors import MemoryNotFoundError, SchemaError, StoreError
from contextgraph.knowledge import Entity, Page
from contextgraph.learning import bundle_of
from contextgraph.model import Note, Outcome, Vector
from contextgraph.model.values import replace
from contextgraph.store.neo4j import Neo4jStore, schema
from contextgraph.store.tables import TABLES
from tests.builders import NO_MODULE, installing_run, run
from tests.made_bundles import made_bundle
from tests.planted import planted
from tests.server import Neo4jServer

INDEXES = schema.Schema(TABLES).indexes


@pytest.fixture
def store(neo4j: Neo4jServer) -> Iterator[Neo4jStore]:
    with_database = Neo4jStore(neo4j.uri, neo4j.auth)
    yield with_database
    with_database.close()


@pytest.fixture
def driver(neo4j_server: Neo4jServer) -> Iterator[Driver]:
    with GraphDatabase.driver(neo4j_server.uri, auth=neo4j_server.auth) as opened:
        yield opened


def names(driver: Driver, shown: str) -> set[str]:
    """The names of all indexes or constraints."""
    found = driver.execute_query(
        f"SHOW {shown} YIELD name, type WHERE type <> 'LOOKUP' RETURN name"
    )
    return {record["name"] for record in found.records}


def test_an_empty_database_becomes_a_memory_when_it_is_first_used(
    store: Neo4jStore, driver: Driver
) -> None:
    assert names(driver, "INDEXES") == set()

    assert store.runs.ids() == []

    assert names(driver, "INDEXES") == {*INDEXES}
    states = driver.execute_query("SHOW INDEXES YIELD state RETURN collect(DISTINCT state) AS all")
    assert states.records[0]["all"] == ["ONLINE"]


def test_what_is_only_read_is_not_made(neo4j: Neo4jServer, driver: Driver) -> None:
    store = Neo4jStore(neo4j.uri, neo4j.auth, read_only=True)
    with pytest.raises(MemoryNotFoundError, match=rf"no memory at {neo4j.uri}; learn something"):
        store.runs.ids()
    with pytest.raises(StoreError, match="reading only"):
        store.runs.add([made_bundle(1)])
    store.close()
    assert names(driver, "CONSTRAINTS") == set()


def test_a_database_of_others_stays_as_it_is(store: Neo4jStore, driver: Driver) -> None:
    driver.execute_query("CREATE (:Customer {name: 'Ada'})")

    with pytest.raises(SchemaError, match="holds data, but no memory of schema"):
        store.runs.ids()
    assert names(driver, "CONSTRAINTS") == set()


def test_a_memory_of_another_version_is_refused(
    neo4j_with_indexes: Neo4jServer, driver: Driver
) -> None:
    address, auth = neo4j_with_indexes.uri, neo4j_with_indexes.auth
    for other, read_only in product((schema.NUMBER - 1, schema.NUMBER + 1), (False, True)):
        driver.execute_query("MATCH (s:Schema) SET s.number = $number", number=other)
        wanted = f"has schema {other}, this version has {schema.NUMBER}; export it with"
        with (
            closing(Neo4jStore(address, auth, read_only=read_only)) as later,
            pytest.raises(SchemaError, match=wanted),
        ):
            later.runs.ids()


def test_vector_indexes_that_do_not_fit_are_created_again_by_a_writer(
    neo4j_to_change: Neo4jServer, driver: Driver
) -> None:
    address, auth = neo4j_to_change.uri, neo4j_to_change.auth
    vector = Vector.of("made/by-hand@4", [1, 0, 0, 0])
    with closing(Neo4jStore(address, auth)) as store:
        store.notes.change(new=[Note("note", "", "", "", datetime(2026, 3, 1, tzinfo=UTC))])
        store.notes.add(vector.space, {"note": vector})
    index = "note_embedding_4_1"
    wanted = f"lacks vector index {index} of 4 dimensions; run contextgraph call consolidate"

    for dimensions in (None, 3):
        driver.execute_query(f"DROP INDEX {index}")
        if dimensions is not None:
            driver.execute_query(
                f"CREATE VECTOR INDEX {index} FOR (n:Note) ON (n.embedding_4_1) "
                "OPTIONS {indexConfig: {`vector.dimensions`: $dimensions}}",
                dimensions=dimensions,
            )
        with (
            closing(Neo4jStore(address, auth, read_only=True)) as reader,
            closing(Neo4jStore(address, auth)) as writer,
        ):
            with pytest.raises(SchemaError, match=wanted):
                reader.runs.ids()
            assert not {one.name: one.ok for one in reader.admin.health()}["schema version"]

            for opened in (writer, reader):
                assert [note.id for note in opened.notes.all()] == ["note"]
        shown = "SHOW VECTOR INDEXES YIELD name, options WHERE name = $name RETURN options"
        (found,) = driver.execute_query(shown, name=index).records
        assert found["options"]["indexConfig"]["vector.dimensions"] == 4


def test_entities_have_a_label_and_typed_relations(
    neo4j_with_indexes: Neo4jServer, driver: Driver
) -> None:
    def typed() -> list[tuple[str, str, float, str]]:
        found = driver.execute_query(
            "MATCH (a:Entity)-[r]->(b:Entity) "
            "RETURN a.name AS a, type(r) AS r, r.weight AS weight, b.name AS b"
        )
        return [(row["a"], row["r"], row["weight"], row["b"]) for row in found.records]

    server = neo4j_with_indexes
    with AgentMemory(server.uri, neo4j_auth=server.auth) as memory:
        for name in ("Cart", "PriceRule"):
            memory.entities.add_entity(Entity(name, "class"))
        memory.entities.add_relation("Cart", "PriceRule", "depends on", 0.5)
        memory.pages.add_page(Page("carts", "Carts", mentions=("Cart",)))
        expected = [("Cart", "DEPENDS ON", 0.5, "PriceRule")]
        assert typed() == expected
        mentioned = "MATCH (p:Page)-[:MENTIONS]->(e:Entity) RETURN p.name AS page, e.name AS entity"
        (row,) = driver.execute_query(mentioned).records
        assert (row["page"], row["entity"]) == ("Carts", "Cart")
        assert memory.entities.get_related("PriceRule")
        assert memory.entities.remove_entity("Cart")
        assert typed() == []
        (left,) = driver.execute_query("MATCH (n:Entity) RETURN n.name AS name").records
        assert left["name"] == "PriceRule"


MAKE = """
import sys
from contextgraph.store.neo4j import Neo4jStore
store = Neo4jStore(sys.argv[1], (sys.argv[2], sys.argv[3]))
print(len(store.runs.ids()))
store.close()
"""


def test_processes_may_complete_at_once_what_was_broken_off(
    neo4j: Neo4jServer, driver: Driver
) -> None:
    for statement in [*INDEXES.values()][:3]:
        schema.run_statement(driver, "neo4j", statement)
    command = [sys.executable, "-c", MAKE, neo4j.uri, *neo4j.auth]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    outputs = [process.communicate() for process in running]
    assert outputs == [("0\n", "")] * 3
    assert names(driver, "INDEXES") == {*INDEXES}
    found = driver.execute_query("MATCH (s:Schema) RETURN s.number AS number").records
    assert [row["number"] for row in found] == [schema.NUMBER]


def test_what_an_older_version_stored_in_the_clear_is_masked(
    neo4j_with_indexes: Neo4jServer, driver: Driver
) -> None:
    server = neo4j_with_indexes
    planted_runs = [planted(kind, "task", Random(1)) for kind in ("cookie", "netrc", "bearer")]
    with AgentMemory.open(server.uri, auth=server.auth) as memory:
        for number, (raw, _) in enumerate(planted_runs):
            older = replace(raw, instance_id=f"acme__shop-{number}")
            bundle = bundle_of(older, datetime(2026, 3, 1, tzinfo=UTC))
            run = replace(bundle.trajectory, task=older.task)
            memory.store.runs.add([replace(bundle, raw=older, trajectory=run)])
        assert len([*memory.rebuild()]) == 3
        raws = [memory.store.runs.raw(one) for one in memory.store.runs.ids()]
    nodes = driver.execute_query("MATCH (n) RETURN collect(properties(n)) AS found").records
    assert len(raws) == 3
    assert not any(secret in f"{raws}{nodes}" for _, secret in planted_runs)


# Of document 003.
QUERIES: dict[str, LiteralString] = {
    "by_error": """MATCH (e:ErrorPattern)-[:RESOLVED_BY]->(m:Methodology)
        WHERE e.type = $error_type RETURN m ORDER BY m.success_rate DESC""",
    "by_task": """MATCH (t:Trajectory)-[:HAS_FRAGMENT]->(f:Fragment)
        WHERE t.task_type = $task_type AND t.success = true RETURN f ORDER BY f.outcome""",
    "by_state": """MATCH (m:Methodology) WHERE m.situation CONTAINS $phase
        RETURN m ORDER BY m.confidence DESC LIMIT 5""",
    "get_error_frequency": """MATCH (e:ErrorPattern)
        RETURN e.error_type, count(*) AS count ORDER BY count DESC""",
    "get_error_transitions": """MATCH (f:Fragment)-[:CAUSED_ERROR]->(e:ErrorPattern)
        RETURN e.error_type, count(f) AS frequency""",
    "get_common_mistakes": """MATCH (t:Trajectory)-[:HAS_FRAGMENT]->(f:Fragment)
        WHERE f.outcome = 'failed'
          AND toLower(coalesce(t.summary, '')) CONTAINS toLower($situation)
        RETURN f.description, count(*) as freq ORDER BY freq DESC LIMIT 10""",
    "ErrorPattern.frequency": "MATCH (e:ErrorPattern) RETURN e.frequency",
    "relations": """MATCH (:Trajectory)-[h:HAS_FRAGMENT]->(:Fragment)-[:CAUSED_ERROR]->
        (:ErrorPattern)-[r:RESOLVED_BY]->(:Methodology)
        RETURN h.order, r.success_rate, r.avg_steps""",
}


def test_the_queries_of_the_document_return_rows(neo4j_with_indexes: Neo4jServer) -> None:
    server = neo4j_with_indexes
    with AgentMemory(server.uri, server.auth) as memory:
        for number in range(1, 17):
            memory.learn(replace(installing_run(number), outcome=Outcome.SOLVED))
        failed = run([("python reproduce.py", NO_MODULE, 1)] * 4, instance_id="acme__shop-99")
        memory.learn(failed)
        memory.consolidator.consolidate(batch_size=16)
    parameters = {
        "error_type": "ModuleNotFoundError",
        "task_type": "bug_fix",
        "phase": "reproducing",
        "situation": "TOTALS",
    }
    with GraphDatabase.driver(server.uri, auth=server.auth) as driver:
        for name, text in QUERIES.items():
            found = driver.execute_query(text, parameters, database_="neo4j").records
            assert found, name
            assert None not in found[0].values(), name
        (error,) = driver.execute_query(QUERIES["ErrorPattern.frequency"]).records
        assert error["e.frequency"] == 17
