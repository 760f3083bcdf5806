"""Embedders for tests: without network, cache or usage log."""

from contextgraph.inference.api import EmbeddingCosts, VectorCache
from contextgraph.inference.spaces import EmbedderFactory
from contextgraph.system.remote import Budget, Endpoint, UsageLog


def embedders() -> EmbedderFactory:
    """A factory whose embedders cache and count nothing."""
    costs = EmbeddingCosts(VectorCache(None), UsageLog(None, "test"), Budget())
    return EmbedderFactory(Endpoint(), costs)
