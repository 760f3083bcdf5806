"""A process of ``contextgraph serve`` that ends, is killed, or does not reach its store."""

import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import orjson
import pytest

from contextgraph import AgentMemory
from contextgraph.readers import to_record
from tests.builders import NO_MODULE, recovering_run
from tests.served import finished, serving

LIVE = {"repo": "acme/shop", "instance_id": "acme__shop-live", "task": "Totals are wrong"}
LINES = {"Content-Type": "application/x-ndjson"}
STEP = {"action": "python reproduce.py", "observation": NO_MODULE, "exit_code": 1}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with AgentMemory.open(str(path)) as memory:
        assert memory.store.runs.ids() == []  # which makes it
    return path


def lines(count: int) -> bytes:
    return b"\n".join(orjson.dumps(to_record(recovering_run(n))) for n in range(count))


def instances(store: Path) -> set[str]:
    with AgentMemory.open(str(store), read_only=True) as memory:
        runs = memory.store.runs
        return {run.instance_id for run in runs.trajectories(runs.ids()).values()}


def test_a_killed_server_loses_nothing_that_it_has_acknowledged(store: Path) -> None:
    with serving(store) as server, closing(sqlite3.connect(store, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # so that nothing can be learned
        job = server.client.post("/v1/learn", content=lines(3), headers=LINES)
        live = server.client.post("/v1/runs/live", json=LIVE).json()["id"]
        for _ in range(2):
            server.client.post(f"/v1/runs/live/{live}/observe", json=STEP).raise_for_status()
        server.end(signal.SIGKILL)
    before = instances(store)

    with serving(store) as server:
        recovered = finished(server.client, server.client.get("/v1/learn/recovery").json())
        assert recovered["summary"]["created"] == 4
        (run,) = server.client.get(
            "/v1/trajectories", params={"instance": LIVE["instance_id"]}
        ).json()["trajectories"]
    assert (job.status_code, before) == (202, set())
    assert instances(store) == {f"acme__shop-{n}" for n in range(3)} | {LIVE["instance_id"]}
    assert run["steps"] == 2


def test_a_signal_ends_the_server_when_all_is_learned(store: Path) -> None:
    with serving(store) as server:
        server.client.post("/v1/learn", content=lines(40), headers=LINES).raise_for_status()
        live = server.client.post("/v1/runs/live", json=LIVE).json()["id"]
        server.client.post(f"/v1/runs/live/{live}/observe", json=STEP).raise_for_status()
        code = server.end(signal.SIGTERM)

    assert code in {0, -signal.SIGTERM}
    assert len(instances(store)) == 41


def test_queries_are_answered_while_runs_are_learned(store: Path) -> None:
    with serving(store) as server, closing(sqlite3.connect(store, isolation_level=None)) as other:
        server.client.post(
            "/v1/learn", params={"wait": 30}, content=lines(3), headers=LINES
        ).raise_for_status()
        other.execute("BEGIN IMMEDIATE")
        job = server.client.post("/v1/learn", content=lines(5), headers=LINES).json()
        state = {"repo": "acme/shop", "current_error": NO_MODULE}
        answer = server.client.post("/v1/query", json={"state": state}).json()
        other.execute("ROLLBACK")
        done = finished(server.client, job)

    assert job["state"] != "done"
    assert "PYTHONPATH=lib" in answer["text"]
    assert done["summary"]["created"] == 2
