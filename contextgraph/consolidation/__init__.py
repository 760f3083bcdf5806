"""Consolidation: what many runs teach together, kept up to date."""

from contextgraph.consolidation.consolidator import MemoryConsolidator
from contextgraph.consolidation.grouping import groups_of
from contextgraph.consolidation.identity import methodology_id
from contextgraph.consolidation.policy import ConsolidationPolicy
from contextgraph.consolidation.routine import Routine

__all__ = ["ConsolidationPolicy", "MemoryConsolidator", "Routine", "groups_of", "methodology_id"]
