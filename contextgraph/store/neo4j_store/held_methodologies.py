"""The vectors of methodologies, held by this process: few, read anew when any was added."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contextgraph.store.neo4j_store.held_vectors import Neighbour
from contextgraph.store.neo4j_store.spaces import Active
from contextgraph.store.neo4j_store.transaction import Transaction
from contextgraph.vectors import Vector, dimensions_of, products

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from contextgraph.vectors import Floats

_DECIMALS = 4
_GENERAL = ""


@dataclass(frozen=True, slots=True)
class _Held:
    """What was read of the *space* of a memory after so many *embeddings*; rows by id."""

    space: str
    identity: str
    embeddings: int
    ids: tuple[str, ...]
    repos: "NDArray[np.object_]"
    vectors: "Floats"


class HeldMethodologies:
    """Those of the space that is active."""

    def __init__(self) -> None:
        self._held: _Held | None = None

    def ranked(
        self, transaction: Transaction, active: Active, vector: Vector, repo: str | None
    ) -> list[Neighbour]:
        """All of *repo* (None: of any) or general that have a vector, best first, ties by id.

        Among them may be some that were removed or told anew since.
        """
        import numpy as np

        held = self._held
        if held is None or _of(active) != (held.space, held.identity, held.embeddings):
            held = self._held = _read(transaction, active)
        inside = np.arange(len(held.ids))
        if repo is not None:
            inside = np.flatnonzero((held.repos == repo) | (held.repos == _GENERAL))
        alike = np.round(products(held.vectors[inside], vector), _DECIMALS)
        return [
            Neighbour(held.ids[row], Vector(vector.space, held.vectors[row].tobytes()))
            for row in inside[np.argsort(-alike, kind="stable")].tolist()
        ]


def _of(active: Active) -> tuple[str, str, int]:
    return active.space.name, active.state.identity, active.state.embeddings


def _read(transaction: Transaction, active: Active) -> _Held:
    import numpy as np

    row = transaction.row("held_methodology_vectors", property=active.property)
    assert row is not None  # it aggregates
    numbers = np.array(row["vectors"], dtype=np.float32)
    return _Held(
        *_of(active),
        tuple(row["ids"]),
        np.array(row["repos"], dtype=object),
        numbers.reshape(-1, dimensions_of(active.space.name)),
    )
