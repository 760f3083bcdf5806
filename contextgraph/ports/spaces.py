"""Keeping vectors by space."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from contextgraph.model import RunTexts, RunVectors, Space


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

    def switch_space(self, space: str) -> None:
        """Make *space* the active one and drop all others with their vectors, in one transaction.

        Raises `StoreError` as `add_vectors` does.
        """
