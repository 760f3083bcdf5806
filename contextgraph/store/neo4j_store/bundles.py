"""What runs teach, into the graph: each kind of node and relation in one batch, sorted by key."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter

from contextgraph.errors import StoreError
from contextgraph.model import Bundle, Fragment, LearnStatus, Outcome, Trajectory
from contextgraph.store.neo4j_store import (
    exposures,
    full_text,
    retellings,
    rows,
    spaces,
    trajectories,
)
from contextgraph.store.neo4j_store.changes import begin_change, note_change
from contextgraph.store.neo4j_store.rows import Parameters
from contextgraph.store.neo4j_store.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Packed:
    """A bundle, and the bytes that its raw run is kept as."""

    bundle: Bundle
    raw: bytes


def add_bundles(transaction: Transaction, given: Sequence[Packed]) -> list[LearnStatus]:
    """Keep what is new of *given*, and outcomes that were unknown; what was done with each."""
    revision = begin_change(transaction)
    outcomes = _outcomes(transaction, [packed.bundle.trajectory.id for packed in given])
    created: list[Packed] = []
    updated: dict[str, Trajectory] = {}
    statuses = []
    for packed in given:
        run = packed.bundle.trajectory
        status = _status(outcomes.get(run.id), run.outcome)
        statuses.append(status)
        if status is not LearnStatus.UNCHANGED:
            outcomes[run.id] = run.outcome
        if status is LearnStatus.CREATED:
            created.append(packed)
        if status is LearnStatus.UPDATED:
            updated[run.id] = run
    insert(transaction, created, revision)
    exposures.fold(transaction, [packed.bundle for packed in created])
    _set_outcomes(transaction, updated, revision + len(created))
    note_change(
        transaction,
        revisions=len(created) + len(updated),
        trajectories=len(created),
        recoveries=sum(len(packed.bundle.recovered) for packed in created),
    )
    return statuses


def replace_bundle(transaction: Transaction, given: Packed) -> None:
    """Write *given* in the place of the run of its id; raises `StoreError` where there is none."""
    revision = begin_change(transaction)
    known = trajectories.trajectory(transaction, given.bundle.trajectory.id)
    if known is None:
        raise StoreError(f"no run {given.bundle.trajectory.id} to replace; learn it first")
    bundle = _with_history(given.bundle, known)
    removed = trajectories.remove(transaction, [known.id], revision + 1)
    insert(transaction, [Packed(bundle, given.raw)], revision + 1)
    trajectories.tidy(transaction, removed)
    note_change(
        transaction,
        revisions=2,
        removals=1,
        recoveries=len(bundle.recovered) - sum(part["recoveries"] for part in removed),
    )


def insert(transaction: Transaction, given: Sequence[Packed], revision: int) -> None:
    """Write runs that are not known, with revisions that follow *revision*."""
    bundles = sorted((packed.bundle for packed in given), key=lambda bundle: bundle.trajectory.id)
    for bundle in bundles:
        _check(bundle)
    tenant = transaction.tenant
    runs = [_trajectory_row(tenant, packed, revision + n) for n, packed in enumerate(given, 1)]
    met = _sorted(chain.from_iterable(map(_met_rows, bundles)), "error_id", "trajectory_id")
    write = transaction.write
    write("add_trajectories", runs)
    write("add_fragments", list(chain.from_iterable(map(_fragment_rows, bundles))))
    touched = _sorted(chain.from_iterable(map(_touched_rows, bundles)), "repo", "name")
    write("add_files", _distinct(touched, "repo", "name"))
    write("add_touched", touched)
    errors = chain.from_iterable(bundle.errors for bundle in bundles)
    write("add_errors", _distinct(_sorted(map(rows.error_row, errors), "id"), "id"))
    write("add_met", met)
    # The least id of several runs of one batch comes first.
    write("tell_errors", _distinct(met, "error_id"))
    write("add_caused", _sorted(chain.from_iterable(map(_caused_rows, bundles)), "error_id"))
    recovered = chain.from_iterable(_recovered_rows(tenant, bundle) for bundle in bundles)
    write("add_recovered", _sorted(recovered, "error_id"))
    spaces.insert(transaction, bundles)
    retellings.insert(transaction, bundles)


def _outcomes(transaction: Transaction, ids: Sequence[str]) -> dict[str, Outcome]:
    found = transaction.rows("outcomes", ids=sorted(set(ids)))
    return {row["id"]: Outcome(row["outcome"]) for row in found}


def _set_outcomes(
    transaction: Transaction, updated: Mapping[str, Trajectory], revision: int
) -> None:
    changes = [
        {"id": run, **rows.outcome_row(value), "revision": revision + 1 + number}
        for number, (run, value) in enumerate(sorted(updated.items()))
    ]
    transaction.write("set_outcomes", changes)


def _status(known: Outcome | None, given: Outcome) -> LearnStatus:
    if known is None:
        return LearnStatus.CREATED
    if known is Outcome.UNKNOWN and given is not Outcome.UNKNOWN:
        return LearnStatus.UPDATED
    return LearnStatus.UNCHANGED


def _with_history(bundle: Bundle, known: Trajectory) -> Bundle:
    """*bundle* with what does not depend on how a log is read."""
    trajectory = replace(
        bundle.trajectory,
        outcome=known.outcome,
        exit_status=known.exit_status,
        learned_at=known.learned_at,
    )
    return replace(bundle, trajectory=trajectory)


def _check(bundle: Bundle) -> None:
    """Raise `StoreError` where something in *bundle* refers to what is not in it."""
    run = bundle.trajectory.id
    fragments = {fragment.id for fragment in bundle.fragments}
    if len(fragments) < len(bundle.fragments):
        raise StoreError(f"run {run} has two fragments of one id")
    errors = {error.id for error in bundle.errors}
    named = [(edge.fragment_id, edge.error_id) for edge in bundle.caused]
    named += [(edge.fragment_id, edge.error_id) for edge in bundle.recovered]
    for missing in {name for names in named for name in names} - fragments - errors:
        raise StoreError(f"run {run} refers to {missing}, which it does not hold")


def _trajectory_row(tenant: str, packed: Packed, revision: int) -> Parameters:
    run = packed.bundle.trajectory
    return {
        **rows.trajectory_row(run),
        "words": full_text.text_of_trajectory(tenant, run),
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
        for name in sorted(_file_names(value))
    ]


def _file_names(fragment: Fragment) -> set[str]:
    paths = (*fragment.files, fragment.open_file or "")
    return {path.rpartition("/")[2] for path in paths} - {""}


def _met_rows(bundle: Bundle) -> list[Parameters]:
    steps: defaultdict[str, int] = defaultdict(int)
    for caused in bundle.caused:
        steps[caused.error_id] += len(caused.steps)
    cleared = {recovered.error_id for recovered in bundle.recovered}
    return [
        {
            "trajectory_id": bundle.trajectory.id,
            "error_id": error.id,
            "steps": steps[error.id],
            "cleared": error.id in cleared,
            "keywords": list(error.keywords),
            "context": error.context,
        }
        for error in bundle.errors
    ]


def _caused_rows(bundle: Bundle) -> list[Parameters]:
    return [
        {
            "fragment_id": value.fragment_id,
            "error_id": value.error_id,
            **rows.caused_row(value),
        }
        for value in bundle.caused
    ]


def _recovered_rows(tenant: str, bundle: Bundle) -> list[Parameters]:
    return [
        {
            "fragment_id": value.fragment_id,
            "error_id": value.error_id,
            **rows.recovered_row(value),
            "words": full_text.text_of_recovered(tenant, bundle.trajectory.repo, value),
        }
        for value in bundle.recovered
    ]


def _sorted(found: Iterable[Parameters], *keys: str) -> list[Parameters]:
    return sorted(found, key=itemgetter(*keys))


def _distinct(found: Sequence[Parameters], *keys: str) -> list[Parameters]:
    """The first of those that have the same *keys*."""
    key = itemgetter(*keys)
    return list({key(row): row for row in reversed(found)}.values())[::-1]
