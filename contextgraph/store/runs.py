"""One run in the tables: found by its id, read back, taken away."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from sqlite3 import Connection

import orjson

from contextgraph.model import Learned, LearnStatus, Outcome, RawTrajectory, Trajectory
from contextgraph.store import exposures, full_text, rows, withdrawn
from contextgraph.store.raw import unpacked
from contextgraph.store.schema import RUN_BITS
from contextgraph.store.tenants import new_revision

_ROWS_OF_A_RUN = (
    ("recovered", "key"),
    ("caused", "fragment"),
    ("touched", "fragment"),
    ("retold_fragment", "fragment"),
    ("fragment", "key"),
)
_FRAGMENTS_OF = f"""
SELECT f.key FROM json_each(:asked) AS asked
CROSS JOIN trajectory t ON t.tenant = :tenant AND t.id = asked.value
CROSS JOIN fragment f ON f.key BETWEEN t.key << {RUN_BITS} AND ((t.key + 1) << {RUN_BITS}) - 1
ORDER BY asked.key, f.position, f.id"""

_LEARNED = f"""
SELECT DISTINCT t.id, t.outcome,
    (SELECT count(*) FROM fragment WHERE key BETWEEN t.key << {RUN_BITS}
        AND ((t.key + 1) << {RUN_BITS}) - 1),
    (SELECT count(*) FROM met WHERE trajectory = t.key),
    EXISTS (SELECT 1 FROM vectors v JOIN space s ON s.key = v.space
        WHERE v.trajectory = t.key AND s.active)
FROM json_each(?) AS asked CROSS JOIN trajectory t ON t.tenant = ? AND t.id = asked.value
ORDER BY t.id"""


@dataclass(frozen=True, slots=True)
class Run:
    """The numbers that stand in every row of one run."""

    tenant: int
    place: int
    key: int
    seen_at: int

    @property
    def first(self) -> int:
        """The first key of its fragments and recoveries."""
        return self.key << RUN_BITS

    @property
    def last(self) -> int:
        """The last key that they can have."""
        return ((self.key + 1) << RUN_BITS) - 1


def key_of(connection: Connection, tenant: int, trajectory_id: str) -> int | None:
    """The key of the run of this id."""
    row = connection.execute(
        "SELECT key FROM trajectory WHERE tenant = ? AND id = ?", (tenant, trajectory_id)
    ).fetchone()
    return None if row is None else row[0]


def status(connection: Connection, tenant: int, given: Trajectory) -> LearnStatus:
    """What learning the run *given* does to what is known."""
    row = connection.execute(
        "SELECT outcome FROM trajectory WHERE tenant = ? AND id = ?", (tenant, given.id)
    ).fetchone()
    if row is None:
        return LearnStatus.CREATED
    if row[0] == Outcome.UNKNOWN and given.outcome is not Outcome.UNKNOWN:
        return LearnStatus.UPDATED
    return LearnStatus.UNCHANGED


def learned(
    connection: Connection, tenant: int, trajectory_ids: Sequence[str]
) -> dict[str, Learned]:
    """Run id -> what is held of it, by id, of those that are known."""
    found = connection.execute(_LEARNED, (orjson.dumps([*trajectory_ids]).decode(), tenant))
    return {
        run: Learned(Outcome(outcome), fragments, errors, 0 if embedded else fragments + 1)
        for run, outcome, fragments, errors, embedded in found
    }


def set_outcome(connection: Connection, tenant: int, value: Trajectory) -> None:
    """Take over outcome and exit status of *value*."""
    revision = new_revision(connection, tenant)
    connection.execute(
        "UPDATE trajectory SET outcome = ?, exit_status = ?, solved = ?, revision = ? "
        "WHERE tenant = ? AND id = ?",
        (value.outcome.value, value.exit_status, bool(value.success), revision, tenant, value.id),
    )


def trajectory(connection: Connection, tenant: int, trajectory_id: str) -> Trajectory | None:
    """The run of this id."""
    row = connection.execute(
        f"SELECT {rows.TRAJECTORY} FROM trajectory WHERE tenant = ? AND id = ?",
        (tenant, trajectory_id),
    ).fetchone()
    return None if row is None else rows.trajectory_of(row)


def ids(connection: Connection, tenant: int) -> list[str]:
    """The ids of all runs, ascending."""
    found = connection.execute("SELECT id FROM trajectory WHERE tenant = ? ORDER BY id", (tenant,))
    return [row[0] for row in found]


def raw(connection: Connection, tenant: int, trajectory_id: str) -> RawTrajectory | None:
    """The run as it was learned, with the outcome and exit status known by now."""
    row = connection.execute(
        "SELECT r.data, t.outcome, t.exit_status FROM trajectory t JOIN raw r "
        "ON r.trajectory = t.key WHERE t.tenant = ? AND t.id = ?",
        (tenant, trajectory_id),
    ).fetchone()
    if row is None:
        return None
    return replace(unpacked(row[0]), outcome=Outcome(row[1]), exit_status=row[2])


def fragment_keys(connection: Connection, tenant: int, trajectory_ids: Iterable[str]) -> list[int]:
    """The keys of the fragments of runs, in order, those of the first named run first."""
    asked = {"tenant": tenant, "asked": rows.text_of(trajectory_ids)}
    return [row[0] for row in connection.execute(_FRAGMENTS_OF, asked)]


def forget(connection: Connection, tenant: int, trajectory_ids: Iterable[str]) -> int:
    """Remove these runs, what only they support, and every trace of them in the indices."""
    keys = [key_of(connection, tenant, trajectory_id) for trajectory_id in set(trajectory_ids)]
    known = [key for key in keys if key is not None]
    if known:
        revision = new_revision(connection, tenant, removing=True)
        for key in known:
            items = [row[0] for row in _fragment_rows(connection, "id", key)]
            exposures.remove(connection, tenant, items)
        tidy(connection, tenant, remove(connection, tenant, revision, known))
        for table in ("trajectory", "recovered"):
            full_text.compact(connection, table)
    return len(known)


def remove(connection: Connection, tenant: int, revision: int, keys: Sequence[int]) -> list[int]:
    """Delete all rows of the runs with these *keys*; the keys of the errors that they had met."""
    withdrawn.remove_of_runs(connection, tenant, keys)
    errors = connection.execute(
        "SELECT DISTINCT error FROM met WHERE trajectory IN (SELECT value FROM json_each(?))",
        (str(list(keys)),),
    ).fetchall()
    for key in keys:
        _remove(connection, Run(tenant, 0, key, 0))
        connection.execute("INSERT INTO removal VALUES (?, ?, ?)", (key, tenant, revision))
    return [row[0] for row in errors]


def tidy(connection: Connection, tenant: int, errors: Sequence[int]) -> None:
    """Delete those *errors* and names of repositories that no run has any more."""
    for error in errors:
        _remove_unmet(connection, tenant, error)
    _remove_unused_places(connection, tenant)


def _remove(connection: Connection, run: Run) -> None:
    full_text.remove_text(connection, "recovered", run.first, run.last)
    full_text.remove_text(connection, "trajectory", run.key, run.key)
    for table, column in _ROWS_OF_A_RUN:
        connection.execute(
            f"DELETE FROM {table} WHERE {column} BETWEEN ? AND ?", (run.first, run.last)
        )
    for table in ("met", "raw", "vectors", "retelling"):
        connection.execute(f"DELETE FROM {table} WHERE trajectory = ?", (run.key,))
    connection.execute("DELETE FROM trajectory WHERE key = ?", (run.key,))


def _remove_unmet(connection: Connection, tenant: int, error: int) -> None:
    """Delete an error that no run has met any more, with its edges."""
    gone = connection.execute(
        "DELETE FROM error_pattern WHERE key = ?1 AND NOT EXISTS "
        "(SELECT 1 FROM met WHERE error = ?1) RETURNING id",
        (error,),
    ).fetchone()
    if gone:
        connection.execute(
            "DELETE FROM resolved_by WHERE tenant = ? AND error_id = ?", (tenant, gone[0])
        )


def _remove_unused_places(connection: Connection, tenant: int) -> None:
    connection.execute(
        "DELETE FROM place WHERE tenant = ? AND NOT EXISTS "
        "(SELECT 1 FROM trajectory WHERE place = place.key)",
        (tenant,),
    )


def _fragment_rows(connection: Connection, columns: str, key: int) -> list[rows.Row]:
    run = Run(0, 0, key, 0)
    return connection.execute(
        f"SELECT {columns} FROM fragment WHERE key BETWEEN ? AND ? ORDER BY position, id",
        (run.first, run.last),
    ).fetchall()
