"""``contextgraph call consolidate`` and ``explain``."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.command_line import call, contextgraph, write_runs
from tests.builders import NO_MODULE, installing_run


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A memory of four runs that is not consolidated yet."""
    path = write_runs(tmp_path / "runs.jsonl", map(installing_run, range(4)))
    assert contextgraph("learn", path, "--store", tmp_path / "memory.db").code == 0
    return tmp_path / "memory.db"


def test_consolidating_reports_each_step(store: Path) -> None:
    (report,) = call("consolidate", store).records

    assert report["started"]
    assert report["trajectories"] == 4
    steps = {step["name"]: step["created"] for step in report["steps"]}
    assert list(steps) == ["embed", "abstract", "merge", "statistics", "clean up", "word"]
    assert steps["abstract"] == 1


def test_a_second_consolidation_changes_nothing(store: Path) -> None:
    call("consolidate", store)

    (again,) = call("consolidate", store).records
    changes = ("created", "updated", "removed")
    assert not any(step[change] for step in again["steps"] for change in changes)


def test_consolidation_needs_the_lease(store: Path) -> None:
    code = (
        "import sys, datetime; from contextgraph import AgentMemory\n"
        "with AgentMemory.open(sys.argv[1]) as memory:\n"
        "    now = datetime.datetime.now(datetime.UTC)\n"
        "    memory.store.admin.take_lease('other', now, now + datetime.timedelta(minutes=1))\n"
    )
    subprocess.run([sys.executable, "-c", code, store], check=True, env=os.environ)

    result = call("consolidate", store)

    assert result.code == 5
    assert not result.records[0]["started"]
    assert "another process" in result.records[0]["reason"]

    more = write_runs(store.with_name("more.jsonl"), map(installing_run, range(4, 24)))
    learned = contextgraph("learn", more, "--store", store)
    assert learned.code == 0
    assert "not consolidated: another process" in learned.err
    assert learned.err.endswith("at most; the next `learn` does it\n")


def test_consolidating_creates_no_memory(tmp_path: Path) -> None:
    result = call("consolidate", tmp_path / "none.db")

    assert result.code == 1
    assert "no memory at" in result.err
    assert not (tmp_path / "none.db").exists()


def test_suggestions_can_be_explained(store: Path) -> None:
    call("consolidate", store)
    query = ("query", "--repo", "acme/shop", "--error", NO_MODULE, "--store", store, "--json")
    (answer,) = contextgraph(*query).records
    (suggestion,) = answer["suggestions"]

    (found,) = call("explain", store, identity=suggestion["id"]).records

    assert "provides `tariffs`" in answer["text"]
    assert found["facts"]["support"] == suggestion["why"]["support"] == 4
    assert sum(edge["type"] == "DERIVED_FROM" for edge in found["relations"]) == 4
    assert "RESOLVED_BY" in {edge["type"] for edge in found["relations"]}
    for run_id in suggestion["why"]["trajectories"]:
        (run,) = call("explain", store, identity=run_id).records
        assert run["label"] == "Trajectory"


def test_a_person_reads_what_is_known_of_an_item(store: Path) -> None:
    call("consolidate", store)
    query = ("query", "--repo", "acme/shop", "--error", NO_MODULE, "--store", store, "--json")
    (answer,) = contextgraph(*query).records
    id_ = answer["suggestions"][0]["id"]
    shown = contextgraph("inspect", id_, "--store", store).out
    assert answer["suggestions"][0]["strategy"].split()[-1] in shown
    assert "{" not in shown
    (record,) = contextgraph("inspect", id_, "--store", store, "--json").records
    assert record == call("explain", store, identity=id_).records[0]
    unknown = contextgraph("inspect", "mth_0", "--store", store)
    assert (unknown.code, "mth_0 is not in this memory" in unknown.err) == (1, True)


def test_explaining_an_unknown_id_is_an_error(store: Path) -> None:
    result = call("explain", store, identity="mth_0")

    assert result.code == 1
    assert "nothing has the id mth_0" in result.err
