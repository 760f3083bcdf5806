"""An agent's loop with a memory: ask before each step, notice loops, learn at the end.

python examples/agent_loop.py memory.db owner/repo "the issue" "command" "command" …

The commands stand for what your model would choose; they are run in the current folder.
"""

import subprocess
import sys

from contextgraph import Action, AgentMemory, RawTrajectory, Step
from contextgraph.trace import states_of


def run(store: str, repo: str, task: str, commands: list[str]) -> None:
    """Run *commands* with advice from the memory at *store*, then learn the run."""
    steps: list[Step] = []
    with AgentMemory.open(store) as memory:
        for index, command in enumerate(commands):
            so_far = RawTrajectory("agent-loop", f"{repo}#live", repo, task, tuple(steps))
            states = list(states_of(so_far))
            context = memory.query(states[-1], limit=3, degrade=True)
            print(memory.render(context, max_tokens=400))  # goes into your model's prompt
            if loop := memory.check_loop(states):
                print(f"{loop.severity}: {loop.kind}, ways out: {loop.escape_suggestions}")
            print(f"$ {command}")
            done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
            output = done.stdout + done.stderr
            steps.append(
                Step(index, "", Action("bash", command), output, exit_code=done.returncode)
            )
        finished = RawTrajectory("agent-loop", f"{repo}#live", repo, task, tuple(steps))
        print(memory.learn(finished))


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
