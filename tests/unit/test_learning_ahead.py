"""Runs that are traced in other processes."""

from multiprocessing import active_children

import pytest

from contextgraph.errors import ContextGraphError
from contextgraph.learning import MemoryWriter
from contextgraph.store import SqliteStore
from tests.builders import NOON, recovering_run


def test_a_worker_that_was_killed_is_an_error_and_its_run_can_be_learned_again() -> None:
    store, raw = SqliteStore(":memory:"), recovering_run()
    writer = MemoryWriter(store, lambda: NOON)
    with writer.in_processes(1) as begin:
        begin([raw])
        for process in active_children():
            process.kill()
        with pytest.raises(ContextGraphError, match="--workers"):
            writer.write(raw)
    assert store.runs.ids() == []
    assert writer.write(raw).trajectory_id in store.runs.ids()
    store.admin.close()
