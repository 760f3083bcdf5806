"""The vectors of a run: all its texts in one batch."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from contextgraph.errors import EmbeddingError
from contextgraph.model import Bundle, EmbeddedBundle, RunTexts, RunVectors, Usage
from contextgraph.ports import Embedder, EmbedderSource
from contextgraph.vectors import Vector


def embedded(bundle: Bundle, source: EmbedderSource) -> EmbeddedBundle:
    """*bundle* with its vectors; as it is while there is no space, or the embedder fails.

    What is not embedded now is marked by having no vectors, and is embedded later.
    """
    try:
        embedder = source()
        if embedder is None:
            return EmbeddedBundle(bundle)
        texts = bundle.texts
        vectors, usage = embed_runs([texts], embedder)
    except EmbeddingError as error:
        return EmbeddedBundle(bundle, failure=str(error))
    return EmbeddedBundle(replace(bundle, vectors=vectors[texts.trajectory_id]), usage)


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
