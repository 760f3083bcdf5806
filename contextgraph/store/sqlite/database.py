"""The memory file of one tenant: transactions, snapshots, caches."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from sqlite3 import Connection
from threading import local

from contextgraph.errors import StoreError
from contextgraph.store.sqlite.connections import Connections
from contextgraph.store.sqlite.graph import CurrentGraph
from contextgraph.store.sqlite.matrix import Matrix
from contextgraph.store.sqlite.transaction import Transaction, Values
from contextgraph.store.sqlite.word_index import WordIndex

UNKNOWN_TENANT = 0


class LatestValues:
    """The cached values of the newest revision that was read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest = Values()

    def at_revision(self, connection: Connection, tenant: int, revision: int) -> Values:
        """Those of the *revision* that *connection* sees; none for an older one."""
        with self._lock:
            before = self._latest
            if revision < before.revision:
                return Values(revision)
            if before.revision < 0:
                self._latest = Values(revision)
            elif revision > before.revision:
                changed = connection.execute(
                    "SELECT key FROM trajectory WHERE tenant = ? AND revision > ?",
                    (tenant, before.revision),
                )
                runs = before.trajectories.without([row[0] for row in changed])
                self._latest = Values(revision, runs, before.fragments, before.recoveries, {})
            return self._latest


class _Snapshot(local):
    """The transaction of the snapshot that a thread is in."""

    transaction: Transaction | None = None


@dataclass(frozen=True, slots=True)
class Caches:
    """What this process has computed from the file and can compute again."""

    process: int = field(default_factory=os.getpid)
    run_words: WordIndex = field(default_factory=lambda: WordIndex("trajectory"))
    recovery_words: WordIndex = field(default_factory=lambda: WordIndex("recovered"))
    matrix: Matrix = field(default_factory=Matrix)
    graph: CurrentGraph = field(default_factory=CurrentGraph)
    values: LatestValues = field(default_factory=LatestValues)
    snapshot: _Snapshot = field(default_factory=_Snapshot)


class Database:
    """The file *path* (or ``:memory:``) as *tenant* sees it; nothing is opened until first used."""

    def __init__(self, path: str, tenant: str, *, read_only: bool, create: bool) -> None:
        self.tenant = tenant
        self.connections = Connections(path, read_only=read_only, create=create)
        self._caches = Caches()

    @property
    def caches(self) -> Caches:
        """What is cached; a forked process starts with nothing, as locks may be held forever."""
        if self._caches.process != os.getpid():
            self._caches = Caches()
        return self._caches

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """A transaction that sees one revision: that of the snapshot of this thread, if any."""
        current = self.caches.snapshot.transaction
        if current is not None:
            yield current
            return
        with self.connections.reading() as connection:
            tenant, revision = _tenant(connection, self.tenant)
            values = self.caches.values.at_revision(connection, tenant, revision)
            yield Transaction(connection, tenant, values)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """In this block all reading of the thread sees one revision."""
        with self.reading() as transaction:
            snapshot = self.caches.snapshot
            before, snapshot.transaction = snapshot.transaction, transaction
            try:
                yield
            finally:
                snapshot.transaction = before

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """A transaction that is committed at the end, or leaves nothing."""
        if self.caches.snapshot.transaction is not None:
            raise StoreError("nothing can be written within a snapshot; write when it has ended")
        with self.connections.writing() as connection:
            connection.execute(
                "INSERT INTO tenant (name, revision, removals) VALUES (?, 0, 0) "
                "ON CONFLICT DO NOTHING",
                (self.tenant,),
            )
            tenant, _ = _tenant(connection, self.tenant)
            yield Transaction(connection, tenant, Values())


def _tenant(connection: Connection, name: str) -> tuple[int, int]:
    """The key and the revision of a tenant."""
    sql = "SELECT key, revision FROM tenant WHERE name = ?"
    row = connection.execute(sql, (name,)).fetchone()
    return (UNKNOWN_TENANT, 0) if row is None else (row[0], row[1])
