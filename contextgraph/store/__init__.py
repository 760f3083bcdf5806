"""The in-process store: SQLite holds the truth, networkx its topology."""

from contextgraph.store.networkx_store import NetworkxStore

__all__ = ["NetworkxStore"]
