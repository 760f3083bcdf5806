"""Files and functions that an operation enters: how much of the package it takes to follow one.

    .venv/bin/python -m scripts.flow             # one line for each operation
    .venv/bin/python -m scripts.flow query       # the functions of one, by file

Functions are counted once however often they are called, without modules, class bodies, lambdas
and comprehensions. Each operation has a process of its own, in which nothing is cached yet.
"""

import json
import os
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import CO_OPTIMIZED
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryDirectory
from types import FrameType

import contextgraph
from contextgraph.memory import AgentMemory
from contextgraph.model import Action, RawTrajectory, State, Step

PACKAGE = Path(contextgraph.__file__).parent
REPO, TASK = "acme/shop", "Totals are wrong when a tariff is missing in shop/totals.py"
FAILING = "python reproduce.py"
ERROR = (
    "Traceback (most recent call last):\n"
    '  File "/shop/reproduce.py", line 1, in <module>\n'
    "    import tariffs\n"
    "ModuleNotFoundError: No module named 'tariffs'\n"
)
QUESTION = "How are the tests run?"

Flow = Mapping[str, Sequence[str]]
"""File, relative to the package -> the functions in it that were entered."""


@contextmanager
def entered() -> Iterator[dict[str, set[str]]]:
    """Record the functions of the package that the block enters, in any thread, by file."""
    functions: dict[str, set[str]] = defaultdict(set)
    root = f"{PACKAGE}{os.sep}"

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        is_function = code.co_flags & CO_OPTIMIZED and not code.co_name.startswith("<")
        if event == "call" and is_function and code.co_filename.startswith(root):
            functions[code.co_filename.removeprefix(root)].add(code.co_qualname)

    sys.setprofile(profile)
    threading.setprofile(profile)
    try:
        yield functions
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def run(number: int) -> RawTrajectory:
    """A run that meets a missing module, gets over it, changes a file and tests it."""
    commands = (
        ("ls", "README.md\nreproduce.py\nlib", 0),
        (FAILING, ERROR, 1),
        (f"PYTHONPATH=lib {FAILING}", "total: 12\n", 0),
        ("sed -i s/rate/tax/ shop/totals.py", "", 0),
        ("pytest tests/test_totals.py", "1 passed in 0.1s", 0),
    )
    steps = tuple(
        Step(index, "", Action("bash", line, {"command": line}), output, exit_code=code)
        for index, (line, output, code) in enumerate(commands)
    )
    return RawTrajectory("live", f"acme__shop-{number}", REPO, TASK, steps)


def query(memory: AgentMemory) -> object:
    error = State(repo=REPO, current_error=ERROR, last_action=FAILING, last_outcome=ERROR)
    return memory.query(error).ranked


def query_at_start(memory: AgentMemory) -> object:
    return memory.query(State(repo=REPO, task_description=TASK))


def learn(memory: AgentMemory) -> object:
    return memory.learn(run(5))


def observe(memory: AgentMemory) -> object:
    return memory.live(repo=REPO, instance_id="acme__shop-9", task=TASK).observe(FAILING, ERROR)


def recall(memory: AgentMemory) -> object:
    return memory.notes.recall(QUESTION, repo=REPO)


OPERATIONS: Mapping[str, Callable[[AgentMemory], object]] = {
    "query": query,
    "query at a start": query_at_start,
    "learn": learn,
    "observe": observe,
    "recall": recall,
}


def flow_of(name: str, path: Path) -> Flow:
    """Return what the operation *name* enters on the memory at *path*."""
    if name == "hook":
        from contextgraph.agents.hook import answer

        event = _event(path.with_name("checkout"))
        with entered() as functions:
            answered: object = answer(event, f"{path}")
    else:
        with AgentMemory.open(f"{path}") as memory:
            memory.store.runs.ids()  # connect, and read the schema
            with entered() as functions:
                answered = OPERATIONS[name](memory)
    assert answered, f"{name} has no answer"
    return {file: sorted(names) for file, names in functions.items()}


def prepare(path: Path) -> None:
    """Make a small memory at *path*, and a checkout beside it."""
    with AgentMemory.open(f"{path}") as memory:
        for number in range(1, 5):
            memory.learn(run(number))
        memory.notes.remember("The tests are run with pytest", repo=REPO)
        memory.consolidate()
    folder = path.with_name("checkout") / ".git"
    folder.mkdir(parents=True)
    remote = f'[remote "origin"]\n\turl = https://github.com/{REPO}.git\n'
    (folder / "config").write_text(remote, encoding="utf-8")


def _event(checkout: Path) -> str:
    """The event of a hook of an agent in *checkout* that met the error."""
    return json.dumps(
        {
            "hook_event_name": "PostToolUse",
            "session_id": "flow",
            "cwd": f"{checkout}",
            "tool_name": "Bash",
            "tool_input": {"command": FAILING},
            "tool_response": {"stdout": "", "stderr": ERROR, "exit_code": 1},
        }
    )


def main() -> None:
    if len(sys.argv) == 3:  # one operation, in a process of its own
        print(json.dumps(flow_of(sys.argv[1], Path(sys.argv[2]))))
        return
    chosen = sys.argv[1:2]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        prepare(path)
        for name in chosen or (*OPERATIONS, "hook"):
            command = (sys.executable, "-m", "scripts.flow", name, f"{path}")
            flow: Flow = json.loads(subprocess.run(command, check=True, stdout=PIPE).stdout)
            print(f"{name}: {len(flow)} files, {sum(map(len, flow.values()))} functions")
            for file in sorted(flow) if chosen else ():
                print(f"  {file} ({len(flow[file])}): {', '.join(flow[file])}")


if __name__ == "__main__":
    main()
