"""Commands whose ``--store`` is the address of a service."""

from collections.abc import Iterator
from pathlib import Path

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


@pytest.mark.parametrize("command", ["runs", "consolidate", "rebuild", "doctor", "migrate"])
def test_a_command_that_needs_the_store_says_so(service: str, command: str) -> None:
    result = contextgraph(command, "--store", service)

    assert result.code == 1
    assert "needs the store itself" in result.err
