"""The example trajectories are real, varied and made by the script beside them."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

EXAMPLES = Path(__file__).parents[2] / "examples"
MADE_WITH_PYTHON = (3, 11)


@pytest.fixture(scope="module")
def learned() -> dict[str, dict[str, Any]]:
    return load("trajectories")


@pytest.fixture(scope="module")
def unseen() -> dict[str, dict[str, Any]]:
    return load("unseen")


@pytest.mark.skipif(
    sys.version_info[:2] != MADE_WITH_PYTHON,
    reason="EXAMPLES NOT CHECKED: their tracebacks are worded by Python 3.11",
)
def test_the_script_gives_the_same_files(mini_swe_agent: Path) -> None:
    # A quarter of the runs, of each repository; at night all.
    some = [] if settings.get_current_profile_name() == "nightly" else ["--only=-1"]
    command = [str(mini_swe_agent), str(EXAMPLES / "make_trajectories.py"), "--check", *some]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_there_are_enough_runs_and_they_are_small(learned: dict[str, Any]) -> None:
    assert len(learned) >= 24
    size = sum(path.stat().st_size for path in EXAMPLES.glob("*/*.traj.json"))
    assert size < 1_000_000


def test_every_run_has_the_shape_of_a_batch_run(
    learned: dict[str, Any], unseen: dict[str, Any]
) -> None:
    for name, data in (learned | unseen).items():
        assert data["trajectory_format"] == "mini-swe-agent-1.1"
        assert data["instance_id"] == name
        assert data["messages"][-1]["role"] == "exit"
        assert data["info"]["exit_status"] in {"Submitted", "LimitsExceeded"}


def test_no_run_names_this_machine(learned: dict[str, Any], unseen: dict[str, Any]) -> None:
    home = str(Path.home())
    for data in (learned | unseen).values():
        text = json.dumps(data)
        assert str(EXAMPLES) not in text
        assert home not in text
        assert sys.prefix not in text


def test_every_learned_run_has_an_outcome_and_both_kinds_occur(learned: dict[str, Any]) -> None:
    outcomes = json.loads((EXAMPLES / "trajectories" / "outcomes.json").read_text())
    resolved, unresolved = set(outcomes["resolved_ids"]), set(outcomes["unresolved_ids"])
    assert resolved | unresolved == set(learned)
    assert not resolved & unresolved
    assert len(resolved) >= 10
    assert len(unresolved) >= 5


@pytest.mark.parametrize(
    "error",
    [
        "ModuleNotFoundError: No module named",
        "ImportError: cannot import name",
        "TypeError: ",
        "AttributeError: 'NoneType' object has no attribute",
        "KeyError: ",
        "AssertionError: ",
        "IndentationError: ",
        "SyntaxError: ",
        "FileNotFoundError: ",
        "NameError: name",
        "sed: can't read",
        "command not found",
        "No module named pytest",
        "FAILED (",
    ],
)
def test_an_error_recurs_in_several_runs(error: str, learned: dict[str, Any]) -> None:
    runs = [name for name, data in learned.items() if error in failures(data)]
    assert len(runs) >= 2
    assert len({name.rpartition("-")[0] for name in runs}) >= 2


def test_some_runs_repeat_an_attempt(learned: dict[str, Any]) -> None:
    rounds = {name: max(Counter(attempts(data)).values()) for name, data in learned.items()}
    assert sum(count >= 4 for count in rounds.values()) >= 4


def test_one_loop_has_no_error(learned: dict[str, Any]) -> None:
    repeated = {
        code
        for data in learned.values()
        for (_, code, _), count in Counter(attempts(data)).items()
        if count >= 4
    }
    assert 0 in repeated
    assert repeated - {0}


def test_unseen_runs_are_new_but_their_errors_are_not(
    learned: dict[str, Any], unseen: dict[str, Any]
) -> None:
    assert 2 <= len(unseen) <= 3
    assert not set(learned) & set(unseen)
    known = "\n".join(map(failures, learned.values()))
    for data in unseen.values():
        last_lines = {text.strip().splitlines()[-1] for text in failed_outputs(data)}
        assert any(line.split(": ")[0] in known for line in last_lines)


def load(folder: str) -> dict[str, dict[str, Any]]:
    paths = sorted((EXAMPLES / folder).glob("*.traj.json"))
    return {path.name.removesuffix(".traj.json"): json.loads(path.read_text()) for path in paths}


def observations(data: dict[str, Any]) -> list[dict[str, Any]]:
    return [message["extra"] for message in data["messages"] if message["role"] == "tool"]


def failed_outputs(data: dict[str, Any]) -> list[str]:
    return [extra["raw_output"] for extra in observations(data) if extra["returncode"] != 0]


def failures(data: dict[str, Any]) -> str:
    return "\n".join(failed_outputs(data))


def attempts(data: dict[str, Any]) -> list[tuple[str, int, str]]:
    commands = [
        action["command"]
        for message in data["messages"]
        for action in message.get("extra", {}).get("actions", [])
    ]
    pairs = zip(commands, observations(data), strict=False)
    return [(command, extra["returncode"], extra["raw_output"]) for command, extra in pairs]
