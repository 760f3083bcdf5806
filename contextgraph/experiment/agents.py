"""The agents that an experiment can run."""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from contextgraph.errors import MissingExtraError, SettingsError
from contextgraph.experiment.arms import with_logs
from contextgraph.experiment.tasks import Task, Workspace
from contextgraph.integrations.mini_swe_agent import AGENT, AdvisedModel, Advisor
from contextgraph.text import mask_secrets

LOGS_IN_IMAGE = "/logs"
_CHECK_SECONDS = 1800
_FOLDER_IN_IMAGE = "/testbed"


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt ended, as `Attempt` has it."""

    solved: bool = False
    exit_status: str = ""
    steps: int = 0
    tokens: int | None = None
    cost: float | None = None
    error: str = ""


class Agent(Protocol):
    """What makes attempts; *name* has its version."""

    name: str
    model: str

    def attempt(
        self, task: Task, folder: Path, log: Path, advisor: Advisor | None, logs: Path | None
    ) -> Ending:
        """Work on *task* in *folder* and write *log*; then run the check.

        The prompt names earlier *logs*, where given. May raise what breaks the attempt.
        """


def agent_named(name: str, model: str | None, specs: Sequence[str]) -> Agent:
    """The agent *name* with *model* (None: that of *specs*, settings in the agent's own form).

    Raises `SettingsError` where it is not known, or cannot be used so.
    """
    if name != AGENT:
        raise SettingsError(f"agent {name} is not known; known: {AGENT}")
    return MiniSweAgent(model, specs or ["mini.yaml"])


class MiniSweAgent:
    """mini-swe-agent's default agent, configured as its own command line is.

    *specs* are what ``mini --config`` takes. Raises `MissingExtraError` without the package and
    `SettingsError` for a configuration without a model.
    """

    def __init__(self, model: str | None, specs: Sequence[str]) -> None:
        os.environ.setdefault("MSWEA_SILENT_STARTUP", "1")
        try:
            from minisweagent import __version__
            from minisweagent.config import get_config_from_spec
            from minisweagent.models import get_model_name
            from minisweagent.utils.serialize import recursive_merge
        except ImportError as error:
            raise MissingExtraError(
                f"{AGENT} is not installed here: pip install 'mini-swe-agent>=2.4'"
            ) from error
        logging.getLogger("minisweagent").setLevel(logging.WARNING)
        self.name = f"{AGENT} {__version__}"
        try:
            self._config: Mapping[str, Any] = recursive_merge(*map(get_config_from_spec, specs))
            self.model: str = get_model_name(model, self._config.get("model", {}))
        except (FileNotFoundError, ValueError) as error:
            raise SettingsError(f"{AGENT}: {error}") from error

    def attempt(
        self, task: Task, folder: Path, log: Path, advisor: Advisor | None, logs: Path | None
    ) -> Ending:
        """As `Agent.attempt`."""
        from minisweagent.agents.default import DefaultAgent
        from minisweagent.environments import get_environment
        from minisweagent.models import get_model

        environment = get_environment(self._environment(task.workspace, folder, logs))
        model = AdvisedModel(get_model(self.model, self._config.get("model", {})))
        model.begin(advisor, task.instance_id)
        settings = {**self._config.get("agent", {}), "output_path": log}
        settings.pop("agent_class", None)
        agent = DefaultAgent(model, environment, **settings)
        place = LOGS_IN_IMAGE if task.workspace.image else logs
        try:
            agent.run(with_logs(task.task, str(place)) if logs else task.task)
            solved, error = _is_solved(environment, task.check), ""
        except Exception as broken:  # noqa: BLE001  (what it has spent is recorded with it)
            solved, error = False, described(broken)
        return Ending(
            solved=solved,
            exit_status=agent.messages[-1].get("extra", {}).get("exit_status", ""),
            steps=agent.n_calls,
            tokens=_tokens(agent.messages),
            cost=agent.cost,
            error=error,
        )

    def _environment(self, place: Workspace, folder: Path, logs: Path | None) -> Mapping[str, Any]:
        """The settings of the environment: a local folder, or a container of an image."""
        settings: Mapping[str, Any] = self._config.get("environment", {})
        if not place.image:
            chosen = {name: settings[name] for name in ("env", "timeout") if name in settings}
            return {**chosen, "environment_class": "local", "cwd": str(folder)}
        mount = ["--volume", f"{logs}:{LOGS_IN_IMAGE}:ro"] if logs else []
        return {
            "environment_class": "docker",
            **settings,
            "image": place.image,
            "cwd": place.folder or settings.get("cwd") or _FOLDER_IN_IMAGE,
            "run_args": [*settings.get("run_args", ["--rm"]), *mount],
        }


def described(error: Exception) -> str:
    """*error* as it is recorded."""
    return mask_secrets(f"{type(error).__name__}: {error}")


def _is_solved(environment: Any, check: str) -> bool:
    checked = environment.execute({"command": check}, timeout=_CHECK_SECONDS)
    if checked["exception_info"]:
        raise RuntimeError(f"the check: {checked['exception_info']}")
    return bool(checked["returncode"] == 0)


def _tokens(messages: Sequence[Mapping[str, Any]]) -> int | None:
    """All tokens that the replies report, in the form of either API of OpenAI."""
    totals = []
    for message in messages:
        response = message.get("extra", {}).get("response", message)
        usage = response.get("usage") if isinstance(response, Mapping) else None
        if usage:
            totals.append(int(usage["total_tokens"]))
    return sum(totals) if totals else None
