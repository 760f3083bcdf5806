"""Rows as values, by their keys; remembered for the next question while they stay as they are."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from contextgraph.model import ErrorPattern, Fragment, Recovered, Trajectory
from contextgraph.store import rows
from contextgraph.store.remembered import Remembered


@dataclass(frozen=True, slots=True)
class Recovery:
    """A recovery with the keys of its run and of its error."""

    run: int
    error: int
    recovered: Recovered


@dataclass(frozen=True, slots=True)
class Values:
    """What was read at *revision*, or before it and is the same still.

    Fragments and recoveries never change, and keys of runs are not used twice; a run changes with
    its revision; how an error is told, and what a place is called, may change with every revision.
    """

    revision: int
    trajectories: Remembered[int, Trajectory]
    fragments: Remembered[int, tuple[int, Fragment]]
    recoveries: Remembered[int, Recovery]
    errors: Remembered[int, ErrorPattern]
    places: dict[str, int]


class LatestValues:
    """The values of the newest revision that was asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest = _empty(-1)

    def at(self, connection: Connection, tenant: int) -> Values:
        """Those of the revision that *connection* sees."""
        row = connection.execute("SELECT revision FROM tenant WHERE key = ?", (tenant,)).fetchone()
        revision = row[0] if row else 0
        with self._lock:
            if revision < self._latest.revision:
                return _empty(revision)
            if self._latest.revision < 0:
                self._latest = _empty(revision)
            elif revision > self._latest.revision:
                self._latest = _kept(self._latest, revision, connection, tenant)
            return self._latest


def _empty(revision: int) -> Values:
    return Values(revision, Remembered(), Remembered(), Remembered(), Remembered(), {})


def _kept(before: Values, revision: int, connection: Connection, tenant: int) -> Values:
    changed = connection.execute(
        "SELECT key FROM trajectory WHERE tenant = ? AND revision > ?", (tenant, before.revision)
    )
    return Values(
        revision,
        before.trajectories.without([row[0] for row in changed]),
        before.fragments,
        before.recoveries,
        Remembered(),
        {},
    )


def read_trajectories(connection: Connection, keys: Sequence[int]) -> dict[int, Trajectory]:
    """The runs with these keys, by key."""
    found = _rows(connection, f"SELECT key, {rows.TRAJECTORY} FROM trajectory", keys)
    return {row[0]: rows.trajectory_of(row[1:]) for row in found}


def read_fragments(connection: Connection, keys: Sequence[int]) -> dict[int, tuple[int, Fragment]]:
    """The fragments with these keys and the keys of their runs, by key."""
    found = connection.execute(
        f"SELECT f.key, f.trajectory, t.id, {rows.columns_of('f', rows.FRAGMENT)} "
        "FROM json_each(?) AS asked CROSS JOIN fragment f ON f.key = asked.value "
        "CROSS JOIN trajectory t ON t.key = f.trajectory",
        (_json(keys),),
    )
    return {row[0]: (row[1], rows.fragment_of(row[3:], row[2])) for row in found}


def read_recoveries(connection: Connection, keys: Sequence[int]) -> dict[int, Recovery]:
    """The recoveries with these keys, by key."""
    found = connection.execute(
        f"SELECT r.key, r.trajectory, r.error, f.id, e.id, {rows.columns_of('r', rows.RECOVERED)} "
        "FROM json_each(?) AS asked CROSS JOIN recovered r ON r.key = asked.value "
        "CROSS JOIN fragment f ON f.key = r.fragment "
        "CROSS JOIN error_pattern e ON e.key = r.error",
        (_json(keys),),
    )
    return {
        row[0]: Recovery(row[1], row[2], rows.recovered_of(row[5:], row[3], row[4]))
        for row in found
    }


def read_errors(connection: Connection, keys: Sequence[int]) -> dict[int, ErrorPattern]:
    """The error patterns with these keys, by key, in the words of the run of least id."""
    found = connection.execute(
        "SELECT e.key, e.id, e.family, e.error_type, e.template, m.keywords, m.context "
        "FROM json_each(?) AS asked CROSS JOIN error_pattern e ON e.key = asked.value "
        "CROSS JOIN met m ON m.error = e.key AND m.trajectory = (SELECT trajectory FROM met "
        "INDEXED BY met_by_error WHERE error = e.key ORDER BY trajectory_id LIMIT 1)",
        (_json(keys),),
    )
    return {row[0]: rows.error_of(row[1:]) for row in found}


def _rows(connection: Connection, query: str, keys: Sequence[int]) -> list[rows.Row]:
    return connection.execute(
        f"{query} WHERE key IN (SELECT value FROM json_each(?))", (_json(keys),)
    ).fetchall()


def _json(keys: Sequence[int]) -> str:
    return str(sorted(set(keys)))
