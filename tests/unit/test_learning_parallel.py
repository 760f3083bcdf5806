"""Runs that are traced in other processes."""

import pickle
from functools import partial
from multiprocessing import active_children

import pytest

from contextgraph.embedding import embedded, fit
from contextgraph.errors import ContextGraphError
from contextgraph.learning import MemoryWriter, Prepared
from contextgraph.model import LearnStatus, Space
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


def test_a_run_that_another_process_prepared_is_stored_with_its_vectors() -> None:
    store = SqliteStore(":memory:")
    embedder = fit(["total tariff reproduce", "wrong tariff total", "reproduce shop"])
    store.vectors.prepare(Space(embedder.space, 2), embedder.to_bytes())
    store.vectors.switch(embedder.space)
    elsewhere = MemoryWriter(store, lambda: NOON, partial(embedded, source=lambda: embedder))
    writer = MemoryWriter(store, lambda: NOON)
    run = recovering_run()

    (receipt,) = writer.write_all([writer.take(_sent(elsewhere.prepared(run, ())))])
    known = elsewhere.prepared(run, store.runs.ids())
    (again,) = writer.write_all([writer.take(_sent(known))])

    assert (receipt.status, receipt.to_embed, known.made) == (LearnStatus.CREATED, 0, None)
    assert again.status is LearnStatus.UNCHANGED
    store.admin.close()


def _sent(prepared: Prepared) -> Prepared:
    sent: Prepared = pickle.loads(pickle.dumps(prepared))
    return sent
