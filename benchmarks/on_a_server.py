"""``python -m benchmarks.on_a_server ADDRESS``: a memory on Neo4j beside the bare server.

The address is of a database on this machine that can be thrown away: what is measured stays in it.
User and password come from the environment, as for any memory. The memory grows from size to size.
100,000 fragments took 22 minutes on two busy cores: with ``--tenant`` a memory that was begun is
gone on with, and one that is complete is only asked.
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

from benchmarks import bare, material
from benchmarks.asking import states_about, states_step_by_step
from benchmarks.measure import Row, latencies, percentile
from contextgraph import AgentMemory
from contextgraph.config import load_settings
from contextgraph.memory import RUNS_AT_ONCE
from contextgraph.model import Bundle, RawTrajectory

if TYPE_CHECKING:
    from neo4j import Driver

SIZES = (10_000, 100_000)
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
# The bare server is given every eighth batch: its nodes would else be as many as the memory's.
_SHARE = 8
_NEAR = "CALL db.index.vector.queryNodes($index, 20, $vector) YIELD node RETURN node.id AS id"
_A_VECTOR = """
MATCH (m:Memory {tenant: $tenant}) MATCH (s:Space {tenant: $tenant, name: m.active_space})
MATCH (f:Fragment {tenant: $tenant}) WHERE f[s.property] IS NOT NULL
RETURN 'fragment_' + s.property AS index, f[s.property] AS vector LIMIT 1"""


@dataclass(slots=True)
class Learning:
    """Seconds that it took to learn *runs*; of some of them also, and those of the bare server."""

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
    found: Sequence[RawTrajectory],
    driver: "Driver",
    size: int,
    seed: int,
    until: float,
) -> Iterator[Row]:
    """Learning up to *size* fragments and asking, each as a multiple of what the server needs."""
    learning = _learned(memory, found, driver, size, until)
    if learning.runs:
        label = f"learn on Neo4j, up to {size:,} fragments"
        speed, ratio = learning.runs / learning.taken, learning.compared / learning.bare
        yield Row(label, speed, "runs/s", "a bare UNWIND MERGE of the same rows", ratio, "40/s")
    if learning.is_late():
        return
    taken = _seconds(memory.consolidate)
    yield Row(f"consolidate and embed, {size:,} fragments", taken, "s")
    yield from _asked(memory, found, driver, size, seed)


def _learned(
    memory: AgentMemory, found: Sequence[RawTrajectory], driver: "Driver", size: int, until: float
) -> Learning:
    known = memory.store.counts().nodes.get("Trajectory", 0)
    made = islice(material.bundles(found, size), known, None)
    learning, number = Learning(until=until), 0
    while (some := list(islice(made, RUNS_AT_ONCE))) and not learning.is_late():
        taken = _seconds(partial(memory.store.add_bundles, some))
        learning.runs += len(some)
        learning.taken += taken
        if number % _SHARE == 0:
            learning.compared += taken
            learning.bare += _bare(driver, memory, some)
        number += 1
    return learning


def _bare(driver: "Driver", memory: AgentMemory, some: Sequence[Bundle]) -> float:
    """Seconds that the same rows take without anything that this project adds."""
    given = bare.rows_of(some, memory.store.tenant)
    with driver.session(database="neo4j") as session:
        return _seconds(partial(session.execute_write, bare.merge, given))


def _asked(
    memory: AgentMemory, found: Sequence[RawTrajectory], driver: "Driver", size: int, seed: int
) -> Iterator[Row]:
    asked = _run(driver, _A_VECTOR, tenant=memory.store.tenant)[0]
    near = [partial(_run, driver, _NEAR, **asked)] * 100
    floor = percentile(latencies(near), 0.5)
    name = "one bare vector-index query"
    for scope, repo in (("in scope", "acme/shop0"), ("unscoped", "")):
        mixed = states_about(found, seed, repo)
        first = _seconds(partial(memory.query, mixed[0]))
        label = f"the first query on Neo4j {scope}, {size:,} fragments"
        yield Row(label, first * 1000, "ms", name, first / floor)
        # Of mixed states nearly each is of another task: that of a process that serves many agents.
        for how, states in (
            ("of any task", mixed),
            ("step by step", states_step_by_step(found, seed, repo)),
        ):
            taken = latencies([partial(memory.query, state) for state in states])
            for share in (0.5, 0.95):
                value = percentile(taken, share)
                budget = "30 ms" if (share, scope, size) == (0.95, "in scope", 100_000) else ""
                label = f"query on Neo4j {scope}, {size:,} fragments, {how}, p{share * 100:.0f}"
                yield Row(label, value * 1000, "ms", name, value / floor, budget)


def _run(driver: "Driver", statement: str, **parameters: object) -> list[dict[str, object]]:
    found = driver.execute_query(statement, dict(parameters), database_="neo4j")
    return [record.data() for record in found.records]


def _seconds(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


def main() -> None:
    """Measure and print."""
    from neo4j import GraphDatabase

    from benchmarks.__main__ import line

    parser = argparse.ArgumentParser(prog="python -m benchmarks.on_a_server", description=__doc__)
    parser.add_argument("address", help="bolt:// or neo4j://, on this machine")
    parser.add_argument("--data", type=Path, help="trajectories to measure on (default: examples)")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="fragments, ascending")
    parser.add_argument("--seed", type=int, default=0, help="choice of the states asked")
    parser.add_argument("--tenant", default=uuid4().hex, help="a memory to go on with (a new one)")
    parser.add_argument("--minutes", type=float, default=60, help="learn no longer than this (60)")
    options = parser.parse_args()
    if urlsplit(options.address).hostname not in _LOOPBACK:
        parser.error("only a server on this machine is measured: name one at 127.0.0.1")
    until = perf_counter() + 60 * options.minutes
    settings = load_settings(store=options.address)
    found = material.runs(options.data)
    with (
        GraphDatabase.driver(options.address, auth=settings.auth) as driver,
        AgentMemory.open(options.address, tenant=options.tenant) as memory,
    ):
        memory.get_stats()
        _run(driver, bare.UNIQUE)
        for size in sorted(options.sizes):
            for row in rows(memory, found, driver, size, options.seed, until):
                print(line(row), flush=True)
        if perf_counter() > until:
            parser.exit(1, f"time is up; go on with --tenant {options.tenant}\n")


if __name__ == "__main__":
    main()
