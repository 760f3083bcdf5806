"""A memory file outlives killed processes, and processes and threads that share it."""

import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from contextgraph.model import Scope
from contextgraph.store.sqlite import SqliteStore
from tests.made_bundles import made_bundle, store_content

# They look at how a memory is made.
pytestmark = pytest.mark.makes_tables

COUNT = 60
WITH_FILES = ("mmap.", "open", "os.", "shutil.", "sqlite3.", "tempfile.")
FILES = {"memory.db", "memory.db-journal", "memory.db-shm", "memory.db-wal"}
LEARN = """
import sys
from contextgraph.store.sqlite import SqliteStore
from tests.made_bundles import made_bundle
store = SqliteStore(sys.argv[1])
for number in map(int, sys.argv[2:]):
    print(*store.runs.add([made_bundle(number)]), number, flush=True)
"""


def learning(path: Path, numbers: Sequence[int], **variables: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", LEARN, str(path), *map(str, numbers)]
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root, **variables}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def content(store: SqliteStore) -> list[object]:
    return [
        *store_content(store),
        sorted(store.admin.graph().nodes),
        sorted(store.admin.graph().edges(keys=True)),
    ]


@pytest.fixture(scope="module")
def undisturbed() -> list[object]:
    store = SqliteStore(":memory:")
    for number in range(COUNT):
        store.runs.add([made_bundle(number)])
    return content(store)


def test_killed_at_any_moment_and_repeated_the_content_is_the_same(
    tmp_path: Path, undisturbed: list[object]
) -> None:
    path = tmp_path / "memory.db"
    chance = random.Random(5)
    acknowledged: set[str] = set()
    for _ in range(5):
        process = learning(path, range(COUNT))
        assert process.stdout is not None
        acknowledged.add(process.stdout.readline().split()[1])
        time.sleep(chance.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        acknowledged.update(line.split()[1] for line in process.stdout if line.endswith("\n"))
        process.wait()
        process.stdout.close()
        store = SqliteStore(str(path), read_only=True)
        assert {made_bundle(int(number)).trajectory.id for number in acknowledged} <= set(
            store.runs.ids()
        )
        assert all(check.ok for check in store.admin.health())
        store.close()
    with learning(path, range(COUNT)) as process:
        assert process.wait() == 0
    store = SqliteStore(str(path))
    assert content(store) == undisturbed
    store.close()


def made_until(path: Path, event: int) -> bool:
    """Learn into *path* in a child that is killed at this *event*; True if it has fewer."""
    child = os.fork()
    if child == 0:
        events = itertools.count()

        def kill(name: str, _: object) -> None:
            if name.startswith(WITH_FILES) and next(events) == event:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(kill)
        SqliteStore(str(path)).runs.add([made_bundle(0)])
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def test_killed_while_it_is_made_a_memory_leaves_no_other_files(tmp_path: Path) -> None:
    folders = (tmp_path / str(event) for event in itertools.count())
    for event, folder in enumerate(folders):
        folder.mkdir()
        if made_until(folder / "memory.db", event):
            break
        assert {path.name for path in folder.iterdir()} <= FILES
    assert event > 4


@pytest.fixture(scope="module")
def without_shared_memory(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library that makes a disk one of a network, to be preloaded."""
    if not (compiler := shutil.which("cc")):
        pytest.skip("a file system without shared memory needs a C compiler")
    source = Path(__file__).parents[1] / "data" / "no_shared_memory.c"
    library = tmp_path_factory.mktemp("library") / "no_shared_memory.so"
    options = ["-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run([compiler, *options], check=True)
    return str(library)


@pytest.mark.parametrize("is_new", [True, False])
def test_a_disk_of_a_network_holds_a_memory(
    tmp_path: Path, undisturbed: list[object], without_shared_memory: str, is_new: bool
) -> None:
    path = tmp_path / "memory.db"
    if not is_new:  # copied there from a local disk
        local = SqliteStore(str(path))
        local.runs.add([made_bundle(0)])
        local.close()
    halves = [range(COUNT // 2 + 2), range(COUNT // 2 - 2, COUNT)]
    processes = [learning(path, half, LD_PRELOAD=without_shared_memory) for half in halves]
    assert [process.communicate()[0] and process.returncode for process in processes] == [0, 0]
    assert content(SqliteStore(str(path))) == undisturbed


def test_concurrent_processes_learn_the_same(tmp_path: Path, undisturbed: list[object]) -> None:
    path = tmp_path / "memory.db"
    orders = (range(COUNT), range(COUNT - 1, -1, -1), range(0, COUNT, 2))
    processes = [learning(path, order) for order in orders]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert "".join(outputs).count("created") == COUNT
    store = SqliteStore(str(path))
    assert content(store) == undisturbed
    store.close()


def test_threads_share_a_store(tmp_path: Path, undisturbed: list[object]) -> None:
    store = SqliteStore(str(tmp_path / "memory.db"))

    def learn_and_look(number: int) -> int:
        store.runs.add([made_bundle(number)])
        store.admin.graph()
        frequencies = store.runs.word_counts(["cache"]).by_word
        return frequencies["cache"] + len(store.runs.for_text(["cache"], Scope(), 1000))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(learn_and_look, range(COUNT)))
    assert content(store) == undisturbed
    store.close()


def test_threads_share_a_store_without_a_file(undisturbed: list[object]) -> None:
    store = SqliteStore(":memory:")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: store.runs.add([made_bundle(number)]), range(COUNT)))
    assert content(store) == undisturbed
    store.close()


def test_a_forked_process_opens_its_own_connections(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "memory.db"))
    store.runs.add([made_bundle(0)])
    child = os.fork()
    if child == 0:
        learned = store.runs.add([made_bundle(1)]) == ["created"]
        os._exit(0 if learned and len(store.runs.ids()) == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    store.runs.add([made_bundle(2)])
    assert len(store.runs.ids()) == 3
    assert all(check.ok for check in store.admin.health())
    store.close()


def test_a_reader_sees_one_revision_while_others_write(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = SqliteStore(str(path))
    store.runs.add([made_bundle(0)])
    with learning(path, range(COUNT)) as process:
        while process.poll() is None:
            counts = store.admin.counts()
            runs = counts.nodes["Trajectory"]
            assert counts.nodes["Fragment"] == 2 * runs
            graph = store.admin.graph()
            labels = [str(label) for _, label in graph.nodes(data="label")]
            runs = labels.count("Trajectory")
            assert labels.count("Fragment") == 2 * runs
            assert graph.number_of_edges() == 7 * runs
    store.close()


FORK = """
import faulthandler, os, sys, threading, time
from contextgraph import AgentMemory
from tests.builders import recovering_run


def learn():
    with AgentMemory.open(":memory:") as memory:
        memory.learn(recovering_run())


thread = threading.Thread(target=learn)
thread.start()
time.sleep(float(sys.argv[1]))
if (child := os.fork()) == 0:
    faulthandler.dump_traceback_later(60, exit=True)
    learn()
    os._exit(0)
thread.join()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.04, 0.06, 0.1, 0.2])
def test_a_child_that_is_forked_while_a_thread_learns_for_the_first_time_can_learn(
    delay: float,
) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    program = [sys.executable, "-W", "ignore", "-c", FORK, str(delay)]
    assert subprocess.run(program, env=environment, check=False).returncode == 0
