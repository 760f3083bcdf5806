"""A memory on a server with killed, concurrent and forked clients."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest

from contextgraph.model import Scope
from contextgraph.store.memory_store import Store
from contextgraph.store.neo4j import Neo4jStore
from contextgraph.store.sqlite import SqliteStore
from tests.made_bundles import made_bundle, store_content
from tests.server import Neo4jServer

COUNT = 24
LEARN = """
import os, sys
from contextgraph.store.neo4j import Neo4jStore
from tests.made_bundles import made_bundle
uri, tenant, *numbers = sys.argv[1:]
auth = (os.environ["SERVER_USER"], os.environ["SERVER_PASSWORD"])
store = Neo4jStore(uri, auth, tenant)
for start in range(0, len(numbers), 4):
    some = numbers[start : start + 4]
    statuses = store.runs.add([made_bundle(int(number)) for number in some])
    for number, status in zip(some, statuses, strict=True):
        print(status, number, flush=True)
store.close()
"""


def learning(server: Neo4jServer, tenant: str, numbers: Sequence[int]) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", LEARN, server.uri, tenant, *map(str, numbers)]
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "SERVER_USER": server.auth[0],
        "SERVER_PASSWORD": server.auth[1],
    }
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def content(store: Store) -> list[object]:
    return [
        *store_content(store),
        store.admin.unconsolidated().trajectories,
    ]


@pytest.fixture(scope="module")
def expected() -> list[object]:
    store = SqliteStore(":memory:")
    for number in range(COUNT):
        store.runs.add([made_bundle(number)])
    return content(store)


@pytest.fixture
def store(neo4j_server: Neo4jServer) -> Iterator[Neo4jStore]:
    store = Neo4jStore(neo4j_server.uri, neo4j_server.auth, uuid4().hex)
    yield store
    store.close()


def test_a_killed_client_loses_nothing_acknowledged(
    neo4j_server: Neo4jServer, store: Neo4jStore, expected: list[object]
) -> None:
    chance = random.Random(5)
    acknowledged: set[str] = set()
    for _ in range(3):
        process = learning(neo4j_server, store.tenant, range(COUNT))
        assert process.stdout is not None
        acknowledged.add(process.stdout.readline().split()[1])
        time.sleep(chance.uniform(0, 0.3))
        process.send_signal(signal.SIGKILL)
        acknowledged.update(line.split()[1] for line in process.stdout if line.endswith("\n"))
        process.wait()
        process.stdout.close()
        assert {made_bundle(int(number)).trajectory.id for number in acknowledged} <= set(
            store.runs.ids()
        )
        assert all(check.ok for check in store.admin.health())
    with learning(neo4j_server, store.tenant, range(COUNT)) as process:
        assert process.wait() == 0
    assert content(store) == expected


def test_concurrent_processes_learn_each_run_once(
    neo4j_server: Neo4jServer, store: Neo4jStore, expected: list[object]
) -> None:
    orders = (range(COUNT), range(COUNT - 1, -1, -1), range(0, COUNT, 2))
    processes = [learning(neo4j_server, store.tenant, order) for order in orders]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert "".join(outputs).count("created") == COUNT
    assert content(store) == expected


def test_threads_share_a_store(store: Neo4jStore, expected: list[object]) -> None:
    def learn_and_search(number: int) -> int:
        store.runs.add([made_bundle(number)])
        with store.snapshot():
            frequencies = store.runs.word_counts(["cache"]).by_word
            return frequencies["cache"] + len(store.runs.for_text(["cache"], Scope(), 1000))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(learn_and_search, range(COUNT)))
    assert content(store) == expected


def test_a_forked_process_has_connections_of_its_own(store: Neo4jStore) -> None:
    store.runs.add([made_bundle(0)])
    child = os.fork()
    if child == 0:
        learned = store.runs.add([made_bundle(1)]) == ["created"]
        os._exit(0 if learned and len(store.runs.ids()) == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    store.runs.add([made_bundle(2)])
    assert len(store.runs.ids()) == 3
