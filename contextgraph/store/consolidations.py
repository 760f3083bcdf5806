"""What has yet to be consolidated, and who is at it."""

from collections.abc import Sequence
from datetime import datetime
from sqlite3 import Connection

from contextgraph.model import (
    Clearance,
    ErrorHistory,
    Fragment,
    FragmentOutcome,
    Meeting,
    Outcome,
    PastRun,
    RepoHistory,
    TaskType,
    Unconsolidated,
)
from contextgraph.store import rows
from contextgraph.store.schema import RUN_BITS
from contextgraph.store.tenants import REMEMBERED, new_revision
from contextgraph.store.values import read_errors

_CHANGED = """
SELECT e.id FROM trajectory t INDEXED BY trajectory_revision
CROSS JOIN met m ON m.trajectory = t.key CROSS JOIN error_pattern e ON e.key = m.error
WHERE t.tenant = :tenant AND t.revision > :revision
UNION SELECT s.error_id FROM stale s WHERE s.tenant = :tenant AND s.revision > :marked ORDER BY 1"""
_CHANGED_REPOS = """
SELECT t.repo FROM trajectory t INDEXED BY trajectory_revision
WHERE t.tenant = :tenant AND t.revision > :revision AND t.repo <> ''
UNION SELECT s.repo FROM stale_repo s WHERE s.tenant = :tenant AND s.revision > :marked
ORDER BY 1"""
_RUNS_OF_REPO = f"""
SELECT key, {rows.TRAJECTORY} FROM trajectory
WHERE place = (SELECT key FROM place WHERE tenant = ? AND repo = ?)
ORDER BY seen_at DESC, id LIMIT ?"""
_WENT_WELL = f"""
SELECT f.trajectory, {rows.FRAGMENT} FROM (SELECT value AS run FROM json_each(?))
CROSS JOIN fragment f ON f.key BETWEEN run << {RUN_BITS} AND ((run + 1) << {RUN_BITS}) - 1
WHERE f.outcome <> '{FragmentOutcome.FAILED}' ORDER BY f.trajectory, f.position, f.id"""
_MET = """
SELECT t.id, t.repo, t.task_type, m.context, m.trajectory
FROM met m JOIN trajectory t ON t.key = m.trajectory WHERE m.error = ?
ORDER BY m.seen_at DESC, m.trajectory_id LIMIT ?"""
_CLEARED = f"""
SELECT f.id, t.id, t.repo, t.task_type, t.outcome, t.seen_at, {rows.RECOVERED}
FROM json_each(?) AS asked CROSS JOIN recovered r ON r.error = ? AND r.trajectory = asked.value
CROSS JOIN fragment f ON f.key = r.fragment CROSS JOIN trajectory t ON t.key = r.trajectory
ORDER BY t.seen_at DESC, t.id, r.error_step, f.id"""
_FAILED = """
SELECT f.key, f.id, f.trajectory FROM caused c JOIN fragment f ON f.key = c.fragment
WHERE c.error = ? AND f.fragment_type = 'failed_attempt'
AND NOT EXISTS (SELECT 1 FROM recovered r WHERE r.fragment = f.key)
ORDER BY f.seen_at DESC, f.id LIMIT -1 OFFSET ?"""

_ROWS_OF_A_FRAGMENT = (
    "DELETE FROM caused WHERE fragment = :fragment",
    "DELETE FROM touched WHERE fragment = :fragment",
    "DELETE FROM retold_fragment WHERE fragment = :fragment",
    "DELETE FROM derived_from WHERE trajectory = :run AND fragment = :fragment",
    "DELETE FROM similar WHERE fragment = :fragment OR representative = :fragment",
    "DELETE FROM fragment WHERE key = :fragment",
)


def learned_since(connection: Connection, tenant: int) -> int:
    """How many trajectories were learned or updated since the last consolidation."""
    return _count_newer(connection, tenant, _revision(connection, tenant))


def take_lease(
    connection: Connection, tenant: int, holder: str, now: datetime, until: datetime
) -> datetime | None:
    """Take the lease; where another *holder* has one that has not expired, when that does."""
    moment = rows.moment(now)
    row = connection.execute(
        "SELECT holder, expires_at FROM consolidation WHERE tenant = ?", (tenant,)
    ).fetchone()
    if row and row[0] not in (None, holder) and row[1] > moment:
        return rows.time_of(row[1])
    connection.execute(
        "INSERT INTO consolidation (tenant, revision, holder, expires_at) VALUES (?1, 0, ?2, ?3) "
        "ON CONFLICT (tenant) DO UPDATE SET holder = ?2, expires_at = ?3",
        (tenant, holder, rows.moment(until)),
    )
    return None


def return_lease(connection: Connection, tenant: int, holder: str) -> None:
    """Give the lease back; harmless where another has taken it meanwhile."""
    connection.execute(
        "UPDATE consolidation SET holder = NULL WHERE tenant = ? AND holder = ?", (tenant, holder)
    )


def unconsolidated(connection: Connection, tenant: int, after: int | None) -> Unconsolidated:
    """What changed since the last consolidation, or since revision *after*."""
    row = connection.execute("SELECT revision FROM tenant WHERE key = ?", (tenant,)).fetchone()
    revision = _revision(connection, tenant) if after is None else after
    marked = -1 if after is None else after
    asked = {"tenant": tenant, "revision": revision, "marked": marked}
    return Unconsolidated(
        revision=row[0] if row else 0,
        trajectories=_count_newer(connection, tenant, revision),
        error_ids=tuple(error for (error,) in connection.execute(_CHANGED, asked)),
        repos=tuple(repo for (repo,) in connection.execute(_CHANGED_REPOS, asked)),
    )


def mark(connection: Connection, tenant: int, revision: int) -> None:
    """Note that what changed up to *revision* is consolidated."""
    connection.execute(
        "INSERT INTO consolidation (tenant, revision, holder, expires_at) VALUES (?1, ?2, NULL, 0) "
        "ON CONFLICT (tenant) DO UPDATE SET revision = ?2",
        (tenant, revision),
    )
    for table in ("stale", "stale_repo"):
        connection.execute(
            f"DELETE FROM {table} WHERE tenant = ? AND revision <= ?", (tenant, revision)
        )
    for table in ("removal", "pruned"):
        connection.execute(
            f"DELETE FROM {table} WHERE tenant = ?1 "
            "AND revision < (SELECT revision FROM tenant WHERE key = ?1) - ?2",
            (tenant, REMEMBERED),
        )


def error_histories(
    connection: Connection, tenant: int, error_ids: Sequence[str], runs: int
) -> list[ErrorHistory]:
    """How the newest *runs* that met each of these errors went with it, by id of the error."""
    asked = (_error_history(connection, tenant, one, runs) for one in sorted(set(error_ids)))
    return [history for history in asked if history]


def repo_histories(
    connection: Connection, tenant: int, repos: Sequence[str], runs: int
) -> list[RepoHistory]:
    """What the newest *runs* of each of these repositories did that did not fail, by name."""
    asked = (_repo_history(connection, tenant, repo, runs) for repo in sorted(set(repos)))
    return [history for history in asked if history]


def prune_failed(connection: Connection, tenant: int, error_id: str, keep: int) -> int:
    """Delete failed attempts at an error beyond the newest *keep*; how many."""
    row = connection.execute(
        "SELECT key FROM error_pattern WHERE tenant = ? AND id = ?", (tenant, error_id)
    ).fetchone()
    found = connection.execute(_FAILED, (row[0], keep)).fetchall() if row else []
    if found:
        revision = new_revision(connection, tenant, removing=True)
        connection.executemany(
            "INSERT OR REPLACE INTO pruned VALUES (?, ?, ?)",
            [(tenant, fragment, revision) for _, fragment, _ in found],
        )
        connection.executemany(
            "DELETE FROM vectors WHERE trajectory = ?", [(run,) for _, _, run in found]
        )
    for statement in _ROWS_OF_A_FRAGMENT:
        connection.executemany(statement, [{"fragment": key, "run": run} for key, _, run in found])
    return len(found)


def _error_history(
    connection: Connection, tenant: int, error_id: str, runs: int
) -> ErrorHistory | None:
    row = connection.execute(
        "SELECT key FROM error_pattern WHERE tenant = ? AND id = ?", (tenant, error_id)
    ).fetchone()
    if row is None:
        return None
    met = connection.execute(_MET, (row[0], runs)).fetchall()
    keys = [meeting[4] for meeting in met]
    cleared = connection.execute(_CLEARED, (str(keys), row[0]))
    return ErrorHistory(
        error=read_errors(connection, [row[0]])[row[0]],
        meetings=tuple(Meeting(m[0], m[1], TaskType(m[2]), m[3]) for m in met),
        clearances=tuple(_clearance(found, error_id) for found in cleared),
    )


def _repo_history(connection: Connection, tenant: int, repo: str, runs: int) -> RepoHistory | None:
    found = connection.execute(_RUNS_OF_REPO, (tenant, repo, runs)).fetchall()
    if not found:
        return None
    ids = {row[0]: row[1] for row in found}
    went_well: dict[int, list[Fragment]] = {key: [] for key in ids}
    for row in connection.execute(_WENT_WELL, (str(list(ids)),)):
        went_well[row[0]].append(rows.fragment_of(row[1:], ids[row[0]]))
    return RepoHistory(
        repo,
        tuple(PastRun(rows.trajectory_of(row[1:]), tuple(went_well[row[0]])) for row in found),
    )


def _count_newer(connection: Connection, tenant: int, revision: int) -> int:
    found = connection.execute(
        "SELECT count(*) FROM trajectory WHERE tenant = ? AND revision > ?", (tenant, revision)
    )
    count: int = found.fetchone()[0]
    return count


def _revision(connection: Connection, tenant: int) -> int:
    row = connection.execute(
        "SELECT revision FROM consolidation WHERE tenant = ?", (tenant,)
    ).fetchone()
    return 0 if row is None else int(row[0])


def _clearance(row: rows.Row, error_id: str) -> Clearance:
    return Clearance(
        recovered=rows.recovered_of(row[6:], row[0], error_id),
        trajectory_id=row[1],
        repo=row[2],
        task_type=TaskType(row[3]),
        outcome=Outcome(row[4]),
        seen_at=rows.time_of(row[5]),
    )
