"""``python -m benchmarks.console``: what each page of the console costs in a large memory.

Prints a line for each page: the first request to a new server, the median of ten more, its size.
"""

import argparse
import sys
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from benchmarks.corpus import START, bundles, runs
from benchmarks.measure import latencies, percentile
from benchmarks.service import serving
from contextgraph import AgentMemory
from contextgraph.model import Exposure, Scope, ShownItem

_EXPOSURES = 20_000
_NOTES = 500
_REPEATED = 10


def main() -> None:
    """Fill a memory where none is named, and measure each page."""
    options = _options()
    with TemporaryDirectory(prefix="contextgraph-benchmark-") as folder:
        store = str(options.store or Path(folder) / "memory.db")
        if not Path(store).exists():
            fill(store, options.runs)
        for path in addresses(store):
            print(line(store, path), flush=True)


def fill(store: str, count: int) -> None:
    """Write *count* runs, the advice of many sessions and notes to *store*."""
    with AgentMemory.open(store) as memory:
        made = islice(bundles(runs(None), sys.maxsize), count)
        while batch := [*islice(made, 200)]:
            memory.store.runs.add(batch)
        (error, *_) = (tally.error.id for tally in memory.store.recoveries.errors(Scope(), 1))
        memory.store.exposures.add([*_exposures(error)])
        for number in range(_NOTES):
            memory.notes.remember(f"Case {number} needs fixture {number % 97}", repo="acme/shop0")
        memory.consolidate()


def _exposures(error: str) -> Iterator[Exposure]:
    for number in range(_EXPOSURES):
        shown = ShownItem(f"frg_{number:016x}{0:08x}", f"adv_{number % 50:016x}")
        at = START + timedelta(minutes=number)
        yield Exposure.of(f"ctx_{number:016x}", [shown], at, error)


def addresses(store: str) -> list[str]:
    """The pages; those of a run, a repository, an error and a methodology for one of each."""
    with AgentMemory.open(store, read_only=True) as memory:
        newest, other = memory.store.runs.ids(limit=2)
        run = memory.store.runs.trajectories([newest])[newest]
        (error, *_) = (
            tally.error.id for tally in memory.store.recoveries.errors(Scope(run.repo), 1)
        )
        advice = memory.store.methodologies.ids(limit=1)
    return [
        "/pages",
        *(f"/pages/runs{query}" for query in ("", "?page=1000", "?sort=steps", "?text=recipe")),
        *("/pages/runs?outcome=failed&sort=repo", f"/pages/runs?repo={run.repo}"),
        *(f"/pages/runs/{run.id}", f"/pages/compare?a={run.id}&b={other}"),
        *("/pages/errors", "/pages/errors?show=frequent", "/pages/errors?show=remedies"),
        *(f"/pages/errors/{error}", "/pages/failures", f"/pages/failures?repo={run.repo}"),
        *("/pages/repositories", f"/pages/repositories?repo={run.repo}"),
        *(
            "/pages/advice",
            "/pages/lessons",
            "/pages/notes",
            "/pages/search?q=recipe",
            "/pages/health",
            "/pages/api",
        ),
        *(f"/pages/graph/{node}" for node in (run.id, error, *advice)),
    ]


def line(store: str, path: str) -> str:
    """The costs of a page on one line, asked of a server of its own."""
    with serving(store) as (url, _), httpx.Client(base_url=url, timeout=60) as client:
        client.get("/healthz")
        size = 0

        def ask() -> None:
            nonlocal size
            size = len(client.get(path).raise_for_status().content)

        (first,) = latencies([ask])
        again = percentile(latencies([ask] * _REPEATED), 0.5)
    return f"{path:<48} {first * 1e3:8.0f} ms first {again * 1e3:8.0f} ms {size / 1e3:8.0f} kB"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.console", description=__doc__)
    parser.add_argument("--store", type=Path, help="a memory; made where there is none")
    parser.add_argument("--runs", type=int, default=100_000, help="runs of a new memory")
    return parser.parse_args()


if __name__ == "__main__":
    main()
