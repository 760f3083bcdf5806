"""Statistics of errors and runs."""

from contextgraph.stats.engine import (
    Interventions as Interventions,
    MemoryStats as MemoryStats,
    StatisticsEngine as StatisticsEngine,
)
from contextgraph.stats.errors import Friction as Friction
from contextgraph.stats.figures import (
    draw_statistics as draw_statistics,
    new_figure as new_figure,
    save_figures as save_figures,
)
from contextgraph.stats.outcomes import (
    OutcomePeriod as OutcomePeriod,
    SolveRates as SolveRates,
    outcomes_over_time as outcomes_over_time,
)
