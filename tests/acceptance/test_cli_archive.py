"""``contextgraph export`` and ``import``."""

from pathlib import Path

import pytest

from tests.acceptance.command_line import contextgraph, write_runs
from tests.builders import recovering_run


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A memory of two runs."""
    path = write_runs(tmp_path / "runs.jsonl", [recovering_run(1), recovering_run(2)])
    assert contextgraph("learn", path, "--store", tmp_path / "memory.db").code == 0
    return tmp_path / "memory.db"


def test_a_memory_becomes_that_of_another_tenant_of_another_file(
    store: Path, tmp_path: Path
) -> None:
    archive, other = tmp_path / "a.jsonl.zst", tmp_path / "other.db"
    exported = contextgraph("export", archive, "--store", store, "--json")
    imported = contextgraph("import", archive, "--store", other, "--tenant", "team", "--json")

    assert (exported.code, imported.code) == (0, 0)
    assert exported.records[0]["runs"] == imported.records[0]["created"] == 2
    (known,) = contextgraph("stats", "--store", store, "--json").records
    (told,) = contextgraph("stats", "--store", other, "--tenant", "team", "--json").records
    assert told["counts"] == known["counts"]


def test_importing_says_what_was_known(store: Path, tmp_path: Path) -> None:
    contextgraph("export", tmp_path / "a.jsonl", "--store", store)

    result = contextgraph("import", tmp_path / "a.jsonl", "--store", store)

    assert result.code == 0
    assert "2 trajectories: 0 new, 0 with an outcome now, 2 known" in result.out


def test_a_damaged_file_is_named_with_its_line(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    contextgraph("export", path, "--store", store)
    path.write_bytes(path.read_bytes()[:-20])

    result = contextgraph("import", path, "--store", tmp_path / "new.db")

    assert result.code == 1
    assert "a.jsonl: line" in result.err
    assert not (tmp_path / "new.db").exists()


def test_a_memory_that_does_not_exist_is_not_exported(tmp_path: Path) -> None:
    result = contextgraph("export", tmp_path / "a.jsonl", "--store", tmp_path / "absent.db")

    assert result.code == 1
    assert "learn something first" in result.err
    assert list(tmp_path.iterdir()) == []
