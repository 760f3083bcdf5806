"""The memory in one SQLite file, or in the memory of this process."""

from contextgraph.store.memory_store import MemoryStore
from contextgraph.store.sqlite.port import SqlitePort
from contextgraph.store.tables import TABLES

__all__ = ["SqliteStore"]


class SqliteStore(MemoryStore):
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
        super().__init__(SqlitePort(str(path), TABLES, tenant, read_only=read_only, create=create))
