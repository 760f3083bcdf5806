"""The vectors of a run: all its texts in one batch."""

from dataclasses import replace

from contextgraph.errors import EmbeddingError
from contextgraph.model import Bundle, RunTexts, RunVectors
from contextgraph.ports import Embedder, EmbedderSource


def embedded(bundle: Bundle, source: EmbedderSource) -> Bundle:
    """*bundle* with its vectors; as it is while there is no space, or the embedder fails.

    What is not embedded now is marked by having no vectors, and is embedded later.
    """
    try:
        embedder = source()
        return replace(bundle, vectors=embed_run(bundle.texts, embedder)) if embedder else bundle
    except EmbeddingError:
        return bundle


def embed_run(texts: RunTexts, embedder: Embedder) -> RunVectors:
    """The vectors of a run; raises `EmbeddingError` as the embedder does."""
    trajectory, *fragments = embedder.embed((texts.trajectory, *texts.fragments))
    return RunVectors(embedder.space, trajectory, tuple(fragments))
