"""Whether a memory on a server is well."""

from collections.abc import Callable, Iterator

from contextgraph.errors import (
    MemoryNotFoundError,
    SchemaError,
    StoreError,
    StoreUnavailableError,
)
from contextgraph.model import HealthCheck
from contextgraph.store.neo4j_store.changes import begin_change
from contextgraph.store.neo4j_store.connection import Connection
from contextgraph.store.neo4j_store.transaction import Transaction
from contextgraph.text import number_of


def checks(connection: Connection) -> Iterator[HealthCheck]:
    """Reachable, schema version, integrity, writable, sizes; up to one without which none can be.

    Each further try would say the same, wait as long, or count as one more wrong password.
    """
    for name, look in _LOOKS.items():
        try:
            yield look(connection)
        except StoreError as error:
            found, _, remedy = str(error).partition("; ")
            yield HealthCheck(name, False, found, remedy or _REMEDIES[name])
            if isinstance(error, _FINAL):
                return


def _reachable(connection: Connection) -> HealthCheck:
    version, edition = connection.server()
    return HealthCheck("reachable", True, f"{connection.address}: Neo4j {version} {edition}")


def _schema(connection: Connection) -> HealthCheck:
    # Whatever is read first makes the schema where there is none, or says what it lacks.
    connection.read(Transaction.row, "server")
    return HealthCheck("schema version", True, "up to date")


def _integrity(connection: Connection) -> HealthCheck:
    ill = connection.read(Transaction.rows, "ill_indexes")
    if ill:
        found = ", ".join(f"{row['name']} is {row['state']}" for row in ill)
        return HealthCheck("integrity", False, found, _REMEDIES["integrity"])
    stray = connection.read(Transaction.row, "stray_nodes")
    if stray and stray["count"]:
        detail = f"{number_of(stray['count'], 'node')} without a run"
        return HealthCheck("integrity", False, detail, _REMEDIES["integrity"])
    return HealthCheck("integrity", True, "all indexes are online, every node has its run")


def _writable(connection: Connection) -> HealthCheck:
    if connection.read_only:
        return HealthCheck("writable", True, "opened for reading only, not tried")
    connection.write(begin_change)
    return HealthCheck("writable", True, "a transaction could be committed")


def _sizes(connection: Connection) -> HealthCheck:
    row = connection.read(Transaction.row, "memory_state")
    runs, recoveries = (row["trajectories"], row["recoveries"]) if row else (0, 0)
    return HealthCheck(
        "sizes", True, f"{number_of(runs, 'trajectory')}, {number_of(recoveries, 'recovery')}"
    )


_FINAL = (StoreUnavailableError, SchemaError, MemoryNotFoundError)
_LOOKS: dict[str, Callable[[Connection], HealthCheck]] = {
    "reachable": _reachable,
    "schema version": _schema,
    "integrity": _integrity,
    "writable": _writable,
    "sizes": _sizes,
}
_REMEDIES = {
    "reachable": "see docs/neo4j.md; user and password are read from CONTEXTGRAPH_NEO4J_USER and "
    "CONTEXTGRAPH_NEO4J_PASSWORD",
    "schema version": "run contextgraph migrate",
    "integrity": "drop indexes that failed and run contextgraph migrate; restore lost nodes from a "
    "backup, or learn the runs again",
    "writable": "give the user the rights to write; make room on the server's disk",
    "sizes": "see the checks before",
}
