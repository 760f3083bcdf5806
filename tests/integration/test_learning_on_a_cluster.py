"""``contextgraph learn --ray`` on a Ray cluster of two nodes on this machine."""

import gzip
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contextgraph.readers import to_record
from tests.acceptance.command_line import contextgraph, write_runs
from tests.builders import recovering_run
from tests.environments import ROOT
from tests.server import ENVIRONMENT

NODES = """
import sys
from ray.cluster_utils import Cluster
node = {"num_cpus": 1, "object_store_memory": 80 << 20}
cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
cluster.add_node(**node)
print(cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""
WITHOUT_USAGE = {**ENVIRONMENT, "RAY_USAGE_STATS_ENABLED": "0"}


@pytest.fixture(scope="module")
def cluster(mini_swe_agent: Path) -> Iterator[str]:
    """The address of a cluster of two nodes with one processor each."""
    with subprocess.Popen(
        [mini_swe_agent, "-c", NODES],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=WITHOUT_USAGE,
        text=True,
    ) as nodes:
        assert nodes.stdin
        assert nodes.stdout
        yield nodes.stdout.readline().strip()
        nodes.stdin.close()


@pytest.fixture
def shards(tmp_path: Path) -> list[str]:
    """Runs in JSON lines with a line that is none, in gzip, and in parquet behind a URL."""
    folder = tmp_path / "runs"
    folder.mkdir()
    runs = [recovering_run(number) for number in range(60)]
    write_runs(folder / "1.jsonl", runs[:20], b'{"broken": ')
    plain = write_runs(tmp_path / "plain.jsonl", runs[20:40])
    (folder / "2.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    table = pa.table({"run": [orjson.dumps(to_record(run)).decode() for run in runs[40:]]})
    pq.write_table(table, tmp_path / "3.parquet")
    return [str(folder), f"file://{tmp_path}/*.parquet"]


def learned(python: Path, cluster: str, store: Path, *more: str) -> dict[str, Any]:
    """The summary of a command that learns into *store* on *cluster*."""
    options = ("--ray", cluster, "--store", store, "--json")
    done = subprocess.run(
        [python, "-m", "contextgraph", "learn", *more, *options],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    summary: dict[str, Any] = orjson.loads(done.stdout.splitlines()[-1])["summary"]
    return summary


def runs_in(store: Path) -> list[dict[str, Any]]:
    found = contextgraph("runs", "--store", store, "--json").records
    for run in found:
        run.pop("learned_at")
    return sorted(found, key=lambda run: str(run["trajectory_id"]))


def test_a_cluster_teaches_what_one_process_does_and_can_be_interrupted(
    mini_swe_agent: Path, cluster: str, shards: list[str], tmp_path: Path
) -> None:
    there, here = tmp_path / "there.db", tmp_path / "here.db"

    first = learned(mini_swe_agent, cluster, there, *shards, "--limit", "30")
    again = learned(mini_swe_agent, cluster, there, *shards)

    assert (first["created"], first["unchanged"]) == (30, 0)
    assert (again["created"], again["unchanged"], again["failed"]) == (30, 30, 1)
    assert again["records"] == 61
    contextgraph("learn", shards[0], str(tmp_path / "3.parquet"), "--store", here)
    by_url = [{**run, "source": str(run["source"]).split("://")[-1]} for run in runs_in(there)]
    assert by_url == runs_in(here)
    counts = [
        contextgraph("stats", "--store", store, "--json").records[0]["counts"]
        for store in (there, here)
    ]
    assert counts[0]["nodes"] == counts[1]["nodes"]
