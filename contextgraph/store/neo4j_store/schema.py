"""The schema of a memory on a server: made where there is none, checked where there is one."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contextgraph.errors import MemoryNotFoundError, SchemaError
from contextgraph.store.neo4j_store.queries import cypher_folder, query, statements

if TYPE_CHECKING:
    from neo4j import Driver

_OLDEST = (5, 26)
_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Server:
    """What a server can do: its *version*, such as (5, 26) or (2026, 9)."""

    version: tuple[int, int]

    @property
    def has_search(self) -> bool:
        """Whether vector indexes filter by themselves (``SEARCH``)."""
        return self.version >= (2026, 2)


def checked(driver: "Driver", database: str, *, read_only: bool) -> Server:
    """The server, once its schema is as this version needs it.

    Raises `SchemaError` for a server that is too old, `MemoryNotFoundError` where there is no
    memory and none may be made.
    """
    row = driver.execute_query(query("server"), database_=database).records[0]
    server = Server(_version(row["version"]))
    if server.version < _OLDEST:
        raise SchemaError(f"Neo4j {row['version']} is too old; run 5.26 or later")
    if not _is_there(driver, database):
        if read_only:
            raise MemoryNotFoundError(f"no memory in {database}; learn something first")
        _apply(driver, database)
    return server


def _version(text: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", text)
    if found is None:
        raise SchemaError(f"a server of unknown version {text!r}; run Neo4j 5.26 or later")
    return int(found[1]), int(found[2])


def _is_there(driver: "Driver", database: str) -> bool:
    found = driver.execute_query(query("schema_is_there"), database_=database)
    return bool(found.records[0]["there"])


def _apply(driver: "Driver", database: str) -> None:
    for path in sorted((cypher_folder() / "migrations").glob("V*.cypher")):
        for statement in statements(path.read_text(encoding="utf-8")):
            driver.execute_query(statement, database_=database)
    driver.execute_query(query("await_indexes"), seconds=_SECONDS, database_=database)
