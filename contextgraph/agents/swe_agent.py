"""SWE-agent with a memory: a hook that advises the agent and learns its runs, and a tool bundle.

run = RunSingle.from_config(config)
run.add_hook(memory_hook(memory))

``python -m contextgraph.agents.swe_agent`` prints a configuration with the tool bundle, for
``sweagent run-batch``. Written for SWE-agent 1.1; see docs/swe_agent.md.
"""

import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from contextgraph.agents.live import LiveRun
from contextgraph.errors import NeverLearnedError
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import repo_of
from contextgraph.model.values import replace
from contextgraph.readers import read, repository_name
from contextgraph.readers.swe_agent import action_of
from contextgraph.readers.tool_calls import tool_call

AGENT = "SWE-agent"
BUNDLE = Path(__file__).with_name("swe_agent_tools")
_SUBMITTED = "<<SWE_AGENT_SUBMISSION>>"
_OVERLAY = """\
# For `sweagent run-batch --config config/default.yaml --config FILE`: it extends that bundle list.
agent:
  tools:
    env_variables:
      CONTEXTGRAPH_URL: {url}
    propagate_env_variables:
      - CONTEXTGRAPH_TOKEN
    bundles:
      - path: tools/registry
      - path: tools/edit_anthropic
      - path: tools/review_on_submit_m
      - path: {bundle}
"""


def memory_hook(memory: AgentMemory, repo: str = "") -> Any:
    """Return a run hook of SWE-agent, which learns each completed ``.traj`` file.

    With `RunSingle` the agent is also advised: after its first prompt and after the output of
    commands. *repo* is the repository; otherwise it is found out from the instance, or from the
    URL that was cloned.
    """
    from sweagent.run.hooks.abstract import RunHook

    return type("MemoryHook", (_RunEvents, RunHook), {})(memory, repo)


class _RunEvents:
    """Arguments of a run hook, as far as a memory needs them."""

    def __init__(self, memory: AgentMemory, repo: str) -> None:
        self._memory, self._repo = memory, repo
        self._run: Any = None
        # Of `RunBatch` several threads call one hook, each for its instance.
        self._current = threading.local()

    def on_init(self, *, run: Any) -> None:
        self._run = run

    def on_instance_start(self, *, index: int, env: Any, problem_statement: Any) -> None:
        identity = problem_statement.id
        remote = getattr(env.repo, "github_url", "")
        repo = self._repo or repo_of(identity) or repository_name(None, remote=remote)
        self._current.instance, self._current.repo = identity, repo
        if hasattr(self._run, "agent"):
            task = problem_statement.get_problem_statement()
            live = self._memory.live(repo=repo, instance_id=identity, task=task, agent=AGENT)
            self._run.agent.add_hook(_agent_hook(live))

    def on_instance_completed(self, *, result: Any) -> None:
        identity = self._current.instance
        log = Path(self._run.output_dir) / identity / f"{identity}.traj"
        for raw in read(log):
            known = raw if raw.repo else replace(raw, repo=self._current.repo)
            with suppress(NeverLearnedError):
                self._memory.learn(known, background=True)


def _agent_hook(live: LiveRun) -> Any:
    from sweagent.agent.hooks.abstract import AbstractAgentHook

    return type("AdviceHook", (_AgentEvents, AbstractAgentHook), {})(live)


class _AgentEvents:
    """Arguments of an agent hook, as far as advice needs them."""

    def __init__(self, live: LiveRun) -> None:
        self._live = live
        self._agent: Any = None

    def on_init(self, *, agent: Any) -> None:
        self._agent = agent

    def on_run_start(self) -> None:
        prompt, text = self._agent.history[-1], self._live.start()
        if text and isinstance(prompt["content"], str):
            prompt["content"] += f"\n\n{text}"
        elif text:  # a prompt with pictures
            prompt["content"].append({"type": "text", "text": text})

    def on_action_executed(self, *, step: Any) -> None:
        call = tool_call(step.tool_calls[0]) if step.tool_calls else None
        action = action_of(step.action, call)
        advice = self._live.observe(action, step.observation, thought=step.thought)
        if advice and _SUBMITTED not in step.observation:
            step.observation += f"\n{advice}"


def overlay(url: str = "http://172.17.0.1:8642") -> str:
    """Return the configuration that adds the tool bundle, which queries the service at *url*.

    By default that is `contextgraph serve --host 0.0.0.0`, as seen from a container of Docker.
    """
    return _OVERLAY.format(url=url, bundle=BUNDLE)


if __name__ == "__main__":
    sys.stdout.write(overlay(*sys.argv[1:]))
