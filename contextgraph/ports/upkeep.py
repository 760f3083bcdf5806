"""Saying where something comes from, whether the store is well, bringing it up to date."""

from collections.abc import Sequence
from typing import Protocol

from contextgraph.model import Explanation, HealthCheck


class ProvenanceStore(Protocol):
    """Says where something comes from."""

    def explain(self, node_id: str) -> Explanation | None:
        """A node, or a context that was shown, with its edges; None where there is no such id."""


class HealthStore(Protocol):
    """Says whether the store is well."""

    def health(self) -> Sequence[HealthCheck]:
        """One check each for: reachable, schema version, integrity, writable, sizes.

        Never raises for a store that is ill: that is a check that failed, with its remedy.
        """


class SchemaStore(Protocol):
    """Brings the schema of an older memory up to date."""

    def pending_migrations(self) -> Sequence[str]:
        """The names of the steps that the memory lacks, in order; all where there is none yet."""

    def migrate(self) -> Sequence[str]:
        """Apply them, and make the memory where there is none; their names.

        Harmless beside other processes that do the same.
        """
