"""What is handed from store to store is the same, whichever stores these are."""

from datetime import UTC, datetime

from hypothesis import strategies as st

from contextgraph.model import ArchivedRun, Bundle, Exposure
from contextgraph.vectors import Vector
from tests.congruence.pairs import RUNS, congruent, memories
from tests.strategies import (
    CONTEXT_IDS,
    ERROR_IDS,
    ITEM_IDS,
    METHODOLOGY_IDS,
    SPACES,
    Abstracted,
    abstracted,
    advice_vectors,
)
from tests.twins import Twins

SHOWN_AT = datetime(2026, 3, 1, tzinfo=UTC)
SPACE = SPACES[0]


@congruent(memory=memories, keep=st.integers(0, 2))
def test_archived_run(twins: Twins, memory: list[Bundle], keep: int) -> None:
    twins.write("prepare_space", SPACE, None)
    twins.write("switch_space", SPACE.name)
    twins.learn(memory)
    twins.write("prune_failed_fragments", ERROR_IDS, keep)
    for run in RUNS:
        twins.ask("archived_run", run)


@congruent(memory=memories)
def test_restore_runs(twins: Twins, memory: list[Bundle]) -> None:
    """Also where a run met an error more often than its fragments tell."""
    runs = [
        ArchivedRun(bundle, {error.id: number for number, error in enumerate(bundle.errors)})
        for bundle in {bundle.trajectory.id: bundle for bundle in memory}.values()
    ]
    twins.write("add_exposure", CONTEXT_IDS[0], ITEM_IDS[:2], SHOWN_AT, ERROR_IDS[0])
    twins.write("restore_runs", runs[:2])
    twins.write("restore_runs", runs)
    for run in RUNS:
        twins.ask("archived_run", run)
    twins.ask("learned", RUNS)
    twins.ask("credit", ITEM_IDS)
    twins.ask("errors_of_runs", RUNS, 50)


@congruent(memory=memories, given=abstracted(RUNS[:4]))
def test_similar_to(twins: Twins, memory: list[Bundle], given: Abstracted) -> None:
    twins.learn(memory)
    twins.write("put_methodologies", (), (), (), given.similar)
    for run in (*RUNS, "absent"):
        twins.ask("similar_to", run)


@congruent(given=abstracted(), found=advice_vectors(SPACE))
def test_methodology_vectors(
    twins: Twins, given: Abstracted, found: dict[str, Vector | None]
) -> None:
    twins.ask("methodology_vectors", SPACE.name, METHODOLOGY_IDS)
    twins.write("put_methodologies", given.methodologies, (), (), ())
    twins.write("prepare_space", SPACE, None)
    twins.write("add_methodology_vectors", SPACE.name, found)
    twins.ask("methodology_vectors", SPACE.name, METHODOLOGY_IDS)


def expose(twins: Twins, items: list[list[str]]) -> None:
    for context, some in zip(CONTEXT_IDS, items, strict=False):
        twins.write("add_exposure", context, some, SHOWN_AT, ERROR_IDS[0])
    twins.write("report_outcome", CONTEXT_IDS[0], True)


shown = st.lists(st.lists(st.sampled_from(ITEM_IDS), max_size=3), max_size=3)


@congruent(memory=memories, items=shown)
def test_exposures(twins: Twins, memory: list[Bundle], items: list[list[str]]) -> None:
    twins.learn(memory)
    expose(twins, items)
    twins.write("forget", [memory[0].trajectory.id])
    for after, limit in (("", 50), ("", 1), (CONTEXT_IDS[0], 50), ("", 0)):
        twins.ask("exposures", after, limit)


@congruent(items=shown)
def test_restore_exposures(twins: Twins, items: list[list[str]]) -> None:
    expose(twins, items)
    archived = [
        Exposure(context, SHOWN_AT, None, False, ((ITEM_IDS[0], 0.25), (ITEM_IDS[1], 0.5)))
        for context in CONTEXT_IDS
    ]
    twins.write("restore_exposures", archived)
    twins.ask("exposures", "", 50)
    twins.ask("credit", ITEM_IDS)
