"""Protocols with several implementations: embedders, indexes of vectors, parts with vectors."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

from contextgraph import model
from contextgraph.errors import StoreError

if TYPE_CHECKING:
    from networkx import MultiDiGraph

    Graph: TypeAlias = MultiDiGraph[str]

GraphFormat: TypeAlias = Literal["graphml", "json"]
OnDamaged: TypeAlias = Callable[[str, StoreError], None]
"""Called with the id of what cannot be read, and why."""


class TextVectors(Protocol):
    """The vectors of texts by space: of runs in a `VectorStore`, of live notes in a `NoteStore`.

    Entities have none: they are found by their names.
    """

    def texts_to_embed(
        self, limit: int, space: str | None = None, after: str = ""
    ) -> Mapping[str, str]:
        """Return texts by ids greater than *after*, ascending: all, or those without a vector.

        Without one is a text that is not embedded in *space*.
        """

    def add(self, space: str, vectors: Mapping[str, model.Vector | None]) -> None:
        """Store vectors of *space* by the ids of texts; None for a text that has none.

        A note has one vector, the last; a run keeps its first of each space that was prepared, and
        `StoreError` is raised for another space.
        """


class Indexed(NamedTuple):
    """The vector of a note, and the *digest* of the text that it was made of; None removes it."""

    id: str
    repo: str
    digest: str
    vector: model.Vector | None


class Hit(NamedTuple):
    """A note that a search found."""

    id: str
    digest: str
    cosine: float


class VectorIndex(Protocol):
    """Finds the vectors of one tenant that are nearest to another; each id has one, the last.

    Raises `StoreUnavailableError` where it cannot be reached, `StoreError` where it refuses.
    """

    name: str

    def upsert(self, space: str, vectors: Sequence[Indexed]) -> None:
        """Store and remove vectors of *space*, in one transaction if the index has transactions."""

    def search(
        self, vector: model.Vector, repos: Sequence[str] | None, limit: int
    ) -> Sequence[Hit]:
        """Return notes with vectors of the same space in *repos* (None: all), nearest first."""

    def delete(self, ids: Sequence[str]) -> None:
        """Delete the vectors of these notes."""

    def count(self) -> int:
        """Return the number of vectors."""

    def close(self) -> None:
        """Release the connection."""


class Embedder(Protocol):
    """Turns texts into vectors of one space."""

    @property
    def space(self) -> str:
        """The name of the space, ``maker/model@dimensions``."""

    @property
    def similarity_threshold(self) -> float | None:
        """The cosine from which tasks of one repository count as similar; None while unknown."""

    @property
    def is_remote(self) -> bool:
        """True if a server computes the vectors; runs are stored before it is called."""

    def embed(self, texts: Sequence[str]) -> model.Embeddings:
        """Return a vector for each text, in their order; raises `EmbeddingError`."""


EmbedderSource: TypeAlias = Callable[[], Embedder | None]
"""Returns the embedder of the active space; None while there is none."""
