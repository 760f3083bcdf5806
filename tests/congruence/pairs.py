"""Which stores are compared, and the decorator that makes a test of each pair."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from hypothesis import given, settings, strategies as st

from contextgraph.store import NetworkxStore
from tests.reference_memory import ReferenceMemory
from tests.strategies import bundles
from tests.twins import Twins

RUNS = tuple(f"run{number}" for number in range(12))
memories = st.lists(bundles(RUNS), min_size=3, max_size=6)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two kinds of store; *opened* gives new ones, *examples* says how many times that is worth."""

    name: str
    opened: Callable[[], Twins]
    examples: int


def _in_process() -> Twins:
    return Twins(ReferenceMemory(), ((NetworkxStore(":memory:"),),))


IN_PROCESS = Pair("in process, and the reference", _in_process, 6)
PAIRS = (IN_PROCESS,)


def congruent(**drawn: st.SearchStrategy) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a test of *twins* run on each pair of stores with generated arguments."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
        def on_pair(pair: Pair) -> None:
            @settings(max_examples=pair.examples)
            @given(**drawn)
            def check(**arguments: object) -> None:
                with _closing(pair.opened()) as twins:
                    test(twins, **arguments)

            check()

        on_pair.__name__, on_pair.__doc__ = test.__name__, test.__doc__
        return on_pair

    return decorate


@contextmanager
def _closing(twins: Twins) -> Iterator[Twins]:
    try:
        yield twins
    finally:
        twins.close()
