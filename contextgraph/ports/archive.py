"""Handing a memory from one store to another, piece by piece."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from contextgraph.model import ArchivedRun, Exposure, LearnStatus, SimilarTo
from contextgraph.vectors import Vector


class ArchiveStore(Protocol):
    """Reads what the other ports do not tell, and writes what it read from another store."""

    tenant: str  # whose part of the memory it is

    def archived_run(self, trajectory_id: str) -> ArchivedRun | None:
        """All that is kept of a run; errors by id, recoveries by step, fragment and error."""

    def restore_runs(self, runs: Sequence[ArchivedRun]) -> Sequence[LearnStatus]:
        """Keep runs as they were archived, in one transaction; a status as of `add_bundles`.

        Nothing is credited. Vectors are kept where there is room for their space.
        """

    def similar_to(self, trajectory_id: str) -> Sequence[SimilarTo]:
        """What the fragments of a run are like, by fragment and error."""

    def methodology_vectors(self, space: str, ids: Sequence[str]) -> Mapping[str, Vector | None]:
        """Vectors in *space* of those of these methodologies that are embedded, by id."""

    def exposures(self, after: str, limit: int) -> Sequence[Exposure]:
        """Contexts that were shown, by id: the first ones that are greater than *after*."""

    def restore_exposures(self, exposures: Sequence[Exposure]) -> None:
        """Keep contexts as they were archived; those that are noted already stay as they are."""
