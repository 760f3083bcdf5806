"""Embedding: from texts to vectors, and the space in which a memory is searched."""

from contextgraph.embedding.fitting import (
    TfidfModel,
    calibrate,
    calibration_due,
    embed_missing,
    embedded,
    fit,
    fit_due,
    is_fitted,
    refit,
)
from contextgraph.embedding.lease import Lease, exclusive, renewing
from contextgraph.embedding.openai import EmbeddingCosts, VectorCache
from contextgraph.embedding.spaces import (
    ActiveEmbedder,
    EmbedderFactory,
    EmbeddingSpaceManager,
    Reembedding,
    ReembeddingPlan,
)

__all__ = [
    "ActiveEmbedder",
    "EmbedderFactory",
    "EmbeddingCosts",
    "EmbeddingSpaceManager",
    "Lease",
    "Reembedding",
    "ReembeddingPlan",
    "TfidfModel",
    "VectorCache",
    "calibrate",
    "calibration_due",
    "embed_missing",
    "embedded",
    "exclusive",
    "fit",
    "fit_due",
    "is_fitted",
    "refit",
    "renewing",
]
