"""Explanations and graphs are the same, whichever store gives them."""

from datetime import UTC, datetime

from hypothesis import strategies as st

from contextgraph.model import Bundle, Exposure, ShownItem
from tests.congruence.pairs import RUNS, congruent, memories
from tests.strategies import ERROR_IDS, ITEM_IDS, METHODOLOGY_IDS, Abstracted, abstracted
from tests.twins import Twins


@congruent(memory=memories, given=abstracted(RUNS[:4]))
def test_admin_explain(twins: Twins, memory: list[Bundle], given: Abstracted) -> None:
    twins.learn(memory)
    twins.write(
        "methodologies.put", given.methodologies, given.removed, given.resolved, given.similar
    )
    for node in (*(bundle.trajectory.id for bundle in memory), *ERROR_IDS, *METHODOLOGY_IDS):
        twins.ask("admin.explain", node)
    for bundle in memory:
        for fragment in bundle.fragments:
            twins.ask("admin.explain", fragment.id)
    items = map(ShownItem, ITEM_IDS)
    twins.write("exposures.add", [Exposure.of("ctx_1", items, datetime(2026, 3, 1, tzinfo=UTC))])
    twins.ask("admin.explain", "ctx_1")


@congruent(memory=memories, given=abstracted(RUNS[:4]), keep=st.integers(0, 1))
def test_admin_graph(twins: Twins, memory: list[Bundle], given: Abstracted, keep: int) -> None:
    """Also after each kind of change, as it is brought up to date from what it was before."""
    twins.learn(memory)
    twins.ask("admin.graph")
    twins.write(
        "methodologies.put", given.methodologies, given.removed, given.resolved, given.similar
    )
    twins.ask("admin.graph")
    twins.write("recoveries.clean_up", ERROR_IDS, keep)
    twins.ask("admin.graph")
    twins.write("runs.replace", {memory[-1].trajectory.id: memory[-1]})
    twins.write("runs.forget", [memory[0].trajectory.id])
    twins.ask("admin.graph")
