"""Each operation of the ports gives the same on all stores, whatever it is called with.

The operations, and the types of their parameters, are those of `store.memory_store.Store`.
"""

from collections.abc import Sequence
from contextlib import closing

import pytest
from hypothesis import given, strategies as st

from contextgraph.model import Bundle
from tests.arguments import Call, calls
from tests.compared_stores import ComparedStores
from tests.congruence.pairs import IN_PROCESS, OF_NOTES, ON_A_SERVER, Pair
from tests.memories import COMPARED, hold_the_same
from tests.plans import Plans
from tests.strategies import SPACES, bundles

# What stores hold beside runs before an operation is called.
WRITTEN = (
    "methodologies.put",
    "vectors.add_nodes",
    "exposures.add",
    "exposures.report",
    "exposures.decide",
    "notes.change",
    "notes.add",
    "passages.add",
)


def fill(stores: ComparedStores, runs: list[Bundle], written: tuple[Call, ...]) -> None:
    for space in SPACES:
        stores.write("vectors.prepare", space, b"model")
    stores.write("vectors.switch", SPACES[0].name)
    stores.learn(runs)
    for call in written:
        do(stores, call)


def do(stores: ComparedStores, call: Call) -> None:
    stores.write(call.operation, *call.arguments, **call.named)


@st.composite
def calls_of(draw: st.DrawFn, operations: Sequence[str]) -> Sequence[Call]:
    """Draw a call of each operation, in any order."""
    return [draw(calls(one)) for one in draw(st.permutations(operations))]


def compare(pair: Pair, operations: Sequence[str], request: pytest.FixtureRequest) -> None:
    """Do the same to both stores: each of *operations*, in any order."""

    @pair.settings
    @given(
        runs=st.lists(bundles(), min_size=3, max_size=6),
        written=st.tuples(*map(calls, WRITTEN)),
        made=calls_of(operations),
    )
    def check(runs: list[Bundle], written: tuple[Call, ...], made: Sequence[Call]) -> None:
        with closing(pair.opened(request)) as stores:
            fill(stores, runs, written)
            for call in made:
                do(stores, call)
            hold_the_same(stores)

    check()


# Where stores differ the difference is printed, not the size of the runs.
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@pytest.mark.parametrize("pair", [IN_PROCESS, *OF_NOTES], ids=str)
def test_operations_are_answered_the_same(pair: Pair, request: pytest.FixtureRequest) -> None:
    notes = [one for one in COMPARED if one.startswith("notes.")]
    compare(pair, notes if pair in OF_NOTES else COMPARED, request)


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
def test_operations_are_answered_the_same_on_neo4j_from_indexes(
    plans: Plans, request: pytest.FixtureRequest
) -> None:
    with plans.noted():
        compare(ON_A_SERVER, COMPARED, request)
    assert plans.scanning() == {}
    assert plans.buffering() == {}
