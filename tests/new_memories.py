"""New memories in a test process are copies of one.

To make the 234 tables, indexes and triggers of a memory takes 20 ms; to copy it 2 ms.
"""

import os
import sqlite3
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pytest

from contextgraph.store.sqlite import SqliteStore, schema
from contextgraph.system.processes import private


@cache
def _content() -> bytes:
    """The file of a memory in which nothing is stored."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "memory.db")
        with closing(SqliteStore(str(path))) as store:
            store.runs.ids()
        return path.read_bytes()


@cache
def _in_memory(process: int) -> sqlite3.Connection:
    """The same for *process*: a fork has a connection of its own."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "memory.db")
        path.write_bytes(_content())
        made = sqlite3.connect(":memory:", check_same_thread=False)
        with closing(sqlite3.connect(path)) as file:
            file.backup(made)
        return made


def copy_new_memories(patch: pytest.MonkeyPatch) -> None:
    """Let each new memory, in a file or in RAM, begin as a copy."""
    _in_memory(os.getpid())  # made as the product makes it

    def create(path: Path) -> None:
        part = path.with_name(f"{path.name}.{uuid4().hex}")
        with open(part, "xb", opener=private) as file:
            file.write(_content())
        with suppress(FileExistsError):
            os.link(part, path)
        part.unlink()

    def prepare(connection: sqlite3.Connection) -> None:
        (_, _, name), *_ = connection.execute("PRAGMA database_list").fetchall()
        if not name:
            _in_memory(os.getpid()).backup(connection)
        schema.prepare(connection)

    patch.setattr("contextgraph.store.sqlite.connections.create_private", create)
    patch.setattr("contextgraph.store.sqlite.connections.prepare", prepare)
