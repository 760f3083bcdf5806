"""What a loop detector needs of others."""

from typing import Protocol

from contextgraph.model import MemoryContext, State
from contextgraph.ports import RetrievalStore, TrajectoryStore


class EvidenceStore(TrajectoryStore, RetrievalStore, Protocol):
    """Proposes recoveries, and tells what runs did around them."""


class Adviser(Protocol):
    """Knows what cleared an error, and holds back what is not certain enough to be said."""

    def retrieve(
        self, state: State, limit: int = 5, *, exclude_instances: frozenset[str] = frozenset()
    ) -> MemoryContext:
        """What fits *state*, best first."""
