"""Embedders for tests: without a network, a cache or a purse."""

from contextgraph.embedding import Catalogue, Purse, VectorCache
from contextgraph.remote import Budget, Endpoint, Ledger


def catalogue() -> Catalogue:
    """One that keeps and notes nothing."""
    return Catalogue(Endpoint(), Purse(VectorCache(None), Ledger(None, "test"), Budget()))
