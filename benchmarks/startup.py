"""Processor time of a new process."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median

from benchmarks.corpus import bundles, renamed
from benchmarks.measure import Row
from contextgraph import AgentMemory
from contextgraph.model import RawTrajectory
from scripts.flow import flows

# Of one person, and of a data set.
FEW_RUNS, RUNS = 110, 1_500
_ERROR = "ModuleNotFoundError: No module named 'tariffs'"
_PROGRAM = ("-m", "contextgraph")
_TIMES = 15


def rows(raws: Sequence[RawTrajectory], folder: Path) -> Iterator[Row]:
    """Import, help and queries, each in a process of its own."""
    yield cpu_row("import contextgraph", ["-c", "import contextgraph"], 4)
    yield cpu_row("contextgraph --help", [*_PROGRAM, "--help"], 4)
    for name, flow in flows(["query"]):
        files, functions = len(flow), sum(map(len, flow.values()))
        yield Row(
            f"contextgraph {name}: files entered", files, "", budget="40", is_missed=files > 40
        )
        yield Row(
            f"contextgraph {name}: functions entered", functions, "", budget="400",
            is_missed=functions > 400,
        )  # fmt: skip
    yield from _of_learned_runs(raws, folder / "learned.db")
    path = folder / "cold.db"
    with AgentMemory.open(str(path)) as memory:
        for number, bundle in enumerate(bundles(raws, sys.maxsize)):
            if number == RUNS:
                break
            memory.store.runs.add([bundle])
    store = ["--store", str(path), "--repo", "acme/shop0"]
    what = f"contextgraph query --error, {RUNS:,} runs"
    yield cpu_row(what, [*_PROGRAM, "query", *store, "--error", _ERROR], 16)
    how = ["call", "how", "--store", str(path), "repo=acme/shop0", "command=python -m pytest"]
    yield cpu_row("contextgraph call how", [*_PROGRAM, *how], 40)


def _of_learned_runs(raws: Sequence[RawTrajectory], path: Path) -> Iterator[Row]:
    """Whole commands on a memory that has learned and is consolidated, as that of one person."""
    repo, task = Counter((raw.repo, raw.task) for raw in raws).most_common(1)[0][0]
    with AgentMemory.open(str(path)) as memory:
        for _ in memory.learn_many(renamed(raws, FEW_RUNS)):
            pass
        memory.consolidate()
    store = ("--store", str(path))
    commands = {
        "query ERROR": (["query", *store, "--repo", repo, _ERROR], 15),
        "query --task": (["query", *store, "--repo", repo, "--task", task], 18),
        "search": (["search", *store, "tests fail"], 25),
    }
    for name, (arguments, budget) in commands.items():
        what = f"contextgraph {name}, {FEW_RUNS} runs"
        yield cpu_row(what, [*_PROGRAM, *arguments], budget, is_answered=True)


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
    ratio = taken / empty
    return Row(
        what, taken * 1000, "ms", "CPU of python -c pass", ratio, f"{budget} x", ratio > budget
    )
