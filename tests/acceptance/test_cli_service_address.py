"""Commands whose ``--store`` is the address of a service."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.command_line import contextgraph, write_runs
from tests.builders import recovering_run
from tests.served import serving


@pytest.fixture
def service(tmp_path: Path) -> Iterator[str]:
    """The address of a service with an empty memory."""
    with serving(tmp_path / "memory.db") as process:
        yield str(process.client.base_url)


def test_runs_are_learned_and_queried_and_their_outcome_is_set(
    service: str, tmp_path: Path
) -> None:
    runs = [recovering_run(number, instance_id=f"acme__shop-{number}") for number in (1, 2, 3)]
    path = write_runs(tmp_path / "runs.jsonl", runs)

    learned = contextgraph("learn", path, "--store", service, "--json")
    again = contextgraph("learn", path, "--store", service)
    error = "ModuleNotFoundError: No module named 'tariffs'"
    arguments = ("query", "--repo", "acme/shop", "--error", error, "--store", service, "--json")
    answer = contextgraph(*arguments)
    reported = contextgraph("report", answer.records[0]["id"], "--helped", "--store", service)
    outcome = contextgraph("outcome", "acme__shop-1", "solved", "--store", service)

    assert [one["status"] for one in learned.records[:3]] == ["created"] * 3
    assert (learned.code, again.code) == (0, 0)
    assert "set `PYTHONPATH=lib`" in answer.records[0]["text"]
    assert (reported.code, reported.out) == (0, "recorded\n")
    assert outcome.out == "acme__shop-1: 1 run solved\n"
    stats = contextgraph("stats", "--store", service, "--json").records[0]
    assert stats["counts"]["outcomes"]["solved"] == 1
    playbook = contextgraph("playbook", "--repo", "acme/shop", "--store", service)
    assert (playbook.code, playbook.err) == (0, "")
    noted = contextgraph("remember", "CI uses Python 3.11", "--store", service, "--json")
    recalled = contextgraph("recall", "which python does CI use", "--store", service, "--json")
    assert recalled.records[0]["id"] == noted.records[0]["id"]
    assert "Python 3.11" in contextgraph("snapshot", "CI fails", "--store", service).out
    explained = contextgraph("explain", learned.records[0]["trajectory_id"], "--store", service)
    assert "acme__shop-1" in explained.out
    unknown = contextgraph("playbook", "--repo", "acme/other", "--store", service)
    assert (unknown.code, "memory of 3 runs" in unknown.err) == (1, True)


def test_what_is_known_is_listed_changed_and_exported(service: str, tmp_path: Path) -> None:
    runs = [recovering_run(number, instance_id=f"acme__shop-{number}") for number in (1, 2, 3)]

    def answer(*command: str | Path) -> Any:
        result = contextgraph(*command, "--store", service, "--json")
        assert result.code == 0, result.err
        return result.records

    answer("learn", write_runs(tmp_path / "runs.jsonl", runs))
    assert answer("consolidate")[0]["trajectories"] == 3
    assert answer("export", tmp_path / "all.jsonl.zst")[0]["runs"] == 3
    assert answer("export", tmp_path / "atif", "--format", "atif")[0]["runs"] == 3
    assert answer("export", tmp_path / "graph.json", "--format", "json")[0]["nodes"] > 3
    assert answer("friction")[0]["friction"][0]["tasks"] == 3
    assert answer("pages", "list") == []
    answer("entities", "add", "Shop")
    note = answer("remember", "CI uses Python 3.11")[0]["id"]
    assert [one["id"] for one in answer("notes")] == [note]
    assert answer("maintain")
    assert answer("forget", "--instance", "acme__shop-1", "--yes")[0]["forgotten"] == 1
    assert len(answer("runs")) == 2
    unknown = contextgraph("query", "--repo", "acme/x", "--error", "KeyError", "--store", service)
    assert "no run of acme/x in this memory" in unknown.out


@pytest.mark.parametrize(
    "command",
    [
        ("backup", "copy.db"),
        ("consolidate", "--dry-run"),
        ("doctor",),
        ("export", "AGENTS.md", "--agents-md", "acme/shop"),
        ("migrate",),
        ("rebuild",),
        ("reembed",),
    ],
)
def test_a_command_that_needs_the_store_says_so(service: str, command: tuple[str, ...]) -> None:
    result = contextgraph(*command, "--store", service)

    assert result.code == 1
    assert "needs the store itself" in result.err


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (("integrations", "install", "claude-code"), "hooks read a file beside the store"),
        (("token", "list"), "whose tokens are beside its store"),
        (("serve",), "is a service already"),
        (("consolidate", "--max-cost", "1"), "has its own"),
    ],
)
def test_a_command_that_a_service_has_no_use_for_says_why(
    command: tuple[str, ...], reason: str
) -> None:
    result = contextgraph(*command, "--store", "http://127.0.0.1:9")

    assert result.code == 2
    assert reason in " ".join(result.err.replace("│", " ").split())
