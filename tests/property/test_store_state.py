"""Whatever is done to a memory, in a file or without one, it answers as the ports say."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis.stateful import rule

from contextgraph.model import Bundle
from contextgraph.store.networkx import NetworkxStore
from contextgraph.store.sqlite import SqliteStore
from tests.compared_stores import ComparedStores
from tests.memories import Memories
from tests.profiles import examples
from tests.strategies import bundles


class InProcess(Memories):
    """Two stores of two tenants in one file, one in memory, and one in a graph."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        path = str(Path(self.folder.name) / "memory.db")
        self.neighbour = SqliteStore(path, tenant="neighbour")
        self.connections = (SqliteStore(path), SqliteStore(path), SqliteStore(":memory:"))
        super().__init__(
            ComparedStores(NetworkxStore(), (self.connections[:2], self.connections[2:]))
        )

    def teardown(self) -> None:
        unhealthy = [
            one
            for connection in self.connections
            for one in connection.admin.health()
            if not one.ok
        ]
        super().teardown()
        self.neighbour.close()
        self.folder.cleanup()
        assert not unhealthy

    @rule(bundle=bundles())
    def add_to_the_neighbour(self, bundle: Bundle) -> None:
        self.neighbour.runs.add([bundle])


TestInProcess = InProcess.TestCase
TestInProcess.settings = settings(max_examples=examples(0.15), stateful_step_count=20)
