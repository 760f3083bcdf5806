"""The memory in one SQLite file, or in the memory of this process."""

from contextgraph.store.sqlite.port import SqliteStore as SqliteStore
