"""Learn recorded runs into a fresh memory, look at it, and ask about an error it has not seen."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import indent

from contextgraph import State
from contextgraph.readers import read
from contextgraph.trace import state_at

COMMAND = Path(sys.executable).with_name("contextgraph")
EXAMPLES = Path("examples")
NEVER_MET = "FluxCapacitorError: the time circuits are off"
SHOWN_LINES = 12
SHOWN_CHARACTERS = 60


def main() -> int:
    """Show the demo; return the exit code of the first command that failed, else 0."""
    with TemporaryDirectory(prefix="contextgraph-demo-") as folder:
        os.environ["CONTEXTGRAPH_STORE"] = str(Path(folder) / "memory.db")
        try:
            show()
        except subprocess.CalledProcessError as error:
            return error.returncode
    return 0


def show() -> None:
    """Learn, look, ask; raises `CalledProcessError` when a command fails."""
    say("1. Learn what a coding agent did in earlier runs, most of them full of mistakes:")
    contextgraph("learn", str(EXAMPLES / "trajectories"))

    say("2. This is in the memory now:")
    contextgraph("stats")

    state = unseen_state()
    say(f"3. A new run in {state.repo}, not among those learned, has just met this error:")
    print(indent("\n".join(state.current_error.splitlines()[-SHOWN_LINES:]), "   | "))
    say("   So its agent asks the memory how that was resolved before:")
    contextgraph("query", "--repo", state.repo, "--error", state.current_error)

    say("4. Asked about something it has never met, the memory says nothing rather than guess:")
    contextgraph("query", "--repo", state.repo, "--error", NEVER_MET)


def unseen_state() -> State:
    """Where the agent of the first run under examples/unseen stood when it met its first error."""
    for path in sorted((EXAMPLES / "unseen").glob("*.traj*")):
        for raw in read(path):
            states = (state_at(raw, step.index) for step in raw.steps)
            for state in states:
                if state.current_error:
                    return state
    raise FileNotFoundError(f"no run with an error in {EXAMPLES / 'unseen'}")


def contextgraph(*arguments: str) -> None:
    print("   $", shlex.join(["contextgraph", *map(shortened, arguments)]), flush=True)
    subprocess.run([COMMAND, *arguments], check=True)


def shortened(argument: str) -> str:
    line = " ".join(argument.split())
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[:SHOWN_CHARACTERS]}…"


def say(text: str) -> None:
    print(f"\n{text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
