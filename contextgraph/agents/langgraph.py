"""LangGraph with a memory: a node that advises the agent, and a node that learns its run.

nodes = MemoryNodes(memory, repo)
graph.add_node("memory", nodes.advise)  # START → memory → agent → tools → memory → agent …
graph.add_node("learn", nodes.learn)  # … → agent → learn → END

Written for LangGraph 1; see docs/langgraph.md.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct, field

from contextgraph.agents.live import LiveRun
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import Outcome, task_instance
from contextgraph.readers.tool_calls import action_for

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage


Messages: TypeAlias = "Sequence[AnyMessage]"


class _Run(Struct):
    live: LiveRun
    calls: set[str] = field(default_factory=set)


class MemoryNodes:
    """Nodes of a graph whose state has ``messages`` (`MessagesState`).

    *instance_id* of the task is a checksum of its text where the state has no ``instance_id``.
    """

    def __init__(self, memory: AgentMemory, repo: str, *, agent: str = "langgraph") -> None:
        self._memory, self._repo, self._agent = memory, repo, agent
        # By the id of the request, which LangGraph gives to each message.
        self._runs: dict[str, _Run] = {}

    def advise(self, state: Mapping[str, Any]) -> "dict[str, list[AnyMessage]]":
        """Follow the run; the request, or outputs of tools, again with advice after their text.

        For the start, and after the tools were called. LangGraph replaces messages by their ids.
        """
        request = _request(state["messages"])
        if request.id not in self._runs:
            live = self._begin(state, str(request.text))
            self._runs[request.id] = _Run(live)
            return {"messages": _with([(request, live.start())])}
        return {"messages": _with(self._observed(self._runs[request.id], state["messages"]))}

    def learn(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Learn the run, for the end; the state may have its ``outcome``: ``solved`` or ``failed``.

        Raises as `AgentMemory.learn`.
        """
        run = self._runs.pop(_request(state["messages"]).id, None)
        if run:
            run.live.finish(Outcome(state.get("outcome") or Outcome.UNKNOWN))
        return {}

    def _begin(self, state: Mapping[str, Any], task: str) -> LiveRun:
        instance = state.get("instance_id") or task_instance(self._repo, task)
        return self._memory.live(
            repo=self._repo, instance_id=instance, task=task, agent=self._agent
        )

    def _observed(self, run: _Run, messages: Messages) -> "Iterator[tuple[AnyMessage, str]]":
        """Each output of a tool that the run has not taken in, with the advice on it."""
        reply, outputs = _latest_turn(messages)
        calls = {call["id"]: call for call in getattr(reply, "tool_calls", ())}
        thought = str(reply.text)
        for output in outputs:
            call = calls.get(output.tool_call_id)
            if call is None or output.tool_call_id in run.calls:
                continue
            run.calls.add(output.tool_call_id)
            # A tool that raised has no exit code; like one of a command, its call failed.
            exit_code = 1 if output.status == "error" else None
            advice = run.live.observe(
                action_for(call["name"], call["args"]),
                str(output.text),
                exit_code=exit_code,
                thought=thought,
            )
            thought = ""
            yield output, advice or ""


def _request(messages: Messages) -> "AnyMessage":
    """The latest message of the user, which begins a run."""
    return next(message for message in reversed(messages) if message.type == "human")


def _latest_turn(messages: Messages) -> "tuple[AnyMessage, list[AnyMessage]]":
    """The latest message that is not the output of a tool, and the outputs that follow it."""
    outputs = list(takewhile(lambda message: message.type == "tool", reversed(messages)))
    return messages[len(messages) - len(outputs) - 1], outputs[::-1]


def _with(advised: "Iterable[tuple[AnyMessage, str]]") -> "list[AnyMessage]":
    """Copies of the messages with the text after their own, where there is one."""
    return [
        message.model_copy(update={"content": _extended(message.content, text)})
        for message, text in advised
        if text
    ]


def _extended(content: str | list[Any], text: str) -> str | list[Any]:
    if isinstance(content, str):
        return f"{content}\n{text}"
    return [*content, {"type": "text", "text": text}]
