"""Embedding runs, and fitting or calibrating the space of a memory when it is due."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain, repeat

from contextgraph.embedding.tfidf import fit, is_fitted
from contextgraph.errors import EmbeddingError
from contextgraph.model import (
    NO_USAGE,
    Bundle,
    EmbeddedBundle,
    EmbeddedRun,
    Scope,
    Space,
    Trajectory,
    Usage,
    run_text,
)
from contextgraph.model.embedding import TASK_CHARS
from contextgraph.ports import Embedder, EmbedderSource, NoteStore, Store, VectorStore
from contextgraph.vectors import Vector, cosines


def embedded(
    bundles: Sequence[Bundle], remote: bool, source: EmbedderSource
) -> list[EmbeddedBundle]:
    """*bundles* with their vectors, where the embedder is *remote* or is not, as requested.

    Unchanged for one of the other kind, while there is no space, or where the embedder fails:
    they are embedded later. What has a vector of its space stays as it is. The first result has
    the usage of all of them.
    """
    try:
        embedder = source() if bundles else None
        if embedder is None or embedder.is_remote is not remote:
            return [EmbeddedBundle(bundle) for bundle in bundles]
        missing = [one for one in bundles if not _is_in(embedder.space, one)]
        found = embedder.embed([run_text(bundle.trajectory) for bundle in missing])
    except EmbeddingError as error:
        return [EmbeddedBundle(bundle, failure=str(error)) for bundle in bundles]
    usages, vectors = chain([found.usage], repeat(NO_USAGE)), iter(found.vectors)
    return [
        EmbeddedBundle(
            bundle
            if _is_in(embedder.space, bundle)
            else replace(bundle, embedded=EmbeddedRun(embedder.space, next(vectors))),
            took,
        )
        for bundle, took in zip(bundles, usages, strict=False)
    ]


def _is_in(space: str, bundle: Bundle) -> bool:
    return bundle.embedded is not None and bundle.embedded.space == space


FIRST_RUNS = 16
# Ids are hashes, so the first ones are a random sample, always the same.
MAX_RUNS = 1_000
_FIRST_BATCH, _MAX_BATCH = 16, 256
# The target duration of a batch: after each one results are stored and progress is reported.
_BATCH_SECONDS = 5.0

Progress = Callable[[int], None]


def fit_due(store: Store) -> bool:
    """Whether to `refit`: at 16 texts, and whenever there are twice as many as were fitted on.

    A memory whose space is not its own TF-IDF is never due.
    """
    active = store.vectors.active_space()
    return (active is None or is_fitted(active.name)) and _has_doubled(store, active)


def calibration_due(store: Store) -> bool:
    """Whether to `calibrate`: as `fit_due`, for a space that is not the memory's own TF-IDF."""
    active = store.vectors.active_space()
    return active is not None and not is_fitted(active.name) and _has_doubled(store, active)


def refit(store: Store, progress: Progress = lambda runs: None) -> str:
    """Fit a model on the memory, embed all runs with it and activate its space; the space's name.

    Queries use the old space until the switch, which is one transaction at the end; an interrupted
    call leaves the old space as it was. Raises `StoreError` where another process was faster.
    """
    sources = (store.vectors, store.notes)
    model = fit([text for one in sources for text in one.texts_to_embed(MAX_RUNS).values()])
    store.vectors.prepare(Space(model.space, _texts(store)), model.to_bytes())
    activate(store, model, progress)
    return model.space


def activate(store: Store, embedder: Embedder, progress: Progress = lambda runs: None) -> Usage:
    """Embed all runs in the prepared space of *embedder*, and make it the active one.

    *progress* is called with the number of runs of each batch. An interrupted call continues when
    it is repeated.
    """
    usage = embed_missing(store, embedder, progress)
    store.vectors.switch(embedder.space)
    # Runs that others learned meanwhile have vectors of the old space.
    return usage + embed_missing(store, embedder, progress)


def embed_missing(
    store: Store, embedder: Embedder, progress: Progress = lambda runs: None
) -> Usage:
    """Embed the runs and notes that have no vectors in the space of *embedder* yet; the usage.

    *progress* is called with the number of each batch. No transaction is open meanwhile.
    """
    runs = _embed_missing(store.vectors, embedder, progress)
    return runs + _embed_missing(store.notes, embedder, progress)


def _embed_missing(
    source: VectorStore | NoteStore, embedder: Embedder, progress: Progress
) -> Usage:
    usage, size = NO_USAGE, _FIRST_BATCH
    while found := source.texts_to_embed(size, embedder.space):
        began = time.perf_counter()
        answer = embedder.embed([*found.values()])
        source.add(embedder.space, dict(zip(found, answer.vectors, strict=True)))
        usage += answer.usage
        progress(len(found))
        seconds = time.perf_counter() - began
        size = min(2 * size, _MAX_BATCH) if seconds < _BATCH_SECONDS / 2 else size
        size = max(size // 2, 1) if seconds > 2 * _BATCH_SECONDS else size
    return usage


def calibrate(store: Store, embedder: Embedder) -> Space:
    """Measure the similarity threshold of the active space, that of *embedder*.

    Raises `EmbeddingError` as the embedder does.
    """
    texts = _texts(store)
    space = Space(embedder.space, texts)
    if texts >= FIRST_RUNS:
        space = replace(space, similarity_threshold=_similarity_threshold(store, embedder))
        store.vectors.prepare(space, None)
    return space


def _has_doubled(store: Store, active: Space | None) -> bool:
    texts = _texts(store)
    return texts >= FIRST_RUNS and (active is None or texts >= 2 * active.runs)


def _texts(store: Store) -> int:
    """How many texts have vectors: runs and live notes."""
    return store.runs.word_counts(()).total + sum(store.notes.counts().values())


# The same quantile as the threshold that was measured for TF-IDF (docs/embedding.md).
QUANTILE = 0.95
# Ids are hashes, so the first ones are a random sample, always the same.
_SAMPLED_RUNS = 64
_NEAREST = 200
_MIN_PAIRS = 100
# Among identical tasks, similarity carries no information.
_MAX_THRESHOLD = 0.95


def _similarity_threshold(store: Store, embedder: Embedder) -> float | None:
    """The cosine that one in twenty pairs of runs of one repository exceeds.

    A pair is the task of one run and the stored vector of another, of another instance, as a
    query compares them. None where there are fewer than 100 pairs. The space must be active;
    raises `EmbeddingError` as the embedder does.
    """
    runs = [run for run in store.runs.trajectories(_sampled(store)).values() if run.repo]
    vectors = embedder.embed([run.task[:TASK_CHARS] for run in runs]).vectors
    pairs = sorted(
        cosine
        for run, vector in zip(runs, vectors, strict=True)
        if vector
        for cosine in _cosines_in_repository(store, run, vector)
    )
    if len(pairs) < _MIN_PAIRS:
        return None
    return round(min(pairs[int(QUANTILE * len(pairs))], _MAX_THRESHOLD), 4)


def _sampled(store: Store) -> Iterable[str]:
    return store.vectors.texts_to_embed(_SAMPLED_RUNS)


def _cosines_in_repository(store: Store, run: Trajectory, vector: Vector) -> list[float]:
    others = Scope(run.repo, frozenset({run.instance_id}))
    return cosines(
        vector,
        [near.vector for near in store.vectors.nearest(vector, others, _NEAREST)],
    )
