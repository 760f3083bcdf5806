"""Consolidation: methodologies from what many runs have in common."""

from contextgraph.consolidation.consolidator import MemoryConsolidator
from contextgraph.consolidation.grouping import ConsolidationPolicy
from contextgraph.consolidation.trigger import ConsolidationTrigger

__all__ = [
    "ConsolidationPolicy",
    "ConsolidationTrigger",
    "MemoryConsolidator",
]
