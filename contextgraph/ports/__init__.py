"""The doors of the core: what it needs of a store, as small protocols.

Two stores must answer alike: same values, same order. Where a docstring names an order, ties are
broken by id, ascending. *limit* bounds the number of items; candidates are proposals, over-fetched
and in scope, and are scored above the port. All methods raise `StoreUnavailableError` when the
store cannot be reached and `StoreError` when it refuses.
"""

from typing import Protocol

from contextgraph.ports.archive import ArchiveStore
from contextgraph.ports.consolidation import (
    ConsolidationStore,
    LearntStore,
    MethodologyStore,
    Summarizer,
)
from contextgraph.ports.editing import Editor
from contextgraph.ports.embedding import Embedder, EmbedderSource
from contextgraph.ports.exposures import ExposureStore
from contextgraph.ports.retelling import RetellingStore
from contextgraph.ports.retrieval import RetrievalStore
from contextgraph.ports.spaces import VectorStore
from contextgraph.ports.statistics import StatisticsStore
from contextgraph.ports.trajectories import TrajectoryStore
from contextgraph.ports.upkeep import HealthStore, ProvenanceStore, SchemaStore

__all__ = [
    "ArchiveStore",
    "ConsolidationStore",
    "Editor",
    "Embedder",
    "EmbedderSource",
    "ExposureStore",
    "GraphStore",
    "HealthStore",
    "LearntStore",
    "MethodologyStore",
    "ProvenanceStore",
    "RetellingStore",
    "RetrievalStore",
    "SchemaStore",
    "StatisticsStore",
    "Summarizer",
    "TrajectoryStore",
    "VectorStore",
]


class GraphStore(
    TrajectoryStore,
    RetrievalStore,
    VectorStore,
    StatisticsStore,
    ExposureStore,
    ConsolidationStore,
    RetellingStore,
    ProvenanceStore,
    HealthStore,
    SchemaStore,
    ArchiveStore,
    Protocol,
):
    """All of it."""
