"""``python -m benchmarks.qdrant_edge``: how long the engine of Qdrant searches among many vectors.

For want of a server: the package ``qdrant-edge-py`` is its engine in this process, without HTTP.
The points, indexes and conditions are those of `QdrantIndex`.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import qdrant_edge as edge

from benchmarks.note_stores import (
    AT_ONCE,
    IN_REPOSITORY,
    PROPOSED,
    QUESTIONS,
    made_note,
    made_vector,
)

_MEANING = "meaning"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.qdrant_edge", description=__doc__)
    parser.add_argument("--notes", type=int, default=100_000)
    count = parser.parse_args().notes
    config = edge.EdgeConfig(
        vectors={_MEANING: edge.EdgeVectorParams(384, edge.Distance.Cosine)},
    )
    with tempfile.TemporaryDirectory() as folder:
        shard = edge.EdgeShard.create(str(Path(folder)), config)
        began = time.perf_counter()
        _fill(shard, count)
        print(f"{count} notes stored and indexed in {time.perf_counter() - began:.0f} s")
        _measure(shard, max(1, count // IN_REPOSITORY))
        shard.close()


def _fill(shard: Any, count: int) -> None:
    for name in ("tenant", "space", "repo"):
        schema = edge.PayloadSchemaType.Keyword
        shard.update(edge.UpdateOperation.create_field_index(name, schema))
    draw = random.Random(17)
    for first in range(0, count, AT_ONCE):
        points = [_point(number, draw) for number in range(first, min(count, first + AT_ONCE))]
        shard.update(edge.UpdateOperation.upsert_points(points))
    shard.optimize()


def _point(number: int, draw: random.Random) -> Any:
    note = made_note(number, draw)
    vector = {_MEANING: made_vector(draw).numbers().tolist()}
    return edge.Point(number, vector, {"tenant": "default", "space": "made", "repo": note.repo})


def _measure(shard: Any, repositories: int) -> None:
    draw = random.Random(18)
    for name, scoped, times in (("in a repository", True, QUESTIONS), ("in all", False, 20)):
        repos = [f"repo/{draw.randrange(repositories)}" for _ in range(times)]
        scopes = [_within({"repo": repo} if scoped else {}) for repo in repos]
        vectors = [(scope, made_vector(draw).numbers().tolist()) for scope in scopes]
        _time(name, shard, vectors)


def _within(given: dict[str, str]) -> Any:
    conditions = {"tenant": "default", "space": "made", **given}
    return edge.Filter(
        must=[
            edge.FieldCondition(name, edge.MatchAny([value])) for name, value in conditions.items()
        ]
    )


def _time(name: str, shard: Any, questions: Sequence[tuple[Any, Any]]) -> None:
    wall = []
    for scope, vector in questions:
        began = time.perf_counter()
        query = edge.Query.Nearest(vector, _MEANING)
        shard.query(edge.QueryRequest(PROPOSED, query=query, filter=scope, with_payload=True))
        wall.append(1_000 * (time.perf_counter() - began))
    p50, p95 = np.percentile(wall, [50, 95])
    print(f"{name}: {p50:.1f} and {p95:.1f} ms (p50, p95)")


if __name__ == "__main__":
    main()
