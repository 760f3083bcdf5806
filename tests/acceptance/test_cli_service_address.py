"""Commands whose ``--store`` is the address of a service."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.command_line import call, contextgraph, write_runs
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
    refused = contextgraph("learn", path, "--again", "--store", service)
    assert "--again is for the machine of the service" in refused.err
    error = "ModuleNotFoundError: No module named 'tariffs'"
    arguments = ("query", "--repo", "acme/shop", "--error", error, "--store", service, "--json")
    answer = contextgraph(*arguments)
    reported = call("report", service, context=answer.records[0]["id"], helped=True)
    outcome = call("outcome", service, instance_id="acme__shop-1", solved=True)

    assert [one["status"] for one in learned.records[:3]] == ["created"] * 3
    assert (learned.code, again.code) == (0, 0)
    assert "set `PYTHONPATH=lib`" in answer.records[0]["text"]
    assert (reported.code, reported.records[0]["recorded"]) == (0, True)
    assert len(outcome.records[0]["trajectories"]) == 1
    stats = contextgraph("stats", "--store", service, "--json").records[0]
    assert stats["counts"]["outcomes"]["solved"] == 1
    playbook = call("playbook", service, repo="acme/shop")
    assert (playbook.code, playbook.err) == (0, "")
    noted = call("remember", service, content="CI uses Python 3.11")
    recalled = call("recall", service, question="which python does CI use")
    assert recalled.records[0]["id"] == noted.records[0]["id"]
    assert "Python 3.11" in call("snapshot", service, trigger="CI fails").out
    explained = call("explain", service, identity=learned.records[0]["trajectory_id"])
    assert "acme__shop-1" in explained.out
    assert call("playbook", service, repo="acme/other").code == 1


def test_what_is_known_is_listed_changed_and_exported(service: str, tmp_path: Path) -> None:
    runs = [recovering_run(number, instance_id=f"acme__shop-{number}") for number in (1, 2, 3)]

    def answer(*command: str | Path) -> Any:
        result = contextgraph(*command, "--store", service, "--json")
        assert result.code == 0, result.err
        return result.records

    def called(operation: str, **arguments: str) -> Any:
        result = call(operation, service, **arguments)
        assert result.code == 0, result.err
        return result.records

    answer("learn", write_runs(tmp_path / "runs.jsonl", runs))
    assert called("consolidate")[0]["trajectories"] == 3
    assert answer("export", tmp_path / "all.jsonl.zst")[0]["runs"] == 3
    assert answer("export", tmp_path / "atif", "--format", "atif")[0]["runs"] == 3
    assert answer("export", tmp_path / "graph.json", "--format", "json")[0]["nodes"] > 3
    assert called("friction")[0]["friction"][0]["tasks"] == 3
    assert called("pages_list") == []
    called("entities_add", name="Shop")
    note = called("remember", content="CI uses Python 3.11")[0]["id"]
    assert [one["id"] for one in called("notes")] == [note]
    assert called("maintain")
    assert answer("forget", "--instance", "acme__shop-1", "--yes")[0]["forgotten"] == 1
    assert len(answer("runs")) == 2
    unknown = contextgraph("query", "--repo", "acme/x", "--error", "KeyError", "--store", service)
    assert "no session of the repository acme/x; nearest: acme/shop" in unknown.out


def test_commands_that_need_the_store_say_so(service: str) -> None:
    commands = (
        ("backup", "copy.db"),
        ("call", "consolidate", "dry_run=true"),
        ("doctor",),
        ("export", "AGENTS.md", "--agents-md", "acme/shop"),
        ("call", "rebuild"),
        ("call", "reembed"),
    )
    for command in commands:
        result = contextgraph(*command, "--store", service)

        assert result.code == 1, command
        assert "needs the store itself" in result.err, command


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (("call", "token_list"), "whose tokens are beside its store"),
        (("serve",), "is a service already"),
        (("query", "x", "--withhold", "1"), "has its own"),
    ],
)
def test_a_command_that_a_service_has_no_use_for_says_why(
    command: tuple[str, ...], reason: str
) -> None:
    result = contextgraph(*command, "--store", "http://127.0.0.1:9")

    assert result.code == 2
    assert reason in " ".join(result.err.replace("│", " ").split())
