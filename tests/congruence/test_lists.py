"""The lists of what stores can do are complete: ports, stores, and tests that compare them."""

import re
from pathlib import Path
from typing import get_type_hints

import pytest

from contextgraph import ports
from contextgraph.store import SqliteStore
from contextgraph.store.neo4j import Neo4jStore
from tests.reference_memory import ReferenceMemory

# A file and a server differ in what can be wrong with them and in their schemas; the others have no
# answer.
INCOMPARABLE = {
    *(f"admin_{name}" for name in ("health", "close", "snapshot", "migrate", "back_up")),
    "admin_erase_deleted",
    "notes_close",
}


def objects() -> dict[str, type]:
    """The protocols of the objects of a store, by the name of the object."""
    return {
        name: get_type_hints(value.fget, vars(ports))["return"]
        for name, value in vars(ports.Store).items()
        if isinstance(value, property)
    }


def operations() -> set[str]:
    """What the ports name, as ``runs_add``."""
    return {
        f"{name}_{operation}"
        for name, protocol in objects().items()
        for operation in vars(protocol)
        if not operation.startswith("_") and operation != "tenant"
    }


def compared() -> set[str]:
    """The operations that a test in this folder is named after, or asks both stores for."""
    texts = [path.read_text() for path in Path(__file__).parent.glob("test_*_store.py")]
    named = r"^@congruent\([^@]*?^def test_(\w+)"
    called = r"twins\.(?:ask|write)\(\s*\"(\w+)\.(\w+)\""
    return {
        *(name for text in texts for name in re.findall(named, text, re.MULTILINE)),
        *("_".join(found) for text in texts for found in re.findall(called, text)),
    }


def test_every_operation_is_compared() -> None:
    assert operations() - INCOMPARABLE <= compared()


@pytest.mark.parametrize("store", [SqliteStore(":memory:"), Neo4jStore("bolt://localhost:1")])
def test_every_object_of_a_store_has_its_operations(store: ports.Store) -> None:
    for name, protocol in objects().items():
        missing = {operation for operation in vars(protocol) if not operation.startswith("_")}
        assert missing <= {*dir(getattr(store, name))}


def test_the_reference_knows_every_operation() -> None:
    assert operations() - INCOMPARABLE <= {*dir(ReferenceMemory)}
