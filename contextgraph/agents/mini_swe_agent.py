"""mini-swe-agent with a memory: advice in its prompt and observations, its runs learned.

    mini --agent-class contextgraph.agents.mini_swe_agent.MemoryAgent
    mini-extra swebench --model-class contextgraph.agents.mini_swe_agent.MemoryModel

Written for mini-swe-agent 2; see docs/mini_swe_agent.md.
"""

import atexit
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import LearnReceipt, repo_of, task_instance
from contextgraph.model.values import replace
from contextgraph.readers import repository_name
from contextgraph.text import regex

AGENT = "mini-swe-agent"
SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
_HELD_BACK = "Not submitted yet. Run the same command again to submit.\n"
_PATCH = ("diff --git ", "--- ")
# Images of SWE-bench are named after their instance, with "_1776_" instead of "__".
_IMAGE = regex(r"sweb\.eval\.[^./]+\.(?P<instance>[^:/]+)")

# What the package passes to and expects of its models: its own message format.
Message: TypeAlias = dict[str, Any]


class Advisor(Protocol):
    """Gives an `AdvisedModel` advice and follows the run; see `LiveRun`."""

    def start(self) -> str:
        """Text for the first prompt; may be empty."""

    def observe(
        self, action: str, observation: str, *, exit_code: int | None = None, thought: str = ""
    ) -> str | None:
        """Take in a step; text to show after it, or None."""

    def check_submit(self) -> str | None:
        """Return what is missing before the agent submits, or None."""

    def finish(
        self, *, exit_status: str | None = None, patch: str | None = None
    ) -> LearnReceipt | None:
        """End the run; return its receipt, None if nothing was learned."""


class AdvisedModel:
    """A model of mini-swe-agent whose agent is shown what an `Advisor` says.

    The text for the start follows the first prompt, other advice the output of a command. Where
    something is missing, the command that submits is not run, once. The advisor's run is finished
    when the agent saves its last message.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._advisor: Advisor | None = None
        self._instance_id = ""
        self._pending = ""
        self._messages: Sequence[Message] = ()
        self._variables: Mapping[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def begin(self, advisor: Advisor | None, instance_id: str) -> None:
        """Begin a run, which *advisor* follows, if any; the log will name *instance_id*."""
        self._advisor, self._instance_id = advisor, instance_id
        self._pending = advisor.start() if advisor else ""

    @property
    def has_begun(self) -> bool:
        """Return True once a run was begun."""
        return bool(self._instance_id)

    def query(self, messages: Sequence[Message], **options: Any) -> Message:
        """Return the model's reply to *messages*."""
        # The agent's own list: its last message says how the run ended.
        self._messages = messages
        reply: Message = self._model.query(messages, **options)
        if any(SUBMIT in action["command"] for action in _actions(reply)):
            self._check_submission(reply)
        return reply

    def format_message(self, **parts: Any) -> Message:
        """Return a message of the package, the first of the user's with advice for the start."""
        if parts.get("role") == "user" and (text := self._taken()):
            parts["content"] += f"\n\n{text}"
        message: Message = self._model.format_message(**parts)
        return message

    def format_observation_messages(
        self,
        message: Message,
        outputs: Sequence[Message],
        template_vars: Mapping[str, Any] | None = None,
    ) -> list[Message]:
        """Return the messages that show *outputs* of the commands in *message*, with advice."""
        self._variables = template_vars or {}
        advised = list(self._advised(message, outputs))
        shown: list[Message] = self._model.format_observation_messages(
            message, advised, template_vars
        )
        return shown

    def serialize(self) -> Message:
        """Return the model's part of the log, and the instance; finish a run that ended."""
        last = self._messages[-1] if self._messages else {}
        if self._advisor and last.get("role") == "exit":
            advisor, self._advisor = self._advisor, None
            patch = last["extra"].get("submission", "")
            advisor.finish(
                exit_status=last["extra"]["exit_status"],
                patch=patch if patch.startswith(_PATCH) else None,
            )
        instance = {"instance_id": self._instance_id} if self._instance_id else {}
        return {**self._model.serialize(), **instance}

    def _check_submission(self, reply: Message) -> None:
        """Raise what makes the agent go on without running *reply*, where something is missing."""
        missing = self._advisor.check_submit() if self._advisor else None
        if missing is None:
            return
        from minisweagent.exceptions import FormatError

        held_back = {"output": f"{_HELD_BACK}{missing}", "returncode": 0, "exception_info": ""}
        outputs = [held_back] * len(_actions(reply))
        # Of all interruptions, only for this one does the agent count the cost of the reply.
        raise FormatError(reply, *self.format_observation_messages(reply, outputs, self._variables))

    def _advised(self, message: Message, outputs: Iterable[Message]) -> Iterator[Message]:
        """*outputs* with what the advisor says to each."""
        thought = message.get("content")
        for action, output in zip(_actions(message), outputs, strict=False):
            advice = self._advisor and self._advisor.observe(
                action["command"],
                "\n".join(filter(None, (output["output"], output["exception_info"]))),
                exit_code=output["returncode"],
                thought=thought if isinstance(thought, str) else "",
            )
            thought = ""
            texts = [output["output"].rstrip("\n"), self._taken(), advice or ""]
            shown = "\n".join(filter(None, texts)) if any(texts[1:]) else output["output"]
            yield {**output, "output": shown}

    def _taken(self) -> str:
        """Return what is still to be shown; it is shown once."""
        text, self._pending = self._pending, ""
        return text


class MemoryOptions(Struct, frozen=True):
    """The settings ``agent.memory`` and ``model.memory`` of mini-swe-agent's configuration.

    An empty *store* means what the environment says. *repo* and *instance_id* are found out where
    they are empty. *model_class* is the model that `MemoryModel` wraps, as the package names it.
    """

    store: str = ""
    repo: str = ""
    instance_id: str = ""
    model_class: str = ""

    def begin(self, model: AdvisedModel, task: str) -> None:
        """Begin a run of *task*, advised by the memory and learned into it."""
        instance_id = self.instance_id or task_instance(self.repo, task)
        live = _memory(self.store).live(
            repo=self.repo,
            instance_id=instance_id,
            task=task,
            agent=AGENT,
            model=model.config.model_name,
        )
        model.begin(live, instance_id)


class MemoryAgent:
    """The package's interactive agent, advised by a memory; for ``mini --agent-class``."""

    def __init__(
        self, model: Any, env: Any, *, memory: Mapping[str, str] | None = None, **config: Any
    ) -> None:
        from minisweagent.agents.interactive import InteractiveAgent

        self._options = MemoryOptions(**(memory or {}))
        self._model = AdvisedModel(model)
        self._agent = InteractiveAgent(self._model, env, **config)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)

    def run(self, task: str = "", **variables: Any) -> Message:
        """Work on *task*; the exit status and submission."""
        options = self._options
        if not options.repo:
            options = replace(options, repo=self._repository())
        options.begin(self._model, task)
        result: Message = self._agent.run(task, **variables)
        return result

    def _repository(self) -> str:
        """The repository that the agent works in, by its git remote, else by its folder."""
        remote = self.env.execute({"command": "git remote get-url origin"})
        folder = getattr(self.env.config, "cwd", "") or os.getcwd()  # as the environment has it
        return repository_name(folder, remote="" if remote["returncode"] else remote["output"])


class MemoryModel(AdvisedModel):
    """A model advised by a memory; for ``mini-extra swebench --model-class``.

    The batch runner names the instance to its environment only. So the run begins with the first
    observation, whose variables hold it, and the text for the start follows that.
    """

    def __init__(self, *, memory: Mapping[str, str] | None = None, **config: Any) -> None:
        from minisweagent.models import get_model

        self._options = MemoryOptions(**(memory or {}))
        super().__init__(get_model(config={**config, "model_class": self._options.model_class}))

    def format_observation_messages(
        self,
        message: Message,
        outputs: Sequence[Message],
        template_vars: Mapping[str, Any] | None = None,
    ) -> list[Message]:
        """See `AdvisedModel.format_observation_messages`; the first call begins the run."""
        if template_vars and not self.has_begun:
            instance = self._options.instance_id or _instance_of(template_vars.get("image", ""))
            repo = self._options.repo or repo_of(instance)
            options = replace(self._options, instance_id=instance, repo=repo)
            options.begin(self, template_vars["task"])
        return super().format_observation_messages(message, outputs, template_vars)


@cache
def _memory(store: str) -> AgentMemory:
    """The memory at *store*, shared by all agents of this process until its end."""
    memory = AgentMemory.open(store)
    atexit.register(memory.close)
    return memory


def _instance_of(image: str) -> str:
    """The instance of a SWE-bench *image*; empty for another image."""
    match = _IMAGE.search(image)
    return match["instance"].replace("_1776_", "__") if match else ""


def _actions(message: Message) -> Sequence[Message]:
    actions: Sequence[Message] = message.get("extra", {}).get("actions", ())
    return actions
