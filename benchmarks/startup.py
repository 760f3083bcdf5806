"""How long a new process takes."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.corpus import bundles
from benchmarks.measure import Row, seconds
from contextgraph import AgentMemory
from contextgraph.integrations.advice import Advice, ErrorKey, write_advice
from contextgraph.model import RawTrajectory

RUNS, ENTRIES = 1_500, 100_000
_FAILURE = """{"session_id": "%d", "cwd": "/", "hook_event_name": "PostToolUseFailure",
"tool_name": "Bash", "tool_input": {"command": "python a.py"}, "error": "ValueError: no tariff"}"""
# Of a session of its own: in one session nothing is looked up twice.
_EVENT = f"import io, os, sys; event = {_FAILURE!r} % os.getpid(); "
_EVENT += "sys.stdin = io.TextIOWrapper(io.BytesIO(event.encode()))"


def rows(found: Sequence[RawTrajectory], folder: Path) -> Iterator[Row]:
    """Import, help, one query and one hook event, each in a process of its own."""
    path = folder / "cold.db"
    with AgentMemory.open(str(path)) as memory:
        for number, bundle in enumerate(bundles(found, sys.maxsize)):
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
    code = f"{_EVENT}; sys.argv[1:] = ['hook', '--store', {str(path)!r}]"
    code += "; from contextgraph.__main__ import main; main()"
    write_advice(path.with_name("cold.advice.db"), 1, _entries(), (), ())
    yield _row(f"contextgraph hook after a failure, {ENTRIES:,} entries", code, "100 ms")


def _entries() -> Iterator[tuple[ErrorKey, Advice]]:
    for number in range(ENTRIES):
        repo = f"acme/shop{number % 1_000}" if number else ""
        key = (repo, "python_exception", "ValueError", f"tariff {number}" if number else "", "")
        yield key, Advice(f"use `python3` instead of `python` [{number} tasks]", ("frg_1", "frg_2"))


def _row(what: str, code: str, budget: str) -> Row:
    """*code* in a process of its own, in turns with an empty one: both meet the same load."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def process(code: str) -> None:
        command = [sys.executable, "-c", code]
        subprocess.run(command, check=False, capture_output=True, env=environment)

    process(code)  # A first run may write byte code, as an installed package has it.
    pairs = [[seconds(partial(process, one), repeat=1) for one in ("pass", code)] for _ in range(7)]
    empty, taken = (median(times) for times in zip(*pairs, strict=True))
    return Row(what, taken * 1000, "ms", "an empty python process", taken / empty, budget)
