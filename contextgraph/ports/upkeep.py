"""Saying where something comes from, and whether the store is well."""

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
