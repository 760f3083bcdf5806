"""``python -m benchmarks.neo4j_server ADDRESS``: a memory on Neo4j compared with plain Cypher.

The address is of a database on this machine that can be deleted afterwards: the memory stays in it.
User and password come from the environment, as for any memory. The memory grows from size to size.
100,000 fragments take 4 to 22 minutes on two cores: ``--tenant`` continues a memory that was begun,
and only queries one that is complete.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

from benchmarks import corpus, neo4j_baseline
from benchmarks.measure import Row, latencies, percentile
from benchmarks.query import states_about, states_step_by_step
from contextgraph import AgentMemory
from contextgraph.config import load_settings
from contextgraph.learning import RUNS_AT_ONCE
from contextgraph.model import Bundle, RawTrajectory

if TYPE_CHECKING:
    from neo4j import Driver

SIZES = (10_000, 100_000)
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
# The bare server is given every eighth batch: its nodes would else be as many as the memory's.
_SHARE = 8
_NEAR = "CALL db.index.vector.queryNodes($index, 20, $vector) YIELD node RETURN node.id AS id"
_A_VECTOR = """
MATCH (:Space {tenant: $tenant, active: true})
MATCH (s:VectorSlot {tenant: $tenant, table: 'run'})
MATCH (t:Trajectory {tenant: $tenant}) WHERE t[s.property] IS NOT NULL
RETURN 'trajectory_' + s.property AS index, t[s.property] AS vector LIMIT 1"""


@dataclass(slots=True)
class Learning:
    """Seconds *taken* to learn *runs*; of some *compared* with those of the *bare* server."""

    runs: int = 0
    taken: float = 0.0
    compared: float = 0.0
    bare: float = 0.0
    until: float = field(default=float("inf"))

    def is_late(self) -> bool:
        """True once there is no time left."""
        return perf_counter() > self.until


def rows(
    memory: AgentMemory,
    raws: Sequence[RawTrajectory],
    driver: "Driver",
    size: int,
    seed: int,
    until: float,
) -> Iterator[Row]:
    """Learning up to *size* fragments and querying, each compared with the bare server."""
    learning = _learned(memory, raws, driver, size, until)
    if learning.runs:
        label = f"learn on Neo4j, up to {size:,} fragments"
        speed, ratio = learning.runs / learning.taken, learning.compared / learning.bare
        yield Row(label, speed, "runs/s", "a bare UNWIND MERGE of the same rows", ratio, "40/s")
    if learning.is_late():
        return
    taken = _seconds(memory.consolidate)
    yield Row(f"consolidate and embed, {size:,} fragments", taken, "s")
    yield from _queried(memory, raws, driver, size, seed)


def _learned(
    memory: AgentMemory, raws: Sequence[RawTrajectory], driver: "Driver", size: int, until: float
) -> Learning:
    known = memory.store.admin.counts().nodes.get("Trajectory", 0)
    made = islice(corpus.bundles(raws, size), known, None)
    learning, number = Learning(until=until), 0
    while (some := list(islice(made, RUNS_AT_ONCE))) and not learning.is_late():
        taken = _seconds(partial(memory.store.runs.add, some))
        learning.runs += len(some)
        learning.taken += taken
        if number % _SHARE == 0:
            learning.compared += taken
            learning.bare += _bare(driver, memory, some)
        number += 1
    return learning


def _bare(driver: "Driver", memory: AgentMemory, some: Sequence[Bundle]) -> float:
    """Seconds that the same rows take with plain statements."""
    given = neo4j_baseline.rows_of(some, memory.store.tenant)
    with driver.session(database="neo4j") as session:
        return _seconds(partial(session.execute_write, neo4j_baseline.merge, given))


def _queried(
    memory: AgentMemory, raws: Sequence[RawTrajectory], driver: "Driver", size: int, seed: int
) -> Iterator[Row]:
    parameters = _run(driver, _A_VECTOR, tenant=memory.store.tenant)[0]
    near = [partial(_run, driver, _NEAR, **parameters)] * 100
    baseline = percentile(latencies(near), 0.5)
    name = "one bare vector-index query"
    for scope, repo in (("in scope", "acme/shop0"), ("unscoped", "")):
        mixed = states_about(raws, seed, repo)
        first = _seconds(partial(memory.query, mixed[0]))
        label = f"the first query on Neo4j {scope}, {size:,} fragments"
        yield Row(label, first * 1000, "ms", name, first / baseline)
        # Mixed states are of other tasks each time, as in a process that serves many agents.
        for how, states in (
            ("of any task", mixed),
            ("step by step", states_step_by_step(raws, seed, repo)),
        ):
            taken = latencies([partial(memory.query, state) for state in states])
            for share in (0.5, 0.95):
                value = percentile(taken, share)
                budget = "30 ms" if (share, scope, size) == (0.95, "in scope", 100_000) else ""
                label = f"query on Neo4j {scope}, {size:,} fragments, {how}, p{share * 100:.0f}"
                yield Row(label, value * 1000, "ms", name, value / baseline, budget)


def _run(driver: "Driver", statement: str, **parameters: object) -> list[dict[str, object]]:
    result = driver.execute_query(statement, dict(parameters), database_="neo4j")
    return [record.data() for record in result.records]


def _seconds(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


def main() -> None:
    """Measure and print."""
    from neo4j import GraphDatabase

    from benchmarks.__main__ import line

    parser = argparse.ArgumentParser(prog="python -m benchmarks.neo4j_server", description=__doc__)
    parser.add_argument("address", help="bolt:// or neo4j://, on this machine")
    parser.add_argument("--data", type=Path, help="trajectories to measure on (default: examples)")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="fragments, ascending")
    parser.add_argument("--seed", type=int, default=0, help="choice of the states")
    parser.add_argument("--tenant", default=uuid4().hex, help="a memory to continue (a new one)")
    parser.add_argument("--minutes", type=float, default=60, help="learn no longer than this (60)")
    options = parser.parse_args()
    if urlsplit(options.address).hostname not in _LOOPBACK:
        parser.error("only a server on this machine is measured: name one at 127.0.0.1")
    until = perf_counter() + 60 * options.minutes
    settings = load_settings(store=options.address)
    raws = corpus.runs(options.data)
    with (
        GraphDatabase.driver(options.address, auth=settings.auth) as driver,
        AgentMemory.open(options.address, tenant=options.tenant) as memory,
    ):
        memory.get_stats()
        _run(driver, neo4j_baseline.UNIQUE)
        for size in sorted(options.sizes):
            for row in rows(memory, raws, driver, size, options.seed, until):
                print(line(row), flush=True)
        if perf_counter() > until:
            parser.exit(1, f"time is up; continue with --tenant {options.tenant}\n")


if __name__ == "__main__":
    main()
