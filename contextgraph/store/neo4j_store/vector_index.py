"""Vector indexes: one for each property that holds vectors, and each label that has them."""

import re
from typing import TYPE_CHECKING

from contextgraph.errors import SchemaError
from contextgraph.store.neo4j_store.migrations import Migration, run_schema
from contextgraph.store.neo4j_store.queries import query
from contextgraph.store.neo4j_store.server import server_version
from contextgraph.store.neo4j_store.transaction import Transaction

if TYPE_CHECKING:
    from neo4j import Driver

_LABELS = ("Fragment", "Trajectory")
_PROPERTY = re.compile(r"embedding_([0-9]+_[0-9]+)")
# Names of labels and properties cannot be parameters; these are made of words above and numbers.
_CREATE = """{language}
CREATE VECTOR INDEX {name} IF NOT EXISTS FOR (n:{label}) ON (n.{property}) {scopes}
OPTIONS {{indexConfig: {{
    `vector.dimensions`: {dimensions}, `vector.similarity_function`: 'cosine'
}}}}"""
_SECONDS = 300
# What scopes ask is in the index itself, on releases that can search within them.
_KNOWS_SCOPES = "WITH [n.tenant, n.repo, n.seen_at]"
_SINCE = (2026, 4)


def make_vector_indexes(driver: "Driver", database: str, property_: str) -> None:
    """Indexes for the vectors under *property_*, such as ``embedding_384_1``."""
    version = server_version(driver, database)
    for label in _LABELS:
        run_schema(driver, database, _create(label, property_, version))
    driver.execute_query(query("await_indexes"), seconds=_SECONDS, database_=database)


def mending(driver: "Driver", database: str) -> tuple[Migration, ...]:
    """What mends the indexes of embedding spaces: missing, or made for vectors of another size.

    ``IF NOT EXISTS`` would pass over the latter, and queries would find nothing. One that knows no
    scopes, as of a server that was upgraded, is searched as on the older server.
    """
    version = server_version(driver, database)
    indexes = driver.execute_query(query("vector_indexes"), database_=database).records
    found = {row["name"]: (row["dimensions"], row["similarity"]) for row in indexes}
    spaces = driver.execute_query(query("vector_properties"), database_=database).records
    return tuple(
        _anew(label, row["property"], version)
        for row in spaces
        for label in _LABELS
        if found.get(vector_index(label, row["property"]))
        != (_dimensions(row["property"]), "COSINE")
    )


def _anew(label: str, property_: str, version: tuple[int, int]) -> Migration:
    name = vector_index(label, property_)
    statements = (f"DROP INDEX {name} IF EXISTS", _create(label, property_, version))
    described = f"vector index {name} of {_dimensions(property_)} dimensions"
    return Migration(described, statements, once=False)


def _create(label: str, property_: str, version: tuple[int, int]) -> str:
    knows_scopes = version >= _SINCE
    return _CREATE.format(
        language="CYPHER 25" if knows_scopes else "",
        name=vector_index(label, property_),
        label=label,
        property=property_,
        scopes=_KNOWS_SCOPES if knows_scopes else "",
        dimensions=_dimensions(property_),
    ).strip()


def _dimensions(property_: str) -> int:
    return int(_numbers(property_).partition("_")[0])


def _numbers(property_: str) -> str:
    found = _PROPERTY.fullmatch(property_)
    if found is None:
        raise SchemaError(f"vectors cannot be kept under {property_!r}; remove that space")
    return found[1]


def vector_index(label: str, property_: str) -> str:
    """The name of the index over the vectors under *property_* of nodes of this *label*."""
    return f"{label.lower()}_embedding_{_numbers(property_)}"


class VectorIndexes:
    """How each vector index is searched: chosen when it is first asked."""

    def __init__(self) -> None:
        self._knowing: dict[str, bool] = {}

    def know_scopes(self, transaction: Transaction, index: str) -> bool:
        """True where *index* can be searched within a scope."""
        if index not in self._knowing:
            found = transaction.rows("vector_indexes")
            self._knowing = {row["name"]: "tenant" in row["properties"] for row in found}
        return self._knowing.get(index, False)
