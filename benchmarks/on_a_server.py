"""``python -m benchmarks.on_a_server ADDRESS``: a memory on Neo4j beside the bare server.

The address is of a database that can be thrown away: what is measured stays in it. User and
password come from the environment, as for any memory.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING
from uuid import uuid4

from benchmarks import material
from benchmarks.asking import states_about
from benchmarks.measure import Row, latencies, percentile
from contextgraph import AgentMemory
from contextgraph.config import load_settings
from contextgraph.memory import RUNS_AT_ONCE
from contextgraph.model import Bundle, RawTrajectory
from contextgraph.store.neo4j_store import rows as written

if TYPE_CHECKING:
    from neo4j import Driver

SIZES = (10_000, 100_000)
_UNIQUE = "CREATE CONSTRAINT bare_id IF NOT EXISTS FOR (n:Bare) REQUIRE n.id IS UNIQUE"
_MERGE = "UNWIND $rows AS row MERGE (n:Bare {id: row.id}) SET n += row"
_NEAR = "CALL db.index.vector.queryNodes($index, 20, $vector) YIELD node RETURN node.id AS id"
_A_VECTOR = """
MATCH (m:Memory {tenant: $tenant}) MATCH (s:Space {tenant: $tenant, name: m.active_space})
MATCH (f:Fragment {tenant: $tenant}) WHERE f[s.property] IS NOT NULL
RETURN 'fragment_' + s.property AS index, f[s.property] AS vector LIMIT 1"""


def rows(
    found: Sequence[RawTrajectory], driver: "Driver", address: str, size: int, seed: int
) -> Iterator[Row]:
    """Learning and querying at *size* fragments, each as a multiple of what the server needs."""
    tenant = uuid4().hex
    with AgentMemory.open(address, tenant=tenant) as memory:
        memory.get_stats()
        count, taken, bare = 0, 0.0, 0.0
        made = material.bundles(found, size)
        while some := list(islice(made, RUNS_AT_ONCE)):
            taken += _seconds(partial(memory.store.add_bundles, some))
            bare += _seconds(partial(_run, driver, _MERGE, rows=_nodes(tenant, some)))
            count += len(some)
        floor = "a bare UNWIND MERGE of the same nodes"
        label = f"learn on Neo4j, up to {size:,} fragments"
        yield Row(label, count / taken, "runs/s", floor, taken / bare, "40/s")
        memory.consolidate()
        yield from _asked(memory, found, driver, size, seed)


def _asked(
    memory: AgentMemory, found: Sequence[RawTrajectory], driver: "Driver", size: int, seed: int
) -> Iterator[Row]:
    asked = _run(driver, _A_VECTOR, tenant=memory.store.tenant)[0]
    near = [partial(_run, driver, _NEAR, **asked)] * 100
    floor = percentile(latencies(near), 0.5)
    for scope, repo in (("in scope", "acme/shop0"), ("unscoped", "")):
        states = states_about(found, seed, repo)
        memory.query(states[0])
        taken = latencies([partial(memory.query, state) for state in states])
        for share in (0.5, 0.95):
            value = percentile(taken, share)
            budget = "30 ms" if (share, scope, size) == (0.95, "in scope", 100_000) else ""
            label = f"query on Neo4j {scope}, {size:,} fragments, p{share * 100:.0f}"
            name = "one bare vector-index query"
            yield Row(label, value * 1000, "ms", name, value / floor, budget)


def _nodes(tenant: str, some: Sequence[Bundle]) -> list[dict[str, object]]:
    """The properties of runs and fragments, under ids that no memory has."""
    found = [written.trajectory_row(bundle.trajectory) for bundle in some]
    found += [written.fragment_row(value) for bundle in some for value in bundle.fragments]
    return [{**row, "id": f"{tenant}{row['id']}"} for row in found]


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
    parser.add_argument("address", help="bolt:// or neo4j://")
    parser.add_argument("--data", type=Path, help="trajectories to measure on (default: examples)")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="fragments")
    parser.add_argument("--seed", type=int, default=0, help="choice of the states asked")
    options = parser.parse_args()
    settings = load_settings(store=options.address)
    with GraphDatabase.driver(options.address, auth=settings.auth) as driver:
        _run(driver, _UNIQUE)
        for size in options.sizes:
            found = material.runs(options.data)
            for row in rows(found, driver, options.address, size, options.seed):
                print(line(row), flush=True)


if __name__ == "__main__":
    main()
