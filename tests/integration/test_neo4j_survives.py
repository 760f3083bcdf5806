"""A memory on a server outlives killed clients, and processes and threads that share it."""

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
from contextgraph.ports import GraphStore
from contextgraph.store import NetworkxStore
from contextgraph.store.neo4j_store import Neo4jStore
from tests.made_bundles import SIGNATURE, made_bundle
from tests.server import Neo4jServer

COUNT = 24
LEARN = """
import os, sys
from contextgraph.store.neo4j_store import Neo4jStore
from tests.made_bundles import made_bundle
uri, tenant, *numbers = sys.argv[1:]
auth = (os.environ["SERVER_USER"], os.environ["SERVER_PASSWORD"])
store = Neo4jStore(uri, auth, tenant)
for start in range(0, len(numbers), 4):
    some = numbers[start : start + 4]
    statuses = store.add_bundles([made_bundle(int(number)) for number in some])
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


def content(store: GraphStore) -> list[object]:
    runs = store.trajectory_ids()
    return [
        store.counts(),
        [store.trajectory(run) for run in runs],
        [store.raw_trajectory(run) for run in runs],
        store.fragments_of(runs),
        store.error_tally(SIGNATURE, Scope()),
        store.error_transitions(),
        store.trajectories_for_text(["cache"], Scope(), 1000),
        store.recoveries_for_text(["boom"], Scope(), 1000),
        store.unconsolidated().trajectories,
    ]


@pytest.fixture(scope="module")
def undisturbed() -> list[object]:
    store = NetworkxStore(":memory:")
    for number in range(COUNT):
        store.add_bundles([made_bundle(number)])
    return content(store)


@pytest.fixture
def store(neo4j_server: Neo4jServer) -> Iterator[Neo4jStore]:
    store = Neo4jStore(neo4j_server.uri, neo4j_server.auth, uuid4().hex)
    yield store
    store.close()


def test_killed_at_any_moment_and_begun_again_it_holds_the_same(
    neo4j_server: Neo4jServer, store: Neo4jStore, undisturbed: list[object]
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
            store.trajectory_ids()
        )
        assert all(check.ok for check in store.health())
    with learning(neo4j_server, store.tenant, range(COUNT)) as process:
        assert process.wait() == 0
    assert content(store) == undisturbed


def test_processes_that_learn_at_once_learn_the_same(
    neo4j_server: Neo4jServer, store: Neo4jStore, undisturbed: list[object]
) -> None:
    orders = (range(COUNT), range(COUNT - 1, -1, -1), range(0, COUNT, 2))
    processes = [learning(neo4j_server, store.tenant, order) for order in orders]
    said = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert "".join(said).count("created") == COUNT
    assert content(store) == undisturbed


def test_threads_share_a_store(store: Neo4jStore, undisturbed: list[object]) -> None:
    def learn_and_look(number: int) -> int:
        store.add_bundles([made_bundle(number)])
        with store.snapshot():
            frequencies = store.word_frequencies(["cache"])
            return frequencies["cache"] + len(store.trajectories_for_text(["cache"], Scope(), 1000))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(learn_and_look, range(COUNT)))
    assert content(store) == undisturbed


def test_a_forked_process_goes_on_with_connections_of_its_own(store: Neo4jStore) -> None:
    store.add_bundles([made_bundle(0)])
    child = os.fork()
    if child == 0:
        learned = store.add_bundles([made_bundle(1)]) == ["created"]
        os._exit(0 if learned and len(store.trajectory_ids()) == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    store.add_bundles([made_bundle(2)])
    assert len(store.trajectory_ids()) == 3


def test_a_forked_process_waits_for_no_thread_that_it_lacks(store: Neo4jStore) -> None:
    store.add_bundles([made_bundle(0)])
    known = store._known
    with known.trajectory_words._lock, known.values._lock, known.vectors._lock:
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            found = store.trajectories_for_text(["cache"], Scope(), 9)
            os._exit(0 if len(found) == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0
