"""Checks of a memory on a server."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from contextgraph.errors import MemoryNotFoundError, SchemaError, StoreError, StoreUnavailableError
from contextgraph.model import HealthCheck
from contextgraph.store.neo4j import statements
from contextgraph.store.neo4j.connection import Connection
from contextgraph.store.neo4j.schema import OFFLINE, SERVER
from contextgraph.text import number_of


def checks(connection: Connection, left_out: Sequence[str]) -> Iterator[HealthCheck]:
    """Yield one check after the other, up to one that fails so that the next cannot succeed.

    Each further try would give the same answer, wait as long, or count as one more wrong password.
    """
    for name, check in _CHECKS.items():
        if name in left_out:
            continue
        try:
            yield check(connection)
        except StoreError as error:
            detail = f"{error.problem} ({error.reason})" if error.reason else error.problem
            yield HealthCheck(name, False, detail, error.remedy or _REMEDIES[name])
            if isinstance(error, StoreUnavailableError | SchemaError | MemoryNotFoundError):
                return


def _reachable(connection: Connection) -> HealthCheck:
    version, edition = connection.server()
    return HealthCheck("reachable", True, f"{connection.address}: Neo4j {version} {edition}")


def _schema(connection: Connection) -> HealthCheck:
    # The first statement creates the schema where there is none, or raises what it lacks.
    connection.run(SERVER, {})
    return HealthCheck("schema version", True, "up to date")


def _integrity(connection: Connection) -> HealthCheck:
    if offline := connection.run(OFFLINE, {}):
        states = ", ".join(f"{row['name']} is {row['state']}" for row in offline)
        return HealthCheck("integrity", False, states, _REMEDIES["integrity"])
    tables = connection.schema.tables
    for table in tables.values():
        part, column = table.part_of or ("", "")
        if table.ends or part in ("", table.name):
            continue
        text = statements.without(table, tables[part], column)
        (row,) = connection.run(text, {"tenant": connection.tenant})
        if row["rows"]:
            detail = f"{number_of(row['rows'], 'node')} {table.label} without {tables[part].label}"
            return HealthCheck("integrity", False, detail, _REMEDIES["integrity"])
    return HealthCheck("integrity", True, "all indexes are online, no part of a row is missing")


def _writable(connection: Connection) -> HealthCheck:
    connection.try_to_write()
    return HealthCheck("writable", True, "a transaction was opened")


def _sizes(connection: Connection) -> HealthCheck:
    sized = [table for table in connection.schema.tables.values() if table.is_sized]
    parts = []
    for table in sized:
        (row,) = connection.run(statements.rows_of(table), {"tenant": connection.tenant})
        parts.append(number_of(row["rows"], table.label.lower()))
    return HealthCheck("sizes", True, ", ".join(parts))


_CHECKS: Mapping[str, Callable[[Connection], HealthCheck]] = {
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
