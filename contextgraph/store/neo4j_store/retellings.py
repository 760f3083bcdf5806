"""What a language model made of runs, as properties of their nodes."""

from collections.abc import Iterable, Mapping, Sequence

from contextgraph.model import Bundle, Retelling
from contextgraph.store.neo4j_store import memory_state
from contextgraph.store.neo4j_store.changes import begin_change
from contextgraph.store.neo4j_store.transaction import Transaction


def retellings_of(transaction: Transaction, trajectory_ids: Iterable[str]) -> dict[str, Retelling]:
    """Run id -> how it was told again; asks only where any of the memory was."""
    if not memory_state.of(transaction).is_retold:
        return {}
    found = transaction.rows("retellings_of", ids=sorted(set(trajectory_ids)))
    return {
        row["id"]: Retelling(
            row["made_by"], row["told"], row["summary"], dict(sorted(row["descriptions"]))
        )
        for row in found
    }


def put_retellings(transaction: Transaction, retellings: Mapping[str, Retelling]) -> None:
    """Write them in the place of what there was, for runs that are there."""
    begin_change(transaction)
    _write(transaction, retellings)


def insert(transaction: Transaction, bundles: Sequence[Bundle]) -> None:
    """Write how new runs were told again, where they come with that."""
    told = {bundle.trajectory.id: bundle.retelling for bundle in bundles}
    _write(transaction, {run: given for run, given in told.items() if given})


def runs_to_retell(transaction: Transaction, made_by: str) -> list[str]:
    """The ids of runs that *made_by* has not told, the newest first."""
    return [row["id"] for row in transaction.rows("runs_to_retell", made_by=made_by)]


def _write(transaction: Transaction, retellings: Mapping[str, Retelling]) -> None:
    if retellings:
        transaction.rows("note_retold")
    transaction.write(
        "put_retellings",
        [
            {
                "id": run,
                "made_by": given.made_by,
                "told": given.told,
                "summary": given.summary or None,
                "descriptions": dict(given.descriptions),
            }
            for run, given in sorted(retellings.items())
        ],
    )
