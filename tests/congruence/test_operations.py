"""Each operation of the ports gives the same on all stores, whatever it is called with.

The operations, and the types of their parameters, are those that `contextgraph.ports` names.
"""

from contextlib import closing
from dataclasses import dataclass

import pytest
from hypothesis import given, strategies as st

from contextgraph.model import Bundle, Note
from tests.arguments import NOTE_SPACES, Call, calls, notes
from tests.congruence.pairs import NOTE_PAIRS, PAIRS, Pair
from tests.memories import COMPARED, hold_the_same
from tests.reference_memory import ReferenceMemory
from tests.strategies import SPACES, bundles
from tests.twins import Twins


@dataclass(frozen=True, slots=True)
class Content:
    """What stores hold before an operation is called."""

    runs: list[Bundle]
    methodologies: Call
    exposures: Call
    notes: list[Note]
    vectors_of_notes: Call


contents = st.builds(
    Content,
    st.lists(bundles(), min_size=3, max_size=6),
    calls("methodologies.put"),
    calls("exposures.add"),
    notes(),
    calls("notes.add"),
)


def fill(twins: Twins, content: Content) -> None:
    for space in SPACES:
        twins.write("vectors.prepare", space, b"model")
    twins.write("vectors.switch", SPACES[0].name)
    twins.learn(content.runs)
    do(twins, content.methodologies)
    do(twins, content.exposures)
    twins.write("notes.put", content.notes)
    twins.write("notes.add", NOTE_SPACES[1], dict.fromkeys(one.id for one in content.notes))
    do(twins, content.vectors_of_notes)


def do(twins: Twins, call: Call) -> None:
    twins.write(call.operation, *call.arguments, **call.named)


def comparisons() -> list[tuple[str, Pair]]:
    """Each operation with each pair of stores that has it."""
    return [
        (operation, pair)
        for operation in COMPARED
        for pair in (NOTE_PAIRS if operation.startswith("notes.") else PAIRS)
        if pair is not PAIRS[0] or hasattr(ReferenceMemory, operation.replace(".", "_"))
    ]


@pytest.mark.parametrize(("operation", "pair"), comparisons(), ids=str)
def test_operation(operation: str, pair: Pair, request: pytest.FixtureRequest) -> None:
    @pair.settings
    @given(content=contents, made=st.lists(calls(operation), min_size=1, max_size=4))
    def check(content: Content, made: list[Call]) -> None:
        with closing(pair.opened(request)) as twins:
            fill(twins, content)
            for call in made:
                do(twins, call)
            hold_the_same(twins)

    check()
