"""Vectors of a table in memory: read at a search of many, then extended by what is stored."""

import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from contextgraph.model import (
    COSINE_DECIMALS,
    PLAIN_WORK,
    Vector,
    is_undecided,
    plain_cosines,
    products,
    rounded_cosine,
)
from contextgraph.store.port import Table

_NEWER = """
SELECT key, owner, data FROM vector
WHERE tenant = ? AND name = ? AND space = ? AND key > ? AND data IS NOT NULL ORDER BY key"""
_OF_ROWS = """
SELECT v.owner, v.data FROM json_each(?) named CROSS JOIN vector v
ON v.name = ? AND v.owner = named.value AND v.space = ? WHERE v.data IS NOT NULL"""
_PRESENT = """
SELECT {of} FROM vector WHERE tenant = ? AND name = ? AND space = ? AND data IS NOT NULL"""


Near = list[tuple[int, float]]
"""The nearest rows with their cosines, with all that tie with the last."""


def _nearest_of(stored: Mapping[int, Vector], vector: Vector, limit: int) -> Near:
    """Return the nearest to *vector* of few rows with their vectors, of its space."""
    cosines = [round(one, COSINE_DECIMALS) for one in plain_cosines(vector, stored.values())]
    least = sorted(cosines)[-limit] if len(cosines) > limit else -1.0
    named = zip(stored, cosines, strict=True)
    return [(owner, cosine) for owner, cosine in named if cosine >= least]


class Rows:
    """Vectors as they were at one revision, with the row that each is of."""

    def __init__(self, numbers: Any, owners: Any) -> None:
        self._numbers, self._owners = numbers, owners

    def nearest(self, vector: Vector, owners: Sequence[int] | None, limit: int) -> Near:
        """Return the *limit* rows of *owners*, or of all, nearest to *vector*, with cosines."""
        import numpy as np

        inside = np.arange(len(self._owners))
        if owners is not None:
            named = np.array(sorted(owners), dtype=np.int64)
            inside = np.flatnonzero(np.isin(self._owners, named, assume_unique=True))
        if not len(inside):
            return []
        numbers = self._numbers if len(inside) == len(self._owners) else self._numbers[inside]
        cosines = products(numbers, vector).astype(float)
        if len(cosines) > limit:
            # Rounding moves none by more than this.
            least = np.partition(cosines, -limit)[-limit] - 10**-COSINE_DECIMALS
            inside, cosines = inside[cosines >= least], cosines[cosines >= least]
        rounded = np.round(cosines, COSINE_DECIMALS)
        for place, cosine in enumerate(cosines.tolist()):
            if is_undecided(cosine):
                own = Vector(vector.space, self._numbers[inside[place]].tobytes())
                rounded[place] = rounded_cosine(vector, own, cosine)
        if len(rounded) > limit:
            least = np.partition(rounded, -limit)[-limit]
            inside, rounded = inside[rounded >= least], rounded[rounded >= least]
        return [*zip(self._owners[inside].tolist(), rounded.tolist(), strict=True)]


class Matrix:
    """The vectors of a *table* in a *space* that a process has read."""

    def __init__(self, table: Table, space: str, dimensions: int) -> None:
        self._of = (table.name, space)
        self._is_coarse = table.is_coarse
        self._dimensions = dimensions
        self._lock = threading.Lock()
        self._revision = self._newest = -1
        self._keys: Any = None
        self._owners: Any = None
        self._numbers: Any = None

    def nearest(
        self,
        connection: sqlite3.Connection,
        tenant: int,
        revision: int,
        vectors: Sequence[Vector],
        owners: Sequence[int] | None,
        limit: int,
    ) -> list[Near]:
        """Return the nearest to each of *vectors* of *owners*; None: of all.

        While this process has compared few, the vectors of *owners* alone are read.
        """
        if owners is not None and PLAIN_WORK.takes(len(owners) * len(vectors) * self._dimensions):
            read: Callable[[str, bytes], Vector]
            read = Vector.of_coarse if self._is_coarse else Vector
            found = connection.execute(_OF_ROWS, (str([*owners]), *self._of))
            stored = {owner: read(self._of[1], data) for owner, data in found}
            return [_nearest_of(stored, vector, limit) for vector in vectors]
        rows = self._caught_up(connection, tenant, revision)
        return [rows.nearest(vector, owners, limit) for vector in vectors]

    def _caught_up(self, connection: sqlite3.Connection, tenant: int, revision: int) -> Rows:
        """Return the vectors at *revision*, that of *connection*."""
        import numpy as np

        with self._lock:
            if self._keys is not None and revision < self._revision:
                # Another thread, or process, wrote after this state: most of it is known.
                present = self._present(connection, (tenant, *self._of))
                kept = np.isin(self._keys, present)
                if np.count_nonzero(kept) == len(present):
                    return Rows(self._numbers[kept], self._owners[kept])
            if self._keys is None or revision < self._revision:
                self._keys = self._owners = np.empty(0, dtype=np.int64)
                self._numbers = np.empty((0, self._dimensions), dtype=np.float32)
                self._newest = -1
            if revision != self._revision:
                self._catch_up(connection, (tenant, *self._of))
                self._revision = revision
            return Rows(self._numbers, self._owners)

    def _catch_up(self, connection: sqlite3.Connection, of: tuple[Any, ...]) -> None:
        import numpy as np

        rows = connection.execute(_NEWER, (*of, self._newest)).fetchall()
        if rows:
            self._newest = rows[-1][0]
            kind = "i1" if self._is_coarse else "<f4"
            data = np.frombuffer(b"".join(row[2] for row in rows), kind)
            new = data.reshape(len(rows), self._dimensions)
            if self._is_coarse:
                new = new.astype("f4")
                new /= np.linalg.norm(new, axis=1, keepdims=True)
            self._numbers = np.concatenate([self._numbers, new])
            self._keys = np.concatenate([self._keys, np.array([row[0] for row in rows])])
            self._owners = np.concatenate([self._owners, np.array([row[1] for row in rows])])
        ((present,),) = connection.execute(_PRESENT.format(of="count(*)"), of)
        if present != len(self._keys):
            kept = np.isin(self._keys, self._present(connection, of))
            self._keys, self._owners = self._keys[kept], self._owners[kept]
            self._numbers = self._numbers[kept]

    def _present(self, connection: sqlite3.Connection, of: tuple[Any, ...]) -> Any:
        """Return the numbers of all vectors that *connection* sees, in one row.

        At each row that is fetched a thread lets the others run, and they wait for the lock.
        """
        import numpy as np

        ((keys,),) = connection.execute(_PRESENT.format(of="group_concat(key)"), of)
        return np.array(orjson.loads(f"[{keys or ''}]"), dtype=np.int64)
