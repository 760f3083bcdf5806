"""The graph of a memory for networkx, kept current; see `contextgraph.store.graph`."""

import os
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from contextgraph.model import Note
from contextgraph.store.graph import add_relation, put_notes, remove_abstracted
from contextgraph.store.neo4j.cache import (
    NEVER,
    MemoryState,
    memory_state,
)
from contextgraph.store.neo4j.connection import Connection
from contextgraph.store.neo4j.rows import Row

if TYPE_CHECKING:
    from contextgraph.ports import Graph


class CurrentGraph:
    """The graph of one revision, brought up to date in place when it is requested."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._graph: Graph | None = None
        self._generation, self._revision = NEVER, -1

    def current(self, notes: Iterable[Note]) -> "Graph":
        """Return a read-only view of the graph with *notes*."""
        import networkx as nx  # costs 0.2 s, and most processes need no graph

        if self._process != os.getpid():
            # A thread of the parent process may hold the lock, and be changing the graph.
            self._process, self._lock = os.getpid(), threading.Lock()
            self._graph, self._generation, self._revision = None, NEVER, -1
        with self._lock, self._connection.snapshot():
            state = memory_state(self._connection)
            if self._graph is None:
                self._graph = nx.MultiDiGraph()
            if (self._generation, self._revision) != (state.generation, state.revision):
                self._update(self._graph, state)
                self._generation, self._revision = state.generation, state.revision
            put_notes(self._graph, notes)
            return self._graph.copy(as_view=True)

    def _update(self, graph: "Graph", state: MemoryState) -> None:
        if self._generation != state.generation:
            graph.clear()
            self._revision = -1
        for row in self._connection.rows("graph_runs", revision=self._revision):
            _add_run(graph, row)
        remove_abstracted(graph)
        methodologies = self._connection.rows("graph_methodologies")
        for row in methodologies:
            graph.add_node(row["id"], label="Methodology", **row["attributes"])
        for row in methodologies:
            _add_methodology_relations(graph, row)
        for row in self._connection.rows("graph_similar"):
            ends = row["fragment"], row["representative"]
            add_relation(graph, "SIMILAR_TO", *ends, row["properties"])


def _add_run(graph: "Graph", row: Row) -> None:
    run = row["id"]
    graph.add_node(run, label="Trajectory", **row["attributes"])
    for error, attributes in row["errors"]:
        graph.add_node(error, label="ErrorPattern", **attributes)
    for fragment, order, attributes in row["fragments"]:
        graph.add_node(fragment, label="Fragment", **attributes)
        add_relation(graph, "HAS_FRAGMENT", run, fragment, {"order": order})
    for kind, fragment, error, properties in row["relations"]:
        add_relation(graph, kind, fragment, error, properties)


def _add_methodology_relations(graph: "Graph", row: Row) -> None:
    for error, properties in row["resolves"]:
        add_relation(graph, "RESOLVED_BY", error, row["id"], properties)
    for fragment in row["sources"]:
        add_relation(graph, "DERIVED_FROM", row["id"], fragment, {})
    for before in row["superseded"]:
        add_relation(graph, "SUPERSEDES", row["id"], before, {})
