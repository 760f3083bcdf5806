"""Every store credits exposures in the same way."""

from datetime import UTC, datetime

from hypothesis import strategies as st

from contextgraph.model import Bundle, Exposure
from tests.congruence.pairs import congruent, memories
from tests.strategies import CONTEXT_IDS, ERROR_IDS, ITEM_IDS
from tests.twins import Twins

SHOWN_AT = datetime(2026, 3, 1, tzinfo=UTC)

shown = st.lists(st.sampled_from(ITEM_IDS), max_size=4)
reports = st.lists(st.tuples(st.sampled_from((*CONTEXT_IDS, "never shown")), st.booleans()))


def expose(twins: Twins, items: list[list[str]]) -> None:
    for context_id, some in zip(CONTEXT_IDS, items, strict=False):
        twins.write("exposures.add", [Exposure.of(context_id, some, SHOWN_AT)])


@congruent(memory=memories, items=st.lists(shown, min_size=2, max_size=3))
def test_exposures_add(twins: Twins, memory: list[Bundle], items: list[list[str]]) -> None:
    """Contexts found in the runs learned afterwards are reported of."""
    for context_id, some, error in zip(CONTEXT_IDS, items, ERROR_IDS, strict=False):
        twins.write("exposures.add", [Exposure.of(context_id, some, SHOWN_AT, error)])
        twins.write("exposures.add", [Exposure.of(context_id, ["another"], SHOWN_AT)])
    for bundle in memory:
        twins.write("runs.add", [bundle])
    twins.ask("exposures.credit", ITEM_IDS)
    for context_id in CONTEXT_IDS:
        twins.ask("admin.explain", context_id)


@congruent(items=st.lists(shown, max_size=3), reported=reports)
def test_exposures_report(
    twins: Twins, items: list[list[str]], reported: list[tuple[str, bool]]
) -> None:
    expose(twins, items)
    for context_id, helped in reported:
        twins.write("exposures.report", context_id, helped)
    for context_id in CONTEXT_IDS:
        twins.ask("admin.explain", context_id)


@congruent(memory=memories, items=st.lists(shown, min_size=3, max_size=3), reported=reports)
def test_exposures_credit(
    twins: Twins, memory: list[Bundle], items: list[list[str]], reported: list[tuple[str, bool]]
) -> None:
    twins.learn(memory)
    expose(twins, items)
    for context_id, helped in reported:
        twins.write("exposures.report", context_id, helped)
    twins.ask("exposures.credit", ITEM_IDS)
    twins.write("runs.forget", [bundle.trajectory.id for bundle in memory[:2]])
    twins.ask("exposures.credit", ITEM_IDS)
