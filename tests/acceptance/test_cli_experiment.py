"""``contextgraph call experiment_run`` with mini-swe-agent and a scripted model, on examples."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import pytest

from tests.acceptance.command_line import call

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
MODEL = "model.model_class=seeded.reading_model.ReadingModel"
ARMS = ("none", "placebo", "grep", "memory")
DOCKER = """#!/usr/bin/env bash
# In the place of Docker: a container is this machine.
if [ "$1" = run ]; then echo "$*" >> "$0.log"; echo container; exit; fi
while [ "$1" != container ]; do if [ "$1" = -w ]; then cd "$2"; fi; shift; done
shift; exec "$@"
"""
LEARNED, JUDGED = ("-70", "-71"), ("-72", "-73")  # the second of the judged has no document

# One process starts the experiment.
pytestmark = pytest.mark.xdist_group("experiment")


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tasks of two of the three repositories, and a judged one less of each."""
    folder = tmp_path_factory.mktemp("tasks")
    program = (sys.executable, EXAMPLES / "experiment_tasks.py", folder)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(program, check=True, env=environment, stdout=subprocess.DEVNULL)
    path = folder / "tasks.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    remaining = [
        row
        for row in rows
        if row["instance_id"].endswith(LEARNED + JUDGED) and "recipebox" not in row["repo"]
    ]
    path.write_text("\n".join(map(json.dumps, remaining)))
    return path


@pytest.fixture(scope="module")
def start(mini_swe_agent: Path, tasks: Path) -> Callable[..., subprocess.Popen[bytes]]:
    """Starts ``call experiment_run`` in the environment of the agent."""

    def begin(
        out: Path, *options: str, of: Path = tasks, stdout: int | IO[bytes] = subprocess.PIPE
    ) -> Any:
        settings = {"MSWEA_GLOBAL_CONFIG_DIR": str(out.parent / "settings")}
        settings["PYTHONPATH"] = os.pathsep.join(map(str, (ROOT, EXAMPLES)))
        run = ("call", "experiment_run", f"tasks={of}", f"out={out}", "attempts=1")
        agent = ("agent=mini-swe-agent", "model=script", "config=mini.yaml", f"config={MODEL}")
        return subprocess.Popen(
            [mini_swe_agent, "-m", "contextgraph", *run, *agent, *options],
            env={**os.environ, **settings},
            stdout=stdout,
            stderr=subprocess.STDOUT,
        )

    return begin


def finished(process: subprocess.Popen[bytes], code: int = 0) -> str:
    out, _ = process.communicate()
    assert process.returncode == code, out.decode()
    return out.decode()


@pytest.fixture(scope="module")
def killed(
    start: Callable[..., subprocess.Popen[bytes]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, bytes]:
    """An experiment that was killed after some attempts, and what it had recorded."""
    out = tmp_path_factory.mktemp("killed") / "out"
    process = start(out)
    assert process.stdout
    for _ in range(7):
        process.stdout.readline()
    process.kill()
    process.communicate()
    return out, (out / "attempts.jsonl").read_bytes()


@pytest.fixture(scope="module")
def resumed(
    killed: tuple[Path, bytes], start: Callable[..., subprocess.Popen[bytes]]
) -> tuple[Path, Sequence[dict[str, Any]]]:
    """The same experiment, continued until its end: its folder and attempts."""
    out, _ = killed
    finished(start(out, "workers=2"))
    return out, [json.loads(line) for line in (out / "attempts.jsonl").read_text().splitlines()]


def test_a_killed_experiment_continues_where_it_was(
    killed: tuple[Path, bytes], resumed: tuple[Path, Sequence[dict[str, Any]]]
) -> None:
    out, attempts = resumed
    complete = killed[1][: killed[1].rfind(b"\n") + 1]
    assert (out / "attempts.jsonl").read_bytes().startswith(complete)
    keys = Counter((one["part"], one["arm"], one["instance_id"]) for one in attempts)
    assert len(keys) == keys.total() == 4 + 4 * len(ARMS)
    assert {one.get("error", "") for one in attempts} == {""}


def test_the_memory_solves_what_stands_only_in_earlier_runs(
    resumed: tuple[Path, Sequence[dict[str, Any]]],
) -> None:
    _, attempts = resumed
    hidden = [one for one in attempts if one["instance_id"].endswith("-73")]
    solved = {
        arm: [one.get("solved", False) for one in hidden if one["arm"] == arm] for arm in ARMS
    }
    assert solved == {
        "none": [False, False],
        "placebo": [False, False],
        "grep": [True, True],
        "memory": [True, True],
    }
    known = [one for one in attempts if one["instance_id"].endswith("-72")]
    steps = {arm: {one["steps"] for one in known if one["arm"] == arm} for arm in ARMS}
    assert steps == {"none": {4}, "placebo": {4}, "grep": {4}, "memory": {3}}


def test_the_report_has_one_sentence_first_and_names_the_rescued_tasks(
    resumed: tuple[Path, Sequence[dict[str, Any]]], tmp_path: Path
) -> None:
    out, _ = resumed

    page = tmp_path / "report.html"
    (record,) = call("experiment_report", folder=out, html=page).records

    assert record["verdict"].startswith("With arm memory the agent solves 100% of its attempts")
    against_none = {one["arm"]: one for one in record["comparisons"] if one["against"] == "none"}
    rescues = against_none["memory"]["rescues"]
    assert {one["instance_id"][-3:] for one in rescues} == {"-73"}
    assert all(any("_OFFICE=" in text for text in one["shown"]) for one in rescues)
    content = page.read_text()
    assert "<script" not in content
    assert "http" not in content.replace("http-equiv", "")
    assert all(one["instance_id"] in content for one in rescues)
    (advised,) = re.findall(r"set `(\w+_OFFICE=[^`]+)`", "".join(rescues[0]["shown"]))
    assert advised in content


def test_only_the_arm_that_may_search_is_given_the_logs(
    resumed: tuple[Path, Sequence[dict[str, Any]]],
) -> None:
    out, _ = resumed
    for arm in ARMS:
        logs = list((out / "runs" / "judge" / arm).glob("*.traj.json"))
        named = ["Logs of earlier runs" in one.read_text() for one in logs]
        assert named == [arm == "grep"] * 4


def test_without_the_agent_the_command_names_the_remedy(tasks: Path, tmp_path: Path) -> None:
    program = "import sys; sys.modules['minisweagent'] = None; from contextgraph.cli import main; "
    arguments = ("call", "experiment_run", f"tasks={tasks}", f"out={tmp_path / 'out'}")
    done = subprocess.run(
        [sys.executable, "-c", f"{program} main({arguments!r})"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "pip install 'mini-swe-agent" in done.stderr


def test_wrong_arms_and_folders_are_named(tasks: Path, tmp_path: Path) -> None:
    wrong = call("experiment_run", tasks=tasks, out=tmp_path / "out", arms=["none", "magic"])
    absent = call("experiment_report", folder=tmp_path / "absent")

    assert (wrong.code, absent.code) == (2, 1)
    assert "'none', 'placebo', 'grep' or 'memory'" in " ".join(wrong.err.split())
    assert "contains no experiment" in absent.err


def test_a_task_with_an_image_is_attempted_and_checked_in_a_container(
    start: Callable[..., subprocess.Popen[bytes]], tasks: Path, tmp_path: Path
) -> None:
    """Docker is replaced by this machine, which every container shares and mounts nothing in."""
    rows = [json.loads(line) for line in tasks.read_text().splitlines()]
    for row in rows:
        folder = tasks.parent / row["workspace"]
        row["workspace"] = {"image": f"image-{row['instance_id']}", "folder": str(folder)}
    images = tmp_path / "images.jsonl"
    images.write_text("\n".join(map(json.dumps, rows)))
    docker = tmp_path / "docker"
    docker.write_text(DOCKER)
    docker.chmod(0o755)

    options = ("arms=grep", f"config=environment.executable={docker}")
    out = finished(start(tmp_path / "out", *options, of=images))

    attempts = [json.loads(line) for line in out.splitlines()]
    assert {one["error"] for one in attempts} == {""}
    known = [one["instance_id"].endswith((*LEARNED, "-72")) for one in attempts]
    assert [one["solved"] for one in attempts] == known
    started = (tmp_path / "docker.log").read_text().splitlines()
    for attempt, line in zip(attempts, started, strict=True):
        assert f"image-{attempt['instance_id']} " in line
        assert ("/logs:ro" in line) == (attempt["part"] == "judge")
