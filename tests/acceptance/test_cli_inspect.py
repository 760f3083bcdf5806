"""``contextgraph inspect`` and ``loops``."""

from hashlib import sha256
from pathlib import Path

import pytest

from contextgraph.model import RawTrajectory
from tests.acceptance.command_line import contextgraph, write_runs
from tests.builders import NO_MODULE, recovering_run, run

KEYS = {
    "source",
    "source_format",
    "instance_id",
    "repo",
    "task_type",
    "outcome",
    "total_steps",
    "steps",
    "fragments",
    "loops",
    "recoveries",
}
LOOP_KEYS = {"start", "end", "kind", "length", "severity"}


def looping_run() -> RawTrajectory:
    attempts = [("python reproduce.py", NO_MODULE, 1)] * 5
    return run([("ls", "reproduce.py", 0), *attempts], instance_id="acme__shop-9")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return write_runs(tmp_path / "runs.jsonl", [recovering_run(), looping_run()])


def test_a_line_for_each_run_says_how_it_is_read(runs: Path) -> None:
    result = contextgraph("inspect", runs, "--json")

    first, _ = result.records
    assert result.code == 0
    assert first.keys() >= KEYS
    assert first["total_steps"] == len(first["steps"]) == 3
    assert first["steps"][0] == {
        "index": 0,
        "phase": first["steps"][0]["phase"],
        "action": {"tool": "bash", "text": "ls"},
        "error": None,
    }
    error = first["steps"][1]["error"]
    assert error.keys() >= {"family", "type", "template", "location", "keywords"}
    assert (error["family"], error["type"]) == ("python_exception", "ModuleNotFoundError")
    (recovery,) = first["recoveries"]
    assert recovery.keys() >= {"error_step", "recovered_step", "type", "what"}
    assert (recovery["error_step"], recovery["recovered_step"]) == (1, 2)


def test_fragments_cover_every_step_once(runs: Path) -> None:
    for record in contextgraph("inspect", runs, "--json").records:
        covered = [
            step
            for fragment in record["fragments"]
            for step in range(fragment["start"], fragment["end"] + 1)
        ]
        assert covered == list(range(record["total_steps"]))


def test_loops_are_the_same_in_both_commands(runs: Path) -> None:
    inspected = contextgraph("inspect", runs, "--json").records
    looped = contextgraph("loops", runs, "--json").records

    assert [record["loops"] for record in looped] == [record["loops"] for record in inspected]
    (loop,) = looped[1]["loops"]
    assert loop.keys() >= LOOP_KEYS
    assert (loop["kind"], loop["start"], loop["end"]) == ("same_command_same_error", 1, 5)


def test_people_see_a_timeline(runs: Path) -> None:
    result = contextgraph("inspect", runs)

    assert "✗ ModuleNotFoundError" in result.out
    assert "✓ cleared ModuleNotFoundError of step 1" in result.out
    assert "↻ same command same error, steps 1-5" in result.out


def test_people_see_who_went_round_in_circles(runs: Path) -> None:
    result = contextgraph("loops", runs)

    assert "acme__shop-1: no loop" in result.out
    assert "acme__shop-9: 1 loop" in result.out
    (row,) = [line.split() for line in result.out.splitlines() if line.startswith("1-5 ")]
    assert " ".join(row[1:7]) == "5 same command same error repeating"
    assert " ".join(row[7:]) == "python reproduce.py → ModuleNotFoundError"


def test_with_a_memory_people_and_programs_see_what_led_out(runs: Path, tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    contextgraph("learn", runs, "--store", store)

    people = contextgraph("loops", runs, "--store", store)
    programs = contextgraph("loops", runs, "--store", store, "--json")

    assert "way out: " in people.out
    (loop,) = programs.records[1]["loops"]
    (way,) = loop["escape_suggestions"]
    assert way.endswith("(cleared this error in acme__shop-1)")


def test_loops_of_a_memory_that_is_not_there_are_an_error(runs: Path, tmp_path: Path) -> None:
    result = contextgraph("loops", runs, "--store", tmp_path / "none.db")

    assert result.code == 1
    assert "learn something first" in result.err


def test_one_run_can_be_picked_and_one_step_of_it_shown_in_full(runs: Path) -> None:
    result = contextgraph("inspect", runs, "--instance", "acme__shop-1", "--step", "1")

    assert "acme__shop-1 step 1" in result.out
    assert 'File "/shop/reproduce.py", line 1' in result.out
    assert "acme__shop-9" not in result.out


def test_a_broken_record_is_named_and_the_rest_is_shown(tmp_path: Path) -> None:
    runs = write_runs(tmp_path / "runs.jsonl", [recovering_run()], b"{")

    result = contextgraph("inspect", runs, "--json")

    assert result.code == 3
    assert len(result.records) == 1
    assert f"{runs}: line 2: " in result.err


def test_a_log_cannot_move_the_terminal(tmp_path: Path) -> None:
    nasty = run([("echo \x1b]0;title\x07\x1b[2J\x1b[31mred", "\x1b[2Jdone", 0)])
    runs = write_runs(tmp_path / "runs.jsonl", [nasty])

    assert "\x1b" not in contextgraph("inspect", runs).out
    assert "\x1b" not in contextgraph("inspect", runs, "--step", "0").out


def test_a_secret_of_a_run_is_not_shown(tmp_path: Path) -> None:
    secret = "ghp_" + sha256(b"any").hexdigest()[:36]
    leaky = run([(f"export TOKEN={secret}", secret, 0)], task=f"use {secret} to log in")
    runs = write_runs(tmp_path / "runs.jsonl", [leaky])

    for arguments in ((), ("--json",), ("--step", "0")):
        assert secret not in contextgraph("inspect", runs, *arguments).out


def test_a_run_without_steps_is_shown_too(tmp_path: Path) -> None:
    runs = write_runs(tmp_path / "runs.jsonl", [run([])])

    assert contextgraph("inspect", runs, "--json").records[0]["fragments"] == []
    assert "no steps" in contextgraph("inspect", runs).out


def test_inspecting_makes_no_memory(runs: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))

    contextgraph("inspect", runs)

    assert sorted(tmp_path.rglob("*")) == before


def test_a_long_loop_is_folded_for_people(tmp_path: Path) -> None:
    stuck = run([("python reproduce.py", NO_MODULE, 1)] * 30)
    out = contextgraph("inspect", write_runs(tmp_path / "stuck.jsonl", [stuck])).out
    assert "… 19 more steps of this loop" in out
    assert out.count("✗") == 11
