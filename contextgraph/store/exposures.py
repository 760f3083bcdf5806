"""What was shown to agents, and what came of it."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from sqlite3 import Connection

import orjson

from contextgraph.store import rows

_CREDIT = """
SELECT i.item, sum(e.helped), sum(NOT e.helped)
FROM exposed_item i JOIN exposure e ON e.key = i.exposure
WHERE i.tenant = ? AND i.item IN (SELECT value FROM json_each(?)) AND e.helped IS NOT NULL
GROUP BY i.item"""


def add(
    connection: Connection, tenant: int, context_id: str, items: Sequence[str], shown_at: datetime
) -> None:
    """Note that *items* were shown; a context that is noted already stays as it is."""
    cursor = connection.execute(
        "INSERT INTO exposure (tenant, context_id, shown_at) VALUES (?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        (tenant, context_id, rows.moment(shown_at)),
    )
    if cursor.rowcount:
        connection.executemany(
            "INSERT OR IGNORE INTO exposed_item (exposure, item, tenant) VALUES (?, ?, ?)",
            [(cursor.lastrowid, item, tenant) for item in items],
        )


def report(connection: Connection, tenant: int, context_id: str, helped: bool) -> bool:
    """Note whether a context helped; False where it is unknown or was reported."""
    cursor = connection.execute(
        "UPDATE exposure SET helped = ? WHERE tenant = ? AND context_id = ? AND helped IS NULL",
        (helped, tenant, context_id),
    )
    return cursor.rowcount > 0


def credit(connection: Connection, tenant: int, items: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Item -> (times it helped, times it did not)."""
    found = connection.execute(_CREDIT, (tenant, orjson.dumps(list(items)).decode()))
    counted = {item: (helped, failed) for item, helped, failed in found}
    return {item: counted.get(item, (0, 0)) for item in items}


def remove(connection: Connection, tenant: int, items: Iterable[str]) -> None:
    """Forget that *items* were shown."""
    connection.executemany(
        "DELETE FROM exposed_item WHERE tenant = ? AND item = ?",
        [(tenant, item) for item in items],
    )
