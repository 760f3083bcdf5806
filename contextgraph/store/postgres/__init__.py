"""Notes in a PostgreSQL database; runs stay in the store."""

from contextgraph.store.postgres.notes import PostgresNotes

__all__ = ["PostgresNotes"]
