"""Write queries process their batch row by row: no Eager over the batch, no CartesianProduct.

The queries are those that a memory of example runs sends, each with the plan that it ran by.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings, strategies as st

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
from contextgraph.readers import read
from contextgraph.store.neo4j.connection import Transaction
from contextgraph.store.neo4j.schema import queries, query
from contextgraph.values import replace
from tests.arguments import Call, calls
from tests.compared_stores import answer
from tests.made_bundles import made_bundle
from tests.memories import COMPARED
from tests.server import Neo4jServer

EXAMPLES = Path(__file__).parents[2] / "examples" / "trajectories"
NOW = datetime(2026, 3, 1, tzinfo=UTC)
WRITES = re.compile(r"\b(CREATE|MERGE|SET|DELETE|REMOVE)\b")
OF_A_MEMORY = {
    name for name, text in queries().items() if "$tenant" in text and WRITES.search(text)
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
# Plans with Eager, and why it never buffers much.
EAGER = {
    "begin_change": "a memory is one node",
    "note_replanning": "a memory is one node",
    "note_former_ids": "runs have few former ids",
    "retire_spaces": "a memory has one or two spaces",
    "remove_changed_errors": "no batch: nodes without text, of errors whose runs were removed",
    "remove_changed_repos": "no batch: nodes without text, of repositories that lost runs",
    "clear_runs": "has a limit, of 200 runs",
}


@pytest.fixture(scope="module")
def plans(neo4j_server: Neo4jServer) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """The plans by which each query was run, while all that can be written was."""
    found: dict[str, list[dict[str, Any]]] = {}
    neo4j_server.empty()

    def rows(self: Transaction, name: str, /, **parameters: object) -> list[Any]:
        run = self._transaction.run
        result = run(f"PROFILE {query(name)}", {"tenant": self.tenant, **parameters})
        returned = list(result)
        profile = result.consume().profile
        assert profile is not None  # it was asked for
        found.setdefault(name, []).append(profile)
        return returned

    with (
        pytest.MonkeyPatch.context() as patch,
        AgentMemory.open(neo4j_server.uri, auth=neo4j_server.auth, tenant=uuid4().hex) as memory,
    ):
        list(memory.learn_many(read(EXAMPLES)))  # of no data, any plan is good
        patch.setattr(Transaction, "rows", rows)
        write_everything(memory)
        call_each_operation(memory)
        yield found


def write_everything(memory: AgentMemory) -> None:
    store = memory.store
    made = [made_bundle(number) for number in range(32)]
    store.runs.add(made)
    store.runs.add([made_bundle(number, outcome=Outcome.SOLVED) for number in range(8)])
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

    @settings(max_examples=4, derandomize=True, database=None, deadline=None)
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


def buffering(plan: dict[str, Any]) -> Iterator[str]:
    """The operators of *plan* that buffer all rows, and products of all rows."""
    kind = plan["operatorType"].split("@")[0]
    if kind in {"Eager", "CartesianProduct"}:
        yield f"{kind} {plan['args'].get('Details', '')}"
    children = plan.get("children", ())
    for child in children[:1] if kind in ROW_BY_ROW else children:
        yield from buffering(child)


def test_all_that_can_be_written_was(plans: dict[str, list[dict[str, Any]]]) -> None:
    assert {*plans} >= OF_A_MEMORY


@pytest.mark.parametrize("name", sorted(OF_A_MEMORY - EAGER.keys()))
def test_a_query_does_not_buffer_the_batch(
    name: str, plans: dict[str, list[dict[str, Any]]]
) -> None:
    assert [found for plan in plans[name] for found in buffering(plan)] == []


@pytest.mark.parametrize("name", sorted(EAGER))
def test_each_exception_is_needed(name: str, plans: dict[str, list[dict[str, Any]]]) -> None:
    assert [found for plan in plans[name] for found in buffering(plan)] != []
