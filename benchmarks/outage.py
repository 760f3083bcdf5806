"""``python -m benchmarks.outage``: runs learned while the API of their vectors is away, and back.

The API is a server on loopback that gives the vectors of the local model. Learns all runs twice,
once undisturbed, and prints what was seen as one JSON object a line; exits with 1 where vectors or
tokens differ in the end.
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

from benchmarks.material import runs
from contextgraph import AgentMemory
from contextgraph.embedding import VectorCache
from contextgraph.embedding.local import LocalEmbedder, local_embedder
from contextgraph.model import RawTrajectory
from tests.model_server import KEY, Handler, Reply, error, serving

MODEL = "openai/minilm@384"
PRICE = "0.02"
# Of the runs: from where on the API is away, and where it is back.
AWAY, BACK = 1 / 3, 3 / 5
# Who gave up does not ask again for half a minute.
CLOSED_SECONDS = 31.0
_VECTORS = """SELECT t.id, v.data FROM vectors v JOIN trajectory t ON t.key = v.trajectory
    JOIN space s ON s.key = v.space WHERE s.active"""
_ADVICE = """SELECT m.id, v.data FROM methodology_vector v
    JOIN methodology m ON m.key = v.methodology JOIN space s ON s.key = v.space WHERE s.active"""


@dataclass(slots=True)
class Weather:
    """How the API is at the run *read*, of *count*; *refused* has what it said in its place."""

    count: int
    calm: bool
    read: int = 0
    refused: list[int] = field(default_factory=list)

    def fault(self, number: int, handler: Handler) -> Reply | None:
        """503 while it is away; then 429 or 500 to two requests in five."""
        status = self._status(number)
        if status is None:
            return None
        self.refused.append(status)
        return error(status, "not now", retry_after_ms="200")

    def _status(self, number: int) -> int | None:
        if self.calm or self.read < AWAY * self.count:
            return None
        if self.read < BACK * self.count:
            return 503
        return {1: 429, 3: 500}.get(number % 5)

    def passing(self, found: Sequence[RawTrajectory]) -> Iterator[RawTrajectory]:
        """*found*, with a pause where the API is back."""
        for self.read, raw in enumerate(found):
            if not self.calm and self.read == int(BACK * self.count) + 1:
                time.sleep(CLOSED_SECONDS)
            yield raw


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of it: *vectors* by what they are of, *space* with its bound on likeness."""

    left: int
    waiting: int
    tokens: int
    cost: float
    requests: int
    refused: int
    space: str
    vectors: dict[str, bytes]


def learned(
    found: Sequence[RawTrajectory], folder: Path, embedder: LocalEmbedder, *, calm: bool
) -> Seen:
    """Learn *found* into a memory of its own in *folder*, with a cache and a ledger of its own."""
    weather = Weather(len(found), calm)
    path = folder / f"{'calm' if calm else 'stormy'}.db"
    os.environ.update(XDG_CACHE_HOME=f"{path}.cache", XDG_DATA_HOME=f"{path}.data")

    def vector(text: str) -> Sequence[float]:
        (made,) = embedder.embed([text]).vectors
        return made.numbers().tolist() if made else [1e-3] * 384

    with serving(embed=vector, fault=weather.fault) as server:
        os.environ.update(OPENAI_API_KEY=KEY, OPENAI_BASE_URL=server.url)
        with AgentMemory.open(str(path), embedder=MODEL) as memory:
            receipts = memory.learn_many(weather.passing(found))
            left = sum(bool(receipt.to_embed) for receipt in receipts)
            usage = memory.get_stats().usage[MODEL]
            return Seen(
                left=left,
                waiting=memory.spaces.waiting(),
                tokens=usage.tokens,
                cost=usage.cost,
                requests=len(server.asked),
                refused=len(weather.refused),
                space=str(memory.store.active_space()),
                vectors=_vectors(path),
            )


def _vectors(path: Path) -> dict[str, bytes]:
    with closing(sqlite3.connect(path)) as connection:
        return dict([*connection.execute(_VECTORS), *connection.execute(_ADVICE)])


def main() -> None:
    """Do it and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.outage", description=__doc__)
    parser.add_argument("--data", type=Path, help="trajectories to learn")
    found = runs(parser.parse_args().data)
    os.environ["CONTEXTGRAPH_EMBEDDING_PRICE"] = PRICE
    with TemporaryDirectory(prefix="contextgraph-outage-") as folder:
        # Both servers say the same; the second need not think again.
        embedder = local_embedder("", VectorCache(Path(folder) / "model.db"))
        calm, stormy = (learned(found, Path(folder), embedder, calm=calm) for calm in (True, False))
    for what, seen in (("undisturbed", calm), ("away, then refusing", stormy)):
        told = {name: value for name, value in asdict(seen).items() if name != "vectors"}
        print(json.dumps({"what": what, "runs": len(found), **told}))
    same = {
        "same_vectors": stormy.vectors == calm.vectors,
        "same_space": stormy.space == calm.space,
        "same_tokens": stormy.tokens == calm.tokens,
    }
    print(json.dumps({"vectors": len(calm.vectors), **same}))
    sys.exit(not all(same.values()))


if __name__ == "__main__":
    main()
