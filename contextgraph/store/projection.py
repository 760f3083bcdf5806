"""The topology of the memory as a networkx graph: what hangs together, without texts."""

import threading
from collections.abc import Iterable
from sqlite3 import Connection
from typing import TYPE_CHECKING, TypeAlias

import orjson

from contextgraph.store.abstracted_graph import add_abstracted, forget_abstracted
from contextgraph.store.schema import RUN_BITS
from contextgraph.store.tenants import REMEMBERED

if TYPE_CHECKING:
    from networkx import MultiDiGraph

    Graph: TypeAlias = MultiDiGraph[str]

# Rows of runs that are newer than what is projected; names as the values give them.
_NEWER = "t.tenant = :tenant AND t.revision > :revision"
_OF_RUN = f"BETWEEN t.key << {RUN_BITS} AND ((t.key + 1) << {RUN_BITS}) - 1"
_TRAJECTORIES = f"""
SELECT t.key, t.id, t.instance_id || ' (' || t.outcome || ')', t.repo
FROM trajectory t WHERE {_NEWER}"""
_FRAGMENTS = f"""
SELECT t.id, f.id, f.fragment_type || ' ' || f.start || '-' || f.stop, f.repo, f.position
FROM trajectory t CROSS JOIN fragment f ON f.key {_OF_RUN} WHERE {_NEWER}"""
_ERRORS = f"""
SELECT DISTINCT e.id, substr(e.error_type || ': ' || e.template, 1, 120)
FROM trajectory t CROSS JOIN met m ON m.trajectory = t.key
CROSS JOIN error_pattern e ON e.key = m.error WHERE {_NEWER}"""
_CAUSED = f"""
SELECT f.id, e.id, c.steps FROM trajectory t CROSS JOIN caused c ON c.fragment {_OF_RUN}
CROSS JOIN fragment f ON f.key = c.fragment CROSS JOIN error_pattern e ON e.key = c.error
WHERE {_NEWER}"""
_RECOVERED = f"""
SELECT f.id, e.id, r.error_step, r.cleared_step, r.verified
FROM trajectory t CROSS JOIN recovered r ON r.key {_OF_RUN}
CROSS JOIN fragment f ON f.key = r.fragment CROSS JOIN error_pattern e ON e.key = r.error
WHERE {_NEWER}"""
_REMOVED = "SELECT trajectory FROM removal WHERE tenant = :tenant AND revision > :revision"


class Projection:
    """The graph at one revision, brought up to date when asked.

    Nodes are ids with *label*, *name* and *repo*; edges have the type of the relation as key and
    *order*, *steps*, or *error_step*, *cleared_step* and *verified*.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._graph: Graph | None = None
        self._revision = -1
        self._ids: dict[int, str] = {}

    def at(self, connection: Connection, tenant: int) -> "Graph":
        """The graph of the revision that *connection* sees, or a later one; it never changes."""
        import networkx as nx  # costs 0.2 s, and most processes ask no question of topology

        with self._lock:
            row = connection.execute("SELECT revision FROM tenant WHERE key = ?", (tenant,))
            (revision,) = row.fetchone() or (0,)
            if revision - self._revision > REMEMBERED:
                self._graph, self._revision, self._ids = None, -1, {}
            if self._graph is None or revision > self._revision:
                # Whoever holds the graph of before goes on reading it.
                graph = nx.MultiDiGraph() if self._graph is None else self._graph.copy()
                self._catch_up(graph, connection, tenant)
                self._graph, self._revision = nx.freeze(graph), revision
            return self._graph

    def _catch_up(self, graph: "Graph", connection: Connection, tenant: int) -> None:
        asked = {"tenant": tenant, "revision": self._revision}
        newer = connection.execute(_TRAJECTORIES, asked).fetchall()
        gone = [key for (key,) in connection.execute(_REMOVED, asked)]
        forget_abstracted(graph, connection, asked)
        self._remove(graph, [*gone, *(row[0] for row in newer)])
        for key, node, name, repo in newer:
            graph.add_node(node, label="Trajectory", name=name, repo=repo)
            self._ids[key] = node
        _add(graph, connection, asked)
        add_abstracted(graph, connection, tenant)

    def _remove(self, graph: "Graph", keys: Iterable[int]) -> None:
        for key in keys:
            run = self._ids.pop(key, None)
            if run is None:
                continue
            fragments = list(graph.successors(run))
            errors = {error for fragment in fragments for error in graph.successors(fragment)}
            graph.remove_nodes_from([run, *fragments])
            graph.remove_nodes_from([error for error in errors if not graph.in_degree(error)])


def _add(graph: "Graph", connection: Connection, asked: dict[str, int]) -> None:
    for run, node, name, repo, order in connection.execute(_FRAGMENTS, asked):
        graph.add_node(node, label="Fragment", name=name, repo=repo)
        graph.add_edge(run, node, key="HAS_FRAGMENT", order=order)
    for node, name in connection.execute(_ERRORS, asked):
        graph.add_node(node, label="ErrorPattern", name=name, repo="")
    for fragment, error, steps in connection.execute(_CAUSED, asked):
        graph.add_edge(fragment, error, key="CAUSED_ERROR", steps=tuple(orjson.loads(steps)))
    for fragment, error, step, cleared, verified in connection.execute(_RECOVERED, asked):
        graph.add_edge(
            fragment,
            error,
            key=f"RECOVERED {step}",
            error_step=step,
            cleared_step=cleared,
            verified=bool(verified),
        )
