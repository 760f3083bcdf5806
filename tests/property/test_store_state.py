"""Whatever is done to a memory, in a file or without one, it answers as the ports say."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis.stateful import rule

from contextgraph.model import Bundle
from contextgraph.store import NetworkxStore
from tests.memories import Memories
from tests.reference_memory import ReferenceMemory
from tests.strategies import bundles
from tests.twins import Twins


class InProcess(Memories):
    """Two stores of two tenants in one file, one in memory, and the reference."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        path = str(Path(self.folder.name) / "memory.db")
        self.neighbour = NetworkxStore(path, tenant="neighbour")
        self.doors = (NetworkxStore(path), NetworkxStore(path), NetworkxStore(":memory:"))
        super().__init__(Twins(ReferenceMemory(), (self.doors[:2], self.doors[2:])))

    def teardown(self) -> None:
        super().teardown()
        self.neighbour.close()
        self.folder.cleanup()

    @rule(bundle=bundles())
    def add_to_the_neighbour(self, bundle: Bundle) -> None:
        self.neighbour.add_bundles([bundle])

    @rule()
    def ask_for_the_graph(self) -> None:
        nodes = sum(self.twins.reference.counts().nodes.values())
        graphs = [store.graph() for store in self.doors]
        for graph in graphs:
            assert graph.number_of_nodes() == nodes
            assert graph.nodes == graphs[0].nodes
            assert set(graph.edges(keys=True)) == set(graphs[0].edges(keys=True))


TestInProcess = InProcess.TestCase
TestInProcess.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
