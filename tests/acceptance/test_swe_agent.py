"""The integration of SWE-agent 1, which no package index has: its calls are made in its order."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from contextgraph import AgentMemory
from contextgraph.agents.swe_agent import BUNDLE, memory_hook, overlay
from contextgraph.config import Settings
from contextgraph.service.app import create_app
from contextgraph.service.operations import TokenScope
from contextgraph.service.service import Limits
from contextgraph.service.tokens import TokenFile
from contextgraph.text import strip_fenced
from tests.builders import NO_MODULE, detouring_run
from tests.listening import listening

TASK = "Totals are wrong"
FAILING, WORKING = "python reproduce.py", "PYTHONPATH=lib python reproduce.py"
STEPS = [(FAILING, NO_MODULE), (WORKING, "42\n")]


class _Hook:
    """In the place of the hook classes of SWE-agent, whose methods do nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda **_: None


@pytest.fixture(autouse=True)
def sweagent(monkeypatch: pytest.MonkeyPatch) -> None:
    for part, name in (("agent", "AbstractAgentHook"), ("run", "RunHook")):
        module = ModuleType(f"sweagent.{part}.hooks.abstract")
        setattr(module, name, type(name, (_Hook,), {}))
        monkeypatch.setitem(sys.modules, module.__name__, module)


@dataclass
class Agent:
    """Calls its hooks as `DefaultAgent.run` does, and writes the same log."""

    log: Path
    history: list[dict[str, Any]] = field(default_factory=list)
    hooks: list[Any] = field(default_factory=list)

    def add_hook(self, hook: Any) -> None:
        hook.on_init(agent=self)
        self.hooks.append(hook)

    def run(self, steps: Sequence[tuple[str, str]]) -> None:
        task = f"<pr_description>\n{TASK}\n</pr_description>\n"
        self.history.append({"role": "user", "content": task})
        self._call("on_run_start")
        trajectory = [self._step(*one) for one in steps]
        log = {"trajectory": trajectory, "history": self.history, "info": {}}
        self.log.parent.mkdir(parents=True)
        self.log.write_text(json.dumps({**log, "replay_config": None, "environment": "main"}))
        self._call("on_run_done", trajectory=trajectory, info={})

    def _step(self, action: str, output: str) -> dict[str, Any]:
        call = {"function": {"name": "bash", "arguments": json.dumps({"command": action})}}
        step = SimpleNamespace(action=action, thought="", tool_calls=[call], observation=output)
        self._call("on_action_executed", step=step)
        answer = {"role": "assistant", "content": "", "action": action, "tool_calls": [call]}
        self.history += [answer, {"role": "tool", "content": step.observation}]
        return {"action": action, "thought": "", "observation": step.observation, "state": {}}

    def _call(self, name: str, **values: Any) -> None:
        for hook in self.hooks:
            getattr(hook, name)(**values)


def run_single(
    memory: AgentMemory, folder: Path, instance: str, steps: Sequence[tuple[str, str]]
) -> Agent:
    """Run as `RunSingle.run` does, with a hook of *memory*."""
    agent = Agent(folder / instance / f"{instance}.traj")
    run = SimpleNamespace(output_dir=folder, agent=agent)
    problem = SimpleNamespace(id=instance, get_problem_statement=lambda: TASK)
    hook = memory_hook(memory)
    hook.on_init(run=run)
    hook.on_instance_start(index=0, env=SimpleNamespace(repo=None), problem_statement=problem)
    agent.run(steps)
    hook.on_instance_completed(result=None)
    return agent


def test_an_agent_is_advised_and_its_log_is_the_run_that_is_learned(tmp_path: Path) -> None:
    with AgentMemory.open(":memory:") as memory:
        edit = ("sed -i 's/2/3/' lib/tariffs.py", "")
        # Two tasks that did the same are sure enough to interrupt for.
        detour = [STEPS[0], ("ls lib", "tariffs.py"), *STEPS[1:], edit]
        run_single(memory, tmp_path, "acme__shop-1", detour)
        run_single(memory, tmp_path, "acme__shop-2", detour)
        agent = run_single(memory, tmp_path, "acme__shop-3", STEPS)

        shown = [strip_fenced(entry["content"])[1] for entry in agent.history]
        assert [bool(one) for one in shown] == [True, False, True, False, False]
        assert f": {TASK}" in agent.history[0]["content"]
        assert "set `PYTHONPATH=lib`" in agent.history[2]["content"]
        runs = memory.store.runs.trajectories(memory.store.runs.ids())
        assert {(one.repo, one.agent) for one in runs.values()} == {("acme/shop", "SWE-agent")}
        assert {one.total_steps for one in runs.values()} == {2, 4}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The settings of the tool for a service that has learned a run."""
    with AgentMemory.open(str(tmp_path / "memory.db")) as memory:
        memory.learn(detouring_run())
    tokens = TokenFile(tmp_path / "tokens.json")
    _, token = tokens.create([TokenScope.READ], "default", "swe-agent")
    with listening(
        create_app(Settings(store=str(tmp_path / "memory.db")), tokens, Limits())
    ) as url:
        yield {"CONTEXTGRAPH_URL": url, "CONTEXTGRAPH_TOKEN": token}


def query_memory(error: str, settings: Mapping[str, str], cwd: Path | None = None) -> str:
    """Return the output of the tool in a container, which has no package of this project."""
    done = subprocess.run(
        [sys.executable, "-I", BUNDLE / "bin" / "query_memory", error],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "PROBLEM_STATEMENT": TASK, **settings},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def test_the_tool_queries_the_service(service: Mapping[str, str], tmp_path: Path) -> None:
    remote = ["remote", "add", "origin", "git@example.org:acme/shop.git"]
    for command in (["init", "-q"], remote):
        subprocess.run(["git", "-C", tmp_path, *command], check=True)

    assert "set `PYTHONPATH=lib`" in query_memory(NO_MODULE, service, tmp_path)
    named = {**service, "CONTEXTGRAPH_REPO": "acme/shop"}
    assert "set `PYTHONPATH=lib`" in query_memory(NO_MODULE, named)
    assert query_memory("KeyError: 'nothing like it'", service) == "Nothing known applies.\n"


def test_the_tool_lets_the_agent_go_on_without_the_service(service: Mapping[str, str]) -> None:
    refused = {**service, "CONTEXTGRAPH_TOKEN": "no"}
    absent = {**service, "CONTEXTGRAPH_URL": "http://127.0.0.1:9"}

    assert "Go on without it" in query_memory(NO_MODULE, refused)
    assert "Go on without it" in query_memory(NO_MODULE, absent)
    assert "CONTEXTGRAPH_URL' is missing" in query_memory(NO_MODULE, {})


def test_the_configuration_names_the_bundle_and_the_service() -> None:
    text = overlay("http://10.0.0.1:8642")

    assert f"- path: {BUNDLE}\n" in text
    assert "CONTEXTGRAPH_URL: http://10.0.0.1:8642\n" in text
    assert (BUNDLE / "config.yaml").is_file()
    assert os.access(BUNDLE / "bin" / "query_memory", os.X_OK)
