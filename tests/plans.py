"""The plans of statements that tests have a Neo4j server run."""

import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, TypeAlias
from uuid import uuid4

import pytest
from neo4j import GraphDatabase

from contextgraph.model import ResolvedBy, SimilarTo, Source
from contextgraph.model.values import replace
from contextgraph.store.neo4j import Neo4jStore
from contextgraph.store.neo4j.connection import (
    BEGIN,
    Connection,
    Parameters,
    Transaction,
    store_errors,
)
from contextgraph.store.tables import TABLES
from tests.made_bundles import made_bundle, made_methodology
from tests.server import Neo4jServer

Plan: TypeAlias = Mapping[str, Any]
WRITES = re.compile(r"\b(CREATE|MERGE|SET|DELETE|REMOVE)\b")
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
# These run their second input for one row of the first at a time.
ROW_BY_ROW = {
    "Apply",
    "SubqueryForeach",
    "RollUpApply",
    "SemiApply",
    "AntiSemiApply",
    "SelectOrSemiApply",
    "SelectOrAntiSemiApply",
    "LetSemiApply",
    "LetAntiSemiApply",
    "Foreach",
}
# A memory has few of these nodes.
FEW = re.compile(r"VectorSlot|:Memory|:Space\b|:SpaceModel|:MemoryState")
# Rows of several tables are put by one statement, at most 1,000 of each table.
BOUNDED = re.compile(r"UNWIND \$rows\[")
# What deletes collects it first, at most 1,000 rows; vectors are dropped without a batch.
DELETES = re.compile(r"\bDELETE\b|SET n\[\$property\] = null SET")


class Plans:
    """The plan of each statement that was run while plans were noted."""

    def __init__(self) -> None:
        self.found: dict[str, Plan] = {}

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note the plans of the statements that stores run in this block."""

        def run(transaction: Transaction, text: str, parameters: Parameters) -> list[Any]:
            return self._run(transaction._transaction, text, parameters)

        def reading(connection: Connection, text: str, parameters: Parameters) -> list[Any]:
            with store_errors(connection.address), connection._session("READ") as session:
                return self._run(session, text, parameters)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Transaction, "run", run)
            patch.setattr(Connection, "run", reading)
            yield

    def _run(self, runs: Any, text: str, parameters: Parameters) -> list[Any]:
        """Run a statement, the first time with its plan: to ask for that alone takes 0.06 s."""
        if text in self.found or text.lstrip().startswith(("SHOW", "CALL db")):
            return list(runs.run(text, parameters))
        result = runs.run(f"PROFILE {text}", parameters)
        rows = list(result)
        self.found[text] = result.consume().profile
        return rows

    def scanning(self) -> dict[str, list[str]]:
        """Return what statements look at all nodes or relations of."""
        found = {text: [*_scans(plan)] for text, plan in self.found.items()}
        return {text: scans for text, scans in found.items() if scans}

    def writing(self) -> set[str]:
        """The statements that change something."""
        return {text for text in self.found if WRITES.search(text)} - {BEGIN}

    def buffering(self) -> dict[str, list[str]]:
        """How statements buffer what they write."""
        found = {
            text: sorted({*_buffering(self.found[text])})
            for text in sorted(self.writing())
            if not any(form.search(text) for form in (DELETES, FEW, BOUNDED))
        }
        return {text: operators for text, operators in found.items() if operators}


@pytest.fixture(scope="session")
def plans(neo4j_server: Neo4jServer) -> Plans:
    """Plans on a server with so many of all that to look at them costs more than an index."""
    neo4j_server.forget()
    with closing(Neo4jStore(neo4j_server.uri, neo4j_server.auth, uuid4().hex)) as store:
        made = [made_bundle(number) for number in range(128)]
        store.runs.add(made)
        sources = [Source(one.trajectory.id, one.fragments[1].id) for one in made]
        errors = [one.errors[0].id for one in made]
        known = [
            replace(made_methodology(number + 1), sources=(source,))
            for number, source in enumerate(sources)
        ]
        store.methodologies.put(
            known,
            resolved=[
                ResolvedBy(error, one.id, 0.5, 2.0, 3)
                for error, one in zip(errors, known, strict=True)
            ],
            similar=[
                SimilarTo(error, source, sources[0], 0.5)
                for error, source in zip(errors, sources, strict=True)
            ],
        )
    with GraphDatabase.driver(neo4j_server.uri, auth=neo4j_server.auth) as driver:
        relations = (
            "MATCH ()-[r]->() WHERE type(r) IN $kinds RETURN count(DISTINCT type(r)) AS kinds"
        )
        kinds = [table.label for table in TABLES if table.ends]
        found = driver.execute_query(relations, kinds=kinds, database_="neo4j").records
        assert found[0]["kinds"] == len(kinds)
        driver.execute_query("CALL db.prepareForReplanning(30)", database_="neo4j")
    return Plans()


def _scans(plan: Plan) -> Iterator[str]:
    """Return what *plan* looks at all nodes or relations of, but for labels of few."""
    details = str(plan["args"].get("Details", ""))
    if plan["operatorType"].split("@")[0] in SCANS and not FEW.search(details):
        yield details
    for child in plan.get("children", ()):
        yield from _scans(child)


def _buffering(plan: Plan) -> Iterator[str]:
    """The operators of *plan* that buffer all rows, and products of all rows."""
    kind = plan["operatorType"].split("@")[0]
    if kind in {"Eager", "CartesianProduct"}:
        yield f"{kind} {plan['args'].get('Details', '')}"
    children = plan.get("children", ())
    for child in children[:1] if kind in ROW_BY_ROW else children:
        yield from _buffering(child)
