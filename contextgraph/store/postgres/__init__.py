"""Notes in a PostgreSQL database, which a team has anyway; runs stay where they are."""

from contextgraph.store.postgres.notes import PostgresNotes

__all__ = ["PostgresNotes"]
