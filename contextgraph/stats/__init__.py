"""Statistics: what goes wrong how often, and what comes next."""

from contextgraph.stats.engine import MemoryStats, StatisticsEngine

__all__ = ["MemoryStats", "StatisticsEngine"]
