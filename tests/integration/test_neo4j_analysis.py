"""The queries that are saved for analysts, on a memory that was learned and consolidated."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median

import pytest
from neo4j import Driver, GraphDatabase, Record

from contextgraph import AgentMemory
from contextgraph.knowledge import Entity, Page
from contextgraph.learning.statistics import type_transitions
from contextgraph.model import Condition, Scope
from contextgraph.readers import read
from tests.server import Neo4jServer

FOLDER = Path(__file__).parents[2] / "cypher" / "analysis"
GUIDE = Path(__file__).parents[2] / "docs" / "neo4j.md"
NAMES = sorted(path.stem for path in FOLDER.glob("*.cypher"))
EXAMPLES = Path(__file__).parents[2] / "examples" / "trajectories"
REPO = "harborlight/tidewatch"
# Empty for these runs: their agent had no memory, and none changed a file and failed.
EMPTY = {"advice_given", "files_edited_in_vain"}


def text(name: str) -> str:
    return (FOLDER / f"{name}.cypher").read_text()


@pytest.fixture(scope="module")
def memory(neo4j_server: Neo4jServer) -> Iterator[AgentMemory]:
    neo4j_server.forget()
    with AgentMemory(neo4j_server.uri, neo4j_server.auth) as opened:
        paths = [*EXAMPLES.glob("harborlight*-*.json"), *EXAMPLES.glob("fernway*-2*.json")]
        for _ in opened.learn_many(raw for path in sorted(paths) for raw in read(path)):
            pass
        opened.consolidate()
        write_rows(opened)
        yield opened


def write_rows(memory: AgentMemory) -> None:
    """Notes of each kind: replaced, contradicted and never recalled ones, a page and an entity."""
    remember = partial(memory.notes.remember, repo=REPO)
    remember("CI uses Python 3.11", tags=["ci"])
    remember("CI uses Python 3.12", source="file:tox.ini")
    remember("retries are handled by the client", source="agent:a")
    remember("retries are not handled by the client", source="agent:b")
    memory.entities.add_entity(Entity("Ledger"))
    memory.pages.add_page(Page("ledger", "The ledger", mentions=("Ledger",)))


@pytest.fixture(scope="module")
def driver(neo4j_server: Neo4jServer) -> Iterator[Driver]:
    with GraphDatabase.driver(neo4j_server.uri, auth=neo4j_server.auth) as opened:
        yield opened


def answer(driver: Driver, name: str, **parameters: object) -> list[Record]:
    found = driver.execute_query(
        text(name),
        {"days": 10_000, "repo": REPO.title(), "id": "", **parameters},
        database_="neo4j",
    )
    return found.records


def test_there_are_enough_of_them() -> None:
    assert len(NAMES) >= 15


@pytest.mark.parametrize("name", NAMES)
def test_each_has_a_title_and_keeps_to_one_tenant(name: str) -> None:
    first, *rest = text(name).splitlines()
    assert re.fullmatch(r"// [A-Z][^.]+", first)
    assert "{tenant: $tenant" in rest[0]
    assert set(re.findall(r"\$(\w+)", "\n".join(rest))) <= {"tenant", "days", "repo", "id"}


@pytest.mark.parametrize("name", NAMES)
def test_each_returns_rows_of_its_tenant_only(
    memory: AgentMemory, driver: Driver, name: str
) -> None:
    (methodology, *_) = memory.store.methodologies.ids()
    (run, *_) = memory.store.runs.ids()
    special = {"methodology_provenance": methodology, "entity_neighbourhood": "entity:ledger"}
    identity = special.get(name, run)

    rows = answer(driver, name, tenant="default", id=identity)

    assert bool(rows) is (name not in EMPTY)
    assert answer(driver, name, tenant="others", id=identity) == []


def test_counts_are_those_of_the_memory(memory: AgentMemory, driver: Driver) -> None:
    counts = memory.store.admin.counts()
    repositories = answer(driver, "repositories", tenant="default")
    assert sum(row["runs"] for row in repositories) == counts.nodes["Trajectory"]
    assert sum(row["solved"] for row in repositories) == counts.outcomes["solved"]
    phases = answer(driver, "phases", tenant="default")
    assert sum(row["fragments"] for row in phases) == counts.nodes["Fragment"]
    shown = {
        (row["error"], row["next"]): row["times"]
        for row in answer(driver, "error_transitions", tenant="default")
    }
    transitions = type_transitions(memory.store.recoveries.error_steps())
    assert shown
    assert all(transitions[error][then] == times for (error, then), times in shown.items())


def test_the_conditions_of_failure_are_those_of_the_statistics(
    memory: AgentMemory, driver: Driver
) -> None:
    rates = memory.stats.get_solve_rates()
    rows = answer(driver, "why_runs_fail", tenant="default", repo="")
    assert {row["condition"] for row in rows} == {name for name, one in rates.items() if one.shown}
    for row in rows:
        found = rates[Condition(row["condition"])]
        assert (row["runs"], row["solved"]) == (found.shown, found.solved_shown)


def test_figures_are_those_of_the_runs(memory: AgentMemory, driver: Driver) -> None:
    runs = [*memory.store.runs.trajectories(memory.store.runs.ids()).values()]
    for row in answer(driver, "solved_runs", tenant="default", repo=""):
        own = [run for run in runs if run.outcome == row["outcome"]]
        edits = [one.course.first_edit for one in own if one.course.first_edit is not None]
        assert row["runs"] == len(own)
        assert row["median_steps"] == median(run.total_steps for run in own)
        assert row["median_first_edit"] == (median(edits) if edits else None)
    tallies = {one.error.name: one for one in memory.store.recoveries.errors(Scope(), 1_000)}
    for row in answer(driver, "costly_errors", tenant="default", repo=""):
        tally = tallies[row["error"]]
        counts = (tally.steps, tally.tasks, tally.cleared)
        assert (row["steps"], row["tasks"], row["cleared"]) == counts
    days = Counter(run.seen_at.date() for run in runs)
    changes = answer(driver, "recent_changes", tenant="default")
    assert {row["day"].to_native(): row["runs"] for row in changes} == days
    (agent,) = answer(driver, "agents", tenant="default")
    assert (agent["runs"], agent["solved"]) == (len(runs), sum(bool(run.success) for run in runs))


def test_every_node_has_a_name_for_the_browser(memory: AgentMemory, driver: Driver) -> None:
    nameless = "MATCH (n) WHERE n.name IS NULL RETURN DISTINCT labels(n) AS labels"
    assert [row["labels"] for row in driver.execute_query(nameless).records] == []


def test_the_guide_names_each_label_and_relation(memory: AgentMemory, driver: Driver) -> None:
    labels = "MATCH (n) UNWIND labels(n) AS name RETURN DISTINCT name"
    types = "MATCH ()-[r]->() RETURN DISTINCT type(r) AS name"
    described = GUIDE.read_text().partition("## The graph")[2].partition("\n## ")[0]
    for query in (labels, types):
        found = {row["name"] for row in driver.execute_query(query).records}
        # Entities and pages are named as what notes can be, types of links by examples.
        named = set(re.findall(r"\w+", described)) | {"Entity", "Page", "FOLLOWS", "MENTIONS"}
        assert found - named == set()


@pytest.mark.parametrize("change", ["m.repo = 'another/one'", "m.status = 'retired'"])
def test_the_graph_of_a_repository_has_no_advice_of_another_and_none_retired(
    memory: AgentMemory, driver: Driver, change: str
) -> None:
    of_repo = "MATCH (m:Methodology {tenant: 'default', repo: $repo})"
    found = driver.execute_query(f"{of_repo} RETURN m.id AS id, m.status AS status", repo=REPO)
    own = {row["id"]: row["status"] for row in found.records}

    def shown() -> set[str]:
        rows = answer(driver, "repository_graph", tenant="default", repo=REPO)
        nodes = [node for row in rows if row["advised"] for node in row["advised"].nodes]
        return {node["id"] for node in nodes} & own.keys()

    assert shown()
    driver.execute_query(f"{of_repo} SET {change}", repo=REPO)
    try:
        assert not shown()
    finally:
        driver.execute_query(
            "UNWIND keys($own) AS id MATCH (m:Methodology {tenant: 'default', id: id}) "
            "SET m.repo = $repo, m.status = $own[id]",
            own=own,
            repo=REPO,
        )
    assert shown()


def test_the_guide_lists_them_all() -> None:
    guide = GUIDE.read_text()
    listed = re.findall(
        r"^\| \[(\w+)\]\(\.\./cypher/analysis/\1\.cypher\) \| (.+) \|$", guide, re.MULTILINE
    )
    assert dict(listed) == {name: text(name).splitlines()[0].removeprefix("// ") for name in NAMES}


def test_queries_of_the_design_find_errors_by_type_and_frequency(
    memory: AgentMemory, driver: Driver
) -> None:
    counted = driver.execute_query(
        "MATCH (e:ErrorPattern) RETURN e.id AS id, e.type = e.error_type AS typed, "
        "e.frequency AS frequency ORDER BY frequency DESC"
    ).records
    tallies = memory.store.recoveries.errors(Scope(), 1_000)
    assert {row["id"]: row["frequency"] for row in counted} == {
        tally.error.id: tally.tasks for tally in tallies
    }
    assert all(row["typed"] for row in counted)
    resolved = driver.execute_query(
        "MATCH (e:ErrorPattern)-[:RESOLVED_BY]->(m:Methodology) WHERE e.type IS NOT NULL "
        "RETURN m ORDER BY m.success_rate DESC"
    ).records
    assert len(resolved) == memory.store.admin.counts().edges["RESOLVED_BY"] > 0
