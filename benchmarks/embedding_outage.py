"""``python -m benchmarks.embedding_outage``: learning through an outage of the embedding API.

The API is a server on loopback that returns the vectors of the local model. Learns all runs twice,
once undisturbed, and prints one JSON object a line; exits with 1 where vectors or tokens differ at
the end.
"""

import argparse
import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.corpus import runs
from contextgraph import AgentMemory
from contextgraph.inference.api import VectorCache
from contextgraph.inference.local import LocalEmbedder, local_embedder
from contextgraph.model import RawTrajectory
from tests.model_server import KEY, Handler, Reply, error, serving

MODEL = "openai/minilm@384"
PRICE = "0.02"
# The outage begins and ends after these shares of the runs.
OUTAGE_BEGINS, OUTAGE_ENDS = 1 / 3, 3 / 5
# An open circuit breaker stays open for half a minute.
BREAKER_SECONDS = 31.0
_VECTORS = """SELECT t.key, v.data FROM vector v JOIN run t ON t.rowid = v.owner
    JOIN space s ON s.key = v.space WHERE v.name = 'run' AND s.active"""


@dataclass(slots=True)
class FaultSchedule:
    """The faults of the API while run *read* of *count* is learned; *refused* are its statuses."""

    count: int
    undisturbed: bool
    read: int = 0
    refused: list[int] = field(default_factory=list)

    def fault(self, number: int, handler: Handler) -> Reply | None:
        """503 during the outage; then 429 or 500 to two requests in five."""
        status = self._status(number)
        if status is None:
            return None
        self.refused.append(status)
        return error(status, "not now", retry_after_ms="200")

    def _status(self, number: int) -> int | None:
        if self.undisturbed or self.read < OUTAGE_BEGINS * self.count:
            return None
        if self.read < OUTAGE_ENDS * self.count:
            return 503
        return {1: 429, 3: 500}.get(number % 5)

    def passing(self, raws: Sequence[RawTrajectory]) -> Iterator[RawTrajectory]:
        """*raws*, with a pause when the outage ends."""
        for self.read, raw in enumerate(raws):
            if not self.undisturbed and self.read == int(OUTAGE_ENDS * self.count) + 1:
                time.sleep(BREAKER_SECONDS)
            yield raw


@dataclass(frozen=True, slots=True)
class Result:
    """The memory at the end: *vectors* by node id, *space* with its similarity threshold."""

    left: int
    waiting: int
    tokens: int
    cost: float
    requests: int
    refused: int
    space: str
    vectors: dict[str, bytes]


def learned(
    raws: Sequence[RawTrajectory], folder: Path, embedder: LocalEmbedder, *, undisturbed: bool
) -> Result:
    """Learn *raws* into a new memory in *folder*, with a cache and a usage log of its own."""
    schedule = FaultSchedule(len(raws), undisturbed)
    path = folder / f"{'undisturbed' if undisturbed else 'outage'}.db"
    os.environ.update(XDG_CACHE_HOME=f"{path}.cache", XDG_DATA_HOME=f"{path}.data")

    def vector(text: str) -> Sequence[float]:
        (made,) = embedder.embed([text]).vectors
        return made.numbers().tolist() if made else [1e-3] * 384

    with serving(embed=vector, fault=schedule.fault) as server:
        os.environ.update(OPENAI_API_KEY=KEY, OPENAI_BASE_URL=server.url)
        with AgentMemory.open(str(path), embedder=MODEL) as memory:
            receipts = memory.learn_many(schedule.passing(raws))
            left = sum(bool(receipt.to_embed) for receipt in receipts)
            usage = memory.get_stats().usage[MODEL]
            return Result(
                left=left,
                waiting=memory.spaces.waiting(),
                tokens=usage.tokens,
                cost=usage.cost,
                requests=len(server.requests),
                refused=len(schedule.refused),
                space=str(memory.store.vectors.active_space()),
                vectors=_vectors(path),
            )


def _vectors(path: Path) -> dict[str, bytes]:
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute(_VECTORS))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.embedding_outage", description=__doc__
    )
    parser.add_argument("--data", type=Path, help="trajectories to learn")
    raws = runs(parser.parse_args().data)
    os.environ["CONTEXTGRAPH_EMBEDDING_PRICE"] = PRICE
    with TemporaryDirectory(prefix="contextgraph-outage-") as folder:
        # Both servers return the same vectors; the cache saves computing them twice.
        embedder = local_embedder("", VectorCache(Path(folder) / "model.db"))
        undisturbed, disturbed = (
            learned(raws, Path(folder), embedder, undisturbed=is_undisturbed)
            for is_undisturbed in (True, False)
        )
    for what, seen in (("undisturbed", undisturbed), ("outage, then some refusals", disturbed)):
        record = {name: value for name, value in asdict(seen).items() if name != "vectors"}
        print(json.dumps({"what": what, "runs": len(raws), **record}))
    same = {
        "same_vectors": disturbed.vectors == undisturbed.vectors,
        "same_space": disturbed.space == undisturbed.space,
        "same_tokens": disturbed.tokens == undisturbed.tokens,
    }
    print(json.dumps({"vectors": len(undisturbed.vectors), **same}))
    sys.exit(not all(same.values()))


if __name__ == "__main__":
    main()
