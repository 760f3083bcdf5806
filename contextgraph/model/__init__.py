"""The values of the memory: Structs; as dataclasses those that callers make or pydantic reads."""

from contextgraph.model.bundle import *
from contextgraph.model.context import *
from contextgraph.model.error import *
from contextgraph.model.facts import *
from contextgraph.model.lesson import *
from contextgraph.model.methodology import *
from contextgraph.model.note import *
from contextgraph.model.passage import *
from contextgraph.model.prices import *
from contextgraph.model.session import *
from contextgraph.model.step import *
from contextgraph.model.trajectory import *
