"""What turns texts into vectors."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from contextgraph.model import Embeddings


class Embedder(Protocol):
    """Turns texts into vectors of one space."""

    @property
    def space(self) -> str:
        """The name of the space, ``maker/model@dimensions``."""

    @property
    def alike(self) -> float | None:
        """The cosine from which tasks of one repository are alike; None while that is not known."""

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """A vector for each text, in their order.

        Raises `EmbeddingError` when texts cannot be embedded now.
        """


EmbedderSource: TypeAlias = Callable[[], Embedder | None]
"""The embedder of the space that is active now; None while there is none."""
