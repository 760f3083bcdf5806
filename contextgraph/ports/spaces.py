"""Keeping vectors by space."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from contextgraph.model import Methodology, RunTexts, RunVectors, Space
from contextgraph.vectors import Vector


class VectorStore(Protocol):
    """Keeps vectors by space; a query sees one space only, whatever is being prepared beside it."""

    def active_space(self) -> Space | None:
        """The space in which queries are answered; None while there is none."""

    def space_model(self, space: str) -> bytes | None:
        """What was stored with the space of this name."""

    def texts_to_embed(
        self, limit: int, space: str | None = None, after: str = ""
    ) -> Sequence[RunTexts]:
        """The texts of runs, by id: of all, or of those that have no vectors in *space* yet.

        Only of ids greater than *after*. Where no room was made for *space*, no run has any.
        """

    def prepare_space(self, space: Space, model: bytes | None) -> None:
        """Make room for vectors of *space* and keep its *model*; the active space stays.

        Where there is room already, only `Space.runs` and `Space.alike` are taken over.
        """

    def add_vectors(self, vectors: Mapping[str, RunVectors]) -> None:
        """Keep *vectors* by the id of their run.

        Runs that are gone, have other fragments by now, or have vectors of that space are passed
        over. Raises `StoreError` where the space was not prepared, or has been dropped since.
        """

    def methodologies_to_embed(self, limit: int, space: str | None = None) -> Sequence[Methodology]:
        """Methodologies by id, tombstones excepted: all, or those without a vector in *space* yet.

        A text that says nothing to the embedder counts as embedded. Where no room was made for
        *space*, none has any.
        """

    def add_methodology_vectors(self, space: str, vectors: Mapping[str, Vector | None]) -> None:
        """Keep *vectors* of *space* by the id of their methodology.

        Those that are gone or have a vector of that space are passed over. Raises as `add_vectors`.
        """

    def switch_space(self, space: str) -> None:
        """Make *space* the active one and drop all others with their vectors, in one transaction.

        Raises `StoreError` as `add_vectors` does.
        """
