"""Stores: one SQLite file, or a Neo4j server."""

from contextgraph.store.sqlite import SqliteStore

__all__ = ["SqliteStore"]
