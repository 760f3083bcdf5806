"""Consolidation: methodologies from what many runs have in common."""

from contextgraph.consolidation.consolidator import MemoryConsolidator as MemoryConsolidator
from contextgraph.consolidation.grouping import ConsolidationPolicy as ConsolidationPolicy
from contextgraph.consolidation.trigger import ConsolidationTrigger as ConsolidationTrigger
