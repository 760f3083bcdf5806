"""Rebuilding a memory keeps credit, also when it is killed and repeated."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from contextgraph import AgentMemory
from contextgraph.advising.gate import Credit, credits_for
from contextgraph.model import RawTrajectory
from contextgraph.readers import read
from contextgraph.trace import signature, states_of

ROOT = Path(__file__).parents[2]
RUNS = list(read(ROOT / "examples" / "trajectories"))
REBUILD = """
import sys
from contextgraph import AgentMemory
with AgentMemory.open(sys.argv[1]) as memory:
    for receipt in memory.rebuild():
        print(receipt.trajectory_id, flush=True)
"""


def shown(memory: AgentMemory, raw: RawTrajectory) -> Iterator[str]:
    """Query in each state of *raw* and report outcomes; the items shown."""
    for number, state in enumerate(states_of(raw)):
        context = memory.query(state)
        if memory.render(context):
            memory.report_outcome(context.id, helped=number % 3 > 0)
            yield from (item.advice for item in context.ranked)


@pytest.fixture
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Mapping[str, Credit]]:
    """A memory of a version that recognised no messages of programs, and its credit."""
    path = tmp_path / "memory.db"
    with monkeypatch.context() as reading, AgentMemory.open(str(path)) as memory:
        reading.setattr(signature, "_PROGRAMS", ())
        # It keeps failures that were found with the other tables.
        signature._found.cache_clear()
        assert len(list(memory.learn_many(RUNS))) == len(RUNS)
        items = [item for raw in RUNS[::6] for item in shown(memory, raw)]
        signature._found.cache_clear()
        return path, credits_for(memory.store, items).by_name


def rebuilding(path: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", REBUILD, str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def content(memory: AgentMemory) -> list[Any]:
    store = memory.store
    ids = sorted(store.runs.ids())
    methodologies = sorted(store.methodologies.ids())
    return [
        store.runs.fragments(ids),
        methodologies,
        store.admin.counts(),
        store.recoveries.error_steps(),
    ]


def counted(credit: Mapping[str, Credit]) -> dict[str, tuple[float, float, bool]]:
    """The reports; how often an error is cleared depends on how runs are read."""
    return {name: (one.helped, one.failed, one.by_hand) for name, one in credit.items()}


@pytest.fixture(scope="module")
def newest() -> list[Any]:
    with AgentMemory.open(":memory:") as memory:
        assert len(list(memory.learn_many(RUNS))) == len(RUNS)
        return content(memory)


@pytest.mark.parametrize("killed_after", [1, len(RUNS) // 2])
def test_a_rebuilt_memory_equals_a_new_one_and_keeps_its_credit(older, newest, killed_after):
    path, credit = older
    with rebuilding(path) as process:
        assert process.stdout is not None
        for _ in range(killed_after):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    with AgentMemory.open(str(path)) as memory:
        assert len(memory.store.runs.ids()) == len(RUNS)
        assert content(memory) != newest

        assert len(list(memory.rebuild())) == len(RUNS)

        assert content(memory) == newest
        assert counted(credit)
        assert counted(credits_for(memory.store, credit).by_name) == counted(credit)
