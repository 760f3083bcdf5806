"""`RunStore` on a server: runs with their fragments, each kind of node in one batch."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter, itemgetter

from contextgraph import model
from contextgraph.ports import ALL
from contextgraph.store import rules
from contextgraph.store.neo4j.advice import (
    exposures_by_id,
    forget_shown,
    mark_changed,
    put_reports,
    remove_files,
    remove_methodologies,
)
from contextgraph.store.neo4j.connection import (
    ERRORS,
    RECOVERIES,
    TRAJECTORIES,
    Connection,
    NamedQueries,
    Parameters,
    Row,
    Transaction,
    error_row,
    fragment_of,
    fragment_row,
    moment,
    outcome_row,
    recovered_row,
    scope_parameters,
    trajectory_row,
    where,
)
from contextgraph.store.neo4j.search import (
    CandidateCache,
    FragmentKey,
    WordCountCache,
    active_space,
    indexed_text,
    insert_vectors,
    vector_of,
)
from contextgraph.store.rules import facts_from, raw_with_outcome, unpacked
from contextgraph.trace.owners import Session


def trajectories(queries: NamedQueries, ids: Sequence[str]) -> dict[str, model.Trajectory]:
    """The known ones of these runs, by id."""
    known = queries.rows("trajectories", ids=ids)
    return {run.id: run for run in (TRAJECTORIES.read(row["trajectory"]) for row in known)}


class _Changes(rules.RunChanges[list[Row]]):
    """Changes of runs in a transaction; what is removed are the parts of runs."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._revision = transaction.begin_change()

    def known(self, ids: Iterable[str]) -> Mapping[str, model.Trajectory]:
        return trajectories(self._transaction, sorted({*ids}))

    def insert(self, runs: Sequence[rules.PackedRun]) -> None:
        bundles = sorted(
            (packed.bundle for packed in runs), key=lambda bundle: bundle.trajectory.id
        )
        transaction = self._transaction
        tenant, write = transaction.tenant, transaction.write
        write(
            "add_trajectories",
            [
                _trajectory_row(tenant, packed, self._revision + n)
                for n, packed in enumerate(runs, 1)
            ],
        )
        write("add_fragments", list(chain.from_iterable(map(_fragment_rows, bundles))))
        touched = _sorted(chain.from_iterable(map(_touched_rows, bundles)), "repo", "name")
        write("add_files", _distinct(touched, "repo", "name"))
        write("add_touched", touched)
        errors = chain.from_iterable(bundle.errors for bundle in bundles)
        write("add_errors", _distinct(_sorted(map(error_row, errors), "id"), "id"))
        met = _sorted(chain.from_iterable(map(_met_rows, bundles)), "error_id", "trajectory_id")
        write("add_met", met)
        # Of several runs in one batch the first has the least id.
        write("describe_errors", _distinct(met, "error_id"))
        write("add_caused", _sorted(chain.from_iterable(map(_caused_rows, bundles)), "error_id"))
        recovered = chain.from_iterable(_recovered_rows(tenant, bundle) for bundle in bundles)
        write("add_recovered", _sorted(recovered, "error_id"))
        insert_vectors(transaction, bundles)
        recoveries = sum(len(run.bundle.recovered) for run in runs)
        self._note_change(len(runs), trajectories=len(runs), recoveries=recoveries)

    def shown(self, context_ids: Sequence[str]) -> Sequence[model.Exposure]:
        return exposures_by_id(self._transaction, context_ids)

    def put_reports(self, reported: Sequence[model.Exposure]) -> None:
        put_reports(self._transaction, reported)

    def set_outcomes(self, runs: Sequence[model.Trajectory]) -> None:
        changes = [
            {"id": run.id, **outcome_row(run), "revision": self._revision + number}
            for number, run in enumerate(runs, start=1)
        ]
        self._transaction.write("set_outcomes", changes)
        self._note_change(len(runs))

    def rename(self, ids: Mapping[str, str]) -> None:
        renamed = [{"former": former, "now": now} for former, now in ids.items()]
        self._transaction.write("note_former_ids", renamed)

    def remove(self, ids: Sequence[str], *, forgotten: bool) -> list[Row]:
        transaction, revision = self._transaction, self._revision + 1
        removed = transaction.rows("parts_of", ids=ids)
        known = [row["id"] for row in removed]
        errors = sorted({error for row in removed for error in row["errors"]})
        mark_changed(transaction, errors, [row["repo"] for row in removed], revision)
        derived = [row["id"] for row in transaction.rows("derived_from_runs", ids=known)]
        remove_methodologies(transaction, derived, revision)
        fragments = sorted(fragment for row in removed for fragment in row["fragments"])
        transaction.rows("remove_fragments", ids=fragments)
        transaction.rows("remove_raw_runs", ids=known)
        transaction.rows("remove_trajectories", ids=known)
        if forgotten:
            transaction.rows("remove_former_ids", ids=ids)
            forget_shown(transaction, [*ids, *fragments])
        recoveries = sum(row["recoveries"] for row in removed)
        self._note_change(1, removals=1, trajectories=-len(removed), recoveries=-recoveries)
        return removed

    def remove_unused(self, removed: list[Row]) -> None:
        transaction = self._transaction
        errors = sorted({error for row in removed for error in row["errors"]})
        transaction.rows("remove_unmet_errors", ids=errors)
        transaction.rows("describe_errors_again", ids=errors)
        transaction.rows(
            "remove_repos_without_runs", repos=sorted({row["repo"] for row in removed})
        )
        remove_files(transaction, ((row["repo"], name) for row in removed for name in row["files"]))

    def _note_change(self, revisions: int, **added: int) -> None:
        self._transaction.note_change(revisions=revisions, **added)
        self._revision += revisions


def _trajectory_row(tenant: str, packed: rules.PackedRun, revision: int) -> Parameters:
    run = packed.bundle.trajectory
    return {
        **trajectory_row(run),
        "words": indexed_text(tenant, run.repo, rules.trajectory_text(run)),
        "data": packed.raw,
        "facts": packed.facts,
        "openings": Session(packed.bundle.raw).marks,
        "revision": revision,
    }


def _fragment_rows(bundle: model.Bundle) -> list[Parameters]:
    run = bundle.trajectory.id
    return [{"trajectory_id": run, **fragment_row(value)} for value in bundle.fragments]


def _touched_rows(bundle: model.Bundle) -> list[Parameters]:
    return [
        {"fragment_id": value.id, "repo": bundle.trajectory.repo, "name": name}
        for value in bundle.fragments
        for name in sorted(rules.file_names(value))
    ]


def _met_rows(bundle: model.Bundle) -> list[Parameters]:
    return [
        {
            "trajectory_id": bundle.trajectory.id,
            "error_id": met.error.id,
            "steps": met.steps,
            "cleared": met.cleared,
            "keywords": list(met.error.keywords),
            "context": met.error.context,
        }
        for met in rules.met_errors(bundle)
    ]


def _caused_rows(bundle: model.Bundle) -> list[Parameters]:
    return [
        {
            "fragment_id": value.fragment_id,
            "error_id": value.error_id,
            "steps": list(value.steps),
            "locations": list(value.locations),
        }
        for value in bundle.caused
    ]


def _recovered_rows(tenant: str, bundle: model.Bundle) -> list[Parameters]:
    return [
        {
            "fragment_id": value.fragment_id,
            "error_id": value.error_id,
            "words": indexed_text(
                tenant, bundle.trajectory.repo, rules.recovery_text(value.message, value.actions)
            ),
            **recovered_row(value),
        }
        for value in bundle.recovered
    ]


def _sorted(records: Iterable[Parameters], *keys: str) -> list[Parameters]:
    return sorted(records, key=itemgetter(*keys))


def _distinct(records: Sequence[Parameters], *keys: str) -> list[Parameters]:
    """The first of those with the same *keys*."""
    key = itemgetter(*keys)
    return list({key(row): row for row in reversed(records)}.values())[::-1]


# Forgotten in one transaction, whose size the memory of a server limits: 1,496 runs were too many
# for one of 512 MB, a hundred of 100 kB each took 31 MB.
RUNS_AT_ONCE = 32

_PHASES = [phase.value for phase in model.Phase]
_TASK_TYPES = [task_type.value for task_type in model.TaskType]


class Neo4jRuns:
    """`RunStore` on a server; the docstrings of its methods are those of the protocol."""

    def __init__(self, connection: Connection, values: CandidateCache) -> None:
        self._connection = connection
        self._values = values
        self._words = WordCountCache(
            connection, "trajectory_word_counts", attrgetter("trajectories")
        )

    def add(self, bundles: Sequence[model.Bundle]) -> Sequence[model.LearnStatus]:
        given = rules.pack(bundles)
        return self._connection.write(lambda transaction: _Changes(transaction).add(given))

    def replace(
        self, bundles: Mapping[str, model.Bundle], added: Sequence[model.Bundle] = ()
    ) -> Sequence[str]:
        given = dict(zip(bundles, rules.pack(bundles.values()), strict=True))
        new = rules.pack(added)

        def work(transaction: Transaction) -> Sequence[str]:
            changes = _Changes(transaction)
            changes.add(new)
            return changes.replace(given)

        return self._connection.write(work)

    def set_outcome(self, trajectory_ids: Iterable[str], outcome: model.Outcome) -> int:
        ids = [*trajectory_ids]
        return self._connection.write(
            lambda transaction: _Changes(transaction).set_outcome(ids, outcome)
        )

    def learned(self, trajectory_ids: Sequence[str]) -> Mapping[str, model.Learned]:
        learned = self._connection.rows("learned", ids=sorted(set(trajectory_ids)))
        return {row["id"]: _learned(row) for row in learned}

    def trajectories(self, trajectory_ids: Iterable[str]) -> Mapping[str, model.Trajectory]:
        return trajectories(self._connection, sorted(set(trajectory_ids)))

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

    def opened(self, digests: Sequence[str], limit: int) -> Sequence[str]:
        return self._connection.collected("opened", digests=sorted({*digests}), limit=limit)

    def raw(self, trajectory_id: str) -> model.RawTrajectory | None:
        run = self.trajectories([trajectory_id]).get(trajectory_id)
        return None if run is None else self._raw(run)

    def facts(self, trajectory_ids: Iterable[str]) -> Mapping[str, model.RunFacts]:
        known = self._connection.rows("facts_of", ids=sorted({*trajectory_ids}))
        return {row["id"]: facts_from(row["facts"], row["id"]) for row in known}

    def fragments(self, trajectory_ids: Iterable[str]) -> Mapping[str, Sequence[model.Fragment]]:
        by_run: dict[str, list[model.Fragment]] = {run: [] for run in trajectory_ids}
        keys = self._connection.collected("fragments_of", ids=list(by_run)) if by_run else ()
        for candidate in self._values.fragments([FragmentKey(*key) for key in keys]):
            by_run[candidate.trajectory.id].append(candidate.fragment)
        return by_run

    def forget(self, trajectory_ids: Iterable[str]) -> int:
        def work(transaction: Transaction, some: Sequence[str]) -> int:
            return _Changes(transaction).forget(some)

        ids = sorted(set(trajectory_ids))
        batches = (ids[start : start + RUNS_AT_ONCE] for start in range(0, len(ids), RUNS_AT_ONCE))
        return sum(self._connection.write(work, batch) for batch in batches)

    def for_task(
        self,
        task_type: model.TaskType | None,
        scope: model.Scope,
        limit: int,
        agent: str | None = None,
    ) -> Sequence[model.Trajectory]:
        ids = self._connection.collected(
            where("trajectories_for_task", scope.repo),
            task_types=[task_type.value] if task_type else _TASK_TYPES,
            agent=agent,
            limit=max(0, limit),
            **scope_parameters(scope),
        )
        return self._values.trajectories(ids)

    def listed(
        self, wanted: model.RunFilter, limit: int, skip: int = 0
    ) -> Sequence[model.Trajectory]:
        ids = self._connection.collected(
            where("trajectories_listed", wanted.repo),
            repo=None if wanted.repo is None else wanted.repo.casefold(),
            agent=wanted.agent,
            outcome=wanted.outcome,
            since=None if wanted.since is None else moment(wanted.since),
            order=wanted.order,
            limit=max(0, limit),
            skip=skip,
        )
        return self._values.trajectories(ids)

    def repositories(
        self, limit: int, skip: int = 0, containing: str = ""
    ) -> Sequence[tuple[str, int]]:
        named = {"limit": max(0, limit), "skip": skip, "text": containing.casefold()}
        found = self._connection.rows("repositories_listed", **named)
        return [(row["repo"], row["runs"]) for row in found]

    def for_text(
        self, words: Sequence[str], scope: model.Scope, limit: int
    ) -> Sequence[model.Trajectory]:
        ids = self._connection.collected(
            "trajectories_for_text",
            words=self._words.terms(words, scope.repo),
            limit=max(0, limit),
            **scope_parameters(scope),
        )
        return self._values.trajectories(ids)

    def find_fragments(
        self,
        scope: model.Scope,
        limit: int,
        *,
        phase: model.Phase | None = None,
        file_name: str | None = None,
        loop_command: str | None = None,
    ) -> Sequence[model.FragmentCandidate]:
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
            **scope_parameters(scope),
        )
        return self._values.fragments([FragmentKey(*key) for key in keys])

    def word_counts(self, words: Sequence[str]) -> model.WordCounts:
        return self._words.counts(words)

    def archived(self, trajectory_id: str) -> model.Bundle | None:
        with self._connection.snapshot():
            run = self.trajectories([trajectory_id]).get(trajectory_id)
            raw = None if run is None else self._raw(run)
            facts = self.facts([trajectory_id])
            row = self._connection.row("archived_run", id=trajectory_id)
            embedded = self._embedded(trajectory_id)
        if run is None or raw is None or row is None:
            return None
        errors = sorted(row["errors"], key=lambda error: str(error["id"]))
        return model.Bundle(
            trajectory=run,
            fragments=tuple(map(fragment_of, row["fragments"])),
            errors=tuple(map(ERRORS.read, errors)),
            caused=tuple(
                model.CausedError(fragment, error, tuple(steps), tuple(locations))
                for fragment, error, steps, locations in row["caused"]
            ),
            recovered=tuple(
                RECOVERIES.read(edge, fragment_id=fragment, error_id=error)
                for fragment, error, edge in row["recovered"]
            ),
            facts=facts[trajectory_id],
            raw=raw,
            embedded=embedded,
            met={error["id"]: error["steps"] for error in errors},
        )

    def _raw(self, run: model.Trajectory) -> model.RawTrajectory | None:
        row = self._connection.row("raw_trajectory", id=run.id)
        return None if row is None else raw_with_outcome(unpacked(row["data"], run.id), run)

    def _embedded(self, trajectory_id: str) -> model.EmbeddedRun | None:
        """A run in the active space."""
        active = active_space(self._connection)
        if active is None:
            return None
        row = self._connection.row("embedded_run", id=trajectory_id, property=active.property)
        name = active.space.name
        return None if row is None else model.EmbeddedRun(name, vector_of(name, row["vector"]))


def _learned(row: Row) -> model.Learned:
    outcome = model.Outcome(row["outcome"])
    return model.Learned(
        trajectory_id=row["run"],
        outcome=outcome,
        is_open=outcome is model.Outcome.UNKNOWN and row["exit_status"] is None,
        fragments=row["fragments"],
        error_patterns=row["errors"],
        to_embed=0 if row["embedded"] else 1,
        outcome_source=model.OutcomeSource(row["outcome_source"]),
        change=model.ChangeStatus(row["change"]),
    )
