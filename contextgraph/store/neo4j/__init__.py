"""The memory on a Neo4j server, shared by teams: 5.26 LTS and later."""

from contextgraph.ports import NoteStore, PassageStore, Store
from contextgraph.store.memory_store import MemoryPassages
from contextgraph.store.neo4j.admin import Neo4jAdmin
from contextgraph.store.neo4j.advice import Neo4jExposures, Neo4jMethodologies, Neo4jRecoveries
from contextgraph.store.neo4j.connection import Connection
from contextgraph.store.neo4j.notes import Neo4jNotes
from contextgraph.store.neo4j.runs import Neo4jRuns
from contextgraph.store.neo4j.search import CandidateCache, Neo4jVectors

__all__ = ["Neo4jStore"]


class Neo4jStore(Store):
    """A `Store` on the server at *address*.

    *address* is ``neo4j://`` or ``bolt://``, its path the name of the database; *auth* is (user,
    password). Nothing is opened until first used. Threads and processes may share it. With
    *read_only* a memory that does not exist is not created: reading raises `MemoryNotFoundError`.
    """

    def __init__(
        self,
        address: str,
        auth: tuple[str, str] | None = None,
        tenant: str = "default",
        read_only: bool = False,
    ) -> None:
        self._connection = connection = Connection(address, auth, tenant, read_only=read_only)
        self.tenant, self.snapshot = tenant, connection.snapshot
        values = CandidateCache(connection)
        self.runs = Neo4jRuns(connection, values)
        self.recoveries = Neo4jRecoveries(connection, values)
        self.vectors = Neo4jVectors(connection, values)
        self.methodologies = Neo4jMethodologies(connection)
        self.exposures = Neo4jExposures(connection)
        self.notes: NoteStore = Neo4jNotes(connection)
        from contextgraph.store.networkx import NetworkxPort

        # What was said is not kept on a server yet: nothing is found, nothing fails.
        self.passages: PassageStore = MemoryPassages(NetworkxPort(tenant))
        self.admin = Neo4jAdmin(connection, self.notes)

    def close(self) -> None:
        self.notes.close()
        self._connection.close()
