"""The memory on a Neo4j server, shared by teams: 5.26 LTS and later."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import TypeVar

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
from contextgraph.store.neo4j_store import (
    archives,
    bundles,
    consolidations,
    explaining,
    exposures,
    health,
    methodologies as abstracted,
    nearness,
    retellings,
    retrieval,
    spaces,
    statistics,
    trajectories,
)
from contextgraph.store.neo4j_store.bundles import Packed
from contextgraph.store.neo4j_store.connection import Connection
from contextgraph.store.neo4j_store.known import Known
from contextgraph.store.neo4j_store.transaction import Transaction
from contextgraph.store.raw import packed
from contextgraph.vectors import Vector

Answer = TypeVar("Answer")

# So much is removed in one transaction, for which the memory of a server is limited: all 1,496 runs
# of a corpus were too many for one of 512 MB, a hundred of 100 kB each took 31 MB.
RUNS_AT_ONCE = 32
NODES_AT_ONCE = 200


class Neo4jStore:
    """A `GraphStore` on the server at *address*; methods as in the ports.

    *address* is ``neo4j://`` or ``bolt://``, its path the name of the database; *auth* is (user,
    password). Nothing is opened until first used. Threads and processes may share it. With
    *read_only* a memory that does not exist is not created: reading raises `MemoryNotFoundError`.
    """

    def __init__(
        self,
        address: str,
        auth: tuple[str, str] | None = None,
        tenant: str = "default",
        read_only: bool = False,
    ) -> None:
        self.tenant = tenant
        self._connection = Connection(address, auth, tenant, read_only=read_only)
        self._own_known = Known()

    def add_bundles(self, given: Sequence[Bundle]) -> Sequence[LearnStatus]:
        packs = [Packed(bundle, packed(bundle.raw)) for bundle in given]
        return self._connection.write(bundles.add_bundles, packs)

    def replace_bundle(self, bundle: Bundle) -> None:
        given = Packed(bundle, packed(bundle.raw))
        self._connection.write(bundles.replace_bundle, given)

    def learned(self, trajectory_ids: Sequence[str]) -> Mapping[str, Learned]:
        return self._connection.read(trajectories.learned, trajectory_ids)

    def trajectory(self, trajectory_id: str) -> Trajectory | None:
        return self._connection.read(trajectories.trajectory, trajectory_id)

    def trajectory_ids(self) -> Sequence[str]:
        return self._connection.read(trajectories.trajectory_ids)

    def raw_trajectory(self, trajectory_id: str) -> RawTrajectory | None:
        return self._connection.read(trajectories.raw_trajectory, trajectory_id)

    def fragments_of(self, trajectory_ids: Iterable[str]) -> Mapping[str, Sequence[Fragment]]:
        ids = tuple(trajectory_ids)

        def found(transaction: Transaction) -> Mapping[str, Sequence[Fragment]]:
            keys = trajectories.fragments_of(transaction, ids)
            of: dict[str, list[Fragment]] = {run: [] for run in ids}
            for one in self._known.values.fragments(transaction, keys):
                of[one.trajectory.id].append(one.fragment)
            return of

        return self._connection.read(found)

    def forget(self, trajectory_ids: Iterable[str]) -> int:
        ids, write = sorted(set(trajectory_ids)), self._connection.write
        batches = (ids[start : start + RUNS_AT_ONCE] for start in range(0, len(ids), RUNS_AT_ONCE))
        return sum(write(trajectories.forget, batch) for batch in batches)

    def pending_migrations(self) -> Sequence[str]:
        return [step.name for step in self._connection.pending_migrations()]

    def migrate(self) -> Sequence[str]:
        return [step.name for step in self._connection.migrate()]

    def close(self) -> None:
        self._connection.close()

    def snapshot(self) -> AbstractContextManager[None]:
        return self._connection.snapshot()

    def ahead(self, question: Callable[[], Answer]) -> Callable[[], Answer]:
        return self._connection.ahead(question)

    def recoveries_for_error(
        self, asked: Sequence[ErrorQuestion], limit: int, enough: int | None = None
    ) -> Sequence[RecoveryCandidate]:
        def found(transaction: Transaction) -> Sequence[RecoveryCandidate]:
            keys = retrieval.recoveries_for_error(transaction, asked, limit, enough)
            known = self._known.values.recoveries(transaction, keys)
            return [known[key] for key in keys if key in known]

        return self._connection.read(found)

    def recoveries_for_text(
        self, words: Sequence[str], scope: Scope, limit: int
    ) -> Sequence[RecoveryCandidate]:
        """Relevance as the ports say, of counts that may lag behind: see `WordCounts`."""

        def found(transaction: Transaction) -> Sequence[RecoveryCandidate]:
            weights = self._known.recovered_words.weights(transaction, words)
            keys = retrieval.recoveries_for_text(transaction, weights, scope, limit)
            return list(self._known.values.recoveries(transaction, keys).values())

        return self._connection.read(found)

    def representatives_of(
        self, recoveries: Sequence[RecoveryCandidate], scope: Scope
    ) -> Sequence[RecoveryCandidate]:
        def found(transaction: Transaction) -> Sequence[RecoveryCandidate]:
            heads = retrieval.representatives_of(transaction, recoveries, scope)
            known = self._known.values.recoveries(transaction, heads.values())
            return [
                known[heads[number]] if heads.get(number) in known else one
                for number, one in enumerate(recoveries)
            ]

        return self._connection.read(found)

    def trajectories_for_task(
        self, task_type: TaskType | None, scope: Scope, limit: int
    ) -> Sequence[Trajectory]:
        def found(transaction: Transaction) -> Sequence[Trajectory]:
            ids = retrieval.trajectories_for_task(transaction, task_type, scope, limit)
            return self._known.values.trajectories(transaction, ids)

        return self._connection.read(found)

    def trajectories_for_text(
        self, words: Sequence[str], scope: Scope, limit: int
    ) -> Sequence[Trajectory]:
        """Relevance as in `recoveries_for_text`."""

        def found(transaction: Transaction) -> Sequence[Trajectory]:
            weights = self._known.trajectory_words.weights(transaction, words)
            ids = retrieval.trajectories_for_text(transaction, weights, scope, limit)
            return self._known.values.trajectories(transaction, ids)

        return self._connection.read(found)

    def fragments_for_state(
        self, phase: Phase | None, file_name: str | None, scope: Scope, limit: int
    ) -> Sequence[FragmentCandidate]:
        def found(transaction: Transaction) -> Sequence[FragmentCandidate]:
            keys = retrieval.fragments_for_state(transaction, phase, file_name, scope, limit)
            return self._known.values.fragments(transaction, keys)

        return self._connection.read(found)

    def document_count(self) -> int:
        return self._connection.read(self._known.trajectory_words.total)

    def word_frequencies(self, words: Sequence[str]) -> Mapping[str, int]:
        return self._connection.read(self._known.trajectory_words.of, words)

    def common_errors(self, phase: Phase | None, scope: Scope, limit: int) -> Sequence[ErrorTally]:
        return self._connection.read(statistics.common_errors, phase, scope, limit)

    def error_tally(self, signature: ErrorSignature, scope: Scope) -> ErrorTally | None:
        return self._connection.read(statistics.error_tally, signature, scope)

    def active_space(self) -> Space | None:
        found = self._connection.read(spaces.active)
        return found.space if found else None

    def space_model(self, space: str) -> bytes | None:
        return self._connection.read(spaces.space_model, space)

    def texts_to_embed(
        self, limit: int, space: str | None = None, after: str = ""
    ) -> Sequence[RunTexts]:
        return self._connection.read(spaces.texts_to_embed, limit, space, after)

    def prepare_space(self, space: Space, model: bytes | None) -> None:
        self._sweep()
        is_prepared = False
        while not is_prepared:
            property_ = self._connection.read(spaces.free_property, space.name)
            self._connection.make_vector_indexes(property_)
            is_prepared = self._connection.write(spaces.prepare, space, model, property_)

    def add_vectors(self, vectors: Mapping[str, RunVectors]) -> None:
        self._connection.write(spaces.add_vectors, vectors)

    def methodologies_to_embed(self, limit: int, space: str | None = None) -> Sequence[Methodology]:
        return self._connection.read(spaces.methodologies_to_embed, limit, space)

    def add_methodology_vectors(self, space: str, vectors: Mapping[str, Vector | None]) -> None:
        self._connection.write(spaces.add_methodology_vectors, space, vectors)

    def switch_space(self, space: str) -> None:
        """The switch is one transaction; what it made invisible is taken away after it."""
        self._connection.write(spaces.switch, space)
        self._sweep()

    def _sweep(self) -> None:
        for name, property_ in self._connection.read(spaces.retired):
            last = self._connection.write(spaces.sweep, name, property_, "")
            while last:
                last = self._connection.write(spaces.sweep, name, property_, last)

    def nearest_trajectories(
        self, vector: Vector, scope: Scope, limit: int
    ) -> Sequence[Near[Trajectory]]:
        return self._connection.read(
            nearness.nearest_trajectories, self._known, vector, scope, limit
        )

    def nearest_fragments(
        self, vector: Vector, scope: Scope, limit: int
    ) -> Sequence[Near[FragmentCandidate]]:
        return self._connection.read(nearness.nearest_fragments, self._known, vector, scope, limit)

    def nearest_recoveries(
        self, vector: Vector, scope: Scope, limit: int
    ) -> Sequence[Near[RecoveryCandidate]]:
        return self._connection.read(nearness.nearest_recoveries, self._known, vector, scope, limit)

    def nearest_methodologies(
        self, vector: Vector, scope: Scope, limit: int
    ) -> Sequence[Near[Methodology]]:
        return self._connection.read(
            nearness.nearest_methodologies, self._known, vector, scope, limit
        )

    def counts(self) -> MemoryCounts:
        return self._connection.read(statistics.counts)

    def error_frequency(self) -> Mapping[str, int]:
        return self._connection.read(statistics.error_frequency)

    def error_transitions(self) -> Mapping[str, Mapping[str, int]]:
        return self._connection.read(statistics.error_transitions)

    def errors_of_runs(self, trajectory_ids: Iterable[str], limit: int) -> Sequence[ErrorTally]:
        return self._connection.read(statistics.errors_of_runs, tuple(trajectory_ids), limit)

    def add_exposure(
        self,
        context_id: str,
        items: Sequence[str],
        shown_at: datetime,
        error_id: str | None = None,
    ) -> None:
        write = self._connection.write
        write(exposures.add_exposure, context_id, items, shown_at, error_id)

    def report_outcome(self, context_id: str, helped: bool) -> bool:
        return self._connection.write(exposures.report_outcome, context_id, helped)

    def credit(self, items: Sequence[str]) -> Mapping[str, tuple[float, float]]:
        return self._connection.read(exposures.credit, items)

    def methodologies_for_error(
        self, signatures: Sequence[ErrorSignature], scope: Scope, limit: int
    ) -> Sequence[Methodology]:
        return self._connection.read(abstracted.methodologies_for_error, signatures, scope, limit)

    def methodologies_for_task(
        self, task_type: TaskType | None, scope: Scope, limit: int
    ) -> Sequence[Methodology]:
        return self._connection.read(abstracted.methodologies_for_task, task_type, scope, limit)

    def methodologies_of_repos(self, repos: Sequence[str]) -> Sequence[Methodology]:
        return self._connection.read(abstracted.methodologies_of_repos, repos)

    def methodologies_of(self, ids: Sequence[str]) -> Sequence[Methodology]:
        return self._connection.read(abstracted.methodologies_of, ids)

    def methodology_ids(self) -> Sequence[str]:
        return self._connection.read(abstracted.methodology_ids)

    def methodologies_of_errors(self, error_ids: Sequence[str]) -> Sequence[Methodology]:
        return self._connection.read(abstracted.methodologies_of_errors, error_ids)

    def methodologies_of_types(self, error_ids: Sequence[str]) -> Sequence[Sequence[Methodology]]:
        return self._connection.read(abstracted.methodologies_of_types, error_ids)

    def resolved_by(self, methodology_id: str) -> Sequence[ResolvedBy]:
        return self._connection.read(abstracted.resolved_by, methodology_id)

    def learned_since_consolidation(self) -> int:
        return self._connection.read(consolidations.learned_since_consolidation)

    def take_lease(self, holder: str, now: datetime, until: datetime) -> datetime | None:
        return self._connection.write(consolidations.take_lease, holder, now, until)

    def return_lease(self, holder: str) -> None:
        self._connection.write(consolidations.return_lease, holder)

    def unconsolidated(self, after: int | None = None) -> Unconsolidated:
        return self._connection.read(consolidations.unconsolidated, after)

    def error_histories(self, error_ids: Sequence[str], runs: int) -> Sequence[ErrorHistory]:
        return self._connection.read(consolidations.error_histories, error_ids, runs)

    def repo_histories(self, repos: Sequence[str], runs: int) -> Sequence[RepoHistory]:
        return self._connection.read(consolidations.repo_histories, repos, runs)

    def put_methodologies(
        self,
        methodologies: Sequence[Methodology],
        removed: Sequence[str],
        resolved: Sequence[ResolvedBy],
        similar: Sequence[SimilarTo],
    ) -> int:
        given = abstracted.Changes(methodologies, removed, resolved, similar)
        return self._connection.write(abstracted.put_methodologies, given)

    def prune_failed_fragments(self, error_ids: Sequence[str], keep: int) -> int:
        write, prune = self._connection.write, consolidations.prune_failed_fragments
        often = self._connection.read(consolidations.errors_often_failed, error_ids, keep)
        return sum(_all_of(partial(write, prune, error, keep, NODES_AT_ONCE)) for error in often)

    def remove_orphans(self) -> int:
        write = self._connection.write
        return _all_of(partial(write, abstracted.remove_orphans, NODES_AT_ONCE))

    def shown_methodologies(self) -> Sequence[str]:
        return self._connection.read(abstracted.shown_methodologies)

    def mark_consolidated(self, revision: int) -> None:
        if self._connection.write(consolidations.mark_consolidated, revision):
            self._connection.plan_anew()

    def archived_run(self, trajectory_id: str) -> ArchivedRun | None:
        return self._connection.read(archives.archived_run, trajectory_id)

    def restore_runs(self, runs: Sequence[ArchivedRun]) -> Sequence[LearnStatus]:
        raws = [packed(run.bundle.raw) for run in runs]
        return self._connection.write(archives.restore_runs, runs, raws)

    def similar_to(self, trajectory_id: str) -> Sequence[SimilarTo]:
        return self._connection.read(archives.similar_to, trajectory_id)

    def methodology_vectors(self, space: str, ids: Sequence[str]) -> Mapping[str, Vector | None]:
        return self._connection.read(archives.methodology_vectors, space, ids)

    def exposures(self, after: str, limit: int) -> Sequence[Exposure]:
        return self._connection.read(archives.exposures, after, limit)

    def restore_exposures(self, exposures: Sequence[Exposure]) -> None:
        self._connection.write(archives.restore_exposures, exposures)

    def retellings_of(self, trajectory_ids: Iterable[str]) -> Mapping[str, Retelling]:
        return self._connection.read(retellings.retellings_of, tuple(trajectory_ids))

    def put_retellings(self, given: Mapping[str, Retelling]) -> None:
        self._connection.write(retellings.put_retellings, given)

    def runs_to_retell(self, made_by: str) -> Sequence[str]:
        return self._connection.read(retellings.runs_to_retell, made_by)

    def explain(self, node_id: str) -> Explanation | None:
        return self._connection.read(explaining.explain, node_id)

    def health(self) -> Sequence[HealthCheck]:
        return tuple(health.checks(self._connection))

    @property
    def _known(self) -> Known:
        """Made anew after a fork: a lock held by another thread then would never be released."""
        if self._own_known.process != os.getpid():
            self._own_known = Known()
        return self._own_known


def _all_of(some: Callable[[], int]) -> int:
    """How many were removed by *some*, a transaction with a limit, until there are none."""
    total = removed = some()
    while removed >= NODES_AT_ONCE:
        removed = some()
        total += removed
    return total
