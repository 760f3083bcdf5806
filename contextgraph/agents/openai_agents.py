"""The OpenAI Agents SDK with a memory: a tool that queries it, and traces that it learns as runs.

agent = Agent(name="Fixer", tools=[memory_tool(memory, repo), …])
add_trace_processor(RunLearner(memory, repo))

Written for openai-agents 0.24; see docs/openai_agents.md.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from contextgraph.errors import ContextGraphError, StoreError
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import RawTrajectory, State, task_instance
from contextgraph.model.values import replace
from contextgraph.readers.conversation import (
    Call,
    Result,
    Thought,
    Turn,
    UserMessage,
    conversation_of,
)
from contextgraph.readers.format import EmptyRunError, Place, content_text
from contextgraph.readers.tool_calls import json_arguments

if TYPE_CHECKING:
    from agents import FunctionTool
    from agents.tracing import Span, Trace


AGENT = "openai-agents"
TOOL = "query_memory"
_LIMIT, _TOKENS = 3, 400
_NOTHING = "Nothing known applies."

_log = logging.getLogger(__name__)


def memory_tool(memory: AgentMemory, repo: str) -> "FunctionTool":
    """Return the function tool ``query_memory``, which asks *memory* about a task or error.

    Where the store does not answer, the tool answers that nothing is known, and that is logged.
    """
    from agents import function_tool

    def query_memory(task: str, error_message: str) -> str:
        """Look up what earlier runs in this repository and others know: data to check before use.

        Call it at the start of a task, and at an error that you do not understand.

        Args:
            task: The task or issue that you work on.
            error_message: The error as it was printed; empty at the start.
        """
        state = State(repo=repo, task_description=task, current_error=error_message)
        try:
            context = memory.query(state, _LIMIT)
        except StoreError as error:
            _log.warning("the agent goes on without advice: %s", error)
            return _NOTHING
        return memory.render(context, _TOKENS) or _NOTHING

    return function_tool(query_memory, name_override=TOOL)


class RunLearner:
    """A tracing processor that learns each trace as a run of the agent when it ends.

    The first request is the task, calls of function tools are the steps. Metadata of the trace may
    name another ``repo``, and the ``instance_id``. A trace without calls is not learned; one that
    cannot be is logged.
    """

    def __init__(self, memory: AgentMemory, repo: str, *, agent: str = AGENT) -> None:
        self._memory, self._repo, self._agent = memory, repo, agent
        self._runs: dict[str, _Run] = {}

    def on_trace_start(self, trace: "Trace") -> None:
        """A run begins."""
        self._runs[trace.trace_id] = _Run()

    def on_span_start(self, span: "Span[Any]") -> None:
        """Nothing is known of a span before it ends."""

    def on_span_end(self, span: "Span[Any]") -> None:
        """Take in an answer of the model or a call of a tool."""
        if run := self._runs.get(span.trace_id):
            run.add(span)

    def on_trace_end(self, trace: "Trace") -> None:
        """Learn the run; consolidation follows in the background."""
        run = self._runs.pop(trace.trace_id, None)
        if run is None:
            return
        try:
            self._memory.learn(self._raw(run, trace.metadata or {}), background=True)
        except EmptyRunError:
            return
        except ContextGraphError as error:
            _log.warning("the run was not learned: %s", error)

    def force_flush(self) -> None:
        """Nothing waits: a run is learned when its trace ends."""

    def shutdown(self) -> None:
        """Forget traces that have not ended; the memory belongs to the caller."""
        self._runs.clear()

    def _raw(self, run: "_Run", metadata: Mapping[str, Any]) -> RawTrajectory:
        conversation = conversation_of(run.turns)
        repo = str(metadata.get("repo") or self._repo)
        instance = str(metadata.get("instance_id") or task_instance(repo, conversation.task))
        known = RawTrajectory("openai-agents", instance, repo, "", agent=self._agent)
        known = replace(known, model=run.model, system_prompt=run.advice)
        return conversation.run(known, Place("openai-agents"))


class _Run:
    """State of a trace in progress."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.model = ""
        self.advice = ""

    def add(self, span: "Span[Any]") -> None:
        data = span.span_data
        if data.type == "function" and data.name == TOOL:
            # Not a step of the work; the ids in its text say what the run was shown.
            self.advice += str(data.output or "")
        elif data.type == "function":
            self.turns.append(Call(data.name, json_arguments(data.input)))
            self.turns.append(Result(str(data.output or ""), is_error=bool(span.error) or None))
        elif data.type == "response" and data.response is not None:
            self._answer(data.input, data.response.output_text, data.response.model)
        elif data.type == "generation":
            answers = [content_text(message) for message in data.output or ()]
            self._answer(data.input, "\n".join(answers), data.model or "")

    def _answer(
        self, request: str | Sequence[Mapping[str, Any]] | None, text: str, model: str
    ) -> None:
        """The model answered *request* with *text*."""
        if not self.turns:
            self.turns.append(_latest_message(request or ""))
        self.model = model
        self.turns.append(Thought(text))


def _latest_message(request: str | Sequence[Mapping[str, Any]]) -> UserMessage:
    """The last message of the user in *request*; a session has earlier ones before it."""
    if isinstance(request, str):
        return UserMessage(request)
    messages = (message for message in reversed(request) if message.get("role") == "user")
    return UserMessage(content_text(next(messages, {})))
