"""What turns texts into vectors."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from contextgraph.vectors import Vector


class Embedder(Protocol):
    """Turns texts into vectors of one space."""

    @property
    def space(self) -> str:
        """The name of the space, ``maker/model@dimensions``."""

    def embed(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        """A vector for each text, None for a text that says nothing to this embedder.

        Raises `EmbeddingError` when texts cannot be embedded now.
        """


EmbedderSource: TypeAlias = Callable[[], Embedder | None]
"""The embedder of the space that is active now; None while there is none."""
