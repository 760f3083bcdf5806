"""The exposure store: what was shown to agents, and whether it helped."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from operator import attrgetter

from contextgraph.model import (
    AdviceRecord,
    Bundle,
    Exposure,
    ShownTally,
    Verdict,
)
from contextgraph.ports import OnDamaged
from contextgraph.store import rules
from contextgraph.store.neo4j import rows
from contextgraph.store.neo4j.connection import Connection, Transaction
from contextgraph.store.neo4j.rows import Parameters


class Neo4jExposures:
    """`ExposureStore` on a server; the docstrings of its methods are those of the protocol."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, exposures: Sequence[Exposure]) -> None:
        in_order = sorted(exposures, key=attrgetter("context_id"))
        contexts = [rows.exposure_row(exposure) for exposure in in_order]
        self._connection.write(Transaction.write, "add_exposures", contexts)

    def report(
        self, context_id: str, helped: bool, item: int | None = None, source: str = ""
    ) -> bool:
        def work(transaction: Transaction) -> bool:
            transaction.begin_change()
            exposures = map(rows.exposure_of, transaction.rows("exposures_by_id", ids=[context_id]))
            reported = [rules.with_report(exposure, helped, item, source) for exposure in exposures]
            changed = [exposure for exposure in reported if exposure]
            _put_reports(transaction, changed)
            return bool(changed)

        return self._connection.write(work)

    def record(self, advice: Sequence[str]) -> AdviceRecord:
        shown = self._connection.rows(
            "advice_record", names=sorted(set(advice)), limit=rules.REPORTS_USED
        )
        exposures = tuple(map(rows.exposure_of, shown))
        errors = sorted({exposure.error_id for exposure in exposures if exposure.error_id})
        rates = self._connection.rows("base_rates", ids=errors) if errors else ()
        decided = self._connection.row("verdicts")
        return AdviceRecord(
            exposures,
            {row["error_id"]: (row["runs"], row["cleared"]) for row in rates},
            tuple(map(rows.verdict_of, decided["verdicts"] if decided else ())),
            decided["sources"] if decided else 0,
        )

    def decide(self, verdicts: Sequence[Verdict]) -> None:
        decided = [
            rows.verdict_row(verdict) for verdict in sorted(verdicts, key=attrgetter("advice"))
        ]
        self._connection.write(Transaction.write, "put_verdicts", decided)

    def newest(self, limit: int, skip: int = 0, name: str = "") -> Sequence[Exposure]:
        named = {"limit": max(0, limit), "skip": skip, "name": name}
        found = self._connection.rows("newest_exposures", **named)
        return list(map(rows.exposure_of, found))

    def tally(self, since: datetime) -> ShownTally:
        counted = self._connection.rows("exposure_tally", since=rows.moment(since))
        return rules.tally_of(row["counts"] for row in counted)

    def all(self, on_damaged: OnDamaged | None = None) -> Iterator[Exposure]:
        return rules.paged(self._page, rows.exposure_of, on_damaged)

    def _page(self, after: str, limit: int) -> Sequence[tuple[str, rows.Row]]:
        later = self._connection.rows("exposures", after=after, limit=limit)
        return [(row["context"]["context_id"], row) for row in later]


def report_of_runs(transaction: Transaction, bundles: Sequence[Bundle]) -> None:
    """Report for the contexts that runs were shown whether the run cleared their error."""
    ids = sorted({seen.context_id for bundle in bundles for seen in bundle.exposures})
    if ids:
        shown = map(rows.exposure_of, transaction.rows("exposures_by_id", ids=ids))
        _put_reports(transaction, rules.reports_of(bundles, shown))


def _put_reports(transaction: Transaction, reported: Sequence[Exposure]) -> None:
    """Write what is known by now of whether contexts and their items helped."""
    contexts: list[Parameters] = [
        {
            "context_id": exposure.context_id,
            "helped": exposure.helped,
            "source": exposure.source,
            "items": [[item.id, item.advice, item.helped] for item in exposure.items],
        }
        for exposure in sorted(reported, key=attrgetter("context_id"))
    ]
    transaction.write("put_reports", contexts)
