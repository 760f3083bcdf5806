"""Questions that are asked ahead, in other threads: nobody waits for them in vain."""

from collections.abc import Iterator
from threading import Event, Thread
from time import sleep
from uuid import uuid4

import pytest

from contextgraph.errors import StoreError
from contextgraph.store.neo4j_store import Neo4jStore
from contextgraph.store.neo4j_store.connection import MOST_THREADS
from tests.made_bundles import made_bundle
from tests.server import Neo4jServer

SECONDS = 4


@pytest.fixture
def store(neo4j_server: Neo4jServer) -> Iterator[Neo4jStore]:
    store = Neo4jStore(neo4j_server.uri, neo4j_server.auth, uuid4().hex)
    store.add_bundles([made_bundle(0)])
    yield store
    store.close()


def test_a_store_can_be_closed_while_it_is_asked(store: Neo4jStore) -> None:
    def late() -> int:
        while not store._connection._closed:
            sleep(0.01)
        return store.document_count()

    answer = store.ahead(late)
    closing = Thread(target=store.close, daemon=True)
    closing.start()
    closing.join(SECONDS)
    assert not closing.is_alive()
    with pytest.raises(StoreError, match="is closed"):
        answer()


def test_a_closed_store_makes_no_threads_to_ask_in(store: Neo4jStore) -> None:
    store.close()
    with pytest.raises(StoreError, match="is closed"):
        store.ahead(store.document_count)


def test_what_was_not_wanted_in_a_snapshot_is_not_asked_after_it(store: Neo4jStore) -> None:
    go, begun = Event(), Event()
    asked: list[str] = []
    busy = [store.ahead(lambda: go.wait(SECONDS)) for _ in range(MOST_THREADS)]
    with store.snapshot():
        unwanted = store.ahead(lambda: asked.append("unwanted"))
    store.ahead(begun.set)
    go.set()
    assert all(one() for one in busy)
    assert begun.wait(SECONDS)
    assert not asked
    unwanted()
    assert asked == ["unwanted"]


def test_of_several_servers_one_answers_that_has_what_was_written(
    neo4j_server: Neo4jServer,
) -> None:
    address = neo4j_server.uri.replace("bolt://", "neo4j://")
    store = Neo4jStore(address, neo4j_server.auth, uuid4().hex)
    store.add_bundles([made_bundle(0)])
    bookmarks = store._connection._open().execute_query_bookmark_manager
    before = set(bookmarks.get_bookmarks())
    store.add_bundles([made_bundle(1)])
    after = set(bookmarks.get_bookmarks())
    assert before
    assert before != after
    with store.snapshot():
        assert store.document_count() == 2
    # What is asked begins where these say: of a bookmark that is none it is refused.
    bookmarks.update_bookmarks(after, ["none"])
    with pytest.raises(StoreError, match="ookmark"):
        store.trajectory_ids()
    with store.snapshot(), pytest.raises(StoreError, match="ookmark"):
        store.trajectory_ids()
    store.close()
