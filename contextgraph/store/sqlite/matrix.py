"""Vectors of a table in memory: read at the first search, then extended by what is stored."""

import sqlite3
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from contextgraph.model import Vector, products
from contextgraph.store.port import COSINE_DECIMALS

if TYPE_CHECKING:
    pass

_NEWER = """
SELECT key, owner, data FROM vector
WHERE tenant = ? AND name = ? AND space = ? AND key > ? AND data IS NOT NULL ORDER BY key"""
_PRESENT = """
SELECT key FROM vector WHERE tenant = ? AND name = ? AND space = ? AND data IS NOT NULL"""


class Rows:
    """Vectors as they were at one revision, with the row that each is of."""

    def __init__(self, numbers: Any, owners: Any) -> None:
        self._numbers, self._owners = numbers, owners

    def nearest(
        self, vector: Vector, owners: Sequence[int] | None, limit: int
    ) -> list[tuple[int, float]]:
        """Return the nearest of *owners* (None: of all) with cosines, with all ties of the last."""
        import numpy as np

        inside = np.arange(len(self._owners))
        if owners is not None:
            named = np.array(sorted(owners), dtype=np.int64)
            inside = np.flatnonzero(np.isin(self._owners, named, assume_unique=True))
        if not len(inside):
            return []
        numbers = self._numbers if len(inside) == len(self._owners) else self._numbers[inside]
        cosines = np.round(products(numbers, vector).astype(float), COSINE_DECIMALS)
        if len(cosines) > limit:
            least = np.partition(cosines, -limit)[-limit]
            inside, cosines = inside[cosines >= least], cosines[cosines >= least]
        return [*zip(self._owners[inside].tolist(), cosines.tolist(), strict=True)]


class Matrix:
    """The vectors of a *table* in a *space* that a process has read."""

    def __init__(self, table: str, space: str, dimensions: int) -> None:
        self._of = (table, space)
        self._dimensions = dimensions
        self._lock = threading.Lock()
        self._revision = self._newest = -1
        self._keys: Any = None
        self._owners: Any = None
        self._numbers: Any = None

    def caught_up(self, connection: sqlite3.Connection, tenant: int, revision: int) -> Rows:
        """Return the vectors at *revision*, that of *connection*."""
        import numpy as np

        with self._lock:
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
            data = np.frombuffer(b"".join(row[2] for row in rows), "<f4")
            new = data.reshape(len(rows), self._dimensions)
            self._numbers = np.concatenate([self._numbers, new])
            self._keys = np.concatenate([self._keys, np.array([row[0] for row in rows])])
            self._owners = np.concatenate([self._owners, np.array([row[1] for row in rows])])
        present = [key for (key,) in connection.execute(_PRESENT, of)]
        if len(present) != len(self._keys):
            kept = np.isin(self._keys, np.array(present, dtype=np.int64))
            self._keys, self._owners = self._keys[kept], self._owners[kept]
            self._numbers = self._numbers[kept]
