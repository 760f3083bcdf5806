"""Each operation of the ports gives the same on all stores, whatever it is called with.

The operations, and the types of their parameters, are those of `contextgraph.store.protocols`.
"""

from contextlib import closing

import pytest
from hypothesis import given, strategies as st

from contextgraph.model import Bundle
from tests.arguments import Call, calls
from tests.compared_stores import ComparedStores
from tests.congruence.pairs import NOTE_PAIRS, PAIRS, Pair
from tests.memories import COMPARED, hold_the_same
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


def comparisons() -> list[tuple[str, Pair]]:
    """Each operation with each pair of stores that has it."""
    return [
        (operation, pair)
        for operation in COMPARED
        for pair in (NOTE_PAIRS if operation.startswith("notes.") else PAIRS)
    ]


@pytest.mark.parametrize(("operation", "pair"), comparisons(), ids=str)
def test_operation(operation: str, pair: Pair, request: pytest.FixtureRequest) -> None:
    @pair.settings
    @given(
        runs=st.lists(bundles(), min_size=3, max_size=6),
        written=st.tuples(*map(calls, WRITTEN)),
        made=st.lists(calls(operation), min_size=1, max_size=4),
    )
    def check(runs: list[Bundle], written: tuple[Call, ...], made: list[Call]) -> None:
        with closing(pair.opened(request)) as stores:
            fill(stores, runs, written)
            for call in made:
                do(stores, call)
            hold_the_same(stores)

    check()
