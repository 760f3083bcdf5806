"""Embedding: from texts to vectors, and the space in which a memory is searched."""

from contextgraph.embedding.cache import VectorCache
from contextgraph.embedding.fitting import (
    calibrate,
    calibration_due,
    embed_missing,
    embedded,
    fit_due,
    refit,
)
from contextgraph.embedding.lease import Lease, exclusive, renewing
from contextgraph.embedding.openai import EmbeddingCosts
from contextgraph.embedding.spaces import (
    ActiveEmbedder,
    EmbedderFactory,
    EmbeddingSpaceManager,
    Reembedding,
    ReembeddingPlan,
)
from contextgraph.embedding.tfidf import TfidfModel, fit, is_fitted

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
