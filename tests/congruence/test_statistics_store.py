"""Counts are the same, and in the same order, whichever store counts."""

from hypothesis import strategies as st

from contextgraph.model import Bundle, Scope
from tests.congruence.pairs import RUNS, congruent, memories
from tests.strategies import Abstracted, abstracted
from tests.twins import Twins


@congruent(memory=memories, given=abstracted(RUNS[:4]))
def test_admin_counts(twins: Twins, memory: list[Bundle], given: Abstracted) -> None:
    twins.ask("admin.counts")
    twins.learn(memory)
    twins.ask("admin.counts")
    twins.write(
        "methodologies.put", given.methodologies, given.removed, given.resolved, given.similar
    )
    twins.ask("admin.counts")


@congruent(memory=memories)
def test_recoveries_frequency(twins: Twins, memory: list[Bundle]) -> None:
    twins.learn(memory)
    twins.ask("recoveries.frequency")


@congruent(memory=memories)
def test_recoveries_transitions(twins: Twins, memory: list[Bundle]) -> None:
    twins.learn(memory)
    twins.ask("recoveries.transitions")


@congruent(
    memory=memories,
    ids=st.lists(st.sampled_from((*RUNS, "absent"))),
    limit=st.sampled_from((50, 2, 0)),
)
def test_recoveries_errors_of_runs(
    twins: Twins, memory: list[Bundle], ids: list[str], limit: int
) -> None:
    twins.learn(memory)
    twins.ask("recoveries.errors", Scope(), limit, runs=ids)
