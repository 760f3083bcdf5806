"""Embedding: texts, embedder, vectors; and the space in which a memory is searched."""

from contextgraph.embedding.active import ActiveEmbedder
from contextgraph.embedding.fitting import embed_missing, fit_due, refit
from contextgraph.embedding.runs import embed_runs, embedded
from contextgraph.embedding.tfidf import TfidfModel, fit

__all__ = [
    "ActiveEmbedder",
    "TfidfModel",
    "embed_missing",
    "embed_runs",
    "embedded",
    "fit",
    "fit_due",
    "refit",
]
