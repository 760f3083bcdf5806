"""Where something in the memory comes from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from contextgraph.model.trajectory import Json


@dataclass(frozen=True, slots=True)
class Relation:
    """An edge of a node, to (*outgoing*) or from the node *id*, with its properties."""

    type: str
    outgoing: bool
    id: str
    label: str
    name: str
    properties: Mapping[str, Json] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Explanation:
    """A node of the graph, or a context that was shown: what is known of it, and its edges.

    Relations are ordered by type, then by id.
    """

    id: str
    label: str
    name: str
    facts: Mapping[str, Json] = field(hash=False)
    relations: tuple[Relation, ...] = ()
