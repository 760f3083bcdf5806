"""Methodologies taken away, and what has to be looked at again since they are."""

from collections.abc import Sequence
from sqlite3 import Connection

import orjson

from contextgraph.model import MethodologyStatus
from contextgraph.store.schema import RUN_BITS
from contextgraph.store.tenants import new_revision

_WITH_SUPERSEDED = """
WITH RECURSIVE gone (id) AS (
    SELECT value FROM json_each(?2)
    UNION SELECT m.id FROM gone JOIN methodology m ON m.tenant = ?1 AND m.superseded_by = gone.id)
SELECT m.key, m.id, m.error_id, m.repo, m.superseded_by
FROM gone JOIN methodology m ON m.tenant = ?1 AND m.id = gone.id"""
_OF_A_METHODOLOGY = (
    ("derived_from", "methodology"),
    ("methodology_vector", "methodology"),
    ("methodology", "key"),
)


def remove_orphans(connection: Connection, tenant: int) -> int:
    """Delete those that no fragment supports, tombstones excepted; how many."""
    found = connection.execute(
        "SELECT id FROM methodology m WHERE tenant = ? AND status <> ? "
        "AND NOT EXISTS (SELECT 1 FROM derived_from WHERE methodology = m.key)",
        (tenant, MethodologyStatus.RETIRED.value),
    ).fetchall()
    if found:
        new_revision(connection, tenant)
        remove(connection, tenant, [row[0] for row in found])
    return len(found)


def remove(connection: Connection, tenant: int, ids: Sequence[str]) -> None:
    """Delete methodologies with their edges, and all that they had superseded.

    The errors (or repositories) of these are looked at again.
    """
    asked = (tenant, orjson.dumps(list(ids)).decode())
    gone = connection.execute(_WITH_SUPERSEDED, asked).fetchall()
    ids_gone = {row[1] for row in gone}
    superseded = [(error, repo) for _, _, error, repo, by in gone if by in ids_gone]
    _mark_stale(connection, tenant, [error for error, _ in superseded if error])
    _mark_stale_repos(connection, tenant, [repo for error, repo in superseded if not error])
    for table, column in _OF_A_METHODOLOGY:
        connection.executemany(
            f"DELETE FROM {table} WHERE {column} = ?", [(row[0],) for row in gone]
        )
    connection.executemany(
        "DELETE FROM resolved_by WHERE tenant = ? AND methodology_id = ?",
        [(tenant, one) for one in ids_gone],
    )


def remove_of_runs(connection: Connection, tenant: int, keys: Sequence[int]) -> None:
    """Delete what was derived from the runs of these *keys*.

    Their errors and repositories are looked at again.
    """
    asked = (str(list(keys)),)
    errors = connection.execute(
        "SELECT DISTINCT e.id FROM json_each(?) AS asked JOIN met m ON m.trajectory = asked.value "
        "JOIN error_pattern e ON e.key = m.error",
        asked,
    ).fetchall()
    _mark_stale(connection, tenant, [row[0] for row in errors])
    repos = connection.execute(
        "SELECT DISTINCT t.repo FROM json_each(?) AS asked "
        "JOIN trajectory t ON t.key = asked.value",
        asked,
    ).fetchall()
    _mark_stale_repos(connection, tenant, [row[0] for row in repos])
    derived = connection.execute(
        "SELECT DISTINCT m.id FROM json_each(?) AS asked JOIN derived_from d "
        "ON d.trajectory = asked.value JOIN methodology m ON m.key = d.methodology",
        asked,
    ).fetchall()
    remove(connection, tenant, [row[0] for row in derived])
    connection.executemany(
        "DELETE FROM similar WHERE fragment BETWEEN ?1 AND ?2 OR representative BETWEEN ?1 AND ?2",
        [(key << RUN_BITS, ((key + 1) << RUN_BITS) - 1) for key in keys],
    )


def _mark_stale(connection: Connection, tenant: int, errors: Sequence[str]) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO stale (tenant, error_id, revision) "
        "SELECT key, ?, revision FROM tenant WHERE key = ?",
        [(error, tenant) for error in errors],
    )


def _mark_stale_repos(connection: Connection, tenant: int, repos: Sequence[str | None]) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO stale_repo (tenant, repo, revision) "
        "SELECT key, ?, revision FROM tenant WHERE key = ?",
        [(repo, tenant) for repo in repos if repo],
    )
