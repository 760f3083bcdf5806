"""Removing in several transactions: an interruption leaves whole runs, and can be resumed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from contextgraph.model import Bundle, FragmentType, Note
from contextgraph.model.values import replace
from contextgraph.store import memory_store
from contextgraph.store.memory_store import RUNS_AT_ONCE, Store
from contextgraph.store.neo4j import Neo4jStore, port
from contextgraph.store.sqlite import SqliteStore
from tests.made_bundles import made_bundle, made_methodology
from tests.server import Neo4jServer

NOW = datetime(2026, 3, 1, tzinfo=UTC)
FORGET = """
import os, sys
from contextgraph.store.neo4j import Neo4jStore
uri, tenant, *runs = sys.argv[1:]
auth = (os.environ["SERVER_USER"], os.environ["SERVER_PASSWORD"])
Neo4jStore(uri, auth, tenant).runs.forget(runs)
"""


@pytest.fixture
def store(neo4j_with_indexes: Neo4jServer) -> Iterator[Neo4jStore]:
    store = Neo4jStore(neo4j_with_indexes.uri, neo4j_with_indexes.auth, uuid4().hex)
    yield store
    store.close()


def content(store: Store) -> list[object]:
    runs = store.runs.ids()
    return [
        store.admin.counts(),
        store.runs.fragments(runs),
        store.recoveries.error_steps(),
        [replace(store.admin.unconsolidated(0), revision=0)],
    ]


def forgetting(server: Neo4jServer, tenant: str, runs: list[str]) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "SERVER_USER": server.auth[0],
        "SERVER_PASSWORD": server.auth[1],
    }
    command = [sys.executable, "-c", FORGET, server.uri, tenant, *runs]
    return subprocess.Popen(command, env=environment)


def test_forgetting_that_is_killed_leaves_whole_runs_and_can_be_repeated(
    neo4j_server: Neo4jServer, store: Neo4jStore
) -> None:
    reference, count = SqliteStore(":memory:"), RUNS_AT_ONCE + 64
    for start in range(0, count, 32):
        some = [made_bundle(start + number) for number in range(32)]
        store.runs.add(some)
        reference.runs.add(some)
    gone = [made_bundle(number).trajectory.id for number in range(10, count)]
    with forgetting(neo4j_server, store.tenant, gone) as process:
        while process.poll() is None and len(store.runs.ids()) == count:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    # This waits for the last transaction of the killed process, which the server may complete.
    assert all(check.ok for check in store.admin.health())
    left = len(store.runs.ids())
    assert left < count
    assert store.admin.counts().nodes["Fragment"] == 2 * left
    assert store.runs.forget(gone) == left - 10
    assert reference.runs.forget(gone) == len(gone)
    assert content(store) == content(reference)


def failed(number: int) -> Bundle:
    bundle = made_bundle(3 * number)
    first, second = bundle.fragments
    return replace(
        bundle, fragments=(replace(first, fragment_type=FragmentType.FAILED_ATTEMPT), second)
    )


@pytest.mark.parametrize("at_once", [2, 3, 200])
def test_removing_in_batches_removes_the_same(
    store: Neo4jStore, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(memory_store, "NOTES_AT_ONCE", at_once)
    monkeypatch.setattr(port, "_ROWS_AT_ONCE", at_once)
    reference = SqliteStore(":memory:")
    some = [failed(number) for number in range(8)]
    error = some[0].errors[0].id
    for known in (store, reference):
        known.runs.add(some)
        known.methodologies.put([made_methodology(number) for number in range(7)])
        assert known.recoveries.clean_up([error], 2) == 12
        assert known.methodologies.ids() == ["methodology0"]
        known.notes.change(
            new=[Note(f"n{number}", "text", "a/b", "user", NOW) for number in range(7)]
        )
        assert known.notes.delete([f"n{number}" for number in (6, 6, 5, 4, 2, 1, 0, 9)]) == 6
        assert [note.id for note in known.notes.all()] == ["n3"]
    assert content(store) == content(reference)
