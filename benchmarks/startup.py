"""Processor time of a new process."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median

from benchmarks.corpus import bundles
from benchmarks.measure import Row
from contextgraph import AgentMemory
from contextgraph.model import RawTrajectory

RUNS = 1_500
_TIMES = 15


def rows(raws: Sequence[RawTrajectory], folder: Path) -> Iterator[Row]:
    """Import, help and queries, each in a process of its own."""
    path = folder / "cold.db"
    with AgentMemory.open(str(path)) as memory:
        for number, bundle in enumerate(bundles(raws, sys.maxsize)):
            if number == RUNS:
                break
            memory.store.runs.add([bundle])
    program = ["-m", "contextgraph"]
    store = ["--store", str(path), "--repo", "acme/shop0"]
    error = "ModuleNotFoundError: No module named 'tariffs'"
    yield cpu_row("import contextgraph", ["-c", "import contextgraph"], 3)
    yield cpu_row("contextgraph --help", [*program, "--help"], 3)
    what = f"contextgraph query, {RUNS:,} runs"
    yield cpu_row(what, [*program, "query", *store, "--error", error], 16)
    how = ["call", "how", "--store", str(path), "repo=acme/shop0", "command=python -m pytest"]
    yield cpu_row("contextgraph call how", [*program, *how], 40)


def cpu_row(
    what: str,
    arguments: Sequence[str],
    budget: int,
    given: Callable[[], str] = str,
    is_answered: bool | None = None,
) -> Row:
    """CPU of `python` with *arguments*, in turns with an empty one: both meet the same load.

    It reads what *given* returns. Raises `AssertionError` where it prints something and
    *is_answered* is False, or the other way round.
    """
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def cpu(arguments: Sequence[str]) -> float:
        before = getrusage(RUSAGE_CHILDREN)
        command = [sys.executable, *arguments]
        done = subprocess.run(
            command, check=False, input=given(), text=True, capture_output=True, env=environment
        )
        after = getrusage(RUSAGE_CHILDREN)
        assert arguments[0] == "-c" or is_answered in (None, bool(done.stdout)), what
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    cpu(arguments)  # A first run may write byte code, as an installed package has it.
    pairs = [[cpu(one) for one in (("-c", "pass"), arguments)] for _ in range(_TIMES)]
    empty, taken = (median(times) for times in zip(*pairs, strict=True))
    return Row(what, taken * 1000, "ms", "CPU of python -c pass", taken / empty, f"{budget} x")
