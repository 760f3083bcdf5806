"""When the space of a memory is due to be fitted or calibrated, and how one takes its place."""

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import chain

from contextgraph.embedding.calibrating import bound_on_likeness
from contextgraph.embedding.runs import embed_runs, texts_of
from contextgraph.embedding.tfidf import fit, is_fitted
from contextgraph.model import NO_USAGE, Space, Usage, methodology_text
from contextgraph.ports import Embedder, GraphStore, VectorStore

# Real runs have about eight fragments: some hundred texts.
FIRST_RUNS = 16
# Ids are fingerprints, so those that come first are a random sample, always the same.
MOST_RUNS = 1_000
_FIRST_AT_ONCE, _MOST_AT_ONCE = 16, 256
# So long a batch should take: what is done is kept, and told, from batch to batch.
_SECONDS_OF_A_BATCH = 5.0

Told = Callable[[int], None]


def fit_due(store: GraphStore) -> bool:
    """Whether to `refit`: at 16 runs, and whenever there are twice as many as were fitted on.

    A memory whose space is not its own TF-IDF is never due.
    """
    active = store.active_space()
    return (active is None or is_fitted(active.name)) and _has_doubled(store, active)


def calibration_due(store: GraphStore) -> bool:
    """Whether to `calibrate`: as `fit_due`, for a space that is not the memory's own TF-IDF."""
    active = store.active_space()
    return active is not None and not is_fitted(active.name) and _has_doubled(store, active)


def refit(store: GraphStore, told: Told = lambda runs: None) -> str:
    """Fit a model on the memory, embed all runs anew, and switch over; the name of the space.

    Until the switch, in one transaction at the end, queries are answered in the space of before;
    what is interrupted leaves that as it was. Raises `StoreError` where another process was faster.
    """
    runs = store.document_count()
    model = fit(chain.from_iterable(map(texts_of, store.texts_to_embed(MOST_RUNS))))
    store.prepare_space(Space(model.space, runs), model.to_bytes())
    take_over(store, model, told)
    return model.space


def take_over(store: VectorStore, embedder: Embedder, told: Told = lambda runs: None) -> Usage:
    """Embed all runs in the space of *embedder*, for which there is room, and switch over to it.

    *told* hears of every batch how many runs it had. What is interrupted goes on where it was.
    """
    usage = embed_missing(store, embedder, told) + embed_methodologies(store, embedder)
    store.switch_space(embedder.space)
    # What others learned meanwhile, in the space of before.
    return usage + embed_missing(store, embedder, told) + embed_methodologies(store, embedder)


def embed_missing(store: VectorStore, embedder: Embedder, told: Told = lambda runs: None) -> Usage:
    """Embed the runs that have no vectors in the space of *embedder* yet; what that took.

    *told* hears of every batch how many runs it had. No transaction is open while embedding.
    """
    usage, size = NO_USAGE, _FIRST_AT_ONCE
    while found := store.texts_to_embed(size, embedder.space):
        began = time.perf_counter()
        vectors, took = embed_runs(found, embedder)
        store.add_vectors(vectors)
        usage += took
        told(len(found))
        seconds = time.perf_counter() - began
        size = min(2 * size, _MOST_AT_ONCE) if seconds < _SECONDS_OF_A_BATCH / 2 else size
        size = max(size // 2, 1) if seconds > 2 * _SECONDS_OF_A_BATCH else size
    return usage


def embed_methodologies(store: VectorStore, embedder: Embedder) -> Usage:
    """Embed the methodologies that have no vector in the space of *embedder* yet; what it took."""
    usage = NO_USAGE
    while found := store.methodologies_to_embed(_MOST_AT_ONCE, embedder.space):
        answer = embedder.embed([methodology_text(one) for one in found])
        ids = (one.id for one in found)
        store.add_methodology_vectors(embedder.space, dict(zip(ids, answer.vectors, strict=True)))
        usage += answer.usage
    return usage


def calibrate(store: GraphStore, embedder: Embedder) -> Space:
    """Find out from which cosine tasks are alike in the active space, that of *embedder*.

    Raises `EmbeddingError` as the embedder does.
    """
    runs = store.document_count()
    space = Space(embedder.space, runs)
    if runs >= FIRST_RUNS:
        space = replace(space, alike=bound_on_likeness(store, embedder))
        store.prepare_space(space, None)
    return space


def _has_doubled(store: GraphStore, active: Space | None) -> bool:
    runs = store.document_count()
    return runs >= FIRST_RUNS and (active is None or runs >= 2 * active.runs)
