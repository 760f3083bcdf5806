"""The vectors of a space as a matrix in memory, searched within a scope."""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from contextgraph.lazy import dataclass
from contextgraph.store import rules
from contextgraph.store.sqlite.transaction import SqlScope, Transaction
from contextgraph.vectors import (
    Vector,
    dimensions_of,
    products,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from contextgraph.vectors import Floats

    Numbers = NDArray[np.int64]

_NEWER = """
SELECT v.trajectory, t.place, t.seen_at, v.key, v.data
FROM vectors v CROSS JOIN trajectory t ON t.key = v.trajectory
WHERE v.key > ? AND v.space = ? ORDER BY v.key"""
_PRESENT = "SELECT key FROM vectors WHERE space = ?"
_RUN, _PLACE, _SEEN_AT, _KEY = range(4)
_GONE = 0
_RUNS_AT_ONCE = 256
# Copying so large a part of the rows costs more than multiplying all of them.
_LARGE_PART = 4


@dataclass(frozen=True, slots=True)
class VectorRows:
    """*count* rows of *vectors*, each with run, repository, time and key in *about*.

    Rows beyond *count* are free; rows of the run _GONE are of vectors that were dropped.
    """

    vectors: "Floats"
    about: "Numbers"
    count: int


class Matrix:
    """The vectors of one space: loaded at the first query, then extended by what is learned."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: VectorRows | None = None
        self._space = self._newest = self._revision = self._removals = -1

    def nearest(
        self, transaction: Transaction, space: int, scope: SqlScope, vector: Vector, limit: int
    ) -> list[tuple[int, Vector]]:
        """The keys of the runs in *scope* nearest to *vector*, best first, ties by id.

        *space* is the key of its space, whose vectors replace those of another one.
        """
        import numpy as np

        rows = self._caught_up(transaction, space, dimensions_of(vector.space))
        inside = np.flatnonzero(_within(transaction, rows, scope))
        if limit < 1 or not len(inside):
            return []
        cosines = np.round(_multiplied(rows, inside, vector), rules.COSINE_DECIMALS)
        if len(cosines) > limit:
            least = np.partition(cosines, -limit)[-limit]
            inside, cosines = inside[cosines >= least], cosines[cosines >= least]
        keys = rows.about[_RUN, inside].tolist()
        ids = _ids(transaction, keys)
        # A run without an id was added after this reader began.
        ranked = sorted(
            (-value, ids[key], key, row)
            for value, key, row in zip(cosines.tolist(), keys, inside.tolist(), strict=True)
            if key in ids
        )
        return [
            (key, Vector(vector.space, rows.vectors[row].tobytes()))
            for _, _, key, row in ranked[:limit]
        ]

    def _caught_up(self, transaction: Transaction, space: int, dimensions: int) -> VectorRows:
        with self._lock:
            if self._rows is None or space != self._space:
                sql = "SELECT count(*) FROM vectors WHERE space = ?"
                self._rows = _allocated(dimensions, transaction.number(sql, (space,)))
                self._space, self._newest, self._revision, self._removals = space, -1, -1, -1
            revision, removals = transaction.revision()
            rows = self._rows = self._with_newer(transaction, self._rows)
            if revision > self._revision:
                if self._removals not in (-1, removals):
                    rows = self._rows = _only(rows, transaction.column(_PRESENT, (space,)))
                self._revision, self._removals = revision, removals
            return rows

    def _with_newer(self, transaction: Transaction, rows: VectorRows) -> VectorRows:
        newer = transaction.connection.execute(_NEWER, (self._newest, self._space))
        while batch := newer.fetchmany(_RUNS_AT_ONCE):
            rows = _extended(rows, *_parsed(batch, rows.vectors.shape[1]))
            self._newest = batch[-1][_KEY]
        return rows


def _allocated(dimensions: int, size: int) -> VectorRows:
    import numpy as np

    about = np.zeros((4, size), dtype=np.int64)
    return VectorRows(np.empty((size, dimensions), dtype=np.float32), about, 0)


def _parsed(
    batch: Sequence[tuple[int, int, int, int, bytes]], dimensions: int
) -> "tuple[Floats, Numbers]":
    """The vectors of runs that have one, with what is known about each."""
    import numpy as np

    numbers = np.frombuffer(b"".join(row[-1] for row in batch), "<f4").reshape(-1, dimensions)
    about = np.array([row[:-1] for row in batch], dtype=np.int64).T
    has_vector = numbers.any(axis=1)
    return numbers[has_vector], about[:, has_vector]


def _extended(rows: VectorRows, vectors: "Floats", about: "Numbers") -> VectorRows:
    """*rows* and more; readers of *rows* can go on reading them."""
    count = rows.count + len(vectors)
    if count > len(rows.vectors):
        larger = _allocated(rows.vectors.shape[1], count + count // 2)
        larger.vectors[: rows.count] = rows.vectors[: rows.count]
        larger.about[:, : rows.count] = rows.about[:, : rows.count]
        rows = VectorRows(larger.vectors, larger.about, rows.count)
    rows.vectors[rows.count : count] = vectors
    rows.about[:, rows.count : count] = about
    return VectorRows(rows.vectors, rows.about, count)


def _only(rows: VectorRows, present: Sequence[int]) -> VectorRows:
    """*rows* without vectors whose keys are not *present*: of removed or re-embedded runs."""
    import numpy as np

    about = rows.about.copy()
    is_present = np.isin(about[_KEY], np.array(present, dtype=np.int64))
    about[_RUN, ~is_present] = _GONE
    return VectorRows(rows.vectors, about, rows.count)


def _within(transaction: Transaction, rows: VectorRows, scope: SqlScope) -> "NDArray[np.bool_]":
    import numpy as np

    about = rows.about[:, : rows.count]
    inside: NDArray[np.bool_] = about[_RUN] != _GONE
    if scope.repository is not None:
        inside &= about[_PLACE] == scope.repository
    if scope.has_as_of:
        inside &= about[_SEEN_AT] <= scope.parameters["as_of"]
    if scope.has_excluded:
        excluded = np.array(transaction.excluded(scope), dtype=np.int64)
        inside &= ~np.isin(about[_RUN], excluded)
    return inside


def _multiplied(rows: VectorRows, inside: "NDArray[np.intp]", vector: Vector) -> "Floats":
    if len(inside) > rows.count // _LARGE_PART:
        return products(rows.vectors[: rows.count], vector)[inside]
    return products(rows.vectors[inside], vector)


def _ids(transaction: Transaction, keys: Sequence[int]) -> dict[int, str]:
    sql = "SELECT key, id FROM trajectory WHERE key IN (SELECT value FROM json_each(?))"
    return dict(transaction.rows(sql, (str(keys),)))
