"""Embedding: converts texts to vectors, and manages the space in which a memory is searched."""

from contextgraph.embedding.api import EmbeddingCosts as EmbeddingCosts, VectorCache as VectorCache
from contextgraph.embedding.fitting import (
    TfidfModel as TfidfModel,
    catch_up as catch_up,
    embed_missing as embed_missing,
    embed_nodes as embed_nodes,
    embed_passages as embed_passages,
    embedded as embedded,
    fit as fit,
    fit_due as fit_due,
    forget_words as forget_words,
    is_fitted as is_fitted,
    refit as refit,
)
from contextgraph.embedding.spaces import (
    ActiveEmbedder as ActiveEmbedder,
    EmbedderFactory as EmbedderFactory,
    EmbeddingSpaceManager as EmbeddingSpaceManager,
    Lease as Lease,
    Reembedding as Reembedding,
    ReembeddingPlan as ReembeddingPlan,
    exclusive as exclusive,
    renewing as renewing,
)
