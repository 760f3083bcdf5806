"""Which stores are compared."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

import pytest
from hypothesis import Phase, settings

from contextgraph.store.neo4j import Neo4jStore
from contextgraph.store.networkx import NetworkxStore
from contextgraph.store.protocols import VectorIndex
from contextgraph.store.sqlite import SqliteStore
from contextgraph.store.vector_index import LOCAL, IndexedNotes, PostgresIndex, QdrantIndex
from tests.compared_stores import ComparedStores
from tests.profiles import examples
from tests.server import Neo4jServer


@dataclass(frozen=True, slots=True)
class Pair:
    """Two kinds of store; *opened* gives new ones, *settings* say how often that is worth it."""

    name: str
    opened: Callable[[pytest.FixtureRequest], ComparedStores]
    settings: settings

    def __str__(self) -> str:
        return self.name


def in_process(request: pytest.FixtureRequest) -> ComparedStores:
    """The in-process store beside the specification, a graph."""
    return ComparedStores(NetworkxStore(), ((SqliteStore(":memory:"),),))


def on_a_server(request: pytest.FixtureRequest, connections: int = 1) -> ComparedStores:
    """The Neo4j store, as a tenant of its own, beside the in-process one."""
    server: Neo4jServer = request.getfixturevalue("neo4j_server")
    tenant = uuid4().hex
    opened = tuple(Neo4jStore(server.uri, server.auth, tenant) for _ in range(connections))
    return ComparedStores(SqliteStore(":memory:"), (opened,))


# A memory is a large example: shrinking one takes minutes.
_PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
IN_PROCESS = Pair(
    "in process, and in a graph",
    in_process,
    settings(max_examples=examples(0.32), phases=_PHASES),
)
# Each operation is a round trip.
ON_A_SERVER = Pair(
    "Neo4j, and in process", on_a_server, settings(max_examples=examples(0.12), phases=_PHASES)
)


def indexed(index: VectorIndex) -> ComparedStores:
    """Vectors of notes in *index*, beside the in-process store."""
    store = SqliteStore(":memory:")
    store.notes = IndexedNotes(store.notes, index)
    return ComparedStores(SqliteStore(":memory:"), ((store,),))


def in_postgres(request: pytest.FixtureRequest) -> ComparedStores:
    return indexed(PostgresIndex(request.getfixturevalue("postgres"), uuid4().hex))


def in_qdrant(request: pytest.FixtureRequest) -> ComparedStores:
    return indexed(QdrantIndex(LOCAL, uuid4().hex))


OF_NOTES = (
    Pair("PostgreSQL, and in process", in_postgres, ON_A_SERVER.settings),
    Pair("Qdrant, and in process", in_qdrant, ON_A_SERVER.settings),
)
