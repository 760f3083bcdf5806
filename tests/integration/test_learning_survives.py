"""A batch that was killed, learned again: the memory is that of an undisturbed one."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection

import pytest

from contextgraph import AgentMemory
from contextgraph.config import Settings
from contextgraph.memory.wiring import build
from contextgraph.model import MemoryGate
from contextgraph.store.sqlite.connections import Connections
from tests.builders import NOON, recovering_run
from tests.made_bundles import store_content

RUNS = [recovering_run(number, repo=f"acme/{number % 3}") for number in range(18)]


def done(path: Path, operation: Callable[[AgentMemory], object]) -> list[object]:
    """Return the contents of the memory in *path* after *operation*."""
    with AgentMemory.of(build(Settings(str(path)), clock=lambda: NOON)) as memory:
        operation(memory)
        store = memory.store
        graph = store.admin.graph()
        changed = store.admin.unconsolidated()
        assert all(check.ok for check in memory.health())
        return [
            *store_content(store),
            sorted(graph.nodes(data=True)),
            sorted(graph.edges(keys=True, data=True), key=lambda edge: edge[:3]),
            store.vectors.active_space(),
            [bundle and bundle.embedded for bundle in map(store.runs.archived, store.runs.ids())],
            store.methodologies.get(store.methodologies.ids()),
            (changed.trajectories, changed.error_ids, changed.repos),
            isinstance(store.exposures.gate(), MemoryGate),
        ]


def kill_after_commits(patch: pytest.MonkeyPatch, commits: int) -> None:
    """Let this process end as by ``kill -9`` once it has committed so many transactions."""
    writing = Connections.writing

    @contextmanager
    def counted(self: Connections) -> Iterator[Connection]:
        nonlocal commits
        with writing(self) as connection:
            yield connection
        commits -= 1
        if not commits:
            os.kill(os.getpid(), signal.SIGKILL)

    patch.setattr(Connections, "writing", counted)


def learn(memory: AgentMemory) -> None:
    list(memory.learn_many(RUNS))


def learn_and_change(memory: AgentMemory) -> None:
    learn(memory)
    memory.notes.remember("Use ruff.", repo="acme/1")


def rebuild(memory: AgentMemory) -> None:
    list(memory.rebuild())


def import_into(memory: AgentMemory) -> None:
    memory.import_archive(
        Path(memory._parts.settings.address).with_name("archive.jsonl"), as_owner=True
    )


def forget(memory: AgentMemory) -> None:
    memory.forget(run for run in memory.store.runs.ids(repo="acme/1"))


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The memory that the operations begin with; ``archive.jsonl`` beside it holds the same."""
    path = tmp_path_factory.mktemp("learned") / "before.db"
    done(path, learn_and_change)
    with AgentMemory.open(str(path)) as memory:
        memory.export(path.with_name("archive.jsonl"))
    return path


@pytest.mark.parametrize(
    ("operation", "has_runs", "least"),
    [(learn, False, 8), (import_into, False, 4), (rebuild, True, 4), (forget, True, 1)],
)
def test_killed_after_any_transaction_and_repeated(
    tmp_path: Path,
    learned: Path,
    monkeypatch: pytest.MonkeyPatch,
    operation: Callable[[AgentMemory], None],
    has_runs: bool,
    least: int,
) -> None:
    shutil.copy(learned.with_name("archive.jsonl"), tmp_path)

    def copy(name: str) -> Path:
        path = tmp_path / name
        if has_runs:
            shutil.copy(learned, path)
        return path

    undisturbed = done(copy("undisturbed.db"), operation)
    commits, killed = 0, True
    while killed:
        commits += 1
        path = copy(f"killed{commits}.db")
        child = os.fork()
        if child == 0:
            kill_after_commits(monkeypatch, commits)
            done(path, operation)
            os._exit(0)
        killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
        assert done(path, operation) == undisturbed, f"killed after {commits} transactions"
    assert commits > least


def test_doctor_names_a_consolidation_that_was_interrupted(tmp_path: Path) -> None:
    settings = Settings(str(tmp_path / "memory.db"))
    with AgentMemory.of(build(settings, clock=lambda: NOON)) as memory:
        interrupted = memory.learn_many(RUNS)
        for _ in RUNS:
            next(interrupted)
        with pytest.raises(KeyboardInterrupt):
            interrupted.throw(KeyboardInterrupt)
        (check,) = [check for check in memory.health() if check.name == "consolidation"]
        assert (check.ok, check.detail) == (False, "18 runs not consolidated")
        list(memory.learn_many(RUNS[:1]))
        assert all(check.ok for check in memory.health())
