"""Runs that are read and traced by other processes."""

import os
import pickle
from collections.abc import Iterator
from multiprocessing import active_children
from pathlib import Path

import pytest

from contextgraph import AgentMemory
from contextgraph.agents.workers import WorkersReader
from contextgraph.errors import ContextGraphError, ReadError
from contextgraph.inference.fitting import fit
from contextgraph.learning import MemoryWriter, Prepared
from contextgraph.model import ChangeStatus, LearnStatus, RawTrajectory, Space
from contextgraph.model.values import replace
from contextgraph.store.sqlite import SqliteStore
from contextgraph.system.intake import MAX_RUN_SIZE
from tests.acceptance.command_line import write_runs
from tests.builders import NOON, recovering_run


def test_a_worker_that_was_killed_is_an_error(tmp_path: Path) -> None:
    runs = write_runs(tmp_path / "runs.jsonl", [recovering_run()])
    with AgentMemory.open(":memory:") as memory:
        found = _read(memory, *[runs] * 200)  # read in tasks of 64 files
        next(found)
        for process in active_children():
            process.kill()
        with pytest.raises(ContextGraphError, match="--workers"):
            list(found)


def test_workers_import_nothing_of_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = write_runs(tmp_path / "runs.jsonl", [recovering_run()])
    for name in ("re", "signal"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'a').close()")
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    with AgentMemory.open(":memory:") as memory:
        assert len(list(_read(memory, runs))) == 1
    assert not (tmp_path / "imported").exists()
    assert dict(os.environ) == before


def test_a_run_that_another_process_prepared_is_stored_with_its_vectors() -> None:
    store = SqliteStore(":memory:")
    embedder = fit(["total tariff reproduce", "wrong tariff total", "reproduce shop"])
    store.vectors.prepare(Space(embedder.space, 2), embedder.to_bytes())
    store.vectors.switch(embedder.space)
    elsewhere = MemoryWriter(store, lambda: embedder, clock=lambda: NOON)
    writer = MemoryWriter(store, clock=lambda: NOON)
    run = recovering_run()

    made = _sent(elsewhere.prepared(run, ()))
    held = replace(made, raw=replace(made.raw, change=ChangeStatus.HELD))  # as with --git
    (receipt,) = writer.write_all([writer.take(held)])
    stored = store.runs.raw(receipt.trajectory_id)
    known = elsewhere.prepared(run, store.runs.ids())
    (again,) = writer.write_all([writer.take(_sent(known))])

    assert (receipt.status, receipt.to_embed, known.made) == (LearnStatus.CREATED, 0, None)
    assert again.status is LearnStatus.UNCHANGED
    assert stored == replace(run, change=ChangeStatus.HELD)
    store.close()


def _read(memory: AgentMemory, *paths: Path) -> Iterator[RawTrajectory]:
    """The runs in *paths*, read by one other process."""
    unread: list[ReadError] = []
    return WorkersReader(memory, workers=1).read(
        *paths,
        on_error=unread.append,
        on_skip=unread.append,
        on_bytes=lambda _count: None,
        on_conflict=lambda _message: None,
        outcomes=None,
        max_run_size=MAX_RUN_SIZE,
        follow_links=False,
    )


def _sent(prepared: Prepared) -> Prepared:
    sent: Prepared = pickle.loads(pickle.dumps(prepared))
    return sent
