"""Runs in the graph: found by their id, read back, taken away."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from contextgraph.model import Learned, Outcome, RawTrajectory, Trajectory
from contextgraph.store.neo4j_store import derived, exposures, rows
from contextgraph.store.neo4j_store.changes import begin_change, note_change
from contextgraph.store.neo4j_store.rows import Row
from contextgraph.store.neo4j_store.transaction import Transaction
from contextgraph.store.neo4j_store.values import FragmentKey
from contextgraph.store.raw import unpacked


def learned(transaction: Transaction, trajectory_ids: Sequence[str]) -> dict[str, Learned]:
    """Run id -> what is held of it, by id, of those that are known."""
    found = transaction.rows("learned", ids=sorted(set(trajectory_ids)))
    return {row["id"]: _learned(row) for row in found}


def trajectory(transaction: Transaction, trajectory_id: str) -> Trajectory | None:
    """The run of this id."""
    row = transaction.row("trajectory", id=trajectory_id)
    return None if row is None else rows.trajectory_of(row["trajectory"])


def trajectory_ids(transaction: Transaction) -> list[str]:
    """The ids of all runs, ascending."""
    return [row["id"] for row in transaction.rows("trajectory_ids")]


def raw_trajectory(transaction: Transaction, trajectory_id: str) -> RawTrajectory | None:
    """The run as it was learned, with the outcome and exit status known by now."""
    row = transaction.row("raw_trajectory", id=trajectory_id)
    if row is None:
        return None
    raw = unpacked(row["data"])
    return replace(raw, outcome=Outcome(row["outcome"]), exit_status=row["exit_status"])


def fragments_of(transaction: Transaction, trajectory_ids: Iterable[str]) -> list[FragmentKey]:
    """The fragments of runs, those of one in order."""
    ids = list(dict.fromkeys(trajectory_ids))
    found = transaction.found("fragments_of", ids=ids) if ids else ()
    return [FragmentKey(*key) for key in found]


def forget(transaction: Transaction, trajectory_ids: Iterable[str]) -> int:
    """Remove these runs with what only they support; how many were known."""
    revision = begin_change(transaction) + 1
    removed = remove(transaction, sorted(set(trajectory_ids)), revision)
    if removed:
        tidy(transaction, removed)
        exposures.remove(transaction, [one for row in removed for one in row["fragments"]])
        note_change(
            transaction,
            revisions=1,
            removals=1,
            trajectories=-len(removed),
            recoveries=-sum(row["recoveries"] for row in removed),
        )
    return len(removed)


def remove(transaction: Transaction, trajectory_ids: Sequence[str], revision: int) -> list[Row]:
    """Delete the nodes of these runs and what was derived; what there was of each that is known.

    *revision* is that of the change: the errors of the runs are to be looked at again from it on.
    """
    found = transaction.rows("parts_of", ids=trajectory_ids)
    derived.remove_of_runs(transaction, [row["id"] for row in found], revision)
    fragments = [fragment for row in found for fragment in row["fragments"]]
    transaction.rows("remove_fragments", ids=sorted(fragments))
    ids = [row["id"] for row in found]
    transaction.rows("remove_raw_runs", ids=ids)
    transaction.rows("remove_trajectories", ids=ids)
    return found


def tidy(transaction: Transaction, removed: Sequence[Row]) -> None:
    """Delete what only runs that were *removed* supported; tell errors in words of those left."""
    errors = sorted({error for row in removed for error in row["errors"]})
    transaction.rows("remove_unmet_errors", ids=errors)
    transaction.rows("tell_errors_anew", ids=errors)
    files = sorted({(row["repo"], name) for row in removed for name in row["files"]})
    transaction.write("remove_untouched_files", [{"repo": r, "name": n} for r, n in files])


def _learned(row: Row) -> Learned:
    fragments: int = row["fragments"]
    to_embed = 0 if row["embedded"] else fragments + 1
    return Learned(Outcome(row["outcome"]), fragments, row["errors"], to_embed)
