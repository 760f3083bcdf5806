"""Embedding: texts, embedder, vectors; and the space in which a memory is searched."""

from contextgraph.embedding.active import ActiveEmbedder
from contextgraph.embedding.cache import VectorCache
from contextgraph.embedding.catalogue import Catalogue
from contextgraph.embedding.fitting import (
    calibrate,
    calibration_due,
    embed_methodologies,
    embed_missing,
    fit_due,
    refit,
)
from contextgraph.embedding.keeper import Reembedding, ReembeddingPlan, SpaceKeeper
from contextgraph.embedding.lease import Tenure, kept
from contextgraph.embedding.openai import Purse
from contextgraph.embedding.runs import embed_runs, embedded
from contextgraph.embedding.tfidf import TfidfModel, fit, is_fitted

__all__ = [
    "ActiveEmbedder",
    "Catalogue",
    "Purse",
    "Reembedding",
    "ReembeddingPlan",
    "SpaceKeeper",
    "Tenure",
    "TfidfModel",
    "VectorCache",
    "calibrate",
    "calibration_due",
    "embed_methodologies",
    "embed_missing",
    "embed_runs",
    "embedded",
    "fit",
    "fit_due",
    "is_fitted",
    "kept",
    "refit",
]
