"""An agent's loop with a memory, which advises it and learns the run at its end.

python examples/agent_loop.py memory.db owner/repo "the issue" "command" "command" …

The commands stand for what your model would choose; they are run in the current folder.
"""

import subprocess
import sys

from contextgraph import AgentMemory


def run(store: str, repo: str, task: str, commands: list[str]) -> None:
    """Run *commands* with advice from the memory at *store*, then learn the run."""
    with (
        AgentMemory.open(store) as memory,
        memory.live(repo=repo, instance_id=f"{repo}#{task}", task=task) as live,
    ):
        print(live.start())  # for your model's first prompt
        for command in commands:
            done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
            output = done.stdout + done.stderr
            advice = live.observe(command, output, exit_code=done.returncode)
            print(f"$ {command}\n{output}{advice or ''}")  # for your model's next prompt
        print(live.check_submit() or "nothing is known to be missing")
        print(live.finish())


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    run(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
