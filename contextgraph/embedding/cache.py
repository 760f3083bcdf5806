"""Vectors that took money or time, kept beside this user's memories: no text, only its hash."""

import hashlib
import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TypeVar

from contextgraph.vectors import Vector

# 100,000 of 1,536 numbers are 0.6 GB; beyond, those that came first go, a tenth at a time.
MOST_VECTORS = 100_000
_ASKED_AT_ONCE = 500
_TABLE = """CREATE TABLE IF NOT EXISTS vector (
    key INTEGER PRIMARY KEY, space TEXT NOT NULL, text BLOB NOT NULL, data BLOB NOT NULL,
    UNIQUE (space, text))"""
_SHRINK = "DELETE FROM vector WHERE key < (SELECT max(key) FROM vector) - ?"

_log = logging.getLogger(__name__)

Result = TypeVar("Result")


class VectorCache:
    """The vectors of texts by space, in the file *path*; None: nothing is kept.

    Threads and processes may share the file. What cannot be read or kept is logged, and asked of
    the model again.
    """

    def __init__(self, path: Path | None, most: int = MOST_VECTORS) -> None:
        self._path = path
        self._most = most

    def get(self, space: str, texts: Sequence[str]) -> dict[str, Vector]:
        """Those of *texts* that are known, with their vectors."""
        wanted = {_digest(text): text for text in texts}

        def read(connection: sqlite3.Connection) -> dict[str, Vector]:
            return {
                wanted[digest]: Vector(space, data)
                for digests in _batches(wanted)
                for digest, data in connection.execute(_asked(len(digests)), (space, *digests))
            }

        return self._do(read, {})

    def put(self, space: str, vectors: Mapping[str, Vector]) -> None:
        """Keep *vectors* by their texts."""
        rows = [(space, _digest(text), vector.data) for text, vector in vectors.items()]

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "INSERT OR IGNORE INTO vector (space, text, data) VALUES (?, ?, ?)", rows
            )
            first, last = connection.execute("SELECT min(key), max(key) FROM vector").fetchone()
            if last - first >= self._most:
                connection.execute(_SHRINK, (self._most - self._most // 10,))

        if rows:
            self._do(write, None)

    def _do(self, work: Callable[[sqlite3.Connection], Result], otherwise: Result) -> Result:
        if self._path is None:
            return otherwise
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path)) as connection, connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute(_TABLE)
                return work(connection)
        except (OSError, sqlite3.Error) as error:
            _log.warning("the cache of vectors %s is of no use: %s", self._path, error)
            return otherwise


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _batches(digests: Mapping[bytes, str]) -> Iterator[tuple[bytes, ...]]:
    rest = iter(digests)
    while batch := tuple(islice(rest, _ASKED_AT_ONCE)):
        yield batch


def _asked(count: int) -> str:
    marks = ", ".join("?" * count)
    return f"SELECT text, data FROM vector WHERE space = ? AND text IN ({marks})"
