"""Consolidation: methodologies from what many runs have in common."""

from contextgraph.consolidation.abstraction import methodology_id
from contextgraph.consolidation.consolidator import MemoryConsolidator
from contextgraph.consolidation.grouping import groups_of
from contextgraph.consolidation.policy import ConsolidationPolicy
from contextgraph.consolidation.trigger import ConsolidationTrigger

__all__ = [
    "ConsolidationPolicy",
    "ConsolidationTrigger",
    "MemoryConsolidator",
    "groups_of",
    "methodology_id",
]
