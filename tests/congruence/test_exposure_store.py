"""Every store records exposures, and what is known of advice, in the same way."""

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from contextgraph.model import Bundle, Exposure, ShownItem, Verdict
from tests.congruence.pairs import congruent, memories
from tests.strategies import ADVICE_IDS, CONTEXT_IDS, ERROR_IDS, ITEM_IDS, shown_items
from tests.twins import Twins

SHOWN_AT = datetime(2026, 3, 1, tzinfo=UTC)
NAMES = (*ADVICE_IDS[1:], *ITEM_IDS)

shown = st.lists(shown_items(), min_size=2, max_size=3)
reports = st.lists(
    st.tuples(
        st.sampled_from((*CONTEXT_IDS, "never shown")),
        st.booleans(),
        st.none() | st.integers(0, 3),
        st.sampled_from(("", "ci")),
    )
)


def expose(twins: Twins, items: list[list[ShownItem]]) -> None:
    for number, (context_id, some) in enumerate(zip(CONTEXT_IDS, items, strict=False)):
        at, error = SHOWN_AT + timedelta(days=number % 2), ERROR_IDS[number % len(ERROR_IDS)]
        one = Exposure.of(context_id, some, at, error, is_withheld=(None, False, True)[number])
        twins.write("exposures.add", [one])


@congruent(memory=memories, items=shown)
def test_exposures_add(twins: Twins, memory: list[Bundle], items: list[list[ShownItem]]) -> None:
    """Contexts found in the runs learned afterwards are reported of."""
    expose(twins, items)
    twins.write("exposures.add", [Exposure.of(CONTEXT_IDS[0], [ShownItem("another")], SHOWN_AT)])
    for bundle in memory:
        twins.write("runs.add", [bundle])
    twins.ask("exposures.contexts", "", 9)
    for context_id in CONTEXT_IDS:
        twins.ask("admin.explain", context_id)


@congruent(items=shown, reported=reports)
def test_exposures_report(
    twins: Twins,
    items: list[list[ShownItem]],
    reported: list[tuple[str, bool, int | None, str]],
) -> None:
    expose(twins, items)
    for report in reported:
        twins.write("exposures.report", *report)
    twins.ask("exposures.contexts", "", 9)


@congruent(memory=memories, items=shown, reported=reports)
def test_exposures_record(
    twins: Twins,
    memory: list[Bundle],
    items: list[list[ShownItem]],
    reported: list[tuple[str, bool, int | None, str]],
) -> None:
    twins.learn(memory)
    expose(twins, items)
    for report in reported:
        twins.write("exposures.report", *report)
    twins.ask("exposures.record", NAMES)
    twins.ask("exposures.record", NAMES[:1])
    twins.write("runs.forget", [bundle.trajectory.id for bundle in memory[:2]])
    twins.ask("exposures.record", NAMES)


@congruent(given=st.lists(st.tuples(st.sampled_from(ADVICE_IDS[1:]), st.booleans())))
def test_exposures_decide(twins: Twins, given: list[tuple[str, bool]]) -> None:
    for number, (advice, is_quarantined) in enumerate(given):
        at = SHOWN_AT + timedelta(days=number)
        twins.write("exposures.decide", [Verdict(advice, is_quarantined, at)])
    twins.ask("exposures.record", ())
