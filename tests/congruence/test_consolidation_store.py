"""What consolidation asks and writes is the same, whichever store it works on."""

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from contextgraph.model import Bundle, FittedGate
from tests.congruence.pairs import RUNS, congruent, memories
from tests.strategies import (
    ERROR_IDS,
    METHODOLOGY_IDS,
    REPOSITORIES,
    Abstracted,
    abstracted,
)
from tests.twins import Twins

NOW = datetime(2026, 3, 1, tzinfo=UTC)

# Several at once, named twice and in no order; one; those that are not there; none.
QUERIED_ERRORS = (
    (*reversed(ERROR_IDS), "absent", ERROR_IDS[0]),
    *((error,) for error in ERROR_IDS),
    ("absent",),
    (),
)

given_ones = abstracted(RUNS[:4])
moments = st.integers(0, 9).map(lambda minutes: NOW + timedelta(minutes=minutes))


def put(twins: Twins, given: Abstracted) -> None:
    twins.write(
        "methodologies.put", given.methodologies, given.removed, given.resolved, given.similar
    )


def compare_all(twins: Twins) -> None:
    """Ask for all that is known of methodologies."""
    twins.ask("methodologies.ids")
    twins.ask("methodologies.get", METHODOLOGY_IDS)
    twins.ask("admin.unconsolidated")
    for methodology in METHODOLOGY_IDS:
        twins.ask("admin.explain", methodology)


@congruent(memory=memories, given=given_ones)
def test_methodologies_get(twins: Twins, memory: list[Bundle], given: Abstracted) -> None:
    twins.learn(memory)
    put(twins, given)
    for ids in (METHODOLOGY_IDS, METHODOLOGY_IDS[1::-1], ("absent",), ()):
        twins.ask("methodologies.get", ids)
    for errors in QUERIED_ERRORS:
        twins.ask("methodologies.get", METHODOLOGY_IDS[:1], errors=errors)


@congruent(memory=memories, given=given_ones)
def test_methodologies_ids(twins: Twins, memory: list[Bundle], given: Abstracted) -> None:
    twins.ask("methodologies.ids")
    twins.learn(memory)
    put(twins, given)
    twins.ask("methodologies.ids")
    twins.ask("methodologies.ids", after=METHODOLOGY_IDS[0], limit=1)
    for repo in (*REPOSITORIES, REPOSITORIES[0].upper(), "nobody/nothing"):
        twins.ask("methodologies.ids", repo, limit=2)


@congruent(memory=memories, given=given_ones)
def test_methodologies_of_types(twins: Twins, memory: list[Bundle], given: Abstracted) -> None:
    twins.learn(memory)
    put(twins, given)
    for errors in QUERIED_ERRORS:
        twins.ask("methodologies.of_types", errors)


@congruent(memory=memories, given=st.lists(given_ones, min_size=2, max_size=4))
def test_methodologies_put(twins: Twins, memory: list[Bundle], given: list[Abstracted]) -> None:
    twins.learn(memory)
    for one in given:
        put(twins, one)
        put(twins, one)
    compare_all(twins)
    twins.write("runs.forget", [memory[0].trajectory.id])
    compare_all(twins)
    twins.write("runs.replace", {memory[-1].trajectory.id: memory[-1]})
    compare_all(twins)


@congruent(memory=memories, given=given_ones, keep=st.integers(0, 2))
def test_recoveries_clean_up(
    twins: Twins, memory: list[Bundle], given: Abstracted, keep: int
) -> None:
    twins.learn(memory)
    put(twins, given)
    twins.write("recoveries.clean_up", ERROR_IDS, keep)
    compare_all(twins)
    twins.ask("admin.counts")
    twins.ask("runs.fragments", RUNS)
    twins.ask("runs.learned", RUNS)


@congruent(memory=memories)
def test_admin_unconsolidated(twins: Twins, memory: list[Bundle]) -> None:
    twins.learn(memory[1:])
    twins.ask("admin.unconsolidated")
    twins.ask("admin.unconsolidated", 0)
    twins.mark_consolidated()
    twins.write("runs.add", memory[:1])
    twins.write("runs.forget", [memory[-1].trajectory.id])
    twins.ask("admin.unconsolidated")


@congruent(memory=memories)
def test_admin_mark_consolidated(twins: Twins, memory: list[Bundle]) -> None:
    twins.mark_consolidated()
    twins.learn(memory)
    twins.write("runs.forget", [memory[0].trajectory.id])
    twins.ask("admin.unconsolidated")
    twins.mark_consolidated()
    twins.ask("admin.unconsolidated")


@congruent(memory=memories)
def test_admin_gate(twins: Twins, memory: list[Bundle]) -> None:
    twins.ask("admin.gate")
    twins.learn(memory)
    gates = (None, FittedGate({"attempt": 0.5}, -1.0, ((0.0, 0.0), (1.0, 0.9)), 120, 80))
    for gate in (*gates, *gates[::-1]):
        twins.mark_consolidated(gate)
        twins.ask("admin.gate")


@congruent(memory=memories, runs=st.sampled_from((400, 2, 1, 0)))
def test_recoveries_histories(twins: Twins, memory: list[Bundle], runs: int) -> None:
    twins.learn(memory)
    for errors in QUERIED_ERRORS:
        twins.ask("recoveries.histories", errors, runs)


taken = st.tuples(st.sampled_from("ab"), moments, st.none() | moments)


@congruent(leases=st.lists(taken, min_size=2, max_size=8))
def test_admin_take_lease(
    twins: Twins, leases: list[tuple[str, datetime, datetime | None]]
) -> None:
    for holder, now, until in leases:
        twins.write("admin.take_lease", holder, now, until)
