"""Learn recorded runs into a new memory, inspect it, and query it for errors of another run."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import indent

from contextgraph import State
from contextgraph.readers import read
from contextgraph.trace import states_of

COMMAND = Path(sys.executable).with_name("contextgraph")
EXAMPLES = Path("examples")
NEVER_MET = "FluxCapacitorError: the time circuits are off"
SHOWN_ERRORS = 2
SHOWN_LINES = 12


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
    """Learn, inspect, query; raises `CalledProcessError` when a command fails."""
    say("1. Learn what a coding agent did in earlier runs, most of them full of mistakes:")
    contextgraph("learn", str(EXAMPLES / "trajectories"))

    say("2. This is in the memory now:")
    contextgraph("stats")

    say("3. The first errors of a run that was not learned, and what the memory advises:")
    moments = first_errors()
    for state in moments:
        shown = state.current_error.splitlines()[-SHOWN_LINES:]
        print(indent("\n".join(shown), "   | ", lambda line: True))
        query(state.repo, state.current_error)

    say("4. For an error that it does not know, the memory answers nothing instead of guessing:")
    query(moments[0].repo, NEVER_MET)


def first_errors() -> list[State]:
    """Where the agent of the first run under examples/unseen stood when it met new errors."""
    path = min((EXAMPLES / "unseen").glob("*.traj.json"))
    states = [state for raw in read(path) for state in states_of(raw) if state.current_error]
    by_error = {state.current_error: state for state in reversed(states)}
    return list(reversed(by_error.values()))[:SHOWN_ERRORS]


def query(repo: str, error: str) -> None:
    contextgraph("query", "--repo", repo, "--error", error, "--limit", "2")
    print()


def contextgraph(*arguments: str) -> None:
    shown = ('"$error"' if "\n" in argument else shlex.quote(argument) for argument in arguments)
    print("   $ contextgraph", *shown, flush=True)
    subprocess.run([COMMAND, *arguments], check=True)


def say(text: str) -> None:
    print(f"\n{text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
