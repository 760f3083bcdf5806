"""What was spent on models, kept beside the memories of this user."""

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from contextgraph.model import Usage

_TABLE = """CREATE TABLE IF NOT EXISTS spent (
    memory TEXT NOT NULL, day TEXT NOT NULL, model TEXT NOT NULL,
    requests INTEGER NOT NULL, tokens INTEGER NOT NULL, cost REAL NOT NULL, cut INTEGER NOT NULL,
    PRIMARY KEY (memory, day, model)) WITHOUT ROWID"""
_ADD = """INSERT INTO spent VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    requests = requests + excluded.requests, tokens = tokens + excluded.tokens,
    cost = cost + excluded.cost, cut = cut + excluded.cut"""
_TOTALS = """SELECT model, sum(requests), sum(tokens), sum(cost), sum(cut) FROM spent
    WHERE memory = ? GROUP BY model ORDER BY model"""

_log = logging.getLogger(__name__)


class Ledger:
    """Counts in the file *path* what *memory* took, by model and day; None: nowhere.

    Threads and processes may share the file. What cannot be noted is logged, and stops nothing.
    """

    def __init__(
        self,
        path: Path | None,
        memory: str,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._path = path
        self._memory = memory
        self._now = now

    def add(self, model: str, usage: Usage) -> None:
        """Note that *model* took *usage*."""
        day = self._now().date().isoformat()
        counts = (usage.requests, usage.tokens, usage.cost, usage.cut)
        row = (self._memory, day, model, *counts)
        if usage.requests:
            self._do(lambda connection: connection.execute(_ADD, row))

    def totals(self) -> dict[str, Usage]:
        """Model -> what the memory took of it, from this machine."""
        found: dict[str, Usage] = {}

        def read(connection: sqlite3.Connection) -> None:
            for model, *counts in connection.execute(_TOTALS, (self._memory,)):
                found[model] = Usage(*counts)

        if self._path is not None and self._path.exists():
            self._do(read)
        return found

    def _do(self, work: Callable[[sqlite3.Connection], object]) -> None:
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path)) as connection, connection:
                connection.execute(_TABLE)
                work(connection)
        except (OSError, sqlite3.Error) as error:
            _log.warning("what models took cannot be noted in %s: %s", self._path, error)
