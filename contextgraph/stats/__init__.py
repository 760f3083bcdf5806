"""Statistics: what goes wrong how often, and what comes next."""

from contextgraph.stats.engine import MemoryStats, StatisticsEngine
from contextgraph.stats.history import OutcomePeriod

__all__ = ["MemoryStats", "OutcomePeriod", "StatisticsEngine"]
