"""What every change of a memory begins and ends with."""

from contextgraph.store.neo4j_store.transaction import Transaction


def begin_change(transaction: Transaction) -> int:
    """Let no other process change the memory until this transaction ends; the revision so far."""
    row = transaction.row("begin_change")
    assert row is not None  # the query merges what it returns
    revision: int = row["revision"]
    return revision


def note_change(
    transaction: Transaction,
    *,
    revisions: int,
    removals: int = 0,
    trajectories: int = 0,
    recoveries: int = 0,
) -> None:
    """Count a change, and what it adds (negative: takes away)."""
    transaction.rows(
        "note_change",
        revisions=revisions,
        removals=removals,
        trajectories=trajectories,
        recoveries=recoveries,
    )
