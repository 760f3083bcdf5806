"""What was shown to agents, and what came of it."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from sqlite3 import Connection

import orjson

from contextgraph.model import Bundle
from contextgraph.store import rows

_CREDIT = """
SELECT i.item, sum(i.share * e.helped), sum(i.share * (NOT e.helped))
FROM exposed_item i JOIN exposure e ON e.key = i.exposure
WHERE i.tenant = ? AND i.item IN (SELECT value FROM json_each(?)) AND e.helped IS NOT NULL
GROUP BY i.item"""


def add(
    connection: Connection,
    tenant: int,
    context_id: str,
    items: Sequence[str],
    shown_at: datetime,
    error_id: str | None,
) -> None:
    """Note that *items* were shown; a context that is noted already stays as it is."""
    shown = dict.fromkeys(items)
    cursor = connection.execute(
        "INSERT INTO exposure (tenant, context_id, shown_at, error_id) VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        (tenant, context_id, rows.moment(shown_at), error_id),
    )
    if cursor.rowcount:
        connection.executemany(
            "INSERT INTO exposed_item (exposure, item, share, tenant) VALUES (?, ?, ?, ?)",
            [(cursor.lastrowid, item, 1 / len(shown), tenant) for item in shown],
        )


def report(connection: Connection, tenant: int, context_id: str, helped: bool) -> bool:
    """Note whether a context helped; False where it is unknown or was reported."""
    cursor = connection.execute(
        "UPDATE exposure SET helped = ? WHERE tenant = ? AND context_id = ? AND helped IS NULL",
        (helped, tenant, context_id),
    )
    return cursor.rowcount > 0


def fold(connection: Connection, tenant: int, bundle: Bundle) -> None:
    """Report of the contexts found in a run whether it cleared the error that they were about.

    Nothing is said of a context where the run never met that error.
    """
    if not bundle.exposures:
        return
    met = {error.id for error in bundle.errors}
    cleared = {recovered.error_id for recovered in bundle.recovered if recovered.verified}
    asked = connection.execute(
        "SELECT context_id, error_id FROM exposure "
        "WHERE tenant = ? AND context_id IN (SELECT value FROM json_each(?))",
        (tenant, orjson.dumps(bundle.exposures).decode()),
    ).fetchall()
    for context_id, error_id in asked:
        if error_id in met:
            report(connection, tenant, context_id, error_id in cleared)


def credit(
    connection: Connection, tenant: int, items: Sequence[str]
) -> dict[str, tuple[float, float]]:
    """Item -> (times it helped, times it did not), in shares."""
    found = connection.execute(_CREDIT, (tenant, orjson.dumps(list(items)).decode()))
    counted = {item: (round(helped, 4), round(failed, 4)) for item, helped, failed in found}
    return {item: counted.get(item, (0, 0)) for item in items}


def remove(connection: Connection, tenant: int, items: Iterable[str]) -> None:
    """Forget that *items* were shown."""
    connection.executemany(
        "DELETE FROM exposed_item WHERE tenant = ? AND item = ?",
        [(tenant, item) for item in items],
    )
