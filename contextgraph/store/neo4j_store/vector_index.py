"""Vector indexes: one for each property that holds vectors, and each label that has them."""

import re
from typing import TYPE_CHECKING

from contextgraph.errors import SchemaError
from contextgraph.store.neo4j_store.queries import query

if TYPE_CHECKING:
    from neo4j import Driver

_LABELS = ("Fragment", "Trajectory")
_PROPERTY = re.compile(r"embedding_([0-9]+)_[0-9]+")
# Names of labels and properties cannot be parameters; these are made of words above and numbers.
_CREATE = """
CREATE VECTOR INDEX {name} IF NOT EXISTS FOR (n:{label}) ON (n.{property})
OPTIONS {{indexConfig: {{
    `vector.dimensions`: $dimensions, `vector.similarity_function`: 'cosine'
}}}}"""
_SECONDS = 300


def make_vector_indexes(driver: "Driver", database: str, property_: str) -> None:
    """Indexes for the vectors under *property_*, such as ``embedding_384_1``."""
    found = _PROPERTY.fullmatch(property_)
    if found is None:
        raise SchemaError(f"vectors cannot be kept under {property_!r}; remove that space")
    for label in _LABELS:
        name = vector_index(label, property_)
        statement = _CREATE.format(name=name, label=label, property=property_)
        driver.execute_query(statement, dimensions=int(found[1]), database_=database)
    driver.execute_query(query("await_indexes"), seconds=_SECONDS, database_=database)


def vector_index(label: str, property_: str) -> str:
    """The name of the index over the vectors under *property_* of nodes of this *label*."""
    return f"{label.lower()}_{property_}"
