"""The memory on a Neo4j server, shared by teams: 5.26 LTS and later."""

from contextgraph.store.memory_store import Store
from contextgraph.store.neo4j.connection import Connection
from contextgraph.store.neo4j.port import Neo4jPort
from contextgraph.store.neo4j.schema import Schema
from contextgraph.store.tables import TABLES

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
        schema = Schema(TABLES)
        super().__init__(Neo4jPort(Connection(address, auth, tenant, schema, read_only=read_only)))
