"""What was shown to agents, and what came of it."""

from collections.abc import Sequence
from datetime import datetime

from contextgraph.model import Bundle
from contextgraph.store.neo4j_store import rows
from contextgraph.store.neo4j_store.changes import begin_change
from contextgraph.store.neo4j_store.rows import Parameters
from contextgraph.store.neo4j_store.transaction import Transaction


def add_exposure(
    transaction: Transaction,
    context_id: str,
    items: Sequence[str],
    shown_at: datetime,
    error_id: str | None,
) -> None:
    """Note that *items* were shown; a context that is noted already stays as it is."""
    shown = sorted(set(items))
    transaction.rows(
        "add_exposure",
        context_id=context_id,
        items=shown,
        share=1 / len(shown) if shown else 0.0,
        shown_at=rows.moment(shown_at),
        error_id=error_id,
    )


def report_outcome(transaction: Transaction, context_id: str, helped: bool) -> bool:
    """Note whether a context helped; False where it is unknown or was reported."""
    begin_change(transaction)
    return bool(_report(transaction, [{"context_id": context_id, "helped": helped}]))


def fold(transaction: Transaction, bundles: Sequence[Bundle]) -> None:
    """Report of the contexts found in runs whether these cleared the error that they were about.

    Nothing is said of a context where the run never met that error; the first run decides.
    """
    ids = sorted({context for bundle in bundles for context in bundle.exposures})
    if not ids:
        return
    asked = {
        row["context_id"]: row["error_id"] for row in transaction.rows("asked_errors", ids=ids)
    }
    said: dict[str, bool] = {}
    for bundle in bundles:
        met = {error.id for error in bundle.errors}
        cleared = {recovered.error_id for recovered in bundle.recovered if recovered.verified}
        for context in bundle.exposures:
            if asked.get(context) in met:
                said.setdefault(context, asked[context] in cleared)
    _report(transaction, [{"context_id": one, "helped": it} for one, it in sorted(said.items())])


def credit(transaction: Transaction, items: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Item -> (times it helped, times it did not), in shares."""
    told = transaction.rows("credit", ids=sorted(set(items))) if items else ()
    found = {row["item"]: (round(row["helped"], 4), round(row["failed"], 4)) for row in told}
    return {item: found.get(item, (0, 0)) for item in items}


def remove(transaction: Transaction, items: Sequence[str]) -> None:
    """Forget that *items* were shown."""
    transaction.rows("remove_shown_items", ids=sorted(set(items)))


def _report(transaction: Transaction, reports: Sequence[Parameters]) -> int:
    return len(transaction.rows("report_outcomes", rows=reports))
