"""The memory in one file, or in none: the embedded default behind the ports."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from sqlite3 import Connection
from threading import local
from typing import TYPE_CHECKING, TypeVar

from contextgraph.errors import StoreError
from contextgraph.model import (
    ArchivedRun,
    Bundle,
    ErrorHistory,
    ErrorQuestion,
    ErrorSignature,
    ErrorTally,
    Explanation,
    Exposure,
    Fragment,
    FragmentCandidate,
    HealthCheck,
    Learned,
    LearnStatus,
    MemoryCounts,
    Methodology,
    Near,
    NodeKind,
    Phase,
    RawTrajectory,
    RecoveryCandidate,
    RepoHistory,
    ResolvedBy,
    Retelling,
    RunTexts,
    RunVectors,
    Scope,
    SimilarTo,
    Space,
    TaskType,
    Trajectory,
    Unconsolidated,
)
from contextgraph.store import (
    archives,
    bundles,
    candidates,
    consolidations,
    explaining,
    exposures,
    health,
    methodologies as abstracted,
    retellings,
    runs,
    spaces,
    tallies,
    withdrawn,
)
from contextgraph.store.connections import Connections
from contextgraph.store.full_text import WordCounts
from contextgraph.store.matrix import LoadedMatrices
from contextgraph.store.methodology_vectors import MethodologyVectors
from contextgraph.store.projection import Projection
from contextgraph.store.raw import packed
from contextgraph.store.tenants import new_tenant_key, tenant_key
from contextgraph.store.values import LatestValues
from contextgraph.store.view import View
from contextgraph.vectors import Vector

if TYPE_CHECKING:
    from contextgraph.store.projection import Graph

Answer = TypeVar("Answer")


class _Held(local):
    """The view that a thread holds on to."""

    view: View | None = None


@dataclass(frozen=True, slots=True)
class _Derived:
    """What this process has worked out from the file and can work out again."""

    process: int = field(default_factory=os.getpid)
    trajectory_words: WordCounts = field(default_factory=lambda: WordCounts("trajectory"))
    recovered_words: WordCounts = field(default_factory=lambda: WordCounts("recovered"))
    matrices: LoadedMatrices = field(default_factory=LoadedMatrices)
    methodologies: MethodologyVectors = field(default_factory=MethodologyVectors)
    projection: Projection = field(default_factory=Projection)
    values: LatestValues = field(default_factory=LatestValues)
    held: _Held = field(default_factory=_Held)


class NetworkxStore:
    """A `GraphStore` in the file *path*, or in memory for ``:memory:``; methods as in the ports.

    Nothing is opened until first used. Threads and processes may share it. With *read_only*, or
    without *create*, a memory that does not exist is not created: the first use raises
    `MemoryNotFoundError`.
    """

    def __init__(
        self, path: str, tenant: str = "default", read_only: bool = False, create: bool = True
    ) -> None:
        self.tenant = tenant
        self._connections = Connections(str(path), read_only=read_only, create=create)
        self._own_derived = _Derived()

    def add_bundles(self, given: Sequence[Bundle]) -> Sequence[LearnStatus]:
        with self._reading() as (connection, tenant):
            statuses = [runs.status(connection, tenant, bundle.trajectory) for bundle in given]
        if set(statuses) <= {LearnStatus.UNCHANGED}:
            return statuses
        raws = [packed(bundle.raw) for bundle in given]
        with self._writing() as (connection, tenant):
            return [
                bundles.add(connection, tenant, bundle, raw)
                for bundle, raw in zip(given, raws, strict=True)
            ]

    def replace_bundle(self, bundle: Bundle) -> None:
        raw = packed(bundle.raw)
        with self._writing() as (connection, tenant):
            bundles.replace(connection, tenant, bundle, raw)

    def learned(self, trajectory_ids: Sequence[str]) -> Mapping[str, Learned]:
        with self._reading() as (connection, tenant):
            return runs.learned(connection, tenant, trajectory_ids)

    def trajectory(self, trajectory_id: str) -> Trajectory | None:
        with self._reading() as (connection, tenant):
            return runs.trajectory(connection, tenant, trajectory_id)

    def trajectory_ids(self) -> Sequence[str]:
        with self._reading() as (connection, tenant):
            return runs.ids(connection, tenant)

    def raw_trajectory(self, trajectory_id: str) -> RawTrajectory | None:
        with self._reading() as (connection, tenant):
            return runs.raw(connection, tenant, trajectory_id)

    def fragments_of(self, trajectory_ids: Iterable[str]) -> Mapping[str, Sequence[Fragment]]:
        with self._seeing() as view:
            return candidates.fragments_of(view, trajectory_ids)

    def forget(self, trajectory_ids: Iterable[str]) -> int:
        with self._writing() as (connection, tenant):
            known = runs.forget(connection, tenant, trajectory_ids)
        if known:
            self._connections.empty_log()
        return known

    def close(self) -> None:
        self._connections.close()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._seeing() as view:
            held, before = self._derived.held, self._derived.held.view
            held.view = view
            try:
                yield
            finally:
                held.view = before

    def ahead(self, question: Callable[[], Answer]) -> Callable[[], Answer]:
        """The question itself: nothing is waited for but the one processor that Python uses."""
        return question

    def recoveries_for_error(
        self, asked: Sequence[ErrorQuestion], limit: int, enough: int | None = None
    ) -> Sequence[RecoveryCandidate]:
        with self._seeing() as view:
            return candidates.recoveries_for_error(view, asked, limit, enough)

    def recoveries_for_text(
        self, words: Sequence[str], scope: Scope, limit: int
    ) -> Sequence[RecoveryCandidate]:
        """The relevance of a recovery is the sum of the weights of those words it has.

        Only the rarest eight known words count; `WordCounts.weights` says what each is worth.
        """
        with self._seeing() as view:
            weights = self._derived.recovered_words.weights(view.connection, view.tenant, words)
            return candidates.recoveries_for_text(view, view.scoped(scope), weights, limit)

    def representatives_of(
        self, recoveries: Sequence[RecoveryCandidate], scope: Scope
    ) -> Sequence[RecoveryCandidate]:
        with self._seeing() as view:
            return candidates.representatives(view, view.scoped(scope), recoveries)

    def trajectories_for_task(
        self, task_type: TaskType | None, scope: Scope, limit: int
    ) -> Sequence[Trajectory]:
        with self._seeing() as view:
            return candidates.trajectories_for_task(view, view.scoped(scope), task_type, limit)

    def trajectories_for_text(
        self, words: Sequence[str], scope: Scope, limit: int
    ) -> Sequence[Trajectory]:
        """Relevance as in `recoveries_for_text`."""
        with self._seeing() as view:
            weights = self._derived.trajectory_words.weights(view.connection, view.tenant, words)
            return candidates.trajectories_for_text(view, view.scoped(scope), weights, limit)

    def fragments_for_state(
        self, phase: Phase | None, file_name: str | None, scope: Scope, limit: int
    ) -> Sequence[FragmentCandidate]:
        with self._seeing() as view:
            return candidates.fragments_for_state(view, view.scoped(scope), phase, file_name, limit)

    def document_count(self) -> int:
        with self._reading() as (connection, tenant):
            return self._derived.trajectory_words.total(connection, tenant)

    def word_frequencies(self, words: Sequence[str]) -> Mapping[str, int]:
        with self._reading() as (connection, tenant):
            return self._derived.trajectory_words.of(connection, tenant, words)

    def common_errors(self, phase: Phase | None, scope: Scope, limit: int) -> Sequence[ErrorTally]:
        with self._seeing() as view:
            return tallies.common_errors(view, view.scoped(scope), phase, limit)

    def error_tally(self, signature: ErrorSignature, scope: Scope) -> ErrorTally | None:
        with self._seeing() as view:
            return tallies.error_tally(view, view.scoped(scope), signature)

    def active_space(self) -> Space | None:
        with self._reading() as (connection, tenant):
            found = spaces.active(connection, tenant)
            return found.space if found else None

    def space_model(self, space: str) -> bytes | None:
        with self._reading() as (connection, tenant):
            return spaces.model(connection, tenant, space)

    def texts_to_embed(
        self, limit: int, space: str | None = None, after: str = ""
    ) -> Sequence[RunTexts]:
        with self._reading() as (connection, tenant):
            return spaces.texts_to_embed(connection, tenant, limit, space, after)

    def prepare_space(self, space: Space, model: bytes | None) -> None:
        with self._writing() as (connection, tenant):
            spaces.prepare(connection, tenant, space, model)

    def add_vectors(self, vectors: Mapping[str, RunVectors]) -> None:
        with self._writing() as (connection, tenant):
            spaces.add(connection, tenant, vectors)

    def methodologies_to_embed(self, limit: int, space: str | None = None) -> Sequence[Methodology]:
        with self._reading() as (connection, tenant):
            return spaces.methodologies_to_embed(connection, tenant, limit, space)

    def add_methodology_vectors(self, space: str, vectors: Mapping[str, Vector | None]) -> None:
        with self._writing() as (connection, tenant):
            spaces.add_methodologies(connection, tenant, space, vectors)

    def switch_space(self, space: str) -> None:
        with self._writing() as (connection, tenant):
            spaces.switch(connection, tenant, space)

    def nearest_trajectories(
        self, vector: Vector, scope: Scope, limit: int
    ) -> Sequence[Near[Trajectory]]:
        with self._near(NodeKind.TRAJECTORY, vector, scope, limit) as (view, near):
            found = view.trajectories([key for key, _ in near])
            return [Near(found[key], of_node) for key, of_node in near]

    def nearest_fragments(
        self, vector: Vector, scope: Scope, limit: int
    ) -> Sequence[Near[FragmentCandidate]]:
        with self._near(NodeKind.FRAGMENT, vector, scope, limit) as (view, near):
            found = view.fragments([key for key, _ in near])
            return [Near(found[key], of_node) for key, of_node in near]

    def nearest_recoveries(
        self, vector: Vector, scope: Scope, limit: int
    ) -> Sequence[Near[RecoveryCandidate]]:
        with self._near(NodeKind.FRAGMENT, vector, scope, limit) as (view, near):
            found = candidates.recoveries_of(view, [key for key, _ in near])
            return [Near(one, of_node) for key, of_node in near for one in found.get(key, ())]

    def nearest_methodologies(
        self, vector: Vector, scope: Scope, limit: int
    ) -> Sequence[Near[Methodology]]:
        with self._seeing() as view:
            active = spaces.active_for(view.connection, view.tenant, vector)
            near = self._derived.methodologies.nearest(
                view.connection, active.key, scope.repo, vector
            )
            return abstracted.visible_first(view.connection, view.scoped(scope), near, limit)

    def counts(self) -> MemoryCounts:
        with self._reading() as (connection, tenant):
            return tallies.counts(connection, tenant)

    def error_frequency(self) -> Mapping[str, int]:
        with self._reading() as (connection, tenant):
            return tallies.error_frequency(connection, tenant)

    def error_transitions(self) -> Mapping[str, Mapping[str, int]]:
        with self._reading() as (connection, tenant):
            return tallies.error_transitions(connection, tenant)

    def errors_of_runs(self, trajectory_ids: Iterable[str], limit: int) -> Sequence[ErrorTally]:
        with self._seeing() as view:
            return tallies.errors_of_runs(view, trajectory_ids, limit)

    def add_exposure(
        self,
        context_id: str,
        items: Sequence[str],
        shown_at: datetime,
        error_id: str | None = None,
    ) -> None:
        with self._writing() as (connection, tenant):
            exposures.add(connection, tenant, context_id, items, shown_at, error_id)

    def report_outcome(self, context_id: str, helped: bool) -> bool:
        with self._writing() as (connection, tenant):
            return exposures.report(connection, tenant, context_id, helped)

    def credit(self, items: Sequence[str]) -> Mapping[str, tuple[float, float]]:
        with self._reading() as (connection, tenant):
            return exposures.credit(connection, tenant, items)

    def methodologies_for_error(
        self, signatures: Sequence[ErrorSignature], scope: Scope, limit: int
    ) -> Sequence[Methodology]:
        with self._seeing() as view:
            within = view.scoped(scope)
            found = (
                abstracted.for_error(view.connection, within, scope.repo, signature, limit)
                for signature in signatures
            )
            return next(filter(None, found), ())

    def methodologies_for_task(
        self, task_type: TaskType | None, scope: Scope, limit: int
    ) -> Sequence[Methodology]:
        with self._seeing() as view:
            within = view.scoped(scope)
            return abstracted.for_task(view.connection, within, scope.repo, task_type, limit)

    def methodologies_of(self, ids: Sequence[str]) -> Sequence[Methodology]:
        with self._reading() as (connection, tenant):
            return abstracted.by_ids(connection, tenant, ids)

    def methodology_ids(self) -> Sequence[str]:
        with self._reading() as (connection, tenant):
            return abstracted.ids(connection, tenant)

    def methodologies_of_repos(self, repos: Sequence[str]) -> Sequence[Methodology]:
        with self._reading() as (connection, tenant):
            return abstracted.of_repos(connection, tenant, repos)

    def methodologies_of_errors(self, error_ids: Sequence[str]) -> Sequence[Methodology]:
        with self._reading() as (connection, tenant):
            return abstracted.of_errors(connection, tenant, error_ids)

    def methodologies_of_types(self, error_ids: Sequence[str]) -> Sequence[Sequence[Methodology]]:
        with self._reading() as (connection, tenant):
            return abstracted.of_types(connection, tenant, error_ids)

    def resolved_by(self, methodology_id: str) -> Sequence[ResolvedBy]:
        with self._reading() as (connection, tenant):
            return abstracted.resolved_by(connection, tenant, methodology_id)

    def learned_since_consolidation(self) -> int:
        with self._reading() as (connection, tenant):
            return consolidations.learned_since(connection, tenant)

    def take_lease(self, holder: str, now: datetime, until: datetime) -> datetime | None:
        with self._writing() as (connection, tenant):
            return consolidations.take_lease(connection, tenant, holder, now, until)

    def return_lease(self, holder: str) -> None:
        with self._writing() as (connection, tenant):
            consolidations.return_lease(connection, tenant, holder)

    def unconsolidated(self, after: int | None = None) -> Unconsolidated:
        with self._reading() as (connection, tenant):
            return consolidations.unconsolidated(connection, tenant, after)

    def error_histories(self, error_ids: Sequence[str], runs: int) -> Sequence[ErrorHistory]:
        with self._reading() as (connection, tenant):
            return consolidations.error_histories(connection, tenant, error_ids, runs)

    def repo_histories(self, repos: Sequence[str], runs: int) -> Sequence[RepoHistory]:
        with self._reading() as (connection, tenant):
            return consolidations.repo_histories(connection, tenant, repos, runs)

    def put_methodologies(
        self,
        methodologies: Sequence[Methodology],
        removed: Sequence[str],
        resolved: Sequence[ResolvedBy],
        similar: Sequence[SimilarTo],
    ) -> int:
        given = abstracted.Changes(methodologies, removed, resolved, similar)
        with self._writing() as (connection, tenant):
            return abstracted.put_all(connection, tenant, given)

    def prune_failed_fragments(self, error_ids: Sequence[str], keep: int) -> int:
        with self._writing() as (connection, tenant):
            return sum(
                consolidations.prune_failed(connection, tenant, error, keep) for error in error_ids
            )

    def remove_orphans(self) -> int:
        with self._writing() as (connection, tenant):
            return withdrawn.remove_orphans(connection, tenant)

    def shown_methodologies(self) -> Sequence[str]:
        with self._reading() as (connection, tenant):
            return abstracted.shown(connection, tenant)

    def mark_consolidated(self, revision: int) -> None:
        with self._writing() as (connection, tenant):
            consolidations.mark(connection, tenant, revision)

    def retellings_of(self, trajectory_ids: Iterable[str]) -> Mapping[str, Retelling]:
        with self._reading() as (connection, tenant):
            return retellings.of_runs(connection, tenant, trajectory_ids)

    def put_retellings(self, given: Mapping[str, Retelling]) -> None:
        with self._writing() as (connection, tenant):
            retellings.put(connection, tenant, given)

    def runs_to_retell(self, made_by: str) -> Sequence[str]:
        with self._reading() as (connection, tenant):
            return retellings.ids_not_by(connection, tenant, made_by)

    def explain(self, node_id: str) -> Explanation | None:
        with self._reading() as (connection, tenant):
            return explaining.explanation(
                connection,
                tenant,
                lambda: self._derived.projection.at(connection, tenant),
                node_id,
            )

    def archived_run(self, trajectory_id: str) -> ArchivedRun | None:
        with self._reading() as (connection, tenant):
            return archives.archived_run(connection, tenant, trajectory_id)

    def restore_runs(self, runs: Sequence[ArchivedRun]) -> Sequence[LearnStatus]:
        with self._writing() as (connection, tenant):
            return [archives.restore_run(connection, tenant, run) for run in runs]

    def similar_to(self, trajectory_id: str) -> Sequence[SimilarTo]:
        with self._reading() as (connection, tenant):
            return archives.similar_to(connection, tenant, trajectory_id)

    def methodology_vectors(self, space: str, ids: Sequence[str]) -> Mapping[str, Vector | None]:
        with self._reading() as (connection, tenant):
            return archives.methodology_vectors(connection, tenant, space, ids)

    def exposures(self, after: str, limit: int) -> Sequence[Exposure]:
        with self._reading() as (connection, tenant):
            return archives.exposures(connection, tenant, after, limit)

    def restore_exposures(self, exposures: Sequence[Exposure]) -> None:
        with self._writing() as (connection, tenant):
            for exposure in exposures:
                archives.restore_exposure(connection, tenant, exposure)

    def health(self) -> Sequence[HealthCheck]:
        return tuple(health.checks(self._connections))

    def pending_migrations(self) -> Sequence[str]:
        return self._connections.pending_migrations()

    def migrate(self) -> Sequence[str]:
        missing = self.pending_migrations()
        # Opening a file for writing brings it up to date.
        with self._connections.writing():
            return missing

    def graph(self) -> "Graph":
        """The topology of the memory: see `Projection` for its nodes and edges; it is read-only."""
        with self._reading() as (connection, tenant):
            return self._derived.projection.at(connection, tenant)

    @contextmanager
    def _near(
        self, kind: NodeKind, vector: Vector, scope: Scope, limit: int
    ) -> Iterator[tuple[View, list[tuple[int, Vector]]]]:
        """A view, and the keys and vectors of the nearest nodes that it sees."""
        with self._seeing() as view:
            active = spaces.active_for(view.connection, view.tenant, vector)
            matrices = self._derived.matrices.of(active)
            within = view.scoped(scope)
            yield view, matrices.nearest(view.connection, kind, within, vector, limit)

    @property
    def _derived(self) -> _Derived:
        """Made anew after a fork: a lock held by another thread then would never be released."""
        if self._own_derived.process != os.getpid():
            self._own_derived = _Derived()
        return self._own_derived

    @contextmanager
    def _reading(self) -> Iterator[tuple[Connection, int]]:
        held = self._derived.held.view
        if held is not None:
            yield held.connection, held.tenant
            return
        with self._connections.reading() as connection:
            yield connection, tenant_key(connection, self.tenant)

    @contextmanager
    def _seeing(self) -> Iterator[View]:
        held = self._derived.held.view
        if held is not None:
            yield held
            return
        with self._reading() as (connection, tenant):
            yield View(connection, tenant, self._derived.values.at(connection, tenant))

    @contextmanager
    def _writing(self) -> Iterator[tuple[Connection, int]]:
        if self._derived.held.view is not None:
            raise StoreError("nothing can be written within a snapshot; write when it has ended")
        with self._connections.writing() as connection:
            yield connection, new_tenant_key(connection, self.tenant)
