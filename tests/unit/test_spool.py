"""Runs that wait for a server."""

import os
from pathlib import Path

import pytest

from contextgraph import AgentMemory
from contextgraph.config import Settings
from contextgraph.learning.writer import Spool
from contextgraph.model.values import replace
from tests.builders import recovering_run


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spool:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return Spool(Settings("neo4j://nowhere:7687"))


def test_the_same_run_is_spooled_once(spool: Spool) -> None:
    for number in (1, 2, 1):
        spool.put(recovering_run(number))
    assert len(spool) == 2
    assert {one.raw.instance_id for one in spool} == {"acme__shop-1", "acme__shop-2"}


def test_a_run_keeps_who_supplied_it(spool: Spool) -> None:
    spool.put(recovering_run(1), "team/ci")
    spool.put(recovering_run(2))
    assert sorted(one.source for one in spool) == ["", "team/ci"]


def test_a_history_of_a_clone_that_waits_stays_one(spool: Spool) -> None:
    origin = "clone:evil.example/acme/shop"
    spool.put(replace(recovering_run(1), origin=origin, repo="evil.example/acme/shop"), "ann")
    (waiting,) = spool
    assert (waiting.source, waiting.raw.origin) == ("ann", origin)
    with AgentMemory.open(":memory:") as memory:
        receipt = memory.learn(waiting.raw, source=waiting.source)
        (known,) = memory.store.runs.trajectories([receipt.trajectory_id]).values()
    assert (known.contributor, known.repo) == (origin, "evil.example/acme/shop")


def test_runs_that_another_process_has_learned_are_skipped(spool: Spool) -> None:
    for number in (1, 2):
        spool.put(recovering_run(number))
    waiting = iter(spool)
    first = next(waiting).path
    for path in {*spool.folder.glob("*.jsonl")} - {first}:
        path.unlink()
    assert list(waiting) == []


def test_what_killed_processes_began_to_write_is_removed(spool: Spool) -> None:
    path = spool.put(recovering_run(1)).path
    ended, running = (
        path.with_name(f"another.{number}.1.cg-part") for number in (2**22 + 1, os.getppid())
    )
    for part in (ended, running):
        part.write_bytes(b"{")
    spool.put(recovering_run(1))
    assert not ended.exists()
    assert running.exists()
