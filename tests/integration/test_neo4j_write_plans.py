"""What is written is written row by row: no query waits for all rows of a batch before it goes on.

The queries are those that a memory of example runs really asks, each with the plan it was run by.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from contextgraph import AgentMemory
from contextgraph.model import (
    MethodologyStatus,
    Outcome,
    ResolvedBy,
    Retelling,
    RunVectors,
    Space,
)
from contextgraph.readers import read
from contextgraph.store.neo4j_store.queries import queries, query
from contextgraph.store.neo4j_store.transaction import Transaction
from contextgraph.vectors import Vector
from tests.made_bundles import made_bundle
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
# What waits all the same, and why it never waits for much.
WAITING = {
    "begin_change": "a memory is one node",
    "note_plans": "a memory is one node",
    "add_exposure": "one context at a time",
    "retire_spaces": "a memory has one or two spaces",
    "remove_stale_errors": "no batch: nodes without text, of errors whose runs were taken away",
    "remove_stale_repos": "no batch: nodes without text, of repositories that lost runs",
    "sweep_runs": "has a limit, of 200 runs",
    "sweep_methodologies": "no batch: methodologies are few",
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
        yield found


def write_everything(memory: AgentMemory) -> None:
    store = memory.store
    made = [made_bundle(number) for number in range(32)]
    store.add_bundles(made)
    store.add_bundles([made_bundle(number, outcome=Outcome.SOLVED) for number in range(8)])
    memory.consolidate()
    told = Retelling("a model", "a story", "said", {made[0].fragments[0].id: "said"})
    store.put_retellings({made[0].trajectory.id: told})
    store.replace_bundle(made[0])
    known = store.methodologies_of(store.methodology_ids())
    first, second = known[:2]
    goes = replace(second, status=MethodologyStatus.RETIRED, superseded_by=first.id)
    edge = ResolvedBy(made[0].errors[0].id, first.id, 0.5, 2.0, 3)
    store.put_methodologies([replace(first, situation="another"), goes], (), [edge], ())
    store.put_methodologies((), [first.id], (), ())
    store.add_exposure("context", [one.id for one in known[2:]], NOW)
    store.report_outcome("context", True)
    store.restore_exposures([replace(one, context_id="again") for one in store.exposures("", 9)])
    archived = store.archived_run(made[-1].trajectory.id)
    assert archived is not None
    store.forget([made[-1].trajectory.id])
    store.restore_runs([archived])
    store.prune_failed_fragments(sorted(store.unconsolidated(0).error_ids), 0)
    prepare_a_space(memory, made[0].trajectory.id)
    unsupported = replace(known[2], id="unsupported", sources=())
    store.put_methodologies([unsupported], (), (), ())
    store.remove_orphans()
    store.forget(store.trajectory_ids())
    store.mark_consolidated(store.unconsolidated().revision)


def prepare_a_space(memory: AgentMemory, run: str) -> None:
    space = Space("made/by-hand@4", 1)
    vector = Vector.of(space.name, [1, 0, 0, 0])
    memory.store.prepare_space(space, b"a model")
    memory.store.add_vectors({run: RunVectors(space.name, vector, (vector, vector))})
    memory.store.switch_space(space.name)


def waiting(plan: dict[str, Any]) -> Iterator[str]:
    """The operators of *plan* that wait for all rows, and products of all rows."""
    kind = plan["operatorType"].split("@")[0]
    if kind in {"Eager", "CartesianProduct"}:
        yield f"{kind} {plan['args'].get('Details', '')}"
    children = plan.get("children", ())
    for child in children[:1] if kind in ROW_BY_ROW else children:
        yield from waiting(child)


def test_all_that_can_be_written_was(plans: dict[str, list[dict[str, Any]]]) -> None:
    assert {*plans} >= OF_A_MEMORY


@pytest.mark.parametrize("name", sorted(OF_A_MEMORY - WAITING.keys()))
def test_a_query_does_not_wait_for_the_batch(
    name: str, plans: dict[str, list[dict[str, Any]]]
) -> None:
    assert [found for plan in plans[name] for found in waiting(plan)] == []


@pytest.mark.parametrize("name", sorted(WAITING))
def test_what_waits_is_in_the_list_for_a_reason(
    name: str, plans: dict[str, list[dict[str, Any]]]
) -> None:
    assert [found for plan in plans[name] for found in waiting(plan)] != []
