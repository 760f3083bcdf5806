"""Statistics of errors and runs."""

from contextgraph.stats.engine import (
    LEAST_RUNS,
    Interventions,
    MemoryStats,
    StatisticsEngine,
)
from contextgraph.stats.errors import Friction, FrictionRemedy, errors_in
from contextgraph.stats.figures import draw_statistics, new_figure, save_figures
from contextgraph.stats.outcomes import OutcomePeriod, SolveRates, outcomes_over_time

__all__ = [
    "LEAST_RUNS",
    "Friction",
    "FrictionRemedy",
    "Interventions",
    "MemoryStats",
    "OutcomePeriod",
    "SolveRates",
    "StatisticsEngine",
    "draw_statistics",
    "errors_in",
    "new_figure",
    "outcomes_over_time",
    "save_figures",
]
