"""``python -m benchmarks.service``: agents that query and learn from one server over HTTP.

16 clients send a query each 50 ms and a run each 5 s, or as fast as they are answered; the server
is a process of its own. Prints one JSON object: throughput, latencies in milliseconds, errors, and
what the server took.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import httpx
import orjson

from benchmarks.corpus import renamed, runs
from benchmarks.measure import percentile
from benchmarks.query import states_about
from contextgraph import AgentMemory
from contextgraph.model import RawTrajectory
from contextgraph.model.codec import encoded
from contextgraph.readers import to_record

QUERY_SECONDS, LEARN_SECONDS = 0.05, 5.0


@dataclass(slots=True)
class Load:
    """Requests that were sent for so many *seconds*, and their answers."""

    queries: Sequence[bytes]
    runs: Iterator[RawTrajectory]
    seconds: float
    took: dict[str, list[float]] = field(default_factory=lambda: {"/v1/query": [], "/v1/learn": []})
    statuses: Counter[str] = field(default_factory=Counter)

    async def send(self, client: httpx.AsyncClient, path: str, body: bytes) -> None:
        """Send one request and note its latency."""
        started = perf_counter()
        try:
            status = str((await client.post(path, content=body, headers=JSON)).status_code)
        except httpx.HTTPError as error:
            status = type(error).__name__
        self.took[path].append(perf_counter() - started)
        self.statuses[status] += 1

    async def every(
        self, interval: float, client: httpx.AsyncClient, path: str, body: Callable[[], bytes]
    ) -> None:
        """Send at each *interval*, later where an answer took longer."""
        end = perf_counter() + self.seconds
        while (started := perf_counter()) < end:
            await self.send(client, path, body())
            await asyncio.sleep(max(0.0, started + interval - perf_counter()))

    def record(self) -> dict[str, object]:
        """The figures as JSON."""
        figures: dict[str, object] = {"statuses": dict(self.statuses)}
        for path, taken in self.took.items():
            ascending = sorted(taken)
            figures[path] = {
                "per second": round(len(taken) / self.seconds, 1),
                **{
                    f"p{share}": round(percentile(ascending, share / 100) * 1000, 1)
                    for share in (50, 95, 99)
                },
            }
        return figures


JSON = {"Content-Type": "application/json"}


async def run(url: str, load: Load, clients: int) -> None:
    """All clients at once."""
    numbers = count()

    def query() -> bytes:
        return load.queries[next(numbers) % len(load.queries)]

    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        await asyncio.gather(
            *(load.every(QUERY_SECONDS, client, "/v1/query", query) for _ in range(clients)),
            *(
                load.every(
                    LEARN_SECONDS,
                    client,
                    "/v1/learn",
                    lambda: orjson.dumps(to_record(next(load.runs))),
                )
                for _ in range(clients)
            ),
        )


@contextmanager
def serving(store: str, environment: Mapping[str, str] | None = None) -> Iterator[tuple[str, int]]:
    """The URL and the process id of a server of *store*."""
    command = [sys.executable, "-m", "contextgraph", "serve", "--store", store, "--no-auth"]
    options = ["--port", "0", "--json", "--log-level", "warning"]
    with subprocess.Popen(
        [*command, *options], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        try:
            yield json.loads(process.stdout.readline())["url"], process.pid
        finally:
            process.terminate()


def resident(process: int) -> float:
    """The memory of a process, in MB."""
    fields = dict(
        line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines()
    )
    return round(int(fields["VmRSS"].split()[0]) / 1000, 1)


def cpu_seconds(process: int) -> float:
    """The processor time that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Fill a memory, send the load, print the figures."""
    options = _options()
    raws = runs(options.data)
    queries = [
        orjson.dumps({"state": encoded(state)})
        for state in states_about(raws, options.seed, "acme/shop0")
    ]
    with TemporaryDirectory(prefix="contextgraph-benchmark-") as folder:
        store = options.store or str(Path(folder) / "memory.db")
        more = renamed(raws, sys.maxsize)
        with AgentMemory.open(store) as memory:
            for _ in memory.learn_many(next(more) for _ in range(options.runs)):
                pass
        with serving(store) as (url, process):
            load = Load(queries, more, options.seconds)
            asyncio.run(run(url, load, options.clients))
            figures = {"clients": options.clients, "runs": options.runs, "seconds": options.seconds}
            usage = {"MB": resident(process), "CPU seconds": cpu_seconds(process)}
            print(json.dumps({**figures, **load.record(), **usage}))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service", description=__doc__)
    parser.add_argument("--data", type=Path, help="trajectories to learn (default: examples)")
    parser.add_argument("--store", help="an empty memory (default: a temporary file)")
    parser.add_argument("--runs", type=int, default=1000, help="runs that are known before")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=0, help="choice of the states")
    return parser.parse_args()


if __name__ == "__main__":
    main()
