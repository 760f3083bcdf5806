"""The vectors of a space as matrices in memory, one per kind of node, searched within a scope."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import TYPE_CHECKING

from contextgraph.model import NodeKind
from contextgraph.store.schema import RUN_BITS
from contextgraph.store.scoping import Scoped
from contextgraph.store.spaces import Active
from contextgraph.vectors import Vector, dimensions_of, products

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from contextgraph.vectors import Floats

    Numbers = NDArray[np.int64]

TABLES = {NodeKind.TRAJECTORY: "trajectory", NodeKind.FRAGMENT: "fragment"}

_NEWER = """
SELECT v.trajectory, t.place, t.seen_at, v.key, v.data
FROM vectors v CROSS JOIN trajectory t ON t.key = v.trajectory
WHERE v.key > ? AND v.space = ? ORDER BY v.key"""
_THERE = "SELECT key FROM vectors WHERE space = ?"
_NODE, _RUN, _PLACE, _SEEN_AT, _KEY = range(5)
_GONE = 0
_DECIMALS = 4
_RUNS_AT_ONCE = 256
# Copying so large a part of the rows costs more than multiplying all of them.
_LARGE_PART = 4


@dataclass(frozen=True, slots=True)
class Rows:
    """*count* rows of *vectors*, each with node, run, place, time and key in *about*.

    What is beyond *count* is room for more; rows of the run _GONE are of vectors that were dropped.
    """

    vectors: "Floats"
    about: "Numbers"
    count: int


class Matrices:
    """The vectors of *active*: loaded when first asked, then kept up with what is learned."""

    def __init__(self, active: Active) -> None:
        self.active = active
        self._lock = threading.Lock()
        self._rows: dict[NodeKind, Rows] = {}
        self._newest, self._revision, self._removals = -1, -1, -1

    def nearest(
        self, connection: Connection, kind: NodeKind, scope: Scoped, vector: Vector, limit: int
    ) -> list[tuple[int, Vector]]:
        """The keys of the nodes in *scope* nearest to *vector*, best first, ties by id."""
        import numpy as np

        rows = self._caught_up(connection, scope.tenant)[kind]
        inside = np.flatnonzero(_within(connection, rows, scope))
        if limit < 1 or not len(inside):
            return []
        alike = np.round(_multiplied(rows, inside, vector), _DECIMALS)
        if len(alike) > limit:
            least = np.partition(alike, -limit)[-limit]
            inside, alike = inside[alike >= least], alike[alike >= least]
        keys = rows.about[_NODE, inside].tolist()
        ids = _ids(connection, kind, keys)
        # A node without an id was added after this reader began.
        found = sorted(
            (-value, ids[key], key, row)
            for value, key, row in zip(alike.tolist(), keys, inside.tolist(), strict=True)
            if key in ids
        )
        return [
            (key, Vector(vector.space, rows.vectors[row].tobytes()))
            for _, _, key, row in found[:limit]
        ]

    def _caught_up(self, connection: Connection, tenant: int) -> dict[NodeKind, Rows]:
        with self._lock:
            asked = "SELECT revision, removals FROM tenant WHERE key = ?"
            revision, removals = connection.execute(asked, (tenant,)).fetchone() or (0, 0)
            rows = self._with_newer(connection, self._rows or self._empty(connection))
            if revision > self._revision:
                if self._removals not in (-1, removals):
                    there = connection.execute(_THERE, (self.active.key,)).fetchall()
                    rows = {kind: _only(of_kind, there) for kind, of_kind in rows.items()}
                self._revision, self._removals = revision, removals
            self._rows = rows
            return rows

    def _empty(self, connection: Connection) -> dict[NodeKind, Rows]:
        runs, size = connection.execute(
            "SELECT count(*), coalesce(sum(length(data)), 0) FROM vectors WHERE space = ?",
            (self.active.key,),
        ).fetchone()
        dimensions = dimensions_of(self.active.space.name)
        fragments = size // (4 * dimensions) - runs
        return {
            NodeKind.TRAJECTORY: _room(dimensions, runs),
            NodeKind.FRAGMENT: _room(dimensions, fragments),
        }

    def _with_newer(
        self, connection: Connection, rows: dict[NodeKind, Rows]
    ) -> dict[NodeKind, Rows]:
        newer = connection.execute(_NEWER, (self._newest, self.active.key))
        while batch := newer.fetchmany(_RUNS_AT_ONCE):
            added = _parsed(batch, rows[NodeKind.FRAGMENT].vectors.shape[1])
            rows = {kind: _extended(rows[kind], *added[kind]) for kind in rows}
            self._newest = batch[-1][_KEY - 1]
        return rows


class LoadedMatrices:
    """The matrices of the space that is active, kept for the next question."""

    def __init__(self) -> None:
        self._matrices: Matrices | None = None

    def of(self, active: Active) -> Matrices:
        """Those of *active*; what was loaded of another space is let go."""
        matrices = self._matrices
        if matrices is None or matrices.active.key != active.key:
            matrices = self._matrices = Matrices(active)
        return matrices


def _room(dimensions: int, size: int) -> Rows:
    import numpy as np

    about = np.zeros((5, size), dtype=np.int64)
    return Rows(np.empty((size, dimensions), dtype=np.float32), about, 0)


def _parsed(
    batch: Sequence[tuple[int, int, int, int, bytes]], dimensions: int
) -> dict[NodeKind, "tuple[Floats, Numbers]"]:
    """The vectors of runs, by kind of node, with what is known about each."""
    import numpy as np

    numbers = np.frombuffer(b"".join(row[-1] for row in batch), "<f4").reshape(-1, dimensions)
    counts = np.array([len(row[-1]) // (4 * dimensions) for row in batch])
    runs = np.repeat(np.array([row[:-1] for row in batch], dtype=np.int64).T, counts, axis=1)
    position = np.arange(len(numbers)) - np.repeat(np.cumsum(counts) - counts, counts)
    is_run = position == 0
    nodes = np.where(is_run, runs[0], (runs[0] << RUN_BITS) + position - 1)
    about = np.vstack((nodes, runs))
    has_vector = numbers.any(axis=1)
    return {
        kind: (numbers[chosen & has_vector], about[:, chosen & has_vector])
        for kind, chosen in ((NodeKind.TRAJECTORY, is_run), (NodeKind.FRAGMENT, ~is_run))
    }


def _extended(rows: Rows, vectors: "Floats", about: "Numbers") -> Rows:
    """*rows* and more; whoever reads the rows of before goes on reading them."""
    count = rows.count + len(vectors)
    if count > len(rows.vectors):
        larger = _room(rows.vectors.shape[1], count + count // 2)
        larger.vectors[: rows.count] = rows.vectors[: rows.count]
        larger.about[:, : rows.count] = rows.about[:, : rows.count]
        rows = Rows(larger.vectors, larger.about, rows.count)
    rows.vectors[rows.count : count] = vectors
    rows.about[:, rows.count : count] = about
    return Rows(rows.vectors, rows.about, count)


def _only(rows: Rows, there: Sequence[tuple[int]]) -> Rows:
    """*rows* of the vectors with these keys: of runs removed, or embedded anew, none."""
    import numpy as np

    about = rows.about.copy()
    kept = np.isin(about[_KEY], np.array(there, dtype=np.int64))
    about[_RUN, ~kept] = _GONE
    return Rows(rows.vectors, about, rows.count)


def _within(connection: Connection, rows: Rows, scope: Scoped) -> "NDArray[np.bool_]":
    import numpy as np

    about = rows.about[:, : rows.count]
    inside: NDArray[np.bool_] = about[_RUN] != _GONE
    if scope.place is not None:
        inside &= about[_PLACE] == scope.place
    if scope.has_as_of:
        inside &= about[_SEEN_AT] <= scope.parameters["as_of"]
    if scope.has_excluded:
        excluded = np.array(scope.excluded(connection), dtype=np.int64)
        inside &= ~np.isin(about[_RUN], excluded)
    return inside


def _multiplied(rows: Rows, inside: "NDArray[np.intp]", vector: Vector) -> "Floats":
    if len(inside) > rows.count // _LARGE_PART:
        return products(rows.vectors[: rows.count], vector)[inside]
    return products(rows.vectors[inside], vector)


def _ids(connection: Connection, kind: NodeKind, keys: Sequence[int]) -> dict[int, str]:
    query = f"SELECT key, id FROM {TABLES[kind]} WHERE key IN (SELECT value FROM json_each(?))"
    return dict(connection.execute(query, (str(keys),)).fetchall())
