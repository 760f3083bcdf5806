"""Refitting, killed at any moment or done by two processes: one complete space is active."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from contextgraph.errors import SpaceMismatchError
from contextgraph.inference.fitting import refit
from contextgraph.inference.spaces import ActiveEmbedder
from contextgraph.model import Scope
from contextgraph.store.sqlite import SqliteStore
from tests.embedders import embedders
from tests.made_bundles import made_bundle

COUNT = 40
REFIT = """
import sys
from contextgraph.inference.fitting import refit
from contextgraph.errors import StoreError
from contextgraph.store.sqlite import SqliteStore
from tests.embedders import embedders
from tests.made_bundles import made_bundle
store = SqliteStore(sys.argv[1])
print("ready", flush=True)
for number in map(int, sys.argv[2:]):
    store.runs.add([made_bundle(number)])
    try:
        refit(store)
    except StoreError as error:
        assert "another one has replaced it" in str(error)
"""


def refitting(path: Path, *numbers: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", REFIT, str(path), *map(str, numbers)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def learned(path: Path, count: int = COUNT) -> SqliteStore:
    store = SqliteStore(str(path))
    for number in range(count):
        store.runs.add([made_bundle(number)])
    return store


def found(store: SqliteStore) -> list[str]:
    """The ids of the nearest runs; tried again where the space was switched meanwhile."""
    try:
        return nearest(store)
    except SpaceMismatchError:
        return nearest(store)


def nearest(store: SqliteStore) -> list[str]:
    embedder = ActiveEmbedder(store, embedders())()
    assert embedder is not None
    (vector,) = embedder.embed(["the cache of part7 fails"]).vectors
    assert vector is not None
    return [one.trajectory.id for one in store.vectors.nearest(vector, Scope(), COUNT * 2)]


def test_killed_while_refitting_the_old_space_stays_complete(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = learned(path)
    refit(store)
    chance = random.Random(3)
    for number in range(COUNT, COUNT + 4):
        process = refitting(path, number)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.uniform(0.2, 2.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert set(found(store)) >= {made_bundle(n).trajectory.id for n in range(COUNT)}
        assert all(check.ok for check in store.admin.health())
    refit(store)
    assert set(found(store)) == set(store.runs.ids())
    store.close()


def test_two_processes_that_refit_leave_one_space(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = learned(path)
    both = [refitting(path, *range(start, start + 4)) for start in (COUNT, COUNT + 4)]
    seen = set()
    while None in [process.poll() for process in both]:
        space = store.vectors.active_space()
        if space:
            seen.add(space.name)
            assert len(found(store)) >= COUNT
        time.sleep(0.05)
    for process in both:
        process.communicate()
    assert [process.returncode for process in both] == [0, 0]
    assert seen
    refit(store)
    assert set(found(store)) == set(store.runs.ids())
    assert len(store.runs.ids()) == COUNT + 8
    store.close()
