"""How long a new process takes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.corpus import bundles
from benchmarks.measure import Row, seconds
from contextgraph import AgentMemory
from contextgraph.agents.advice import (
    CompiledRemedy,
    ErrorAdvice,
    ErrorKey,
    RepositoryAdvice,
    write_advice,
)
from contextgraph.model import RawTrajectory

RUNS, ENTRIES = 1_500, 100_000
_BASH = {"tool_name": "Bash", "tool_input": {"command": "python -m pytest tests"}}
_ERROR = "ValueError: no tariff"
_EVENTS: Mapping[str, Mapping[str, object]] = {
    "after a failure": {"hook_event_name": "PostToolUseFailure", "error": _ERROR, **_BASH},
    "before a command": {"hook_event_name": "PreToolUse", **_BASH},
    "at a prompt": {"hook_event_name": "UserPromptSubmit", "prompt": f"It fails:\n{_ERROR}"},
}


def rows(raws: Sequence[RawTrajectory], folder: Path) -> Iterator[Row]:
    """Import, help, one query and one hook event, each in a process of its own."""
    path = folder / "cold.db"
    with AgentMemory.open(str(path)) as memory:
        for number, bundle in enumerate(bundles(raws, sys.maxsize)):
            if number == RUNS:
                break
            memory.store.runs.add([bundle])
    yield _row("import contextgraph", "import contextgraph", "50 ms")
    start = "from contextgraph.cli import main; import sys; sys.argv[1:] = "
    yield _row("contextgraph --help", f"{start}['--help']; main()", "150 ms")
    query = ["query", "--store", str(path), "--repo", "acme/shop0"]
    query += ["--error", "ModuleNotFoundError: No module named 'tariffs'"]
    code = f"{start}{query!r}; main()"
    yield _row(f"contextgraph query, {RUNS:,} runs", code, "500 ms")
    commands = {"python -m pytest": ("`python -m pytest` did not run; `tox` did", ())}
    shop = ("", f"local/{folder.name}", RepositoryAdvice(commands=commands))
    write_advice(path.with_name("cold.advice.db"), 1, _entries(), [shop], {})
    for moment, event in _EVENTS.items():
        name = f"contextgraph hook {moment}, {ENTRIES:,} entries"
        yield _row(name, _hook(path, event), "100 ms")


def _hook(path: Path, event: Mapping[str, object]) -> str:
    """Code that answers *event*, of a session of its own: in one nothing is looked up twice."""
    fields = json.dumps({**event, "session_id": "%d", "cwd": str(path.parent)})
    code = f"import io, os, sys; event = {fields!r} % os.getpid(); "
    code += "sys.stdin = io.TextIOWrapper(io.BytesIO(event.encode()))"
    code += f"; sys.argv[1:] = ['hook', '--store', {str(path)!r}]"
    return f"{code}; from contextgraph.__main__ import main; main()"


def _entries() -> Iterator[tuple[ErrorKey, ErrorAdvice]]:
    for number in range(ENTRIES):
        repo = f"acme/shop{number % 1_000}" if number else ""
        key = (repo, "python_exception", "ValueError", f"tariff {number}" if number else "", "")
        said = "use `python3` instead of `python`"
        remedy = CompiledRemedy(f"{said} [{number} tasks]", said, "frg_1")
        yield key, ErrorAdvice((remedy,), 1, ("Earlier runs:", "Earlier runs did:"))


def _row(what: str, code: str, budget: str) -> Row:
    """*code* in a process of its own, in turns with an empty one: both meet the same load."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def process(code: str) -> None:
        command = [sys.executable, "-c", code]
        subprocess.run(command, check=False, capture_output=True, env=environment)

    process(code)  # A first run may write byte code, as an installed package has it.
    pairs = [
        [seconds(partial(process, script), repeat=1) for script in ("pass", code)] for _ in range(7)
    ]
    empty, taken = (median(times) for times in zip(*pairs, strict=True))
    return Row(what, taken * 1000, "ms", "an empty python process", taken / empty, budget)
