"""``contextgraph forget``, ``stats``, ``doctor``; ``call`` with rebuild."""

import grp
import os
import pwd
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from contextgraph import AgentMemory
from contextgraph.model import Trajectory
from contextgraph.store.memory_store import RunStore
from tests.acceptance.command_line import Result, call, contextgraph, write_runs
from tests.builders import recovering_run


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A memory of two runs in one repository and one in another."""
    runs = [recovering_run(1), recovering_run(2), recovering_run(3, repo="other/place")]
    path = write_runs(tmp_path / "runs.jsonl", runs)
    assert contextgraph("learn", path, "--store", tmp_path / "memory.db").code == 0
    return tmp_path / "memory.db"


def trajectories(store: Path) -> int:
    (stats,) = contextgraph("stats", "--store", store, "--json").records
    return int(sum(stats["counts"]["outcomes"].values()))


def forget(store: Path, *arguments: str, stdin: bytes = b"") -> Result:
    return contextgraph("forget", "--store", store, *arguments, stdin=stdin)


@pytest.mark.parametrize(
    ("choice", "left"),
    [
        (("--instance", "acme__shop-1"), 2),
        (("--instance", "acme__shop-1", "--instance", "acme__shop-2"), 1),
        (("--repo", "acme/shop"), 1),
        (("--repo", "ACME/Shop"), 1),
        (("--repo", "other/place", "--instance", "acme__shop-1"), 1),
        (("--all",), 0),
    ],
)
def test_forgetting_removes_the_selected_runs(
    store: Path, choice: tuple[str, ...], left: int
) -> None:
    result = forget(store, *choice, "--yes", "--json")

    assert result.code == 0
    assert result.records[0]["forgotten"] == 3 - left
    assert len(result.records[0]["trajectories"]) == 3 - left
    assert trajectories(store) == left


def test_old_runs_can_be_forgotten(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    ages = (400, 400, 1)
    runs = [
        recovering_run(number, repo=f"acme/{number}", started_at=now - timedelta(days=age))
        for number, age in enumerate(ages)
    ]
    store = tmp_path / "memory.db"
    contextgraph("learn", write_runs(tmp_path / "runs.jsonl", runs), "--store", store)

    of_one = forget(store, "--repo", "acme/0", "--older-than", "365", "--yes", "--json")
    of_all = forget(store, "--older-than", "365", "--yes", "--json")
    again = forget(store, "--older-than", "365", "--yes", "--json")

    assert [one.records[0]["forgotten"] for one in (of_one, of_all, again)] == [1, 1, 0]
    assert (again.code, trajectories(store)) == (0, 1)


def test_a_run_can_be_forgotten_by_its_id(store: Path, tmp_path: Path) -> None:
    known = contextgraph("learn", tmp_path / "runs.jsonl", "--store", store, "--json").records

    result = forget(store, known[0]["trajectory_id"], "--yes", "--json")

    assert [run["instance_id"] for run in result.records[0]["trajectories"]] == ["acme__shop-1"]
    assert trajectories(store) == 2


def test_forgetting_an_instance_loads_no_other_run(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    trajectories_of = RunStore.trajectories

    def noted(runs: RunStore, ids: Iterable[str]) -> Mapping[str, Trajectory]:
        found = trajectories_of(runs, ids)
        loaded.extend(one.instance_id for one in found.values())
        return found

    monkeypatch.setattr(RunStore, "trajectories", noted)

    assert forget(store, "--instance", "acme__shop-1", "--yes").code == 0
    assert {*loaded} == {"acme__shop-1"}


def test_forgetting_asks_for_confirmation(store: Path) -> None:
    refused = forget(store, "--all", stdin=b"n\n")
    remaining = trajectories(store)
    agreed = forget(store, "--all", stdin=b"y\n")

    assert (refused.code, remaining) == (1, 3)
    assert "Totals are wrong when a tariff is missing" in refused.err
    assert refused.err.endswith("contextgraph: nothing was removed\n")
    assert (agreed.code, trajectories(store)) == (0, 0)


def test_without_a_terminal_forgetting_names_the_option(store: Path) -> None:
    result = forget(store, "--instance", "acme__shop-1")

    assert (result.code, trajectories(store)) == (1, 3)
    assert "Forget 1 run?" in result.err
    assert "without a terminal, use --yes" in result.err


def test_forgetting_an_unknown_instance_is_an_error(store: Path) -> None:
    result = forget(store, "--instance", "acme__unknown-1", "--yes")

    assert result.code == 1
    assert "no trajectory of acme__unknown-1" in result.err


def test_forgetting_without_a_selection_is_wrong_usage(store: Path) -> None:
    assert forget(store, "--yes").code == 2


def test_rebuilding_reads_every_stored_run_again(store: Path) -> None:
    result = call("rebuild", store)

    *lines, last = result.records
    assert result.code == 0
    assert len(lines) == 3
    assert last == {"summary": {"updated": 3, "failed": 0}}
    assert trajectories(store) == 3


def damage_one_run(store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.create_function("row_hash", -1, lambda *row: 0)  # checksums stay as they are
        connection.execute(
            "UPDATE raw SET value = substr(value, 1, 40) WHERE key = (SELECT min(key) FROM raw)"
        )


@pytest.mark.parametrize(
    ("options", "strict"),
    [
        (("call", "rebuild"), "strict=true"),
        (("export", "a.jsonl", "--json"), "--strict"),
    ],
)
def test_a_damaged_run_is_named_and_the_others_go_on(
    store: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    strict: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    damage_one_run(store)

    result = contextgraph(*options, "--store", store)
    stopped = contextgraph(*options, strict, "--store", store)

    (damaged,) = (one for one in result.records if one.get("status") == "failed")
    last = result.records[-1]
    assert (result.code, stopped.code) == (3, 1)
    assert f"run {damaged['trajectory_id']} is damaged" in damaged["error"]
    assert f"run {damaged['trajectory_id']} is damaged" in stopped.err
    assert last.get("runs", last.get("summary", {}).get("updated")) == 2


def test_statistics_are_one_object(store: Path) -> None:
    (stats,) = contextgraph("stats", "--store", store, "--json").records

    assert stats.keys() >= {"counts", "error_frequency", "transitions", "failure_patterns"}
    assert stats["counts"].keys() >= {"nodes", "edges", "outcomes", "methodologies"}
    assert stats["counts"]["repositories"] == 2
    assert stats["error_frequency"] == {"ModuleNotFoundError": 3}


def test_people_see_the_most_frequent_errors(store: Path) -> None:
    result = contextgraph("stats", "--details", "--store", store)

    assert "Most frequent errors" in result.out
    assert "ModuleNotFoundError" in result.out


def test_a_healthy_memory_passes_the_doctor(store: Path) -> None:
    result = contextgraph("doctor", "--store", store, "--json")

    (found,) = result.records
    assert (result.code, found["ok"]) == (0, True)
    assert found["checks"]
    assert all(check.keys() >= {"name", "ok", "detail", "remedy"} for check in found["checks"])
    assert found["versions"].keys() >= {"python", "sqlite", "contextgraph-memory"}
    assert "parquet" in found["extras"]
    (reading,) = (check for check in found["checks"] if check["name"] == "reading")
    assert reading["detail"] == ("a fence is stripped, an error is recognised, a command is judged")


def test_the_doctor_names_a_folder_that_others_may_write(store: Path) -> None:
    store.parent.chmod(0o777)
    result = contextgraph("doctor", "--store", store, "--json")

    (found,) = [check for check in result.records[0]["checks"] if not check["ok"]]
    assert (found["name"], found["remedy"]) == ("folders", f"run: chmod go-w {store.parent}")


def test_a_folder_of_a_group_without_other_users_is_no_finding(store: Path) -> None:
    store.parent.chmod(0o775)
    group, users = grp.getgrgid(store.parent.stat().st_gid), pwd.getpwall()
    members = [
        user for user in users if user.pw_gid == group.gr_gid or user.pw_name in group.gr_mem
    ]
    is_shared = not {user.pw_uid for user in members} <= {0, os.getuid()}

    checks = contextgraph("doctor", "--store", store, "--json").records[0]["checks"]

    assert ("folders" in [check["name"] for check in checks]) == is_shared


def test_the_doctor_looks_for_secrets_in_stored_runs(store: Path) -> None:
    result = contextgraph("doctor", "--secrets", "--store", store, "--json")

    (found,) = [check for check in result.records[0]["checks"] if check["name"] == "secrets"]
    assert found["ok"]
    assert found["detail"].startswith("0 of ")


def test_the_doctor_names_a_remedy_for_a_file_that_is_not_a_memory(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    store.write_bytes(b"not a database" * 100)

    machine = contextgraph("doctor", "--store", store, "--json")
    person = contextgraph("doctor", "--store", store)

    assert (machine.code, machine.records[0]["ok"]) == (1, False)
    failed = [check for check in machine.records[0]["checks"] if not check["ok"]]
    assert all(check["remedy"] for check in failed)
    assert "FAILED" in person.out


def test_the_doctor_reports_a_missing_memory_and_creates_none(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"

    result = contextgraph("doctor", "--store", store)

    assert result.code == 1
    assert "no memory at" in result.out
    assert "learn something first" in result.out
    assert not store.exists()


def test_forgetting_creates_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "absent.db"

    result = contextgraph("forget", "--store", path, "--all", "--yes")

    assert result.code == 1
    assert f"no memory at {path}" in result.err
    assert not path.exists()


def _holding(folder: Path, text: str) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if text.encode() in path.read_bytes().lower()]


@pytest.mark.parametrize("through", ["command", "library"])
def test_no_file_keeps_the_name_of_a_forgotten_repository(tmp_path: Path, through: str) -> None:
    store = tmp_path / "kept" / "memory.db"
    runs = [recovering_run(n, repo=f"acme/{'hidden' if n < 3 else 'open'}") for n in range(6)]
    contextgraph("learn", write_runs(tmp_path / "runs.jsonl", runs), "--store", store)
    assert call("consolidate", store).code == 0
    assert "memory.db" in _holding(store.parent, "acme/hidden")

    if through == "command":
        assert forget(store, "--repo", "acme/hidden", "--yes").code == 0
    else:
        with AgentMemory.open(str(store)) as memory:
            memory.forget(memory.store.runs.ids(repo="acme/hidden"))
    assert _holding(store.parent, "acme/hidden") == []
    assert "memory.db" in _holding(store.parent, "acme/open")
