"""A LangGraph agent that a memory advises, and which learns its run.

python examples/langgraph_run.py memory.db owner/repo "the issue" gpt-5-mini

Needs langgraph, langchain-openai and OPENAI_API_KEY; OPENAI_BASE_URL names another server. The
agent works in the current folder.
"""

import subprocess
import sys
from typing import Any

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from contextgraph import AgentMemory
from contextgraph.agents.langgraph import MemoryNodes


def bash(command: str) -> str:
    """Run a command line; returns its exit code and output."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    return f"exit code {done.returncode}\n{done.stdout}{done.stderr}"


def graph_of(memory: AgentMemory, repo: str, model: str) -> Any:
    """START → memory → agent → tools → memory → agent → … → learn → END."""
    nodes = MemoryNodes(memory, repo)
    tools = [tool(bash)]
    chat = ChatOpenAI(model=model).bind_tools(tools)
    graph = StateGraph(MessagesState)
    graph.add_node("memory", nodes.advise)
    graph.add_node("agent", lambda state: {"messages": [chat.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode(tools))
    graph.add_node("learn", nodes.learn)
    graph.add_edge(START, "memory")
    graph.add_edge("memory", "agent")
    graph.add_conditional_edges("agent", tools_condition, {"tools": "tools", END: "learn"})
    graph.add_edge("tools", "memory")
    graph.add_edge("learn", END)
    return graph.compile()


def run(store: str, repo: str, task: str, model: str) -> None:
    """Work on *task* with advice from the memory at *store*, then learn the run."""
    with AgentMemory.open(store) as memory:
        graph = graph_of(memory, repo, model)
        for message in graph.invoke({"messages": [("user", task)]})["messages"]:
            message.pretty_print()


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    run(*sys.argv[1:])
