"""From which cosine two tasks of a repository are alike, found out on the memory's own runs."""

from collections.abc import Iterator

from contextgraph.model import Scope, Trajectory
from contextgraph.model.embedding import TASK_CHARS
from contextgraph.ports import Embedder, GraphStore
from contextgraph.vectors import Vector, cosines

# As rare as the bound that was measured for TF-IDF: one in twenty pairs of runs of one repository
# lies above it (docs/embedding.md).
QUANTILE = 0.95
# Ids are fingerprints, so those that come first are a random sample, always the same.
_RUNS = 64
_NEAREST = 200
_LEAST_PAIRS = 100
# Of tasks that are all the same, likeness tells nothing.
_MOST = 0.95


def bound_on_likeness(store: GraphStore, embedder: Embedder) -> float | None:
    """The cosine above which one in twenty pairs of runs of one repository lies.

    A pair is the task of one run and the stored vector of another, of another instance, as a
    query compares them. None where there are fewer than 100 pairs. The space must be active;
    raises `EmbeddingError` as the embedder does.
    """
    runs = [run for run in map(store.trajectory, _sampled(store)) if run and run.repo]
    vectors = embedder.embed([run.task[:TASK_CHARS] for run in runs]).vectors
    pairs = sorted(
        cosine
        for run, vector in zip(runs, vectors, strict=True)
        if vector
        for cosine in _with_its_repository(store, run, vector)
    )
    if len(pairs) < _LEAST_PAIRS:
        return None
    return round(min(pairs[int(QUANTILE * len(pairs))], _MOST), 4)


def _sampled(store: GraphStore) -> Iterator[str]:
    return (run.trajectory_id for run in store.texts_to_embed(_RUNS))


def _with_its_repository(store: GraphStore, run: Trajectory, vector: Vector) -> list[float]:
    others = Scope(run.repo, frozenset({run.instance_id}))
    return cosines(
        vector, [near.vector for near in store.nearest_trajectories(vector, others, _NEAREST)]
    )
