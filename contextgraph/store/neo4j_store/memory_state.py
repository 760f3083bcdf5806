"""How far a memory is, and how much it holds: asked once in a snapshot."""

from dataclasses import dataclass
from typing import NamedTuple

from contextgraph.store.neo4j_store.rows import Row
from contextgraph.store.neo4j_store.transaction import Transaction


class Era(NamedTuple):
    """A time of a memory in which what has a name keeps it: nothing is removed.

    *identity* is another where all was deleted and a memory was made anew.
    """

    identity: str
    removals: int


# When nothing has been read yet.
NEVER = Era("", -1)


@dataclass(frozen=True, slots=True)
class MemoryState:
    """The *revision* of a memory, how often something was removed, and how many texts it holds.

    *identity* is that of its `Era`, empty where there is none, as in memories of earlier versions.
    *embeddings* counts how often vectors were added to what was there, which makes no revision.
    *is_retold* is True where a language model told any of its runs again. *space* is the row of the
    active space, None where there is none.
    """

    identity: str
    revision: int
    removals: int
    embeddings: int
    trajectories: int
    recoveries: int
    is_retold: bool
    space: Row | None

    @property
    def era(self) -> Era:
        """What was read of what may be removed is good for as long as this is the same."""
        return Era(self.identity, self.removals)


def of(transaction: Transaction) -> MemoryState:
    """The state of the memory, empty where there is none."""
    row = transaction.once("memory_state")
    return MemoryState(**row) if row else MemoryState("", 0, 0, 0, 0, 0, False, None)
