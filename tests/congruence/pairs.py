"""Which stores are compared, and the decorator that makes a test of each pair."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

import pytest
from hypothesis import Phase, given, settings, strategies as st

from contextgraph.store import SqliteStore
from contextgraph.store.neo4j import Neo4jStore
from contextgraph.store.postgres import PostgresNotes
from contextgraph.store.qdrant import LOCAL, QdrantNotes
from tests.profiles import examples
from tests.reference_memory import ReferenceMemory
from tests.server import Neo4jServer
from tests.strategies import bundles
from tests.twins import Twins

RUNS = tuple(f"run{number}" for number in range(12))
memories = st.lists(bundles(RUNS), min_size=3, max_size=6)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two kinds of store; *opened* gives new ones, *settings* say how often that is worth it."""

    name: str
    opened: Callable[[pytest.FixtureRequest], Twins]
    settings: settings


def in_process(request: pytest.FixtureRequest) -> Twins:
    """The in-process store beside the reference."""
    return Twins(ReferenceMemory(), ((SqliteStore(":memory:"),),))


def on_a_server(request: pytest.FixtureRequest, doors: int = 1) -> Twins:
    """The Neo4j store, as a tenant of its own, beside the in-process one."""
    server: Neo4jServer = request.getfixturevalue("neo4j_server")
    tenant = uuid4().hex
    opened = tuple(Neo4jStore(server.uri, server.auth, tenant) for _ in range(doors))
    return Twins(SqliteStore(":memory:"), (opened,))


PAIRS = (
    Pair("in process, and the reference", in_process, settings(max_examples=examples(0.08))),
    # Each operation is a round trip: fewer examples, and none is shrunk.
    Pair(
        "Neo4j, and in process",
        on_a_server,
        settings(max_examples=examples(0.03), phases=(Phase.explicit, Phase.reuse, Phase.generate)),
    ),
)


def notes_in_postgres(request: pytest.FixtureRequest) -> Twins:
    """Notes in PostgreSQL, as a tenant of its own, beside the in-process store."""
    notes = PostgresNotes(request.getfixturevalue("postgres"), uuid4().hex)
    return Twins(SqliteStore(":memory:"), ((SqliteStore(":memory:", notes=notes),),))


def notes_in_qdrant(request: pytest.FixtureRequest) -> Twins:
    """Notes in Qdrant beside the in-process store."""
    notes = QdrantNotes(LOCAL, uuid4().hex)
    return Twins(SqliteStore(":memory:"), ((SqliteStore(":memory:", notes=notes),),))


NOTE_PAIRS = (
    *PAIRS,
    Pair("PostgreSQL, and in process", notes_in_postgres, PAIRS[1].settings),
    Pair("Qdrant, and in process", notes_in_qdrant, PAIRS[1].settings),
)


def congruent(
    pairs: Sequence[Pair] = PAIRS, **drawn: st.SearchStrategy
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a test of *twins* run on each pair of stores with generated arguments."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @pytest.mark.parametrize("pair", pairs, ids=lambda pair: pair.name)
        def on_pair(pair: Pair, request: pytest.FixtureRequest) -> None:
            @pair.settings
            @given(**drawn)
            def check(**arguments: object) -> None:
                with _closing(pair.opened(request)) as twins:
                    test(twins, **arguments)

            check()

        on_pair.__name__, on_pair.__doc__ = test.__name__, test.__doc__
        return on_pair

    return decorate


@contextmanager
def _closing(twins: Twins) -> Iterator[Twins]:
    try:
        yield twins
    finally:
        twins.close()
