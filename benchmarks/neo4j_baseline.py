"""The baseline for Neo4j: the rows of bundles, written with plain UNWIND MERGE."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contextgraph.model import Bundle
from contextgraph.store.neo4j import connection as rows
from contextgraph.store.neo4j.connection import Parameters
from contextgraph.store.rules import packed

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
    """The nodes and relations of *bundles*, under ids that no memory has."""
    nodes = {str(row["id"]): row for bundle in bundles for row in _nodes(bundle)}
    relations = [row for bundle in bundles for row in _relations(bundle)]
    return BareRows(
        [{**row, "id": prefix + id_} for id_, row in sorted(nodes.items())],
        [
            {**row, "start": f"{prefix}{row['start']}", "end": f"{prefix}{row['end']}"}
            for row in relations
        ],
    )


def merge(transaction: "ManagedTransaction", given: BareRows) -> None:
    """Write them, nodes before relations."""
    transaction.run(_NODES, rows=given.nodes).consume()
    transaction.run(_RELATIONS, rows=given.relations).consume()


def _nodes(bundle: Bundle) -> Iterator[Parameters]:
    yield rows.trajectory_row(bundle.trajectory)
    yield {"id": f"raw {bundle.trajectory.id}", "data": packed(bundle.raw)}
    yield from map(rows.fragment_row, bundle.fragments)
    yield from map(rows.error_row, bundle.errors)
    for fragment in bundle.fragments:
        for path in fragment.files:
            yield {"id": f"file {path}", "name": path}


def _relations(bundle: Bundle) -> Iterator[Parameters]:
    run = bundle.trajectory.id
    yield _relation("raw", run, f"raw {run}", {})
    for error in bundle.errors:
        yield _relation("met", run, error.id, {"context": error.context})
    for fragment in bundle.fragments:
        yield _relation("has", run, fragment.id, {"order": fragment.order})
        yield from (_relation("touched", fragment.id, f"file {p}", {}) for p in fragment.files)
    for caused in bundle.caused:
        properties = {"steps": list(caused.steps), "locations": list(caused.locations)}
        yield _relation("caused", caused.fragment_id, caused.error_id, properties)
    for cleared in bundle.recovered:
        properties = rows.recovered_row(cleared)
        yield _relation(
            f"recovered {cleared.error_step}", cleared.fragment_id, cleared.error_id, properties
        )


def _relation(kind: str, start: str, end: str, properties: Parameters) -> Parameters:
    return {"kind": kind, "start": start, "end": end, "properties": properties}
