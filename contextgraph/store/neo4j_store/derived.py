"""What was derived from runs, taken away with them."""

from collections.abc import Sequence

from contextgraph.store.neo4j_store.transaction import Transaction


def remove_of_runs(transaction: Transaction, runs: Sequence[str], revision: int) -> None:
    """Delete what was derived from these runs; their errors are looked at again."""
    met = transaction.rows("errors_met_by_runs", ids=runs)
    _mark_stale(transaction, [row["id"] for row in met], revision)
    derived = transaction.rows("derived_from_runs", ids=runs)
    remove_methodologies(transaction, [row["id"] for row in derived], revision)


def remove_methodologies(transaction: Transaction, ids: Sequence[str], revision: int) -> None:
    """Delete methodologies with their edges, and all that they had superseded.

    The errors of these are looked at again.
    """
    if not ids:
        return
    found = transaction.rows("with_superseded", ids=ids)
    gone = {row["id"] for row in found}
    absorbed = [row["error_id"] for row in found if row["superseded_by"] in gone]
    _mark_stale(transaction, absorbed, revision)
    transaction.rows("remove_methodologies", ids=sorted(gone))


def _mark_stale(transaction: Transaction, errors: Sequence[str], revision: int) -> None:
    if errors:
        transaction.rows("mark_stale", ids=sorted(set(errors)), revision=revision)
