"""No query scans all nodes or relations of a kind: each begins with an index."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from contextgraph.store.neo4j import Neo4jStore
from contextgraph.store.neo4j.schema import queries
from tests.made_bundles import made_bundle
from tests.server import Neo4jServer

SCANS = {
    "AllNodesScan",
    "NodeByLabelScan",
    "UnionNodeByLabelsScan",
    "IntersectionNodeByLabelsScan",
    "AllRelationshipsScan",
    "DirectedAllRelationshipsScan",
    "UndirectedAllRelationshipsScan",
    "DirectedRelationshipTypeScan",
    "UndirectedRelationshipTypeScan",
}
# A memory has one or two spaces.
FEW = {
    "spaces",
    "space_model",
    "put_space_model",
    "retire_spaces",
    "retired_spaces",
    "remove_space",
}
# These count all of a memory: where to begin depends on the numbers of nodes and relations.
ALL = {"common_errors_in_phase_everywhere", "counts"}
# These name the index at which they begin, in a language that 5.26 does not know.
SEARCHES = re.compile(r"^SEARCH \w+ IN", re.MULTILINE)


def operators(plan: dict[str, Any] | None) -> Iterator[str]:
    assert plan is not None  # it was asked for
    yield plan["operatorType"].split("@")[0]
    for child in plan.get("children", ()):
        yield from operators(child)


@pytest.fixture(scope="module")
def plans(neo4j_server: Neo4jServer) -> dict[str, set[str]]:
    """The operators of each query about a memory."""
    from neo4j import GraphDatabase

    # Of a few nodes, looking at all of them costs less than an index.
    for tenant in ("plans", "neighbour"):
        store = Neo4jStore(neo4j_server.uri, neo4j_server.auth, tenant)
        for start in range(0, 128, 32):
            store.runs.add([made_bundle(start + number) for number in range(32)])
        store.close()
    with GraphDatabase.driver(neo4j_server.uri, auth=neo4j_server.auth) as driver:
        return {
            name: set(
                operators(driver.execute_query(f"EXPLAIN {text}", database_="neo4j").summary.plan)
            )
            for name, text in queries().items()
            if "$tenant" in text and not SEARCHES.search(text)
        }


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, text in queries().items()
        if "$tenant" in text and not SEARCHES.search(text) and name not in FEW | ALL
    ],
)
def test_a_query_begins_with_an_index(name: str, plans: dict[str, set[str]]) -> None:
    assert plans[name] & SCANS == set()
