"""The integration of mini-swe-agent, in the package's own programs; only the model is scripted."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from contextgraph import AgentMemory, Outcome
from contextgraph.text import strip_fenced
from tests.acceptance.command_line import contextgraph
from tests.builders import NO_MODULE, run

ROOT = Path(__file__).parents[2]
HOME = "contextgraph.agents.mini_swe_agent"
SCRIPTED = "minisweagent.models.test_models.DeterministicToolcallModel"
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
FAILING = "python3 -c 'import tariffs'"
# Between them a step that advice can spare: else an agent would do it next anyway.
RECOVERY = [FAILING, "ls lib", f"PYTHONPATH=lib {FAILING}", SUBMIT]
EDIT = ("sed -i 's/1/2/' lib/tariffs.py", "", 0)
TEST = ("python -m pytest -q", "3 passed\n", 0)
DOCKER = """#!/usr/bin/env bash
# In the place of Docker: a container is this machine.
if [ "$1" = run ]; then echo container; exit; fi
while [ "$1" != container ]; do if [ "$1" = -w ]; then cd "$2"; fi; shift; done
shift; exec "$@"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working tree of acme/shop."""
    (tmp_path / "shop" / "lib").mkdir(parents=True)
    (tmp_path / "shop" / "lib" / "tariffs.py").touch()
    for command in (["init", "-q"], ["remote", "add", "origin", "https://github.com/acme/shop"]):
        subprocess.run(["git", "-C", tmp_path / "shop", *command], check=True)
    return tmp_path


def script(path: Path, commands: Sequence[str]) -> Path:
    """A configuration of the package whose model gives *commands*."""
    outputs = []
    for number, command in enumerate(commands):
        arguments = json.dumps({"command": command})
        function = {"name": "bash", "arguments": arguments}
        call = {"id": f"c{number}", "type": "function", "function": function}
        actions = [{"command": command, "tool_call_id": call["id"]}]
        extra = {"actions": actions, "cost": 0.01}
        outputs.append({"role": "assistant", "content": "", "tool_calls": [call], "extra": extra})
    model = {"model_name": "script", "model_class": SCRIPTED, "outputs": outputs}
    path.write_text(json.dumps({"model": model}))
    return path


def call(folder: Path, program: Path, *arguments: str | Path, **settings: str) -> None:
    done = subprocess.run(
        [program, *arguments],
        cwd=folder,
        env={**os.environ, "MSWEA_CONFIGURED": "1", "PYTHONPATH": str(ROOT), **settings},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def mini(python: Path, folder: Path, name: str, commands: Sequence[str]) -> list[dict[str, Any]]:
    """The messages of a run of the command line; its log is ``NAME.traj.json``."""
    specs = ("mini.yaml", script(folder / f"{name}.yaml", commands), "agent.memory.store=../m.db")
    log = folder / f"{name}.traj.json"
    options = [part for spec in specs for part in ("-c", spec)]
    agent = ("--agent-class", f"{HOME}.MemoryAgent", "-t", "Totals are wrong", "-o", log)
    program = python.with_name("mini")
    call(folder / "shop", program, *agent, *options, "--yolo", "--exit-immediately")
    messages: list[dict[str, Any]] = json.loads(log.read_text())["messages"]
    return messages


def learn_an_earlier_run(folder: Path) -> None:
    """It is not enough to interrupt for: advice needs a second task that did the same."""
    steps = [(FAILING, NO_MODULE, 1), ("ls lib", "tariffs.py", 0), (RECOVERY[2], "", 0)]
    with AgentMemory.open(str(folder / "m.db")) as memory:
        memory.learn(run(steps, instance_id="acme__shop-7", agent="mini-swe-agent"))


def test_an_agent_is_advised_and_its_log_is_the_run_that_was_learned(
    mini_swe_agent: Path, folder: Path
) -> None:
    learn_an_earlier_run(folder)
    mini(mini_swe_agent, folder, "first", [EDIT[0], *RECOVERY])
    messages = mini(mini_swe_agent, folder, "second", ["python3 -c 'import  tariffs'", *RECOVERY])

    prompt, shown = messages[1]["content"], messages[3]["content"]
    assert "Totals are wrong" in strip_fenced(prompt)[0]
    assert "Earlier runs" in shown
    assert "set `PYTHONPATH=lib`" in shown
    advised = [
        str(one.get("content")) for one in messages if strip_fenced(str(one.get("content")))[1]
    ]
    assert advised == [prompt, shown], advised
    receipts = contextgraph(
        "learn", folder / "first.traj.json", "--store", folder / "m.db", "--json"
    ).records
    assert receipts[0]["status"] == "unchanged"
    (learned, *_) = contextgraph("runs", "--store", folder / "m.db", "--json").records
    assert (learned["repo"], learned["agent"]) == ("acme/shop", "mini-swe-agent")


def test_a_submission_that_misses_something_is_held_back_once(
    mini_swe_agent: Path, folder: Path
) -> None:
    with AgentMemory.open(str(folder / "m.db")) as memory:
        for number in range(16):
            tested, outcome = (([TEST], Outcome.SOLVED), ([], Outcome.FAILED))[number % 2]
            memory.learn(run([EDIT, *tested], instance_id=f"acme__shop-{number}", outcome=outcome))

    messages = mini(mini_swe_agent, folder, "log", [EDIT[0], SUBMIT, SUBMIT])

    assert "Not submitted yet" in messages[5]["content"]
    assert "Nothing was run since the last edit" in messages[5]["content"]
    info = json.loads((folder / "log.traj.json").read_text())["info"]
    assert info["exit_status"] == "Submitted"
    assert info["model_stats"] == {"api_calls": 3, "instance_cost": 0.03}


def test_the_batch_runner_names_the_instance(mini_swe_agent: Path, folder: Path) -> None:
    docker = folder / "docker"
    docker.write_text(DOCKER)
    docker.chmod(0o755)
    (folder / "data").mkdir()
    names = ("acme__shop-1", "acme__shop-2", "acme__shop-3")
    rows = [{"instance_id": name, "problem_statement": f"Totals of {name}"} for name in names]
    (folder / "data" / "test.jsonl").write_text("\n".join(map(json.dumps, rows)))
    specs = (
        "swebench.yaml",
        script(folder / "model.yaml", RECOVERY),
        "model.memory.store=m.db",
        f"model.memory.model_class={SCRIPTED}",
        f"environment.cwd={folder / 'shop'}",
        "environment.env.BASH_ENV=",
    )
    options = [part for spec in specs for part in ("-c", spec)]
    runner = ("swebench", "--subset", folder / "data", "--split", "test", "-o", folder / "out")
    model = ("--model-class", f"{HOME}.MemoryModel", *options)

    program = mini_swe_agent.with_name("mini-extra")
    call(folder, program, *runner, *model, MSWEA_DOCKER_EXECUTABLE=str(docker))

    runs = contextgraph("runs", "--store", folder / "m.db", "--json").records
    assert [one["instance_id"] for one in runs] == [*names[::-1]]
    log = json.loads((folder / "out" / names[2] / f"{names[2]}.traj.json").read_text())
    first = log["messages"][3]["content"]
    assert "set `PYTHONPATH=lib`" in first


def test_the_example_learns_and_gets_advice_the_next_time(
    mini_swe_agent: Path, folder: Path
) -> None:
    example = ROOT / "examples" / "mini_swe_agent_run.py"
    specs = ("mini.yaml", script(folder / "model.yaml", RECOVERY))
    learn_an_earlier_run(folder)
    for number in (1, 2):
        log = folder / f"{number}.json"
        arguments = (folder / "m.db", "acme/shop", f"Totals {number}", *specs)
        call(folder / "shop", mini_swe_agent, example, *arguments, f"agent.output_path={log}")

    advised = ["set `PYTHONPATH=lib`" in (folder / f"{n}.json").read_text() for n in (1, 2)]
    assert advised == [False, True]
