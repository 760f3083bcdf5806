"""Where something comes from is told alike, whichever store tells it."""

from datetime import UTC, datetime

from contextgraph.model import Bundle
from tests.congruence.pairs import RUNS, congruent, memories
from tests.strategies import ERROR_IDS, ITEM_IDS, METHODOLOGY_IDS, Abstracted, abstracted
from tests.twins import Twins


@congruent(memory=memories, given=abstracted(RUNS[:4]))
def test_explain(twins: Twins, memory: list[Bundle], given: Abstracted) -> None:
    twins.learn(memory)
    twins.write(
        "put_methodologies", given.methodologies, given.removed, given.resolved, given.similar
    )
    for node in (*(bundle.trajectory.id for bundle in memory), *ERROR_IDS, *METHODOLOGY_IDS):
        twins.ask("explain", node)
    for bundle in memory:
        for fragment in bundle.fragments:
            twins.ask("explain", fragment.id)
    twins.write("add_exposure", "ctx_1", ITEM_IDS, datetime(2026, 3, 1, tzinfo=UTC))
    twins.ask("explain", "ctx_1")
