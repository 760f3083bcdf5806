"""How long a new process takes."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.corpus import bundles
from benchmarks.measure import Row, seconds
from contextgraph import AgentMemory
from contextgraph.model import RawTrajectory

RUNS = 1_500


def rows(found: Sequence[RawTrajectory], folder: Path) -> Iterator[Row]:
    """Import, help, and one query, each in a process of its own."""
    path = folder / "cold.db"
    with AgentMemory.open(str(path)) as memory:
        for number, bundle in enumerate(bundles(found, sys.maxsize)):
            if number == RUNS:
                break
            memory.store.runs.add([bundle])
    baseline = _process("pass")
    yield _row("import contextgraph", _process("import contextgraph"), baseline, "150 ms")
    start = "from contextgraph.cli import main; import sys; sys.argv[1:] = "
    yield _row("contextgraph --help", _process(f"{start}['--help']; main()"), baseline, "250 ms")
    query = ["query", "--store", str(path), "--repo", "acme/shop0"]
    query += ["--error", "ModuleNotFoundError: No module named 'tariffs'"]
    code = f"{start}{query!r}; main()"
    yield _row(f"contextgraph query, {RUNS:,} runs", _process(code), baseline, "1,000 ms")


def _row(what: str, taken: float, baseline: float, budget: str) -> Row:
    return Row(what, taken * 1000, "ms", "an empty python process", taken / baseline, budget)


def _process(code: str) -> float:
    command = [sys.executable, "-c", code]
    # A first run may write byte code, as an installed package has it.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    start = partial(subprocess.run, command, check=False, capture_output=True, env=environment)
    start()
    return seconds(start, repeat=5)
