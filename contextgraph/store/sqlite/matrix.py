"""The vectors of a space as matrices in memory, one per kind of node, searched within a scope."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contextgraph.model import NodeKind, Space
from contextgraph.store import rules
from contextgraph.store.sqlite.rows import Row
from contextgraph.store.sqlite.schema import RUN_BITS
from contextgraph.store.sqlite.transaction import SqlScope, Transaction
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
_PRESENT = "SELECT key FROM vectors WHERE space = ?"
_METHODOLOGY_STATE = (
    "SELECT coalesce(max(key), 0), count(*) FROM methodology_vector WHERE space = ?"
)
_METHODOLOGY_VECTORS = """
SELECT m.key, m.repo, v.data FROM methodology_vector v
CROSS JOIN methodology m ON m.key = v.methodology WHERE v.space = ? ORDER BY m.id"""
_GENERAL = ""
_NODE, _RUN, _PLACE, _SEEN_AT, _KEY = range(5)
_GONE = 0
_RUNS_AT_ONCE = 256
# Copying so large a part of the rows costs more than multiplying all of them.
_LARGE_PART = 4


@dataclass(frozen=True, slots=True)
class ActiveSpace:
    """The active space with its key."""

    key: int
    space: Space


@dataclass(frozen=True, slots=True)
class VectorRows:
    """*count* rows of *vectors*, each with node, run, repository, time and key in *about*.

    Rows beyond *count* are free; rows of the run _GONE are of vectors that were dropped.
    """

    vectors: "Floats"
    about: "Numbers"
    count: int


class Matrices:
    """The vectors of *active*: loaded at the first query, then extended by what is learned."""

    def __init__(self, active: ActiveSpace) -> None:
        self.active = active
        self._lock = threading.Lock()
        self._rows: dict[NodeKind, VectorRows] = {}
        self._newest, self._revision, self._removals = -1, -1, -1

    def nearest(
        self,
        transaction: Transaction,
        kind: NodeKind,
        scope: SqlScope,
        vector: Vector,
        limit: int,
    ) -> list[tuple[int, Vector]]:
        """The keys of the nodes in *scope* nearest to *vector*, best first, ties by id."""
        import numpy as np

        rows = self._caught_up(transaction)[kind]
        inside = np.flatnonzero(_within(transaction, rows, scope))
        if limit < 1 or not len(inside):
            return []
        cosines = np.round(_multiplied(rows, inside, vector), rules.COSINE_DECIMALS)
        if len(cosines) > limit:
            least = np.partition(cosines, -limit)[-limit]
            inside, cosines = inside[cosines >= least], cosines[cosines >= least]
        keys = rows.about[_NODE, inside].tolist()
        ids = _ids(transaction, kind, keys)
        # A node without an id was added after this reader began.
        found = sorted(
            (-value, ids[key], key, row)
            for value, key, row in zip(cosines.tolist(), keys, inside.tolist(), strict=True)
            if key in ids
        )
        return [
            (key, Vector(vector.space, rows.vectors[row].tobytes()))
            for _, _, key, row in found[:limit]
        ]

    def _caught_up(self, transaction: Transaction) -> dict[NodeKind, VectorRows]:
        with self._lock:
            revision, removals = transaction.revision()
            rows = self._with_newer(transaction, self._rows or self._empty(transaction))
            if revision > self._revision:
                if self._removals not in (-1, removals):
                    present = transaction.column(_PRESENT, (self.active.key,))
                    rows = {kind: _only(of_kind, present) for kind, of_kind in rows.items()}
                self._revision, self._removals = revision, removals
            self._rows = rows
            return rows

    def _empty(self, transaction: Transaction) -> dict[NodeKind, VectorRows]:
        ((runs, size),) = transaction.rows(
            "SELECT count(*), coalesce(sum(length(data)), 0) FROM vectors WHERE space = ?",
            (self.active.key,),
        )
        dimensions = dimensions_of(self.active.space.name)
        fragments = size // (4 * dimensions) - runs
        return {
            NodeKind.TRAJECTORY: _allocated(dimensions, runs),
            NodeKind.FRAGMENT: _allocated(dimensions, fragments),
        }

    def _with_newer(
        self, transaction: Transaction, rows: dict[NodeKind, VectorRows]
    ) -> dict[NodeKind, VectorRows]:
        newer = transaction.connection.execute(_NEWER, (self._newest, self.active.key))
        while batch := newer.fetchmany(_RUNS_AT_ONCE):
            added = _parsed(batch, rows[NodeKind.FRAGMENT].vectors.shape[1])
            rows = {kind: _extended(rows[kind], *added[kind]) for kind in rows}
            self._newest = batch[-1][_KEY - 1]
        return rows


class MatrixCache:
    """The matrices of the active space, cached for the next query."""

    def __init__(self) -> None:
        self._matrices: Matrices | None = None

    def of(self, active: ActiveSpace) -> Matrices:
        """Those of *active*; the matrices of another space are dropped."""
        matrices = self._matrices
        if matrices is None or matrices.active.key != active.key:
            matrices = self._matrices = Matrices(active)
        return matrices


@dataclass(frozen=True, slots=True)
class _MethodologyRows:
    """What was read of a *space* while its table was in this *state*; rows by id."""

    space: int
    state: tuple[int, int]
    keys: tuple[int, ...]
    repos: "NDArray[np.object_]"
    vectors: "Floats"


class MethodologyMatrix:
    """The vectors of methodologies in the active space, read again when any of them changed."""

    def __init__(self) -> None:
        self._rows: _MethodologyRows | None = None

    def nearest(
        self, transaction: Transaction, space: int, repo: str | None, vector: Vector
    ) -> Iterator[tuple[int, Vector]]:
        """The keys of methodologies of *repo* (None: of any) or general, best first, ties by id."""
        import numpy as np

        rows = self._caught_up(transaction, space, vector.space)
        if not rows.keys:
            return
        inside = np.arange(len(rows.keys))
        if repo is not None:
            inside = np.flatnonzero((rows.repos == repo) | (rows.repos == _GENERAL))
        cosines = np.round(products(rows.vectors[inside], vector), rules.COSINE_DECIMALS)
        for row in inside[np.argsort(-cosines, kind="stable")].tolist():
            yield rows.keys[row], Vector(vector.space, rows.vectors[row].tobytes())

    def _caught_up(self, transaction: Transaction, space: int, name: str) -> _MethodologyRows:
        state = transaction.rows(_METHODOLOGY_STATE, (space,))[0]
        rows = self._rows
        if rows is None or (rows.space, rows.state) != (space, state):
            found = transaction.rows(_METHODOLOGY_VECTORS, (space,))
            rows = self._rows = _methodology_rows(space, state, found, dimensions_of(name))
        return rows


def _methodology_rows(
    space: int, state: tuple[int, int], found: Sequence[Row], dimensions: int
) -> _MethodologyRows:
    import numpy as np

    has_vector = [row for row in found if any(row[2])]
    numbers = np.frombuffer(b"".join(row[2] for row in has_vector), "<f4").reshape(-1, dimensions)
    repos = np.array([row[1] or _GENERAL for row in has_vector], dtype=object)
    return _MethodologyRows(space, state, tuple(row[0] for row in has_vector), repos, numbers)


def _allocated(dimensions: int, size: int) -> VectorRows:
    import numpy as np

    about = np.zeros((5, size), dtype=np.int64)
    return VectorRows(np.empty((size, dimensions), dtype=np.float32), about, 0)


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


def _ids(transaction: Transaction, kind: NodeKind, keys: Sequence[int]) -> dict[int, str]:
    sql = f"SELECT key, id FROM {TABLES[kind]} WHERE key IN (SELECT value FROM json_each(?))"
    return dict(transaction.rows(sql, (str(keys),)))
