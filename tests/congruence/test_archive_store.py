"""What is handed from store to store is the same, whichever stores these are."""

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import strategies as st

from contextgraph.model import Bundle, Exposure, Scope, ShownItem
from tests.congruence.pairs import RUNS, congruent, memories
from tests.strategies import (
    CONTEXT_IDS,
    ERROR_IDS,
    ITEM_IDS,
    SPACES,
    Abstracted,
    abstracted,
    shown_items,
)
from tests.twins import Twins

SHOWN_AT = datetime(2026, 3, 1, tzinfo=UTC)
SPACE = SPACES[0]


@congruent(memory=memories, keep=st.integers(0, 2))
def test_runs_archived(twins: Twins, memory: list[Bundle], keep: int) -> None:
    twins.write("vectors.prepare", SPACE, None)
    twins.write("vectors.switch", SPACE.name)
    twins.learn(memory)
    twins.write("recoveries.clean_up", ERROR_IDS, keep)
    for run in RUNS:
        twins.ask("runs.archived", run)


@congruent(memory=memories)
def test_archived_runs_are_added(twins: Twins, memory: list[Bundle]) -> None:
    """Also where a run met an error more often than its fragments show."""
    runs = [
        replace(bundle, met={error.id: number for number, error in enumerate(bundle.errors)})
        for bundle in {bundle.trajectory.id: bundle for bundle in memory}.values()
    ]
    items = map(ShownItem, ITEM_IDS[:2])
    twins.write("exposures.add", [Exposure.of(CONTEXT_IDS[0], items, SHOWN_AT, ERROR_IDS[0])])
    twins.write("runs.add", runs[:2])
    twins.write("runs.add", runs)
    for run in RUNS:
        twins.ask("runs.archived", run)
    twins.ask("runs.learned", RUNS)
    twins.ask("exposures.record", ITEM_IDS)
    twins.ask("recoveries.errors", Scope(), 50, runs=RUNS)


@congruent(memory=memories)
def test_recoveries_of_runs(twins: Twins, memory: list[Bundle]) -> None:
    twins.learn(memory)
    for runs in ((), RUNS[:2], (*RUNS[:1], *RUNS, "absent")):
        twins.ask("recoveries.of_runs", runs)


@congruent(memory=memories, given=abstracted(RUNS[:4]))
def test_recoveries_similar_to(twins: Twins, memory: list[Bundle], given: Abstracted) -> None:
    twins.learn(memory)
    twins.write("methodologies.put", (), (), (), given.similar)
    for run in (*RUNS, "absent"):
        twins.ask("recoveries.similar_to", run)


def expose(twins: Twins, items: list[list[ShownItem]]) -> None:
    for context, some in zip(CONTEXT_IDS, items, strict=False):
        twins.write("exposures.add", [Exposure.of(context, some, SHOWN_AT, ERROR_IDS[0])])
    twins.write("exposures.report", CONTEXT_IDS[0], True)


shown = st.lists(shown_items(), max_size=3)


@congruent(memory=memories, items=shown)
def test_exposures_contexts(
    twins: Twins, memory: list[Bundle], items: list[list[ShownItem]]
) -> None:
    twins.learn(memory)
    expose(twins, items)
    twins.write("runs.forget", [memory[0].trajectory.id])
    for after, limit in (("", 50), ("", 1), (CONTEXT_IDS[0], 50), ("", 0)):
        twins.ask("exposures.contexts", after, limit)


@congruent(items=shown)
def test_archived_exposures_are_added(twins: Twins, items: list[list[ShownItem]]) -> None:
    expose(twins, items)
    archived = [
        Exposure(context, SHOWN_AT, None, False, (ShownItem(ITEM_IDS[0], helped=False),), "ci")
        for context in CONTEXT_IDS
    ]
    twins.write("exposures.add", archived)
    twins.ask("exposures.contexts", "", 50)
    twins.ask("exposures.record", ITEM_IDS)
