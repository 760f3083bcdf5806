"""Statements begin with an index, and those that write do not buffer their batch.

The statements are recorded, each with its plan, while a memory is written completely.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias
from uuid import uuid4

import pytest
from hypothesis import given, settings, strategies as st
from neo4j import GraphDatabase

from contextgraph import AgentMemory
from contextgraph.model import (
    Bundle,
    Exposure,
    MethodologyStatus,
    Outcome,
    ResolvedBy,
    ShownItem,
    Space,
    Vector,
    Verdict,
)
from contextgraph.model.values import replace
from contextgraph.store.neo4j.connection import BEGIN, Connection, Parameters, Transaction
from tests.arguments import Call, calls
from tests.builders import recovering_run
from tests.compared_stores import answer
from tests.made_bundles import made_bundle
from tests.memories import COMPARED
from tests.server import Neo4jServer

Plan: TypeAlias = Mapping[str, Any]
NOW = datetime(2026, 3, 1, tzinfo=UTC)
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


@pytest.fixture(scope="module")
def plans(neo4j_server: Neo4jServer) -> Mapping[str, Plan]:
    """The plan of each statement, while all that can be written was."""
    found: dict[str, Plan] = {}
    neo4j_server.forget()

    def explain(runs: Any, text: str, parameters: Parameters) -> None:
        """Plan a statement as it will be run next: the server keeps the plan for that."""
        if text not in found and not text.lstrip().startswith(("SHOW", "CALL db")):
            plan = runs.run(f"EXPLAIN {text}", parameters).consume().plan
            assert plan is not None  # it was asked for
            found[text] = plan

    def run(self: Transaction, text: str, parameters: Parameters) -> list[Any]:
        explain(self._transaction, text, parameters)
        return list(self._transaction.run(text, parameters))

    def reading(self: Connection, text: str, parameters: Parameters) -> list[Any]:
        with self._session("READ") as session:
            explain(session, text, parameters)
            return list(session.run(text, parameters))

    with (
        pytest.MonkeyPatch.context() as patch,
        AgentMemory.open(neo4j_server.uri, auth=neo4j_server.auth, tenant=uuid4().hex) as memory,
    ):
        # Of a few nodes, looking at all of them costs less than an index.
        memory.store.runs.add([made_bundle(number) for number in range(128)])
        with GraphDatabase.driver(neo4j_server.uri, auth=neo4j_server.auth) as driver:
            driver.execute_query("CALL db.prepareForReplanning(30)", database_="neo4j")
        patch.setattr(Transaction, "run", run)
        patch.setattr(Connection, "run", reading)
        write_everything(memory)
        call_each_operation(memory)
    return found


def write_everything(memory: AgentMemory) -> None:
    store = memory.store
    made = [made_bundle(number) for number in range(32)]
    store.runs.add(made)
    store.runs.add([made_bundle(number, outcome=Outcome.SOLVED) for number in range(8)])
    runs = [recovering_run(number, repo=f"acme/{number % 3}") for number in range(12)]
    list(memory.learn_many(runs))
    memory.consolidate()
    renamed = replace_id(made[1], "another")
    store.runs.replace({made[0].trajectory.id: made[0], made[1].trajectory.id: renamed})
    known = store.methodologies.get(store.methodologies.ids())
    first, second = known[:2]
    goes = replace(second, status=MethodologyStatus.RETIRED, superseded_by=first.id)
    edge = ResolvedBy(made[0].errors[0].id, first.id, 0.5, 2.0, 3)
    store.methodologies.put([replace(first, situation="another"), goes], resolved=[edge])
    store.methodologies.put((), [first.id])
    store.exposures.add([Exposure.of("context", [ShownItem(one.id) for one in known[2:]], NOW)])
    store.exposures.report("context", True)
    store.exposures.decide([Verdict("adv_1", True, NOW)])
    store.exposures.add([replace(one, context_id="again") for one in store.exposures.all()])
    archived = store.runs.archived(made[-1].trajectory.id)
    assert archived is not None
    store.runs.forget([made[-1].trajectory.id])
    store.runs.add([archived])
    store.recoveries.clean_up(sorted(store.admin.unconsolidated(0).error_ids), 0)
    prepare_a_space(memory, made[0].trajectory.id)
    unsupported = replace(known[2], id="unsupported", sources=())
    store.methodologies.put([unsupported])
    store.recoveries.clean_up((), 0)
    write_notes(memory)
    store.runs.forget(store.runs.ids())
    store.admin.mark_consolidated(store.admin.unconsolidated().revision)


def call_each_operation(memory: AgentMemory) -> None:
    """With arguments drawn for their parameters: `write_everything` may not know a new one."""

    @settings(max_examples=2, derandomize=True, database=None, deadline=None)
    @given(made=st.tuples(*map(calls, COMPARED)))
    def call_each(made: tuple[Call, ...]) -> None:
        for call in made:
            answer(memory.store, call.operation, call.arguments, call.named)

    call_each()


def write_notes(memory: AgentMemory) -> None:
    ids = [memory.notes.remember(f"rule {word}").id for word in ("one", "two", "three")]
    memory.notes.link(ids[0], ids[1])
    vector = Vector.of("made/notes@4", [1, 0, 0, 0])
    memory.store.notes.add(vector.space, dict.fromkeys(ids, vector))
    memory.notes.forget(ids)


def replace_id(bundle: Bundle, run: str) -> Bundle:
    """*bundle* as a run of another id."""
    fragments = tuple(replace(one, trajectory_id=run) for one in bundle.fragments)
    return replace(bundle, trajectory=replace(bundle.trajectory, id=run), fragments=fragments)


def prepare_a_space(memory: AgentMemory, run: str) -> None:
    space = Space("made/by-hand@4", 1)
    vector = Vector.of(space.name, [1, 0, 0, 0])
    memory.store.vectors.prepare(space, b"a model")
    memory.store.vectors.add(space.name, {run: vector})
    memory.store.vectors.switch(space.name)


def scans(plan: Mapping[str, Any]) -> Iterator[str]:
    """What *plan* looks at all nodes or relations of, but for labels of few."""
    details = str(plan["args"].get("Details", ""))
    if plan["operatorType"].split("@")[0] in SCANS and not FEW.search(details):
        yield details
    for child in plan.get("children", ()):
        yield from scans(child)


def buffering(plan: Mapping[str, Any]) -> Iterator[str]:
    """The operators of *plan* that buffer all rows, and products of all rows."""
    kind = plan["operatorType"].split("@")[0]
    if kind in {"Eager", "CartesianProduct"}:
        yield f"{kind} {plan['args'].get('Details', '')}"
    children = plan.get("children", ())
    for child in children[:1] if kind in ROW_BY_ROW else children:
        yield from buffering(child)


def test_each_statement_begins_with_an_index(plans: Mapping[str, Plan]) -> None:
    assert len(plans) > 50
    scanning = {text: [*scans(plan)] for text, plan in plans.items()}
    assert {text: found for text, found in scanning.items() if found} == {}


def test_what_is_written_is_not_buffered(plans: Mapping[str, Plan]) -> None:
    writing = {text for text in plans if WRITES.search(text)} - {BEGIN}
    assert len(writing) > 30
    buffered = {
        text: sorted({*buffering(plans[text])})
        for text in sorted(writing)
        if not any(form.search(text) for form in (DELETES, FEW, BOUNDED))
    }
    assert {text: found for text, found in buffered.items() if found} == {}
