"""`ExposureStore` in SQLite: advice that was shown, and whether it helped."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from contextgraph.model import (
    AdviceRecord,
    Bundle,
    Exposure,
    ShownTally,
    Verdict,
)
from contextgraph.ports import OnDamaged
from contextgraph.store import rules
from contextgraph.store.sqlite import rows
from contextgraph.store.sqlite.database import Database
from contextgraph.store.sqlite.transaction import Transaction, insertion

_EXPOSURE = f"e.key, {rows.columns_of(rows.EXPOSURES, 'e')}"
_ITEMS = """
SELECT item, advice, patterns, helped, why FROM shown_item
WHERE exposure = ? ORDER BY position"""
_BY_ID = f"""
SELECT {_EXPOSURE} FROM exposure e
WHERE e.tenant = ? AND e.context_id IN (SELECT value FROM json_each(?)) ORDER BY e.context_id"""
_LATER = f"""
SELECT {_EXPOSURE} FROM exposure e
WHERE e.tenant = ? AND e.context_id > ? ORDER BY e.context_id LIMIT ?"""
_NEWEST = f"""
SELECT {_EXPOSURE} FROM exposure e
WHERE e.tenant = :tenant {{named}}
ORDER BY e.shown_at DESC, e.context_id LIMIT :limit OFFSET :skip"""
_NAMED = """AND e.key IN (
    SELECT exposure FROM shown_item WHERE tenant = :tenant AND item = :name
    UNION SELECT exposure FROM shown_item WHERE tenant = :tenant AND advice = :name
    UNION SELECT key FROM exposure WHERE tenant = :tenant AND context_id = :name)"""
_TALLY = """
SELECT coalesce(error_id, ''), count(*), count(helped), coalesce(sum(helped), 0), sum(followed),
    coalesce(sum(helped AND did), 0), coalesce(sum((helped AND NOT did) * items), 0)
FROM (
    SELECT e.error_id, e.helped,
        EXISTS (SELECT 1 FROM shown_item s WHERE s.exposure = e.key AND s.helped IS NOT NULL)
            AS followed,
        EXISTS (SELECT 1 FROM shown_item s WHERE s.exposure = e.key AND s.helped) AS did,
        (SELECT count(*) FROM shown_item s WHERE s.exposure = e.key) AS items
    FROM exposure e INDEXED BY exposure_newest
    WHERE e.tenant = ? AND e.shown_at >= ? AND coalesce(e.is_withheld, 0) = 0)
GROUP BY error_id"""
_OF_ADVICE = f"""
SELECT DISTINCT {_EXPOSURE} FROM json_each(:names) named CROSS JOIN exposure e
WHERE e.key IN (
    SELECT r.key FROM exposure r WHERE r.key IN (
        SELECT exposure FROM shown_item
        WHERE tenant = :tenant AND advice = named.value AND helped IS NOT NULL
        UNION SELECT exposure FROM shown_item
        WHERE tenant = :tenant AND item = named.value AND helped IS NOT NULL)
    ORDER BY r.shown_at DESC, r.context_id DESC LIMIT {rules.REPORTS_USED})
ORDER BY e.context_id"""
_BASE_RATES = """
SELECT id, runs, cleared FROM error_pattern
WHERE tenant = ? AND runs > 0 AND id IN (SELECT value FROM json_each(?)) ORDER BY id"""
_VERDICTS = f"""
SELECT {rows.columns_of(rows.VERDICTS)} FROM verdict WHERE tenant = ? ORDER BY advice"""
_SOURCES = """
SELECT count(*) FROM (
    SELECT min(contributor) AS name FROM trajectory WHERE tenant = :tenant AND contributor <> ''
    UNION SELECT max(contributor) FROM trajectory WHERE tenant = :tenant AND contributor <> '')
WHERE name IS NOT NULL"""


class SqliteExposures:
    """`ExposureStore`; the docstrings of its methods are those of the protocol."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, exposures: Sequence[Exposure]) -> None:
        with self._database.writing() as transaction:
            for exposure in exposures:
                _insert(transaction, exposure)

    def report(
        self, context_id: str, helped: bool, item: int | None = None, source: str = ""
    ) -> bool:
        with self._database.writing() as transaction:
            exposures = by_id(transaction, [context_id])
            reported = [rules.with_report(exposure, helped, item, source) for exposure in exposures]
            changed = [exposure for exposure in reported if exposure]
            _put_reports(transaction, changed)
            return bool(changed)

    def record(self, advice: Sequence[str]) -> AdviceRecord:
        with self._database.reading() as transaction:
            tenant = transaction.tenant
            of_advice = {"tenant": tenant, "names": rows.text_of(advice)}
            shown = _values(transaction, transaction.rows(_OF_ADVICE, of_advice)) if advice else []
            errors = rows.text_of(
                sorted({exposure.error_id for exposure in shown if exposure.error_id})
            )
            return AdviceRecord(
                tuple(shown),
                {
                    error: (runs, cleared)
                    for error, runs, cleared in transaction.rows(_BASE_RATES, (tenant, errors))
                },
                tuple(map(rows.VERDICTS.value, transaction.rows(_VERDICTS, (tenant,)))),
                transaction.number(_SOURCES, {"tenant": tenant}),
            )

    def decide(self, verdicts: Sequence[Verdict]) -> None:
        with self._database.writing() as transaction:
            transaction.write_all(
                f"INSERT OR REPLACE INTO verdict (tenant, {rows.columns_of(rows.VERDICTS)}) "
                "VALUES (?, ?, ?, ?)",
                [(transaction.tenant, *rows.VERDICTS.row(verdict)) for verdict in verdicts],
            )

    def newest(self, limit: int, skip: int = 0, name: str = "") -> Sequence[Exposure]:
        with self._database.reading() as transaction:
            sql = _NEWEST.format(named=_NAMED if name else "")
            asked = {"tenant": transaction.tenant, "limit": max(0, limit), "skip": skip}
            return _values(transaction, transaction.rows(sql, {**asked, "name": name}))

    def tally(self, since: datetime) -> ShownTally:
        with self._database.reading() as transaction:
            counted = transaction.rows(_TALLY, (transaction.tenant, rows.moment(since)))
            return rules.tally_of(counted)

    def all(self, on_damaged: OnDamaged | None = None) -> Iterator[Exposure]:
        return rules.paged(self._page, self._value, on_damaged)

    def _page(self, after: str, limit: int) -> Sequence[tuple[str, rows.Row]]:
        with self._database.reading() as transaction:
            later = transaction.rows(_LATER, (transaction.tenant, after, limit))
            return [(row[1], row) for row in later]

    def _value(self, row: rows.Row) -> Exposure:
        with self._database.reading() as transaction:
            return _values(transaction, [row])[0]


def by_id(transaction: Transaction, context_ids: Sequence[str]) -> list[Exposure]:
    """Return the contexts among these that were shown, by id."""
    shown = transaction.rows(_BY_ID, (transaction.tenant, rows.text_of(context_ids)))
    return _values(transaction, shown)


def report_shown(transaction: Transaction, bundles: Sequence[Bundle]) -> None:
    """Report the contexts that these runs were shown: whether they cleared their errors."""
    ids = sorted({seen.context_id for bundle in bundles for seen in bundle.exposures})
    if ids:
        _put_reports(transaction, rules.reports_of(bundles, by_id(transaction, ids)))


def _values(transaction: Transaction, shown: Sequence[rows.Row]) -> list[Exposure]:
    return [
        rows.EXPOSURES.value(
            row,
            items=tuple(map(rows.SHOWN_ITEMS.value, transaction.rows(_ITEMS, (key,)))),
        )
        for key, *row in shown
    ]


def _insert(transaction: Transaction, exposure: Exposure) -> None:
    """Write a context, unless it is recorded already."""
    row = {"tenant": transaction.tenant, **rows.named(rows.EXPOSURES, exposure)}
    sql = f"{insertion('exposure', row)} ON CONFLICT DO NOTHING RETURNING key"
    if key := transaction.number(sql, row):
        transaction.write_all(
            "INSERT INTO shown_item "
            "(exposure, tenant, position, item, advice, patterns, helped, why) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (key, transaction.tenant, position, *rows.SHOWN_ITEMS.row(item))
                for position, item in enumerate(exposure.items)
            ],
        )


def _put_reports(transaction: Transaction, reported: Sequence[Exposure]) -> None:
    """Write what is known by now of whether contexts and their items helped."""
    for exposure in reported:
        key = transaction.number(
            "UPDATE exposure SET helped = ?, source = ? WHERE tenant = ? AND context_id = ? "
            "RETURNING key",
            (exposure.helped, exposure.source, transaction.tenant, exposure.context_id),
        )
        transaction.write_all(
            "UPDATE shown_item SET helped = ? WHERE exposure = ? AND item = ? AND advice = ?",
            [(item.helped, key, item.id, item.advice) for item in exposure.items],
        )
