"""Vector indexes: one for each property that holds vectors, and each label that has them."""

import re
from typing import TYPE_CHECKING

from contextgraph.errors import SchemaError
from contextgraph.store.neo4j_store.migrations import Migration, run_schema
from contextgraph.store.neo4j_store.queries import query

if TYPE_CHECKING:
    from neo4j import Driver

_LABELS = ("Fragment", "Trajectory")
_PROPERTY = re.compile(r"embedding_([0-9]+)_[0-9]+")
# Names of labels and properties cannot be parameters; these are made of words above and numbers.
_CREATE = """
CREATE VECTOR INDEX {name} IF NOT EXISTS FOR (n:{label}) ON (n.{property})
OPTIONS {{indexConfig: {{
    `vector.dimensions`: {dimensions}, `vector.similarity_function`: 'cosine'
}}}}"""
_SECONDS = 300


def make_vector_indexes(driver: "Driver", database: str, property_: str) -> None:
    """Indexes for the vectors under *property_*, such as ``embedding_384_1``."""
    for label in _LABELS:
        run_schema(driver, database, _create(label, property_))
    driver.execute_query(query("await_indexes"), seconds=_SECONDS, database_=database)


def mending(driver: "Driver", database: str) -> tuple[Migration, ...]:
    """What mends the indexes of embedding spaces: missing, or made for vectors of another size.

    ``IF NOT EXISTS`` would pass over the latter, and queries would find nothing.
    """
    indexes = driver.execute_query(query("vector_indexes"), database_=database).records
    found = {row["name"]: (row["dimensions"], row["similarity"]) for row in indexes}
    spaces = driver.execute_query(query("vector_properties"), database_=database).records
    return tuple(
        _anew(label, row["property"])
        for row in spaces
        for label in _LABELS
        if found.get(vector_index(label, row["property"]))
        != (_dimensions(row["property"]), "COSINE")
    )


def _anew(label: str, property_: str) -> Migration:
    name = vector_index(label, property_)
    statements = (f"DROP INDEX {name} IF EXISTS", _create(label, property_))
    return Migration(f"vector index {name}", statements, once=False)


def _create(label: str, property_: str) -> str:
    name = vector_index(label, property_)
    dimensions = _dimensions(property_)
    return _CREATE.format(name=name, label=label, property=property_, dimensions=dimensions)


def _dimensions(property_: str) -> int:
    found = _PROPERTY.fullmatch(property_)
    if found is None:
        raise SchemaError(f"vectors cannot be kept under {property_!r}; remove that space")
    return int(found[1])


def vector_index(label: str, property_: str) -> str:
    """The name of the index over the vectors under *property_* of nodes of this *label*."""
    return f"{label.lower()}_{property_}"
