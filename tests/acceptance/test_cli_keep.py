"""``contextgraph forget``, ``rebuild``, ``stats`` and ``doctor``."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from contextgraph.store.schema import APPLICATION_ID, MIGRATIONS, VERSION
from tests.acceptance.command_line import Result, contextgraph, write_runs
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


def older(tmp_path: Path) -> Path:
    """A memory without runs, in a file of the first schema."""
    path = tmp_path / "older.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in MIGRATIONS[0]:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 1")
    return path


def forget(store: Path, *arguments: str, stdin: bytes = b"") -> Result:
    return contextgraph("forget", "--store", store, *arguments, stdin=stdin)


@pytest.mark.parametrize(
    ("choice", "left"),
    [
        (("--instance", "acme__shop-1"), 2),
        (("--instance", "acme__shop-1", "--instance", "acme__shop-2"), 1),
        (("--repo", "acme/shop"), 1),
        (("--all",), 0),
    ],
)
def test_forgetting_removes_what_was_chosen(
    store: Path, choice: tuple[str, ...], left: int
) -> None:
    result = forget(store, *choice, "--yes", "--json")

    assert result.code == 0
    assert result.records[0]["forgotten"] == 3 - left
    assert len(result.records[0]["trajectories"]) == 3 - left
    assert trajectories(store) == left


def test_a_run_can_be_forgotten_by_its_id(store: Path, tmp_path: Path) -> None:
    known = contextgraph("learn", tmp_path / "runs.jsonl", "--store", store, "--json").records

    result = forget(store, known[0]["trajectory_id"], "--yes", "--json")

    assert [run["instance_id"] for run in result.records[0]["trajectories"]] == ["acme__shop-1"]
    assert trajectories(store) == 2


def test_forgetting_asks_first(store: Path) -> None:
    refused = forget(store, "--all", stdin=b"n\n")
    kept = trajectories(store)
    agreed = forget(store, "--all", stdin=b"y\n")

    assert (refused.code, kept) == (1, 3)
    assert "acme__shop-1" in refused.err
    assert refused.err.endswith("contextgraph: nothing is forgotten\n")
    assert (agreed.code, trajectories(store)) == (0, 0)


def test_forgetting_where_nobody_answers_names_the_option(store: Path) -> None:
    result = forget(store, "--instance", "acme__shop-1")

    assert (result.code, trajectories(store)) == (1, 3)
    assert "Forget 1 trajectory?" in result.err
    assert "nobody can be asked, give --yes" in result.err


def test_forgetting_what_is_not_there_is_a_failure(store: Path) -> None:
    result = forget(store, "--instance", "nobody__nothing-1", "--yes")

    assert result.code == 1
    assert "no trajectory of nobody__nothing-1" in result.err


def test_forgetting_without_saying_what_is_wrong_usage(store: Path) -> None:
    assert forget(store, "--yes").code == 2


def test_rebuilding_reads_every_stored_run_again(store: Path) -> None:
    result = contextgraph("rebuild", "--store", store, "--json")

    *lines, last = result.records
    assert result.code == 0
    assert len(lines) == 3
    assert last == {"summary": {"updated": 3}}
    assert trajectories(store) == 3


def test_migrating_says_what_is_pending_before_it_is_done(tmp_path: Path) -> None:
    new = tmp_path / "new.db"
    planned = contextgraph("migrate", "--store", new, "--dry-run", "--json").records
    names = [f"schema {version}" for version in range(1, VERSION + 1)]
    assert planned == [{"migrations": names, "dry_run": True}]
    assert not new.exists()

    done = contextgraph("migrate", "--store", new)
    again = contextgraph("migrate", "--store", new)

    assert done.out == "".join(f"applied: {name}\n" for name in names)
    assert again.out == "the schema is up to date\n"
    assert trajectories(new) == 0


def test_statistics_are_one_object(store: Path) -> None:
    (stats,) = contextgraph("stats", "--store", store, "--json").records

    assert stats.keys() >= {"counts", "error_frequency", "transitions", "failure_patterns"}
    assert stats["counts"].keys() >= {"nodes", "edges", "outcomes", "methodologies"}
    assert stats["counts"]["repositories"] == 2
    assert stats["error_frequency"] == {"ModuleNotFoundError": 3}


def test_people_see_the_most_frequent_errors(store: Path) -> None:
    result = contextgraph("stats", "--store", store)

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


def test_the_doctor_says_what_to_do_about_a_memory_that_is_none(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    store.write_bytes(b"this is no database, whatever it is called" * 100)

    machine = contextgraph("doctor", "--store", store, "--json")
    person = contextgraph("doctor", "--store", store)

    assert (machine.code, machine.records[0]["ok"]) == (1, False)
    ill = [check for check in machine.records[0]["checks"] if not check["ok"]]
    assert all(check["remedy"] for check in ill)
    assert "ILL" in person.out


def test_the_doctor_says_where_no_memory_is_and_makes_none(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"

    result = contextgraph("doctor", "--store", store)

    assert result.code == 1
    assert "no memory at" in result.out
    assert "learn something first" in result.out
    assert not store.exists()


@pytest.mark.parametrize(
    ("command", "code"), [("consolidate", 0), ("rebuild", 0), ("reembed", 0), ("forget", 1)]
)
def test_what_changes_a_memory_brings_an_older_file_up_to_date(
    tmp_path: Path, command: str, code: int
) -> None:
    path = older(tmp_path)
    arguments = ("--all", "--yes") if command == "forget" else ()

    result = contextgraph(command, "--store", path, *arguments)

    assert result.code == code
    assert "schema" not in result.err
    assert trajectories(path) == 0


@pytest.mark.parametrize("command", ["consolidate", "rebuild", "reembed", "forget"])
def test_what_changes_a_memory_creates_none(tmp_path: Path, command: str) -> None:
    path = tmp_path / "absent.db"
    arguments = ("--all", "--yes") if command == "forget" else ()

    result = contextgraph(command, "--store", path, *arguments)

    assert result.code == 1
    assert f"no memory at {path}" in result.err
    assert not path.exists()
