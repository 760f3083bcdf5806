"""Statistics of errors and runs."""

from contextgraph.stats.engine import (
    LEAST_RUNS,
    Interventions,
    MemoryStats,
    OutcomePeriod,
    SolveRates,
    StatisticsEngine,
    outcomes_over_time,
)
from contextgraph.stats.errors import Friction, FrictionRemedy, errors_in

__all__ = [
    "LEAST_RUNS",
    "Friction",
    "FrictionRemedy",
    "Interventions",
    "MemoryStats",
    "OutcomePeriod",
    "SolveRates",
    "StatisticsEngine",
    "errors_in",
    "outcomes_over_time",
]
