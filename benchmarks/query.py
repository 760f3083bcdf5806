"""Queries against memories of several sizes, and the memory of the process."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random

from benchmarks.corpus import bundles
from benchmarks.measure import Row, cost, percentile
from contextgraph import AgentMemory, State
from contextgraph.model import RawTrajectory, Scope, Space, Vector, dimensions_of
from contextgraph.model.values import replace
from contextgraph.trace import states_of

QUERIES = 200
LARGEST = 100_000  # fragments: the size that the budgets are for
RUNS_FOLLOWED = 20
WORDS = "total cents tests import module path file class error fix".split()


def rows(
    raws: Sequence[RawTrajectory], sizes: Sequence[int], folder: Path, seed: int
) -> Iterator[Row]:
    """p50 and p95 of queries in one repository and over all, at each number of fragments.

    In processor time, as multiples of reading one run by its id.
    """
    for size in sizes:
        path = folder / f"memory{size}.db"
        with AgentMemory.open(str(path)) as memory:
            for bundle in bundles(raws, size):
                memory.store.runs.add([bundle])
            memory.consolidate()
            baseline = _lookup(path)
            scoped = states_about(raws, seed, "acme/shop0")
            yield from _measured(
                memory, scoped, f"query in scope, {size:,} fragments", baseline, size
            )
            unscoped = states_about(raws, seed, "")
            yield from _measured(
                memory, unscoped, f"query unscoped, {size:,} fragments", baseline, size
            )
            yield from _kept(path, size, memory.store.vectors.active_space())
            memory.get_stats()  # loads the graph
            yield Row(f"process memory, {size:,} fragments", _resident(), "MB", budget="700 MB")


def _measured(
    memory: AgentMemory, states: Sequence[State], what: str, baseline: float, size: int
) -> Iterator[Row]:
    memory.query(states[0])
    calls = [partial(memory.query, state) for state in states]
    name = "reading one run by its id"
    for turn in ("", ", the same states again"):
        costs = [cost(call) for call in calls]
        _, taken, counted = (sorted(of_all) for of_all in zip(*costs, strict=True))
        for share in (0.5, 0.95):
            value = percentile(taken, share)
            is_budgeted = share > 0.9 and size == LARGEST and not turn
            budget = ("5 ms" if states[0].repo else "20 ms") if is_budgeted else ""
            label = f"{what}{turn}, p{share * 100:.0f}"
            yield Row(label, value * 1000, "ms", name, value / baseline, budget)
            yield Row(f"{label}, instructions", percentile(counted, share) / 1e6, "million")


def _kept(path: Path, size: int, space: Space | None) -> Iterator[Row]:
    """Processor time of each answer that is kept while the memory does not change, made and kept.

    One that costs as much again is not worth keeping.
    """
    with AgentMemory.open(str(path)) as memory:
        store = memory.store
        calls: dict[str, Callable[[], object]] = {
            "courses of 400 runs": lambda: store.runs.courses(Scope(), 400),
            "counts of ten words": lambda: store.runs.word_counts(WORDS),
            "graph of the memory": memory.graph,
        }
        if space is not None:
            vector = Vector.of(space.name, [1.0] * dimensions_of(space.name))
            calls["twenty nearest runs"] = lambda: store.vectors.nearest(vector, Scope(), 20)
        for what, call in calls.items():
            made, kept = cost(call), cost(call)
            label = f"{what}, {size:,} fragments, kept"
            ratio = made.processor / kept.processor
            yield Row(label, kept.processor * 1000, "ms", "as much when made", ratio)


def states_about(raws: Sequence[RawTrajectory], seed: int, repo: str) -> list[State]:
    """States of *raws*, half of them with an error, as if in *repo*."""
    states = [state for raw in raws for state in states_of(raw)]
    with_error = [state for state in states if state.current_error] or states
    chosen = Random(seed).choices(with_error, k=QUERIES // 2) + Random(seed).choices(
        states, k=QUERIES // 2
    )
    return [replace(state, repo=repo) for state in chosen]


def states_step_by_step(raws: Sequence[RawTrajectory], seed: int, repo: str) -> list[State]:
    """The states of some runs of *raws* in order, as if in *repo*, as an agent queries."""
    chosen = Random(seed).sample(raws, min(RUNS_FOLLOWED, len(raws)))
    return [replace(state, repo=repo) for raw in chosen for state in states_of(raw)]


def _lookup(path: Path) -> float:
    """Processor time of reading one run by its id, in seconds."""
    connection = sqlite3.connect(path)
    ids = [row[0] for row in connection.execute("SELECT key FROM run LIMIT 200")]
    sql = "SELECT * FROM run WHERE tenant = 1 AND key = ?"
    reads = [partial(lambda id_: connection.execute(sql, (id_,)).fetchone(), id_) for id_ in ids]
    middle = percentile(sorted(cost(read).processor for read in reads), 0.5)
    connection.close()
    return middle


def _resident() -> float:
    """Resident memory of this process, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1000
    return float("nan")
