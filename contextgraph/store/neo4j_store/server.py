"""What a server is."""

import re
from typing import TYPE_CHECKING

from contextgraph.errors import SchemaError
from contextgraph.store.neo4j_store.queries import query

if TYPE_CHECKING:
    from neo4j import Driver


def server_version(driver: "Driver", database: str) -> tuple[int, int]:
    """Such as (5, 26) or (2026, 9); raises `SchemaError` for one that is not understood."""
    text = driver.execute_query(query("server"), database_=database).records[0]["version"]
    found = re.match(r"(\d+)\.(\d+)", text)
    if found is None:
        raise SchemaError(f"a server of unknown version {text!r}; run Neo4j 5.26 or later")
    return int(found[1]), int(found[2])
