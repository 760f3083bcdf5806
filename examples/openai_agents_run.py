"""An agent of the OpenAI Agents SDK that queries a memory, which learns its run.

python examples/openai_agents_run.py memory.db owner/repo "the issue" [chat_completions]

Needs openai-agents and OPENAI_API_KEY; OPENAI_BASE_URL names another server. The agent works in the
current folder.
"""

import subprocess
import sys

from agents import Agent, Runner, function_tool, set_default_openai_api, set_trace_processors

from contextgraph import AgentMemory
from contextgraph.agents.openai_agents import RunLearner, memory_tool


def bash(command: str) -> str:
    """Run a command line; returns its exit code and output."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    return f"exit code {done.returncode}\n{done.stdout}{done.stderr}"


def run(store: str, repo: str, task: str, api: str = "responses") -> None:
    """Work on *task* with the memory at *store*, then learn the run."""
    set_default_openai_api(api)
    with AgentMemory.open(store) as memory:
        # In the place of OpenAI's own; add_trace_processor would add to it.
        set_trace_processors([RunLearner(memory, repo)])
        agent = Agent(name="Fixer", tools=[function_tool(bash), memory_tool(memory, repo)])
        print(Runner.run_sync(agent, task, max_turns=50).final_output)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    run(*sys.argv[1:])
