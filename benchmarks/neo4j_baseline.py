"""The baseline for Neo4j: the rows of bundles, written with plain UNWIND MERGE."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contextgraph.model import Bundle, ErrorPattern
from contextgraph.store.neo4j.connection import Parameters
from contextgraph.store.port import Row
from contextgraph.store.rules import pack
from contextgraph.store.tables import bundle_rows, error_row

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

UNIQUE = "CREATE CONSTRAINT bare_id IF NOT EXISTS FOR (n:Bare) REQUIRE n.id IS UNIQUE"
_NODES = "UNWIND $rows AS row MERGE (n:Bare {id: row.id}) SET n += row"
_RELATIONS = """
UNWIND $rows AS row MATCH (a:Bare {id: row.start}) MATCH (b:Bare {id: row.end})
MERGE (a)-[r:BARE {kind: row.kind}]->(b) SET r += row.properties"""


@dataclass(frozen=True, slots=True)
class BareRows:
    """Properties of nodes with their id, and of relations with their ends."""

    nodes: Sequence[Parameters]
    relations: Sequence[Parameters]


def rows_of(bundles: Sequence[Bundle], prefix: str) -> BareRows:
    """The rows of *bundles* as nodes and relations, under ids that no memory has."""
    rows = {
        (row.table.name, row.key): row
        for packed in pack(bundles)
        for row in (*bundle_rows(packed, 0), *(_error_row(one) for one in packed.bundle.errors))
    }
    nodes = [row for row in rows.values() if not row.table.ends]
    edges = [row for row in rows.values() if row.table.ends]
    return BareRows(
        [
            {**_properties(row), "id": f"{prefix}{row.table.name} {row.key}"}
            for row in sorted(nodes, key=lambda row: row.key)
        ],
        [
            {
                "kind": f"{row.table.name} {row.key}",
                "start": f"{prefix}{row.table.ends[0].name} {row.source}",
                "end": f"{prefix}{row.table.ends[1].name} {row.target}",
                "properties": _properties(row),
            }
            for row in edges
            if row.table.ends
        ],
    )


def _error_row(error: ErrorPattern) -> Row:
    return error_row(error, "", 1, 1, 0)


def _properties(row: Row) -> Parameters:
    values = {**row.shown(), **row.columns, "value": row.value}
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
    }


def merge(transaction: "ManagedTransaction", given: BareRows) -> None:
    """Write them, nodes before relations."""
    transaction.run(_NODES, rows=given.nodes).consume()
    transaction.run(_RELATIONS, rows=given.relations).consume()
