"""mini-swe-agent, run with a scripted model inside a testbed."""

import json
import os
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from seeded.scenario import Scenario
from seeded.testbed import Testbed

MISSING = "this needs mini-swe-agent: pip install 'mini-swe-agent>=2.4'"
EPOCH = 1746435600.0
"""5 May 2025, 9:00 UTC; a run starts as many days later as its number says."""
SECONDS_PER_DAY = 86_400.0
SECONDS_PER_MESSAGE = 6.5
STEP_LIMIT = 40
SYSTEM = "You solve programming tasks by running commands in a bash shell."
TASK = """<pr_description>
{{task}}
</pr_description>

<instructions>
The repository is the current directory. Change its source so that the description above is met.
Say what you think, then call the bash tool; every command runs in a new shell.
When you are done, write your change to patch.txt with git diff and print it after the line
COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT. Nothing can be changed after that.
</instructions>
"""


class TestbedEnvironment:
    """mini-swe-agent's local environment, its commands confined to a testbed."""

    def __init__(self, testbed: Testbed, folder: Path) -> None:
        self.testbed = testbed
        self.local = mini("environments.local").LocalEnvironment(cwd=str(folder))
        self.config = self.local.config

    def execute(self, action: dict[str, Any], cwd: str = "") -> dict[str, Any]:
        """Run the command of *action*; return output, returncode and exception_info."""
        confined = {**action, "command": self.testbed.shell(action["command"])}
        done: dict[str, Any] = self.local.execute(confined, cwd)
        return {**done, "output": self.testbed.masked(done["output"])}

    def get_template_vars(self) -> dict[str, Any]:
        """Return nothing of the machine: the prompts name none of it."""
        return {}

    def serialize(self) -> dict[str, Any]:
        """Return the environment's part of the trajectory file."""
        data: dict[str, Any] = self.local.serialize()
        data["info"]["config"]["environment"]["cwd"] = self.testbed.masked(self.config.cwd)
        return data


def mini(module: str) -> Any:
    """Return a module of mini-swe-agent; leaves with one sentence when it is not installed."""
    with TemporaryDirectory() as folder:
        os.environ.setdefault("MSWEA_SILENT_STARTUP", "1")
        os.environ.setdefault("MSWEA_GLOBAL_CONFIG_DIR", folder)
        try:
            return import_module(f"minisweagent.{module}")
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith("minisweagent"):
                raise
            raise SystemExit(MISSING) from None


def run(scenario: Scenario, testbed: Testbed) -> dict[str, Any]:
    """Return the trajectory, in mini-swe-agent's format, of the agent running *scenario*."""
    outputs = [_message(scenario, index) for index in range(len(scenario.steps))]
    agent = mini("agents.default").DefaultAgent(
        mini("models.test_models").DeterministicToolcallModel(outputs=outputs, model_name="script"),
        TestbedEnvironment(testbed, testbed.plant(scenario)),
        system_template=SYSTEM,
        instance_template=TASK,
        step_limit=STEP_LIMIT if scenario.submits else len(scenario.steps),
        cost_limit=0,
    )
    agent.run(scenario.issue)
    started = EPOCH + SECONDS_PER_DAY * scenario.number
    return _settled(agent.serialize({"instance_id": scenario.instance_id}), started)


def _message(scenario: Scenario, index: int) -> dict[str, Any]:
    step, call = scenario.steps[index], f"call_{index:02d}"
    function = {"name": "bash", "arguments": json.dumps({"command": step.command})}
    return {
        "role": "assistant",
        "content": step.thought,
        "tool_calls": [{"id": call, "type": "function", "function": function}],
        "extra": {
            "actions": [{"command": step.command, "tool_call_id": call}],
            "cost": 0.0,
            "timestamp": 0.0,
        },
    }


def _settled(data: dict[str, Any], started: float) -> dict[str, Any]:
    """The script is in the messages already, and a clock would differ from run to run."""
    del data["info"]["config"]["model"]["outputs"]
    for index, message in enumerate(data["messages"]):
        if "timestamp" in message.get("extra", {}):
            message["extra"]["timestamp"] = started + SECONDS_PER_MESSAGE * index
    return data
