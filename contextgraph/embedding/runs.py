"""The vectors of a run: all its texts in one batch."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice, repeat

from contextgraph.errors import EmbeddingError
from contextgraph.model import NO_USAGE, Bundle, EmbeddedBundle, RunTexts, RunVectors, Usage
from contextgraph.ports import Embedder, EmbedderSource
from contextgraph.vectors import Vector


def embedded(bundles: Sequence[Bundle], source: EmbedderSource) -> list[EmbeddedBundle]:
    """*bundles* with their vectors; as they are while there is no space, or the embedder fails.

    What is not embedded now is marked by having no vectors, and is embedded later. What all of them
    took is told with the first.
    """
    try:
        embedder = source() if bundles else None
        if embedder is None:
            return [EmbeddedBundle(bundle) for bundle in bundles]
        vectors, usage = embed_runs([bundle.texts for bundle in bundles], embedder)
    except EmbeddingError as error:
        return [EmbeddedBundle(bundle, failure=str(error)) for bundle in bundles]
    usages = chain([usage], repeat(NO_USAGE))
    return [
        EmbeddedBundle(replace(bundle, vectors=vectors[bundle.trajectory.id]), took)
        for bundle, took in zip(bundles, usages, strict=False)
    ]


def embed_runs(runs: Sequence[RunTexts], embedder: Embedder) -> tuple[dict[str, RunVectors], Usage]:
    """The vectors of *runs* by their ids; raises `EmbeddingError` as the embedder does."""
    found = embedder.embed([text for run in runs for text in texts_of(run)])
    vectors = iter(found.vectors)
    return {run.trajectory_id: _next(run, embedder.space, vectors) for run in runs}, found.usage


def texts_of(run: RunTexts) -> tuple[str, ...]:
    """All that is embedded of *run*."""
    return run.trajectory, *run.fragments


def _next(run: RunTexts, space: str, vectors: Iterator[Vector | None]) -> RunVectors:
    return RunVectors(space, next(vectors), tuple(islice(vectors, len(run.fragments))))
