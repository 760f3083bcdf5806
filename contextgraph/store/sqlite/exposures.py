"""What was shown, and whether it helped: `ExposureStore` in SQLite."""

from collections.abc import Mapping, Sequence

from contextgraph.model import Bundle, Exposure
from contextgraph.store import rules
from contextgraph.store.sqlite import rows
from contextgraph.store.sqlite.database import Database
from contextgraph.store.sqlite.transaction import Transaction, json_text

_CREDIT = """
SELECT i.item, sum(i.share * e.helped), sum(i.share * (NOT e.helped))
FROM exposed_item i JOIN exposure e ON e.key = i.exposure
WHERE i.tenant = ? AND i.item IN (SELECT value FROM json_each(?)) AND e.helped IS NOT NULL
GROUP BY i.item"""
_CONTEXTS = """
SELECT key, context_id, shown_at, error_id, helped FROM exposure
WHERE tenant = ? AND context_id > ? ORDER BY context_id LIMIT ?"""
_ITEMS = "SELECT item, share FROM exposed_item WHERE exposure = ? ORDER BY item"


class SqliteExposures:
    """`ExposureStore`; the docstrings of its methods are those of the protocol."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, exposures: Sequence[Exposure]) -> None:
        with self._database.writing() as transaction:
            for exposure in exposures:
                _insert(transaction, exposure)

    def report(self, context_id: str, helped: bool) -> bool:
        with self._database.writing() as transaction:
            return _report(transaction, context_id, helped)

    def credit(self, items: Sequence[str]) -> Mapping[str, tuple[float, float]]:
        with self._database.reading() as transaction:
            found = transaction.rows(_CREDIT, (transaction.tenant, json_text(items)))
        return rules.credits_of(items, found)

    def contexts(self, after: str, limit: int) -> Sequence[Exposure]:
        with self._database.reading() as transaction:
            return [
                Exposure(
                    context_id,
                    rows.time_of(shown_at),
                    error_id,
                    None if helped is None else bool(helped),
                    tuple((item, share) for item, share in transaction.rows(_ITEMS, (key,))),
                )
                for key, context_id, shown_at, error_id, helped in transaction.rows(
                    _CONTEXTS, (transaction.tenant, after, max(0, limit))
                )
            ]


def report_shown(transaction: Transaction, bundle: Bundle) -> None:
    """Report the contexts that the run of *bundle* was shown: whether it cleared their errors."""
    if bundle.exposures:
        errors: dict[str, str | None] = dict(
            transaction.rows(
                "SELECT context_id, error_id FROM exposure "
                "WHERE tenant = ? AND context_id IN (SELECT value FROM json_each(?))",
                (transaction.tenant, json_text(bundle.exposures)),
            )
        )
        for context, helped in rules.reports_in([bundle], errors).items():
            _report(transaction, context, helped)


def move_items(transaction: Transaction, moved: Mapping[str, str]) -> None:
    """Let what was shown of items count for those that *moved* replaces them by."""
    for before, now in sorted(moved.items()):
        transaction.write(
            "INSERT INTO exposed_item (exposure, item, share, tenant) "
            "SELECT exposure, ?, share, tenant FROM exposed_item WHERE tenant = ? AND item = ? "
            "ON CONFLICT (exposure, item) DO UPDATE SET share = share + excluded.share",
            (now, transaction.tenant, before),
        )
        transaction.write(
            "DELETE FROM exposed_item WHERE tenant = ? AND item = ?", (transaction.tenant, before)
        )


def _insert(transaction: Transaction, exposure: Exposure) -> None:
    """Write a context, unless it is recorded already."""
    key = transaction.number(
        "INSERT INTO exposure (tenant, context_id, shown_at, error_id, helped) "
        "VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING key",
        (
            transaction.tenant,
            exposure.context_id,
            rows.moment(exposure.shown_at),
            exposure.error_id,
            exposure.helped,
        ),
    )
    if key:
        transaction.write_all(
            "INSERT INTO exposed_item (exposure, item, share, tenant) VALUES (?, ?, ?, ?)",
            [(key, item, share, transaction.tenant) for item, share in exposure.items],
        )


def _report(transaction: Transaction, context_id: str, helped: bool) -> bool:
    changed = transaction.write(
        "UPDATE exposure SET helped = ? WHERE tenant = ? AND context_id = ? AND helped IS NULL",
        (helped, transaction.tenant, context_id),
    )
    return changed > 0
