"""The values of the memory, as frozen dataclasses."""

from contextgraph.lazy import TYPE_CHECKING, names_of

if TYPE_CHECKING:
    from contextgraph.model.bundle import *
    from contextgraph.model.context import *
    from contextgraph.model.error import *
    from contextgraph.model.methodology import *
    from contextgraph.model.note import *
    from contextgraph.model.step import *
    from contextgraph.model.trajectory import *

# Searched in this order at first use: the hook of an agent needs the first two only.
_MODULES = (
    "step",
    "error",
    "trajectory",
    "methodology",
    "context",
    "bundle",
    "note",
)

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__, _MODULES)
