"""Keeping methodologies, and saying what has yet to be consolidated."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from contextgraph.model import (
    ErrorHistory,
    Methodology,
    MethodologyGroup,
    PracticeGroup,
    RepoHistory,
    ResolvedBy,
    SimilarTo,
    Summary,
    Unconsolidated,
)
from contextgraph.ports.exposures import ExposureStore
from contextgraph.ports.retrieval import RetrievalStore


class Summarizer(Protocol):
    """Puts into words what clearances of one kind of error, or runs without one, have in common."""

    def summarise(self, group: MethodologyGroup) -> Summary:
        """When *group* applies and what to do.

        One that depends on a model that may fail falls back to a template, and says so in
        `Summary.made_by`.
        """

    def summarise_practice(self, group: PracticeGroup) -> Summary:
        """The same for what worked where there was no error."""


class MethodologyStore(Protocol):
    """Keeps methodologies; those that are retired are tombstones, and never found by a question."""

    def methodologies_of(self, ids: Sequence[str]) -> Sequence[Methodology]:
        """Those of these ids, by id."""

    def methodology_ids(self) -> Sequence[str]:
        """All ids, ascending, tombstones as well."""

    def resolved_by(self, methodology_id: str) -> Sequence[ResolvedBy]:
        """The errors that a methodology resolves, by their ids."""


class ConsolidationStore(MethodologyStore, Protocol):
    """Says what has yet to be consolidated, and lets one work at a time."""

    def learned_since_consolidation(self) -> int:
        """How many trajectories were learned or updated since the last consolidation."""

    def take_lease(self, holder: str, now: datetime, until: datetime) -> datetime | None:
        """Take the lease; where another *holder* has one that has not expired, when that does."""

    def return_lease(self, holder: str) -> None:
        """Give the lease back; harmless where another has taken it meanwhile."""

    def unconsolidated(self, after: int | None = None) -> Unconsolidated:
        """What changed since the last consolidation, or revision *after*.

        Error ids and names of repositories are ascending; runs without one count for no repository.
        """

    def error_histories(self, error_ids: Sequence[str], runs: int) -> Sequence[ErrorHistory]:
        """How the newest *runs* that met each of these errors went with it, by id of the error.

        Errors that no run met have none.
        """

    def repo_histories(self, repos: Sequence[str], runs: int) -> Sequence[RepoHistory]:
        """What the newest *runs* of each of these repositories did that did not fail, by name.

        Repositories without runs have none.
        """

    def methodologies_of_repos(self, repos: Sequence[str]) -> Sequence[Methodology]:
        """Those of no error that are of these repositories, by id, tombstones as well."""

    def methodologies_of_errors(self, error_ids: Sequence[str]) -> Sequence[Methodology]:
        """Those abstracted from these errors, by id, tombstones as well."""

    def methodologies_of_types(self, error_ids: Sequence[str]) -> Sequence[Sequence[Methodology]]:
        """Those of all errors of the families and types of these, tombstones as well.

        Each type that has some is by itself: by id, and types by their first.
        """

    def put_methodologies(
        self,
        methodologies: Sequence[Methodology],
        removed: Sequence[str],
        resolved: Sequence[ResolvedBy],
        similar: Sequence[SimilarTo],
    ) -> int:
        """Write all of it in one transaction; how many fragments were found alike.

        *resolved* take the place of edges between the same two; retired methodologies keep none.
        Those that a removed methodology had superseded go as well, and their
        errors count as changed. One whose text changed loses its vectors.
        """

    def prune_failed_fragments(self, error_ids: Sequence[str], keep: int) -> int:
        """Delete failed attempts at each of these errors beyond the newest *keep*; how many.

        None that cleared an error goes. Where it is interrupted some are gone, as with
        `remove_orphans`; the same call does the rest.
        """

    def remove_orphans(self) -> int:
        """Delete methodologies that no fragment supports, tombstones excepted; how many."""

    def shown_methodologies(self) -> Sequence[str]:
        """Ids of methodologies of which it was reported whether they helped, ascending."""

    def mark_consolidated(self, revision: int) -> None:
        """Note that what changed up to *revision* is consolidated."""


class LearntStore(ConsolidationStore, ExposureStore, RetrievalStore, Protocol):
    """What consolidation needs of a store."""
