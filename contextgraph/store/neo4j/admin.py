"""`AdminStore` on a server: the memory as a whole, its health and its graph."""

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from contextgraph import model
from contextgraph.codec import json_of
from contextgraph.errors import MemoryNotFoundError, SchemaError, StoreError, StoreUnavailableError
from contextgraph.ports import NoteStore
from contextgraph.processes import Process
from contextgraph.store import rules
from contextgraph.store.graph import add_relation, put_notes, remove_abstracted
from contextgraph.store.neo4j.connection import (
    Connection,
    Row,
    Transaction,
    exposure_of,
    moment,
    time_of,
)
from contextgraph.store.neo4j.search import NEVER, MemoryState, memory_state
from contextgraph.store.port import THOROUGH
from contextgraph.text import number_of

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

    def current(self, notes: Iterable[model.Note]) -> "Graph":
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


# Replanning costs all users of the server seconds: only when a memory has grown so many times.
_GROWTH = 4
_FIRST_REPLANNED_AT = 256

_FACTS = {
    "Trajectory": "explain_trajectory",
    "Fragment": "explain_fragment",
    "ErrorPattern": "explain_error",
    "Methodology": "explain_methodology",
}


class Neo4jAdmin:
    """`AdminStore` on a server; the docstrings of its methods are those of the protocol."""

    def __init__(self, connection: Connection, notes: NoteStore) -> None:
        self._connection = connection
        self._notes = notes
        self._graph = CurrentGraph(connection)

    def counts(self) -> model.MemoryCounts:
        row = self._connection.row("counts")
        assert row is not None  # it aggregates
        return model.MemoryCounts(
            nodes={
                "Trajectory": len(row["outcomes"]),
                "Fragment": row["fragments"],
                "ErrorPattern": row["errors"],
                "Methodology": len(row["statuses"]),
            },
            edges={
                "HAS_FRAGMENT": row["fragments"],
                "CAUSED_ERROR": row["caused"],
                "RECOVERED": row["recovered"],
                "RESOLVED_BY": row["resolved"],
                "DERIVED_FROM": row["derived"],
                "SUPERSEDES": row["supersedes"],
                "SIMILAR_TO": row["similar"],
            },
            outcomes=_counted(model.Outcome, row["outcomes"]),
            changes=_counted(model.ChangeStatus, row["changes"]),
            methodologies=_counted(model.MethodologyStatus, row["statuses"]),
            repositories=row["repositories"],
        )

    def explain(self, node_id: str) -> model.Explanation | None:
        if node_id.startswith(rules.CONTEXT_PREFIX):
            return self._explain_context(node_id)
        for label, name in _FACTS.items():
            if row := self._connection.row(name, id=node_id):
                facts = {name: _json(value) for name, value in row["facts"].items()}
                known = {name: value for name, value in facts.items() if value is not None}
                return model.Explanation(
                    node_id, label, row["name"], known, self._relations(node_id)
                )
        return None

    def graph(self) -> "Graph":
        return self._graph.current(self._notes.all())

    def health(self, *, quick: bool = False) -> Sequence[model.HealthCheck]:
        left_out = THOROUGH if quick else ()
        return tuple(_health_checks(self._connection, left_out))

    def back_up(self, path: Path) -> None:
        raise StoreError(
            f"{self._connection.address} is a server, which makes its own backups: see "
            "neo4j-admin database dump; contextgraph export writes a memory to a file"
        )

    def erase_deleted(self) -> None:
        pass

    def take_lease(
        self, holder: str, now: datetime, until: datetime | None, process: Process | None = None
    ) -> datetime | None:
        def work(transaction: Transaction) -> datetime | None:
            transaction.begin_change()
            row = transaction.row("lease")
            if row and row["holder"] is not None:
                known = Process(**row["process"]) if row["process"] else None
                lease = rules.StoredLease(row["holder"], time_of(row["until"]), known)
                if not lease.is_free_for(holder, now):
                    return lease.expires_at
            transaction.rows(
                "take_lease",
                holder=holder if until else None,
                until=moment(until or now),
                process=asdict(process) if process else {},
            )
            return None

        return self._connection.write(work)

    def unconsolidated(self, after: int | None = None) -> model.Unconsolidated:
        row = self._connection.row("unconsolidated", after=after)
        if row is None:
            return model.Unconsolidated(0, 0, (), ())
        return model.Unconsolidated(
            revision=row["revision"],
            trajectories=row["trajectories"],
            error_ids=tuple(sorted({*row["met_errors"], *row["changed_errors"]})),
            repos=tuple(sorted({*row["run_repos"], *row["changed_repos"]} - {""})),
        )

    def mark_consolidated(self, revision: int, gate: model.FittedGate | None = None) -> None:
        def work(transaction: Transaction) -> bool:
            transaction.begin_change()
            text = gate and json_of(gate)
            transaction.rows("mark_consolidated", revision=revision, gate=text)
            transaction.rows("remove_changed_errors", revision=revision)
            transaction.rows("remove_changed_repos", revision=revision)
            least = _FIRST_REPLANNED_AT // _GROWTH
            return transaction.row("note_replanning", times=_GROWTH, least=least) is not None

        if self._connection.write(work):
            self._connection.replan()

    def _explain_context(self, context: str) -> model.Explanation | None:
        row = self._connection.row("exposures_by_id", ids=[context])
        if row is None:
            return None
        exposure = exposure_of(row)
        ids = sorted(item.id for item in exposure.items)
        known = {
            node["id"]: (node["label"], node["name"])
            for node in self._connection.rows("names_of", ids=ids)
        }
        return rules.explained_context(exposure, known)

    def _relations(self, node_id: str) -> tuple[model.Relation, ...]:
        return rules.in_order(
            model.Relation(
                row["type"],
                row["outgoing"],
                row["id"],
                row["label"],
                row["name"],
                {name: value for name, value in row["properties"].items() if value is not None},
            )
            for row in self._connection.rows("relations_of", id=node_id, runs=rules.EXPLAINED_RUNS)
        )


def _counted(kinds: type[StrEnum], names: Iterable[str]) -> dict[str, int]:
    count = Counter(names)
    return {kind.value: count[kind.value] for kind in kinds}


def _json(value: Any) -> model.Json:
    """*value*; for a time, a text to the second."""
    plain: model.Json = value
    return f"{time_of(value):%Y-%m-%d %H:%M:%S} UTC" if hasattr(value, "to_native") else plain


def _health_checks(connection: Connection, left_out: Sequence[str]) -> Iterator[model.HealthCheck]:
    """One check after the other, up to one that fails so that the next cannot succeed.

    Each further try would give the same answer, wait as long, or count as one more wrong password.
    """
    for name, check in _CHECKS.items():
        if name in left_out:
            continue
        try:
            yield check(connection)
        except StoreError as error:
            detail = f"{error.problem} ({error.reason})" if error.reason else error.problem
            yield model.HealthCheck(name, False, detail, error.remedy or _REMEDIES[name])
            if isinstance(error, StoreUnavailableError | SchemaError | MemoryNotFoundError):
                return


def _reachable(connection: Connection) -> model.HealthCheck:
    version, edition = connection.server()
    return model.HealthCheck("reachable", True, f"{connection.address}: Neo4j {version} {edition}")


def _schema(connection: Connection) -> model.HealthCheck:
    # The first query creates the schema where there is none, or raises what it lacks.
    connection.row("server")
    return model.HealthCheck("schema version", True, "up to date")


def _integrity(connection: Connection) -> model.HealthCheck:
    if offline := connection.rows("offline_indexes"):
        states = ", ".join(f"{row['name']} is {row['state']}" for row in offline)
        return model.HealthCheck("integrity", False, states, _REMEDIES["integrity"])
    stray = connection.row("stray_nodes")
    if stray and stray["count"]:
        detail = f"{number_of(stray['count'], 'node')} without a run"
        return model.HealthCheck("integrity", False, detail, _REMEDIES["integrity"])
    return model.HealthCheck("integrity", True, "all indexes are online, every node has its run")


def _writable(connection: Connection) -> model.HealthCheck:
    connection.try_to_write()
    return model.HealthCheck("writable", True, "a transaction was opened")


def _sizes(connection: Connection) -> model.HealthCheck:
    state = memory_state(connection)
    runs = number_of(state.trajectories, "trajectory")
    return model.HealthCheck("sizes", True, f"{runs}, {number_of(state.recoveries, 'recovery')}")


_CHECKS: Mapping[str, Callable[[Connection], model.HealthCheck]] = {
    "reachable": _reachable,
    "schema version": _schema,
    "integrity": _integrity,
    "writable": _writable,
    "sizes": _sizes,
}
_REMEDIES = {
    "reachable": "see docs/neo4j.md; user and password are read from CONTEXTGRAPH_NEO4J_USER and "
    "CONTEXTGRAPH_NEO4J_PASSWORD",
    "schema version": "export it with the version that wrote it, then import it",
    "integrity": "drop indexes that failed and run contextgraph call consolidate; restore lost "
    "nodes from a backup, or learn the runs again",
    "writable": "give the user the rights to write; free space on the server's disk",
    "sizes": "see the checks before",
}
