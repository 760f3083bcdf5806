"""Writing and removing runs: each kind of node and relation in one batch, sorted by key."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter

from contextgraph.model import (
    Bundle,
    LearnStatus,
    Outcome,
    Trajectory,
)
from contextgraph.store import rules
from contextgraph.store.neo4j import (
    exposures,
    full_text,
    methodologies,
    rows,
    vectors,
)
from contextgraph.store.neo4j.connection import NamedQueries, Transaction
from contextgraph.store.neo4j.rows import Parameters, Row


@dataclass(frozen=True, slots=True)
class Packed:
    """A bundle, and its raw run as the bytes to store."""

    bundle: Bundle
    raw: bytes


def trajectories(queries: NamedQueries, ids: Sequence[str]) -> dict[str, Trajectory]:
    """The known ones of these runs, by id."""
    known = queries.rows("trajectories", ids=ids)
    return {run.id: run for run in (rows.trajectory_of(row["trajectory"]) for row in known)}


def add(transaction: Transaction, given: Sequence[Packed]) -> list[LearnStatus]:
    """Write what is new of *given*, and outcomes that were unknown; the status of each."""
    revision = transaction.begin_change()
    ids = sorted({packed.bundle.trajectory.id for packed in given})
    runs = (packed.bundle.trajectory for packed in given)
    statuses, updated = rules.learning(runs, trajectories(transaction, ids))
    created = [
        packed
        for packed, status in zip(given, statuses, strict=True)
        if status is LearnStatus.CREATED
    ]
    insert(transaction, created, revision)
    bundles = [packed.bundle for packed in created]
    exposures.report_of_runs(transaction, bundles)
    _set_outcomes(transaction, updated, revision + len(created))
    recoveries = sum(len(bundle.recovered) for bundle in bundles)
    changes = len(created) + len(updated)
    transaction.note_change(revisions=changes, trajectories=len(created), recoveries=recoveries)
    return statuses


def set_outcome(transaction: Transaction, ids: Sequence[str], outcome: Outcome) -> int:
    """Set the outcome of runs by hand, whatever it was; how many this changed."""
    revision = transaction.begin_change()
    known = trajectories(transaction, ids)
    changed = {run.id: run for run in rules.set_by_hand(known.values(), outcome)}
    _set_outcomes(transaction, changed, revision)
    transaction.note_change(revisions=len(changed))
    return len(changed)


def replace_runs(transaction: Transaction, given: Mapping[str, Packed]) -> list[str]:
    """Replace runs by *given*, by their ids; those that were known."""
    return [
        former for group in _independent(given) for former in _replace_group(transaction, group)
    ]


def _independent(given: Mapping[str, Packed]) -> Iterator[dict[str, Packed]]:
    """*given* in their order, in groups in which no two name the same run."""
    group: dict[str, Packed] = {}
    named: set[str] = set()
    for former, packed in given.items():
        ids = {former, packed.bundle.trajectory.id}
        if not named.isdisjoint(ids):
            yield group
            group, named = {}, set()
        group[former] = packed
        named |= ids
    yield group


def _replace_group(transaction: Transaction, given: Mapping[str, Packed]) -> list[str]:
    revision = transaction.begin_change() + 1
    ids = {former: (former, packed.bundle.trajectory.id) for former, packed in given.items()}
    known = _known(transaction, ids)
    renamed = (ids[former] for former in known if ids[former] != (former, former))
    transaction.write(
        "note_former_ids", [{"former": former, "now": now} for former, now in renamed]
    )
    removed = remove(transaction, [run.id for runs in known.values() for run in runs], revision)
    inserted = [
        Packed(rules.with_history(given[former].bundle, runs), given[former].raw)
        for former, runs in known.items()
    ]
    insert(transaction, inserted, revision)
    bundles = [packed.bundle for packed in inserted]
    exposures.report_of_runs(transaction, bundles)
    remove_unused(transaction, removed)
    transaction.note_change(
        revisions=1 + len(inserted),
        removals=1,
        trajectories=len(inserted) - len(removed),
        recoveries=sum(len(bundle.recovered) for bundle in bundles)
        - sum(part["recoveries"] for part in removed),
    )
    return list(known)


def _known(
    transaction: Transaction, ids: Mapping[str, tuple[str, str]]
) -> dict[str, list[Trajectory]]:
    """The runs that are to be replaced, each with that of its new id where that is known, too.

    The run itself comes first: its outcome counts.
    """
    runs = trajectories(transaction, sorted({*chain(*ids.values())}))
    return {
        former: [runs[run_id] for run_id in dict.fromkeys(both) if run_id in runs]
        for former, both in ids.items()
        if former in runs
    }


def insert(transaction: Transaction, given: Sequence[Packed], revision: int) -> None:
    """Write runs that are not known, with revisions that follow *revision*."""
    bundles = sorted((packed.bundle for packed in given), key=lambda bundle: bundle.trajectory.id)
    for bundle in bundles:
        rules.check_bundle(bundle)
    tenant, write = transaction.tenant, transaction.write
    write(
        "add_trajectories",
        [_trajectory_row(tenant, packed, revision + n) for n, packed in enumerate(given, 1)],
    )
    write("add_fragments", list(chain.from_iterable(map(_fragment_rows, bundles))))
    touched = _sorted(chain.from_iterable(map(_touched_rows, bundles)), "repo", "name")
    write("add_files", _distinct(touched, "repo", "name"))
    write("add_touched", touched)
    errors = chain.from_iterable(bundle.errors for bundle in bundles)
    write("add_errors", _distinct(_sorted(map(rows.error_row, errors), "id"), "id"))
    met = _sorted(chain.from_iterable(map(_met_rows, bundles)), "error_id", "trajectory_id")
    write("add_met", met)
    # Of several runs in one batch the first has the least id.
    write("describe_errors", _distinct(met, "error_id"))
    write("add_caused", _sorted(chain.from_iterable(map(_caused_rows, bundles)), "error_id"))
    recovered = chain.from_iterable(_recovered_rows(tenant, bundle) for bundle in bundles)
    write("add_recovered", _sorted(recovered, "error_id"))
    vectors.insert(transaction, bundles)


def forget(transaction: Transaction, trajectory_ids: Sequence[str]) -> int:
    """Remove these runs with what only they support; how many were known."""
    revision = transaction.begin_change() + 1
    removed = remove(transaction, trajectory_ids, revision)
    if removed:
        transaction.rows("remove_former_ids", ids=[row["id"] for row in removed])
        remove_unused(transaction, removed)
        fragments = sorted({fragment for row in removed for fragment in row["fragments"]})
        transaction.rows("remove_shown_items", ids=fragments)
        transaction.note_change(
            revisions=1,
            removals=1,
            trajectories=-len(removed),
            recoveries=-sum(row["recoveries"] for row in removed),
        )
    return len(removed)


def remove(transaction: Transaction, trajectory_ids: Sequence[str], revision: int) -> list[Row]:
    """Delete the nodes of these runs and what was derived from them; the parts of known runs.

    Their errors and repositories count as changed at *revision*.
    """
    parts = transaction.rows("parts_of", ids=trajectory_ids)
    ids = [row["id"] for row in parts]
    errors = sorted({error for row in parts for error in row["errors"]})
    methodologies.mark_changed(transaction, errors, [row["repo"] for row in parts], revision)
    derived = [row["id"] for row in transaction.rows("derived_from_runs", ids=ids)]
    methodologies.remove(transaction, derived, revision)
    fragments = sorted(fragment for row in parts for fragment in row["fragments"])
    transaction.rows("remove_fragments", ids=fragments)
    transaction.rows("remove_raw_runs", ids=ids)
    transaction.rows("remove_trajectories", ids=ids)
    return parts


def remove_unused(transaction: Transaction, removed: Sequence[Row]) -> None:
    """Delete what only *removed* runs supported; describe errors as the runs left do."""
    errors = sorted({error for row in removed for error in row["errors"]})
    transaction.rows("remove_unmet_errors", ids=errors)
    transaction.rows("describe_errors_again", ids=errors)
    remove_files(transaction, ((row["repo"], name) for row in removed for name in row["files"]))


def remove_files(transaction: Transaction, files: Iterable[tuple[str, str]]) -> None:
    """Delete those of *files*, by repository and name, that no fragment touches any more."""
    distinct = [{"repo": repo, "name": name} for repo, name in sorted(set(files))]
    transaction.write("remove_untouched_files", distinct)


def _set_outcomes(
    transaction: Transaction, updated: Mapping[str, Trajectory], revision: int
) -> None:
    changes = [
        {"id": run, **rows.outcome_row(value), "revision": revision + number}
        for number, (run, value) in enumerate(sorted(updated.items()), start=1)
    ]
    transaction.write("set_outcomes", changes)


def _trajectory_row(tenant: str, packed: Packed, revision: int) -> Parameters:
    run = packed.bundle.trajectory
    return {
        **rows.trajectory_row(run),
        "words": full_text.indexed_text(tenant, run.repo, rules.trajectory_text(run)),
        "data": packed.raw,
        "revision": revision,
    }


def _fragment_rows(bundle: Bundle) -> list[Parameters]:
    run = bundle.trajectory.id
    return [{"trajectory_id": run, **rows.fragment_row(value)} for value in bundle.fragments]


def _touched_rows(bundle: Bundle) -> list[Parameters]:
    return [
        {"fragment_id": value.id, "repo": bundle.trajectory.repo, "name": name}
        for value in bundle.fragments
        for name in sorted(rules.file_names(value))
    ]


def _met_rows(bundle: Bundle) -> list[Parameters]:
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


def _caused_rows(bundle: Bundle) -> list[Parameters]:
    return [
        {"fragment_id": value.fragment_id, "error_id": value.error_id, **rows.caused_row(value)}
        for value in bundle.caused
    ]


def _recovered_rows(tenant: str, bundle: Bundle) -> list[Parameters]:
    return [
        {
            "fragment_id": value.fragment_id,
            "error_id": value.error_id,
            "words": full_text.indexed_text(
                tenant, bundle.trajectory.repo, rules.recovery_text(value.message, value.actions)
            ),
            **rows.recovered_row(value),
        }
        for value in bundle.recovered
    ]


def _sorted(records: Iterable[Parameters], *keys: str) -> list[Parameters]:
    return sorted(records, key=itemgetter(*keys))


def _distinct(records: Sequence[Parameters], *keys: str) -> list[Parameters]:
    """The first of those with the same *keys*."""
    key = itemgetter(*keys)
    return list({key(row): row for row in reversed(records)}.values())[::-1]
