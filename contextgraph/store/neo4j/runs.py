"""The run store: runs with their fragments, and past runs like the present one."""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from contextgraph.model import (
    Bundle,
    CausedError,
    ChangeStatus,
    EmbeddedRun,
    Fragment,
    FragmentCandidate,
    Learned,
    LearnStatus,
    Outcome,
    OutcomeSource,
    Phase,
    RawTrajectory,
    RunFilter,
    Scope,
    TaskType,
    Trajectory,
    WordCounts,
)
from contextgraph.ports import ALL
from contextgraph.store.columns import packed, unpacked
from contextgraph.store.neo4j import rows, run_rows
from contextgraph.store.neo4j.cache import CandidateCache, FragmentKey
from contextgraph.store.neo4j.connection import Connection
from contextgraph.store.neo4j.full_text import WordCountCache
from contextgraph.store.neo4j.rows import Row, where
from contextgraph.store.neo4j.run_rows import Packed
from contextgraph.store.neo4j.vectors import active_space, vector_of
from contextgraph.store.rules import raw_with_outcome

# Forgotten in one transaction, whose size the memory of a server limits: 1,496 runs were too many
# for one of 512 MB, a hundred of 100 kB each took 31 MB.
RUNS_AT_ONCE = 32

_PHASES = [phase.value for phase in Phase]
_TASK_TYPES = [task_type.value for task_type in TaskType]


class Neo4jRuns:
    """`RunStore` on a server; the docstrings of its methods are those of the protocol."""

    def __init__(self, connection: Connection, values: CandidateCache) -> None:
        self._connection = connection
        self._values = values
        self._words = WordCountCache(
            connection, "trajectory_word_counts", attrgetter("trajectories")
        )

    def add(self, bundles: Sequence[Bundle]) -> Sequence[LearnStatus]:
        return self._connection.write(run_rows.add, [_packed(bundle) for bundle in bundles])

    def replace(self, bundles: Mapping[str, Bundle]) -> Sequence[str]:
        given = {former: _packed(bundle) for former, bundle in bundles.items()}
        return self._connection.write(run_rows.replace_runs, given)

    def set_outcome(self, trajectory_ids: Iterable[str], outcome: Outcome) -> int:
        return self._connection.write(run_rows.set_outcome, sorted(set(trajectory_ids)), outcome)

    def learned(self, trajectory_ids: Sequence[str]) -> Mapping[str, Learned]:
        learned = self._connection.rows("learned", ids=sorted(set(trajectory_ids)))
        return {row["id"]: _learned(row) for row in learned}

    def trajectories(self, trajectory_ids: Iterable[str]) -> Mapping[str, Trajectory]:
        return run_rows.trajectories(self._connection, sorted(set(trajectory_ids)))

    def ids(
        self,
        repo: str | None = None,
        instance: str | None = None,
        after: str = "",
        limit: int = ALL,
    ) -> Sequence[str]:
        return self._connection.collected(
            "trajectory_ids",
            repo=repo and repo.casefold(),
            instance=instance,
            after=after,
            limit=limit,
        )

    def raw(self, trajectory_id: str) -> RawTrajectory | None:
        run = self.trajectories([trajectory_id]).get(trajectory_id)
        return None if run is None else self._raw(run)

    def fragments(self, trajectory_ids: Iterable[str]) -> Mapping[str, Sequence[Fragment]]:
        by_run: dict[str, list[Fragment]] = {run: [] for run in trajectory_ids}
        keys = self._connection.collected("fragments_of", ids=list(by_run)) if by_run else ()
        for candidate in self._values.fragments([FragmentKey(*key) for key in keys]):
            by_run[candidate.trajectory.id].append(candidate.fragment)
        return by_run

    def forget(self, trajectory_ids: Iterable[str]) -> int:
        ids = sorted(set(trajectory_ids))
        batches = (ids[start : start + RUNS_AT_ONCE] for start in range(0, len(ids), RUNS_AT_ONCE))
        return sum(self._connection.write(run_rows.forget, batch) for batch in batches)

    def for_task(
        self, task_type: TaskType | None, scope: Scope, limit: int, agent: str | None = None
    ) -> Sequence[Trajectory]:
        ids = self._connection.collected(
            where("trajectories_for_task", scope.repo),
            task_types=[task_type.value] if task_type else _TASK_TYPES,
            agent=agent,
            limit=max(0, limit),
            **rows.scope_parameters(scope),
        )
        return self._values.trajectories(ids)

    def listed(self, wanted: RunFilter, limit: int, skip: int = 0) -> Sequence[Trajectory]:
        ids = self._connection.collected(
            where("trajectories_listed", wanted.repo),
            repo=None if wanted.repo is None else wanted.repo.casefold(),
            agent=wanted.agent,
            outcome=wanted.outcome,
            since=None if wanted.since is None else rows.moment(wanted.since),
            order=wanted.order,
            limit=max(0, limit),
            skip=skip,
        )
        return self._values.trajectories(ids)

    def for_text(self, words: Sequence[str], scope: Scope, limit: int) -> Sequence[Trajectory]:
        ids = self._connection.collected(
            "trajectories_for_text",
            words=self._words.terms(words, scope.repo),
            limit=max(0, limit),
            **rows.scope_parameters(scope),
        )
        return self._values.trajectories(ids)

    def find_fragments(
        self,
        scope: Scope,
        limit: int,
        *,
        phase: Phase | None = None,
        file_name: str | None = None,
        loop_command: str | None = None,
    ) -> Sequence[FragmentCandidate]:
        if file_name is not None:
            name = where("fragments_at_file", scope.repo)
        else:
            name = "loop_fragments" if loop_command is not None else where("fragments", scope.repo)
        keys = self._connection.collected(
            name,
            phases=[phase.value] if phase else _PHASES,
            file_name=file_name,
            loop_command=loop_command,
            limit=max(0, limit),
            **rows.scope_parameters(scope),
        )
        return self._values.fragments([FragmentKey(*key) for key in keys])

    def word_counts(self, words: Sequence[str]) -> WordCounts:
        return self._words.counts(words)

    def archived(self, trajectory_id: str) -> Bundle | None:
        with self._connection.snapshot():
            run = self.trajectories([trajectory_id]).get(trajectory_id)
            raw = None if run is None else self._raw(run)
            row = self._connection.row("archived_run", id=trajectory_id)
            embedded = self._embedded(trajectory_id)
        if run is None or raw is None or row is None:
            return None
        errors = sorted(row["errors"], key=lambda error: str(error["id"]))
        return Bundle(
            trajectory=run,
            fragments=tuple(map(rows.fragment_of, row["fragments"])),
            errors=tuple(map(rows.error_of, errors)),
            caused=tuple(
                CausedError(fragment, error, tuple(steps), tuple(locations))
                for fragment, error, steps, locations in row["caused"]
            ),
            recovered=tuple(
                rows.recovered_of(edge, fragment, error)
                for fragment, error, edge in row["recovered"]
            ),
            raw=raw,
            embedded=embedded,
            met={error["id"]: error["steps"] for error in errors},
        )

    def _raw(self, run: Trajectory) -> RawTrajectory | None:
        row = self._connection.row("raw_trajectory", id=run.id)
        return None if row is None else raw_with_outcome(unpacked(row["data"], run.id), run)

    def _embedded(self, trajectory_id: str) -> EmbeddedRun | None:
        """A run in the active space."""
        active = active_space(self._connection)
        if active is None:
            return None
        row = self._connection.row("embedded_run", id=trajectory_id, property=active.property)
        name = active.space.name
        return None if row is None else EmbeddedRun(name, vector_of(name, row["vector"]))


def _packed(bundle: Bundle) -> Packed:
    return Packed(bundle, packed(bundle.raw))


def _learned(row: Row) -> Learned:
    outcome = Outcome(row["outcome"])
    return Learned(
        trajectory_id=row["run"],
        outcome=outcome,
        is_open=outcome is Outcome.UNKNOWN and row["exit_status"] is None,
        fragments=row["fragments"],
        error_patterns=row["errors"],
        to_embed=0 if row["embedded"] else 1,
        outcome_source=OutcomeSource(row["outcome_source"]),
        change=ChangeStatus(row["change"]),
    )
