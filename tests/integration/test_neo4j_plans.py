"""Statements begin with an index, and those that write do not buffer their batch.

The plans are noted while a memory is written completely; those of each operation are looked at in
`tests/congruence/test_operations.py`.
"""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

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
from tests.builders import recovering_run
from tests.made_bundles import made_bundle
from tests.plans import Plans
from tests.server import Neo4jServer

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def plans_of_writing(plans: Plans, neo4j_server: Neo4jServer) -> Plans:
    """The plans while all that can be written was."""
    with (
        AgentMemory.open(neo4j_server.uri, auth=neo4j_server.auth, tenant=uuid4().hex) as memory,
        plans.noted(),
    ):
        write_everything(memory)
    return plans


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


def test_each_statement_begins_with_an_index(plans_of_writing: Plans) -> None:
    assert len(plans_of_writing.found) > 50
    assert plans_of_writing.scanning() == {}


def test_what_is_written_is_not_buffered(plans_of_writing: Plans) -> None:
    assert len(plans_of_writing.writing()) > 30
    assert plans_of_writing.buffering() == {}
