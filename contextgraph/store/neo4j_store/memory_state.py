"""How far a memory is, and how much it holds: asked once in a snapshot."""

from dataclasses import dataclass

from contextgraph.store.neo4j_store.rows import Row
from contextgraph.store.neo4j_store.transaction import Transaction


@dataclass(frozen=True, slots=True)
class MemoryState:
    """The *revision* of a memory, how often something was removed, and how many texts it holds.

    *embeddings* counts how often vectors were added to what was there, which makes no revision.
    *is_retold* is True where a language model told any of its runs again. *space* is the row of the
    active space, None where there is none.
    """

    revision: int
    removals: int
    embeddings: int
    trajectories: int
    recoveries: int
    is_retold: bool
    space: Row | None


def of(transaction: Transaction) -> MemoryState:
    """The state of the memory, all zeros where there is none."""
    row = transaction.once("memory_state")
    return MemoryState(**row) if row else MemoryState(0, 0, 0, 0, 0, False, None)
