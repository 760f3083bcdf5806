"""Files and functions that a command enters: how much of the package it takes to follow one.

    .venv/bin/python -m scripts.flow             # one line for each command
    .venv/bin/python -m scripts.flow query       # the functions of one, by file

Counted by `sys.setprofile` in a process of its own, from before the package is imported to the end
of the command: functions once however often they are called, without modules, class bodies, lambdas
and comprehensions; files that have such a function.
"""

import io
import json
import os
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from inspect import CO_OPTIMIZED
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryDirectory
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextgraph.model import RawTrajectory

PACKAGE = Path(__file__).parents[1] / "contextgraph"
REPO, TASK = "acme/shop", "Totals are wrong when a tariff is missing in shop/totals.py"
FAILING = "python reproduce.py"
ERROR = (
    "Traceback (most recent call last):\n"
    '  File "/shop/reproduce.py", line 1, in <module>\n'
    "    import tariffs\n"
    "ModuleNotFoundError: No module named 'tariffs'\n"
)
QUESTION = "How are the tests run?"
# Of another repository, called as its module: a folder is advised for no module of others.
CHECKOUT = "tariffs"

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


def run(number: int, *between: tuple[str, str, int]) -> "RawTrajectory":
    """A run that meets a missing module, gets over it, changes a file and tests it."""
    from contextgraph.model import Action, RawTrajectory, Step

    commands = (
        ("ls", "README.md\nreproduce.py\nlib", 0),
        (FAILING, ERROR, 1),
        *between,
        (f"PYTHONPATH=lib {FAILING}", "total: 12\n", 0),
        ("sed -i s/rate/tax/ shop/totals.py", "", 0),
        ("pytest tests/test_totals.py", "1 passed in 0.1s", 0),
    )
    steps = tuple(
        Step(index, "", Action("bash", line, {"command": line}), output, exit_code=code)
        for index, (line, output, code) in enumerate(commands)
    )
    return RawTrajectory("live", f"acme__shop-{number}", REPO, TASK, steps)


COMMANDS: Mapping[str, Sequence[str]] = {
    "query": ("query", "--repo", REPO, ERROR),
    "query at a start": ("query", "--repo", REPO, "--task", TASK),
    "learn": ("learn", "run.jsonl"),
    "search": ("search", "--repo", REPO, QUESTION),
    "hook": ("hook",),
}


def flow_of(name: str, path: Path) -> tuple[Flow, str]:
    """Return what the command *name* enters on the memory at *path*, and what it prints."""
    command, *arguments = COMMANDS[name]
    sys.argv = ["contextgraph", command, "--store", f"{path}", *arguments]
    if command == "hook":
        sys.stdin = io.TextIOWrapper(io.BytesIO(_event(path.with_name(CHECKOUT)).encode()))
    os.chdir(path.parent)
    printed = io.StringIO()
    with entered() as functions, redirect_stdout(printed), suppress(SystemExit):
        from contextgraph.__main__ import main

        main()
    return {file: sorted(names) for file, names in functions.items()}, printed.getvalue()


def prepare(path: Path) -> None:
    """Make a small memory at *path*, a checkout beside it, and a file with a run to learn."""
    from contextgraph.memory.agent_memory import AgentMemory
    from contextgraph.readers import to_record

    with AgentMemory.open(f"{path}") as memory:
        looks = ("cat README.md", "totals", 0), ("ls lib", "tariffs.py", 0)
        for number in range(1, 5):
            memory.learn(run(number, *looks))
        memory.notes.remember("The tests are run with pytest", repo=REPO)
        memory.consolidate()
    path.with_name("run.jsonl").write_text(json.dumps(to_record(run(5))), encoding="utf-8")
    path.with_name(CHECKOUT).mkdir()


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


def flows(names: Iterable[str]) -> Iterator[tuple[str, Flow]]:
    """Yield what each of these commands enters, on a small memory, in a process of its own."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        prepare(path)
        for name in names:
            command = (sys.executable, "-m", "scripts.flow", name, f"{path}")
            yield name, json.loads(subprocess.run(command, check=True, stdout=PIPE).stdout)


def main() -> None:
    if len(sys.argv) == 3:  # one command, in a process of its own
        flow, printed = flow_of(sys.argv[1], Path(sys.argv[2]))
        assert printed, f"{sys.argv[1]} prints nothing"
        print(json.dumps(flow))
        return
    chosen = sys.argv[1:2]
    for name, flow in flows(chosen or COMMANDS):
        print(f"{name}: {len(flow)} files, {sum(map(len, flow.values()))} functions")
        for file in sorted(flow) if chosen else ():
            print(f"  {file} ({len(flow[file])}): {', '.join(flow[file])}")


if __name__ == "__main__":
    main()
