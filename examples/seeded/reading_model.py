"""A scripted model of mini-swe-agent that uses what it reads, for the tasks of experiment_tasks.py.

It runs the command of its task. Where a variable is missing, it uses the first value that it has
read for it: in the prompt, in advice, or in what it searches, first the repository, then the logs
that the prompt names. It gives up when it has searched everything.
"""

import re
import shlex
from typing import Any

from minisweagent.models.test_models import DeterministicModel

from contextgraph.text import count_tokens
from seeded.scenario import SUBMIT

TASK = re.compile(r"Write what `(?P<command>[^`]+)` prints to the file (?P<file>[\w.-]+\w)")
LOGS = re.compile(r"Logs of earlier runs .* are in (?P<folder>\S+):")
MISSING = re.compile(r"LookupError: (?P<variable>\w+) does not name")
COST_PER_TOKEN = 1e-6


class ReadingModel(DeterministicModel):  # type: ignore[misc]  # the package may be absent
    """A policy instead of a model; it counts tokens, and charges for them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(outputs=[], **settings)
        self._variable = self._last = ""
        self._tried: set[str] = set()

    def query(self, messages: list[dict[str, Any]], **_options: Any) -> dict[str, Any]:
        """The next command, as a reply of the package's message format."""
        texts = [message["content"] for message in messages]
        self._last = command = self._next("\n".join(texts), texts[-1])
        self._tried.add(command)
        tokens = sum(map(count_tokens, texts)) + count_tokens(command)
        return {
            "role": "assistant",
            "content": f"Next: {command}",
            "extra": {
                "actions": [{"command": command}],
                "response": {"usage": {"total_tokens": tokens}},
                "cost": tokens * COST_PER_TOKEN,
            },
        }

    def _next(self, read: str, shown: str) -> str:
        """The next command, after all that was *read*, of which *shown* came last."""
        task = TASK.search(read)
        if task is None:
            raise ValueError("the prompt holds no task of experiment_tasks.py")
        plain = f"{task['command']} > {task['file']}"
        if plain not in self._tried:
            return plain
        missing = MISSING.search(shown)
        if not missing and not self._last.startswith("grep"):
            return SUBMIT
        self._variable = missing["variable"] if missing else self._variable
        logs = LOGS.search(read)
        folders = [".", logs["folder"]] if logs else ["."]
        ideas = [
            f"{self._variable}={value} {plain}"
            for value in re.findall(rf"\b{self._variable}=([\w-]+)", read)
        ]
        ideas += [f"grep -rhF {self._variable}= {shlex.quote(folder)}" for folder in folders]
        return next((idea for idea in ideas if idea not in self._tried), SUBMIT)
