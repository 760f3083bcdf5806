"""Counts are the same, and in the same order, whichever store counts."""

from hypothesis import strategies as st

from contextgraph.model import Bundle
from tests.congruence.pairs import RUNS, congruent, memories
from tests.strategies import Abstracted, abstracted
from tests.twins import Twins


@congruent(memory=memories, given=abstracted(RUNS[:4]))
def test_counts(twins: Twins, memory: list[Bundle], given: Abstracted) -> None:
    twins.ask("counts")
    twins.learn(memory)
    twins.ask("counts")
    twins.write(
        "put_methodologies", given.methodologies, given.removed, given.resolved, given.similar
    )
    twins.ask("counts")


@congruent(memory=memories)
def test_error_frequency(twins: Twins, memory: list[Bundle]) -> None:
    twins.learn(memory)
    twins.ask("error_frequency")


@congruent(memory=memories)
def test_error_transitions(twins: Twins, memory: list[Bundle]) -> None:
    twins.learn(memory)
    twins.ask("error_transitions")


@congruent(
    memory=memories,
    ids=st.lists(st.sampled_from((*RUNS, "absent"))),
    limit=st.sampled_from((50, 2, 0)),
)
def test_errors_of_runs(twins: Twins, memory: list[Bundle], ids: list[str], limit: int) -> None:
    twins.learn(memory)
    twins.ask("errors_of_runs", ids, limit)
