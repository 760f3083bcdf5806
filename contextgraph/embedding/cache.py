"""A cache of vectors on disk, by hash of the text: no text is stored."""

import hashlib
import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TypeVar

from contextgraph.vectors import Vector

# 100,000 vectors of 1,536 dimensions are 0.6 GB; beyond that the oldest tenth is deleted.
MAX_VECTORS = 100_000
_BATCH = 500
_TABLE = """CREATE TABLE IF NOT EXISTS vector (
    key INTEGER PRIMARY KEY, space TEXT NOT NULL, text BLOB NOT NULL, data BLOB NOT NULL,
    UNIQUE (space, text))"""
_SHRINK = "DELETE FROM vector WHERE key < (SELECT max(key) FROM vector) - ?"

_log = logging.getLogger(__name__)

Result = TypeVar("Result")


class VectorCache:
    """The vectors of texts by space, in the SQLite file *path*; None: no cache.

    Threads and processes may share the file. Failures are logged and count as cache misses.
    """

    def __init__(self, path: Path | None, max_vectors: int = MAX_VECTORS) -> None:
        self._path = path
        self._max = max_vectors

    def get(self, space: str, texts: Sequence[str]) -> dict[str, Vector]:
        """The cached vectors of *texts*, by text."""
        texts_by_digest = {_digest(text): text for text in texts}

        def read(connection: sqlite3.Connection) -> dict[str, Vector]:
            return {
                texts_by_digest[digest]: Vector(space, data)
                for digests in _batches(texts_by_digest)
                for digest, data in connection.execute(_select(len(digests)), (space, *digests))
            }

        return self._run(read, {})

    def put(self, space: str, vectors: Mapping[str, Vector]) -> None:
        """Store *vectors*, given by text."""
        rows = [(space, _digest(text), vector.data) for text, vector in vectors.items()]

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "INSERT OR IGNORE INTO vector (space, text, data) VALUES (?, ?, ?)", rows
            )
            first, last = connection.execute("SELECT min(key), max(key) FROM vector").fetchone()
            if last - first >= self._max:
                connection.execute(_SHRINK, (self._max - self._max // 10,))

        if rows:
            self._run(write, None)

    def _run(self, work: Callable[[sqlite3.Connection], Result], otherwise: Result) -> Result:
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
            _log.warning("the vector cache %s cannot be used: %s", self._path, error)
            return otherwise


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _batches(digests: Mapping[bytes, str]) -> Iterator[tuple[bytes, ...]]:
    rest = iter(digests)
    while batch := tuple(islice(rest, _BATCH)):
        yield batch


def _select(count: int) -> str:
    marks = ", ".join("?" * count)
    return f"SELECT text, data FROM vector WHERE space = ? AND text IN ({marks})"
