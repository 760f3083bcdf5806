"""Prefetched answers: closing, cancelling and errors in other threads."""

from collections.abc import Iterator
from threading import Event, Thread
from time import sleep
from uuid import uuid4

import pytest

from contextgraph.errors import StoreError
from contextgraph.store.neo4j import Neo4jStore
from contextgraph.store.neo4j.connection import MAX_THREADS
from tests.made_bundles import made_bundle
from tests.server import Neo4jServer

SECONDS = 4


@pytest.fixture
def store(neo4j_server: Neo4jServer) -> Iterator[Neo4jStore]:
    store = Neo4jStore(neo4j_server.uri, neo4j_server.auth, uuid4().hex)
    store.runs.add([made_bundle(0)])
    yield store
    store.admin.close()


def test_a_store_can_be_closed_while_a_query_runs(store: Neo4jStore) -> None:
    def late() -> int:
        while not store.admin._connection._closed:
            sleep(0.01)
        return store.runs.word_counts(()).total

    answer = store.admin.prefetch(late)
    closing = Thread(target=store.admin.close, daemon=True)
    closing.start()
    closing.join(SECONDS)
    assert not closing.is_alive()
    with pytest.raises(StoreError, match="is closed"):
        answer()


def test_a_closed_store_starts_no_threads(store: Neo4jStore) -> None:
    store.admin.close()
    with pytest.raises(StoreError, match="is closed"):
        store.admin.prefetch(store.admin.counts)


def test_unused_prefetches_are_cancelled_at_the_end_of_a_snapshot(store: Neo4jStore) -> None:
    go, begun = Event(), Event()
    ran: list[str] = []
    busy = [store.admin.prefetch(lambda: go.wait(SECONDS)) for _ in range(MAX_THREADS)]
    with store.admin.snapshot():
        unused = store.admin.prefetch(lambda: ran.append("unused"))
    store.admin.prefetch(begun.set)
    go.set()
    assert all(one() for one in busy)
    assert begun.wait(SECONDS)
    assert not ran
    unused()
    assert ran == ["unused"]


def test_bookmarks_request_a_server_that_has_the_last_write(
    neo4j_server: Neo4jServer,
) -> None:
    address = neo4j_server.uri.replace("bolt://", "neo4j://")
    store = Neo4jStore(address, neo4j_server.auth, uuid4().hex)
    store.runs.add([made_bundle(0)])
    bookmarks = store.admin._connection._open().execute_query_bookmark_manager
    before = set(bookmarks.get_bookmarks())
    store.runs.add([made_bundle(1)])
    after = set(bookmarks.get_bookmarks())
    assert before
    assert before != after
    with store.admin.snapshot():
        assert store.runs.word_counts(()).total == 2
    # Queries wait for these bookmarks: the server refuses one that is none.
    bookmarks.update_bookmarks(after, ["none"])
    with pytest.raises(StoreError, match="ookmark"):
        store.runs.ids()
    with store.admin.snapshot(), pytest.raises(StoreError, match="ookmark"):
        store.runs.ids()
    store.admin.close()
