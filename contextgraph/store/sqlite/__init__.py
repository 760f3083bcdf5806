"""The embedded default: a memory in one SQLite file, or without a file."""

from contextgraph.ports import NoteStore, Store
from contextgraph.store.sqlite.admin import SqliteAdmin
from contextgraph.store.sqlite.advice import SqliteExposures, SqliteMethodologies, SqliteRecoveries
from contextgraph.store.sqlite.database import Database
from contextgraph.store.sqlite.notes import SqliteNotes
from contextgraph.store.sqlite.runs import SqliteRuns
from contextgraph.store.sqlite.search import SqliteVectors

__all__ = ["SqliteStore"]


class SqliteStore(Store):
    """A `Store` in the file *path*, or in memory for ``:memory:``.

    Nothing is opened until first used. Threads and processes may share it. With *read_only*, or
    without *create*, a memory that does not exist is not created: the first use raises
    `MemoryNotFoundError`.
    """

    def __init__(
        self,
        path: str,
        tenant: str = "default",
        read_only: bool = False,
        create: bool = True,
    ) -> None:
        self._database = database = Database(str(path), tenant, read_only=read_only, create=create)
        self.tenant, self.snapshot = tenant, database.snapshot
        self.runs = SqliteRuns(database)
        self.recoveries = SqliteRecoveries(database)
        self.vectors = SqliteVectors(database)
        self.methodologies = SqliteMethodologies(database)
        self.exposures = SqliteExposures(database)
        self.notes: NoteStore = SqliteNotes(database)
        self.admin = SqliteAdmin(database, self.notes)

    def close(self) -> None:
        self.notes.close()
        self._database.connections.close()
