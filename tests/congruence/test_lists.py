"""The lists of what stores can do are complete: ports, stores, and tests that compare them."""

import re
from pathlib import Path

import pytest

from contextgraph.ports import GraphStore
from contextgraph.store import NetworkxStore
from contextgraph.store.neo4j_store import Neo4jStore
from tests.reference_memory import ReferenceMemory

# A file and a server differ in what can be wrong with them and in their schemas; the others have no
# answer.
INCOMPARABLE = {"health", "close", "snapshot", "ahead", "migrate", "pending_migrations"}


def operations() -> set[str]:
    """What the ports name."""
    return {
        name
        for port in GraphStore.__mro__
        if port.__module__.startswith("contextgraph.ports")
        for name in vars(port)
        if not name.startswith("_")
    }


def compared() -> set[str]:
    """The operations that a test in this folder is named after."""
    tests = Path(__file__).parent.glob("test_*_store.py")
    return {
        name
        for test in tests
        for name in re.findall(
            r"^@congruent\([^@]*?^def test_(\w+)", test.read_text(), re.MULTILINE
        )
    }


def test_every_operation_is_compared() -> None:
    assert compared() == operations() - INCOMPARABLE


@pytest.mark.parametrize("store", [NetworkxStore, Neo4jStore])
def test_every_operation_is_a_method_of_the_store(store: type) -> None:
    public = {name for name in vars(store) if not name.startswith("_")}
    assert operations() <= public


def test_the_reference_knows_every_operation() -> None:
    assert operations() - INCOMPARABLE <= {*dir(ReferenceMemory)}
