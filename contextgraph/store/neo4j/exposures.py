"""The exposure store: what was shown to agents, and whether it helped."""

from collections.abc import Mapping, Sequence

from contextgraph.model import Bundle, Exposure
from contextgraph.store import rules
from contextgraph.store.neo4j import rows
from contextgraph.store.neo4j.connection import Connection, Transaction
from contextgraph.store.neo4j.rows import Parameters


class Neo4jExposures:
    """`ExposureStore` on a server; the docstrings of its methods are those of the protocol."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def report(self, context_id: str, helped: bool) -> bool:
        def work(transaction: Transaction) -> bool:
            transaction.begin_change()
            return bool(_report(transaction, [{"context_id": context_id, "helped": helped}]))

        return self._connection.write(work)

    def credit(self, items: Sequence[str]) -> Mapping[str, tuple[float, float]]:
        found = self._connection.rows("credit", ids=sorted(set(items))) if items else ()
        sums = ((row["item"], row["helped"], row["failed"]) for row in found)
        return rules.credits_of(items, sums)

    def contexts(self, after: str, limit: int) -> Sequence[Exposure]:
        return [
            Exposure(
                row["context_id"],
                rows.time_of(row["shown_at"]),
                row["error_id"],
                row["helped"],
                tuple(sorted((item, share) for item, share in row["items"])),
            )
            for row in self._connection.rows("exposures", after=after, limit=max(0, limit))
        ]

    def add(self, exposures: Sequence[Exposure]) -> None:
        contexts = [
            {
                "context_id": one.context_id,
                "shown_at": rows.moment(one.shown_at),
                "error_id": one.error_id,
                "helped": one.helped,
                "items": [[item, share] for item, share in one.items],
            }
            for one in sorted(exposures, key=lambda one: one.context_id)
        ]
        self._connection.write(Transaction.write, "add_exposures", contexts)


def report_of_runs(transaction: Transaction, bundles: Sequence[Bundle]) -> None:
    """Report for the contexts that runs were shown whether the run cleared their error.

    A run that never met the error of a context reports nothing; the first run decides.
    """
    ids = sorted({context for bundle in bundles for context in bundle.exposures})
    if not ids:
        return
    found = transaction.rows("errors_of_contexts", ids=ids)
    errors = {row["context_id"]: row["error_id"] for row in found}
    reports = rules.reports_in(bundles, errors)
    _report(
        transaction,
        [{"context_id": one, "helped": helped} for one, helped in sorted(reports.items())],
    )


def move_shown_items(transaction: Transaction, moved: Mapping[str, str]) -> None:
    """Credit the items that *moved* maps to what was credited to its keys."""
    pairs = [{"before": before, "now": now} for before, now in sorted(moved.items())]
    transaction.write("move_shown_items", pairs)
    transaction.rows("remove_shown_items", ids=sorted(moved))


def _report(transaction: Transaction, reports: Sequence[Parameters]) -> int:
    return len(transaction.rows("report_outcomes", rows=reports))
